//! The certificate of the webhook, and whom API servers are to trust for it.

use std::{sync::PoisonError, time::Duration};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{api::core::v1::Secret, apimachinery::pkg::apis::meta::v1::OwnerReference};
use kube::{Api, api::PostParams};

use super::{Controller, Failure, MANAGER, RESYNC, Source, ask, is, kinds};
use crate::{
    certificates::{self, Action, Stored, Wanted, external},
    desired::{Anchor, conditions::Trouble},
};

/// How much is done to certificates at once.
const MAX_ACTIONS: usize = 8;

/// The bundle that API servers are to trust, and when to look again; or why there is none.
type Certified = Result<(String, Duration), Trouble>;

impl Controller {
    /// Sees to the certificate. `trusted` is the bundle that the stored configuration has.
    pub(super) async fn certify(
        &self,
        trusted: Option<&str>,
        anchor: Option<&Anchor>,
    ) -> Result<Certified, Failure> {
        match &self.settings.certificates {
            Source::Own(wanted) => self.keep_own(wanted, trusted, anchor).await,
            Source::External { settling } => self.take_external(*settling, trusted).await,
        }
    }

    async fn take_external(
        &self,
        settling: SignedDuration,
        trusted: Option<&str>,
    ) -> Result<Certified, Failure> {
        let present = self.secret().await?.and_then(|secret| secret.data?.remove("ca.crt"));
        let present = present.and_then(|present| String::from_utf8(present.0).ok());
        let Some(present) = present.filter(|present| present.contains("-----BEGIN")) else {
            let place = format!("{}/{}", self.settings.namespace, self.settings.secret);
            let why = format!("Secret {place} has no ca.crt, and is for others to write");
            return Ok(Err(Trouble::NoCertificate(why)));
        };
        self.metrics.certified(external::expiry(&present));
        let now = Timestamp::now();
        let mut overlap = self.overlap.lock().unwrap_or_else(PoisonError::into_inner);
        let (bundle, until) = overlap.bundle(now, trusted, &present, settling);
        Ok(Ok((bundle, until.map_or(RESYNC, |until| left(now, until)))))
    }

    async fn keep_own(
        &self,
        wanted: &Wanted,
        trusted: Option<&str>,
        anchor: Option<&Anchor>,
    ) -> Result<Certified, Failure> {
        for _ in 0..MAX_ACTIONS {
            let secret = self.secret().await?;
            let stored = secret.as_ref().map(certificates::read).unwrap_or_default();
            let now = Timestamp::now();
            let action = certificates::step(now, &stored, trusted, wanted);
            if let Action::Wait(until) = action {
                let secret = secret.unwrap_or_default();
                if !certificates::is_written(&stored, &secret) {
                    tracing::warn!(
                        "somebody has written into the Secret with the certificate: it is repaired"
                    );
                    self.store(&stored, Some(secret), anchor).await?;
                }
                self.metrics.certified(stored.authority.as_ref().map(|authority| authority.term.until));
                return Ok(Ok((stored.bundle(), left(now, until))));
            }
            tracing::info!(action = action.name(), "certificates");
            let stored = certificates::perform(&action, now, &stored, wanted)?;
            self.store(&stored, secret, anchor).await?;
        }
        Ok(Err(Trouble::NoCertificate(
            "certificates are over as soon as they are made: give longer lifetimes".to_owned(),
        )))
    }

    async fn secret(&self) -> Result<Option<Secret>, Failure> {
        ask("reading the certificate", self.secrets().get_opt(&self.settings.secret)).await
    }

    /// Writes the Secret, at the version that was read: two never rotate at once. Whoever comes second looks again.
    async fn store(
        &self,
        stored: &Stored,
        secret: Option<Secret>,
        anchor: Option<&Anchor>,
    ) -> Result<(), Failure> {
        let name = &self.settings.secret;
        let (is_new, mut secret) = (secret.is_none(), secret.unwrap_or_default());
        certificates::write(stored, &mut secret);
        secret.metadata.managed_fields = None;
        secret.metadata.name = Some(name.clone());
        secret.metadata.owner_references = anchor.map(|anchor| vec![owner(anchor)]);
        let parameters = PostParams { field_manager: Some(MANAGER.to_owned()), ..PostParams::default() };
        let written = if is_new {
            ask("creating the certificate", self.secrets().create(&parameters, &secret)).await
        } else {
            ask("writing the certificate", self.secrets().replace(name, &parameters, &secret)).await
        };
        match written {
            Err(Failure::Refused(_, error)) if is(&error, 409) => Ok(()),
            other => other.map(drop),
        }
    }

    pub(super) fn secrets(&self) -> Api<Secret> {
        Api::namespaced(self.client.clone(), &self.settings.namespace)
    }
}

fn left(now: Timestamp, until: Timestamp) -> Duration {
    Duration::try_from(until.duration_since(now)).unwrap_or_default()
}

pub(super) fn owner(anchor: &Anchor) -> OwnerReference {
    let resource = kinds::role();
    OwnerReference {
        api_version: resource.api_version,
        kind: resource.kind,
        name: anchor.name.clone(),
        uid: anchor.uid.clone(),
        ..OwnerReference::default()
    }
}
