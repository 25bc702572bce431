//! The salt of the digests that stand for secrets.

use std::collections::BTreeMap;

use k8s_openapi::{ByteString, api::core::v1::Secret};
use kausality_cluster::salt::{FIELD, SECRET};
use kube::api::PostParams;

use super::{Controller, Failure, MANAGER, ask, certify::owner, is};
use crate::desired::Anchor;

/// How many random bytes it has.
const BYTES: usize = 32;

impl Controller {
    /// Makes the Secret with the salt, if there is none. One that is there stays as it is, whoever made it: with another salt,
    /// digests in entries and approvals could not be compared any more. Nothing waits for it.
    pub(super) async fn keep_salt(&self, anchor: Option<&Anchor>) {
        if let Err(error) = self.make_salt(anchor).await {
            tracing::warn!(%error, secret = SECRET, "there may be no salt for the digests of secrets: a public one stands in");
        }
    }

    async fn make_salt(&self, anchor: Option<&Anchor>) -> Result<(), Failure> {
        if ask("reading the salt", self.secrets().get_opt(SECRET)).await?.is_some() {
            return Ok(());
        }
        let mut salt = vec![0; BYTES];
        let random = rustls::crypto::aws_lc_rs::default_provider().secure_random;
        if random.fill(&mut salt).is_err() {
            return Err(Failure::Incomplete("no random bytes can be had for the salt".to_owned()));
        }
        let mut secret = Secret {
            data: Some(BTreeMap::from([(FIELD.to_owned(), ByteString(salt))])),
            ..Secret::default()
        };
        secret.metadata.name = Some(SECRET.to_owned());
        secret.metadata.owner_references = anchor.map(|anchor| vec![owner(anchor)]);
        let parameters = PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() };
        match ask("creating the salt", self.secrets().create(&parameters, &secret)).await {
            // Another leader was quicker.
            Err(Failure::Refused(_, error)) if is(&error, 409) => Ok(()),
            made => made.map(drop),
        }
    }
}
