//! The webhook's certificate, from a Secret.

use std::{fmt, str::FromStr, time::Duration};

use anyhow::{Context, Result, bail};
use kausality_cluster::{Which, alarm};
use kausality_webhook::Certificates;
use kube::{
    Api, Client,
    core::{ApiResource, DynamicObject, GroupVersionKind},
};
use tokio::sync::Notify;

use super::in_time;

/// How soon a Secret that could not be read is read again.
const RETRY: Duration = Duration::from_secs(1);

/// Which Secret.
#[derive(Clone, Debug)]
pub(super) struct SecretName {
    namespace: String,
    name: String,
}

impl FromStr for SecretName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('/') {
            Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() => {
                Ok(Self { namespace: namespace.to_owned(), name: name.to_owned() })
            }
            _ => Err("give it as NAMESPACE/NAME".to_owned()),
        }
    }
}

impl fmt::Display for SecretName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret {}/{}", self.namespace, self.name)
    }
}

impl SecretName {
    /// The namespace, which is Kausality's own.
    pub(super) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Has handshakes show what is in the Secret, for ever. What cannot be used leaves the one before it in use.
    pub(super) async fn follow(self, client: Client, certificates: Certificates) {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Secret"));
        let api: Api<DynamicObject> = Api::namespaced_with(client, &self.namespace, &resource);
        let changed = Notify::new();
        let take = async {
            let mut last = None;
            loop {
                changed.notified().await;
                while let Err(error) = self.take(&api, &certificates, &mut last).await {
                    tracing::warn!(secret = %self, error = format!("{error:#}"), "the certificate cannot be used");
                    tokio::select! {
                        () = changed.notified() => {}
                        () = tokio::time::sleep(RETRY) => {}
                    }
                }
            }
        };
        tokio::select! {
            () = alarm(api.clone(), Which::named(&self.name), "the certificate", &changed) => {}
            () = take => {}
        }
    }

    async fn take(
        &self,
        api: &Api<DynamicObject>,
        certificates: &Certificates,
        last: &mut Option<(Vec<u8>, Vec<u8>)>,
    ) -> Result<()> {
        let Some(secret) = in_time(api.get_opt(&self.name)).await.context("cannot read it")? else {
            return Ok(());
        };
        let data = |key: &str| {
            let text = secret.data.get("data").and_then(|data| data.get(key)?.as_str());
            base64::Engine::decode(&base64::prelude::BASE64_STANDARD, text.unwrap_or_default())
        };
        let pair = (data("tls.crt")?, data("tls.key")?);
        // Whoever writes it may not be ready to have one served.
        if pair.0.is_empty() || last.as_ref() == Some(&pair) {
            return Ok(());
        }
        if let Err(error) = certificates.set(&pair.0, &pair.1) {
            bail!("{error}");
        }
        tracing::info!(secret = %self, "certificate replaced");
        *last = Some(pair);
        Ok(())
    }
}
