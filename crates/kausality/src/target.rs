//! Objects as people name them: `deployment/web`, `deploy web`.

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use kausality_cluster::{Kind, Kinds};
use kube::{Api, Client, core::DynamicObject};

use crate::ledger::within;

/// An object of a cluster, as it was named.
#[derive(Clone, Debug)]
pub struct Target {
    /// Its kind.
    pub kind: Arc<Kind>,
    /// Its name.
    pub name: String,
}

impl Target {
    /// Reads `KIND/NAME`, or `KIND` and `NAME`.
    ///
    /// # Errors
    /// If that is neither, or the cluster does not know the kind.
    pub async fn parse(kinds: &Kinds, words: &[String]) -> Result<Self> {
        let (kind, name) = match words {
            [both] => both.split_once('/').with_context(|| format!("{both:?} is not KIND/NAME"))?,
            [kind, name] => (kind.as_str(), name.as_str()),
            _ => bail!("name one object, as KIND/NAME"),
        };
        if kind.is_empty() || name.is_empty() || name.contains('/') {
            bail!("{:?} is not KIND/NAME", words.join(" "));
        }
        Ok(Self { kind: kinds.named(kind).await?, name: name.to_owned() })
    }

    /// Reads the object.
    ///
    /// # Errors
    /// If it does not exist, or cannot be read.
    pub async fn get(&self, client: &Client, namespace: &str) -> Result<DynamicObject> {
        let api: Api<DynamicObject> = api(client, &self.kind, namespace);
        let plural = &self.kind.resource.plural;
        let found = within(&format!("cannot read {plural} {:?}", self.name), api.get_opt(&self.name)).await?;
        let place = if self.kind.namespaced { format!(" in namespace {namespace}") } else { String::new() };
        found.with_context(|| format!("{plural} {:?} not found{place}", self.name))
    }
}

/// Where the objects of a kind are.
pub(crate) fn api(client: &Client, kind: &Kind, namespace: &str) -> Api<DynamicObject> {
    if kind.namespaced {
        Api::namespaced_with(client.clone(), namespace, &kind.resource)
    } else {
        Api::all_with(client.clone(), &kind.resource)
    }
}
