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
    /// Makes the Secret with the salt, if there is none in it. One that is there stays as it is, whoever made it: with another
    /// salt, digests in entries and approvals could not be compared any more. Nothing waits for it.
    pub(super) async fn keep_salt(&self, anchor: Option<&Anchor>) {
        if let Err(error) = self.make_salt(anchor).await {
            tracing::warn!(%error, secret = SECRET, "there may be no salt for the digests of secrets: each replica has one of its own");
        }
    }

    async fn make_salt(&self, anchor: Option<&Anchor>) -> Result<(), Failure> {
        let found = ask("reading the salt", self.secrets().get_opt(SECRET)).await?;
        let is_salted = |secret: &Secret| {
            secret.data.as_ref().and_then(|data| data.get(FIELD)).is_some_and(|it| !it.0.is_empty())
        };
        if found.as_ref().is_some_and(is_salted) {
            return Ok(());
        }
        let mut salt = vec![0; BYTES];
        let random = rustls::crypto::aws_lc_rs::default_provider().secure_random;
        if random.fill(&mut salt).is_err() {
            return Err(Failure::Incomplete("no random bytes can be had for the salt".to_owned()));
        }
        let parameters = PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() };
        let salt = (FIELD.to_owned(), ByteString(salt));
        let made = match found {
            Some(mut empty) => {
                empty.data.get_or_insert_default().extend([salt]);
                ask("filling the salt", self.secrets().replace(SECRET, &parameters, &empty)).await
            }
            None => {
                let mut secret = Secret { data: Some(BTreeMap::from([salt])), ..Secret::default() };
                secret.metadata.name = Some(SECRET.to_owned());
                secret.metadata.owner_references = anchor.map(|anchor| vec![owner(anchor)]);
                ask("creating the salt", self.secrets().create(&parameters, &secret)).await
            }
        };
        match made {
            // Another leader was quicker.
            Err(Failure::Refused(_, error)) if is(&error, 409) => Ok(()),
            made => made.map(drop),
        }
    }
}
