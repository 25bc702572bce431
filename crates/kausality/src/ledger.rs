//! The ledger, read from a cluster.
//!
//! ```text
//!  Place (-n, -A, --cluster) ──▶ Ledger::read ──▶ Entries ──▶ Filter, Reference ──▶ the drifts that are meant
//! ```

use std::{collections::BTreeSet, time::Duration};

use anyhow::{Context, Result, bail};
use clap::Args;
use kausality_api::{
    API_VERSION, GROUP,
    drift::{Drift, PARENT_UID, cause::DriftKey},
    text::plain,
};
use kausality_cluster::Kinds;
use kausality_core::Summary;
use kube::{
    Api, Client,
    api::ListParams,
    core::{ApiResource, DynamicObject},
};
use serde::Deserialize as _;
use serde_json::Value;

mod filter;
#[cfg(test)]
pub(crate) mod fixture;
mod follow;
pub(crate) mod present;
pub(crate) mod reasons;
mod reference;
pub(crate) mod request;
pub(crate) mod rules;

pub(crate) use filter::{Filter, Selection};
pub(crate) use follow::{Known, News, follow};
pub(crate) use reference::{NamedObject, ObjectName, Reference, Wanted};

/// How long one answer of the API server may take.
const DEADLINE: Duration = Duration::from_secs(30);

/// How many drifts are asked for at once.
const PAGE: u32 = 500;

/// Where to look.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Place {
    /// The namespace to look in [default: that of the context]
    #[arg(short, long, value_name = "NAME")]
    pub(crate) namespace: Option<String>,

    /// Look in all namespaces, and at children that have none
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    pub(crate) all_namespaces: bool,

    /// Look only at children that have no namespace
    #[arg(long, conflicts_with_all = ["namespace", "all_namespaces"])]
    pub(crate) cluster: bool,
}

impl Place {
    /// What that means for a client.
    pub(crate) fn scope(&self, client: &Client) -> Scope {
        if self.all_namespaces {
            Scope::Everywhere
        } else if self.cluster {
            Scope::Cluster
        } else {
            Scope::Namespace(self.namespace.clone().unwrap_or_else(|| client.default_namespace().to_owned()))
        }
    }
}

/// Which part of the ledger is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// One namespace.
    Namespace(String),
    /// All namespaces, and what has none.
    Everywhere,
    /// What has no namespace.
    Cluster,
}

impl std::fmt::Display for Scope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Namespace(namespace) => write!(f, "in namespace {}", plain(namespace)),
            Self::Everywhere => f.write_str("in the cluster"),
            Self::Cluster => f.write_str("of children without a namespace"),
        }
    }
}

/// A drift, and the object as the cluster has it.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) drift: Drift,
    pub(crate) object: Value,
}

impl Entry {
    /// Reads an object of the ledger.
    pub(crate) fn of(mut object: Value, resource: &ApiResource) -> Result<Self> {
        // Items of lists need not say what they are.
        if let Some(fields) = object.as_object_mut() {
            fields.insert("apiVersion".to_owned(), API_VERSION.into());
            fields.insert("kind".to_owned(), resource.kind.as_str().into());
        }
        let drift = Drift::deserialize(&object)?;
        Ok(Self { drift, object })
    }

    /// `drift/0123456789abcdef`, as kubectl names objects.
    pub(crate) fn full_name(&self) -> String {
        let kind = if self.drift.metadata.namespace.is_empty() { "clusterdrift" } else { "drift" };
        plain(&format!("{kind}/{}", self.drift.metadata.name)).into_owned()
    }
}

/// The ledger of a cluster.
pub(crate) struct Ledger {
    pub(crate) client: Client,
    pub(crate) kinds: Kinds,
}

impl Ledger {
    pub(crate) fn new(client: Client) -> Self {
        Self { kinds: Kinds::new(client.clone()), client }
    }

    /// The drifts there, with these labels, the oldest first. What cannot be read is told on standard error.
    pub(crate) async fn read(&self, scope: &Scope, labels: Option<&str>) -> Result<Vec<Entry>> {
        Ok(self.known(scope, labels).await?.entries)
    }

    /// The same, and where they are: with it they can be followed.
    pub(crate) async fn known(&self, scope: &Scope, labels: Option<&str>) -> Result<Known> {
        let mut scopes = vec![scope.clone()];
        let mut entries = self.list(scope, labels).await?;
        if *scope == Scope::Everywhere {
            match self.list(&Scope::Cluster, labels).await {
                Ok(more) => {
                    entries.extend(more);
                    scopes.push(Scope::Cluster);
                }
                Err(error) => anstream::eprintln!("note: {}", plain(&format!("{error:#}"))),
            }
        }
        let order = |entry: &Entry| {
            let Drift { metadata, status, .. } = &entry.drift;
            (metadata.namespace.clone(), status.first_seen, metadata.name.clone())
        };
        entries.sort_by_cached_key(order);
        Ok(Known { entries, scopes, labels: labels.map(str::to_owned) })
    }

    /// The open drifts of children of a parent.
    pub(crate) async fn of_parent(&self, parent: &Summary) -> Result<Vec<Entry>> {
        let scope = match parent.id.namespace.as_str() {
            "" => Scope::Everywhere,
            namespace => Scope::Namespace(namespace.to_owned()),
        };
        let mut entries = self.read(&scope, Some(&format!("{PARENT_UID}={}", parent.uid))).await?;
        entries.retain(|entry| entry.drift.status.state.is_open());
        Ok(entries)
    }

    async fn list(&self, scope: &Scope, labels: Option<&str>) -> Result<Vec<Entry>> {
        let (api, resource) = self.api(scope);
        let mut entries = Vec::new();
        let mut parameters = ListParams { limit: Some(PAGE), ..ListParams::default() };
        parameters.label_selector = labels.map(str::to_owned);
        loop {
            let page = within("the API server does not list drifts", api.list(&parameters)).await;
            let page = page.map_err(|error| explained(error, scope, &resource))?;
            for object in page.items {
                let name = object.metadata.name.clone().unwrap_or_default();
                match serde_json::to_value(object).map_err(Into::into).and_then(|it| Entry::of(it, &resource))
                {
                    Ok(entry) => entries.push(entry),
                    Err(error) => {
                        let kind = &resource.kind;
                        let note = format!("{kind} {name} cannot be read: {error:#}");
                        anstream::eprintln!("note: {}", plain(&note));
                    }
                }
            }
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => parameters.continue_token = Some(token),
                None => return Ok(entries),
            }
        }
    }

    /// Where the drifts of a scope are. Those without a namespace have a place of their own.
    pub(crate) fn api(&self, scope: &Scope) -> (Api<DynamicObject>, ApiResource) {
        let (kind, plural) = match scope {
            Scope::Cluster => ("ClusterDrift", "clusterdrifts"),
            _ => ("Drift", "drifts"),
        };
        let resource = ApiResource {
            group: GROUP.to_owned(),
            version: API_VERSION.rsplit('/').next().unwrap_or_default().to_owned(),
            api_version: API_VERSION.to_owned(),
            kind: kind.to_owned(),
            plural: plural.to_owned(),
        };
        let api = match scope {
            Scope::Namespace(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            _ => Api::all_with(self.client.clone(), &resource),
        };
        (api, resource)
    }

    /// The one drift that is meant.
    ///
    /// # Errors
    /// If there is none, or there are several.
    pub(crate) async fn one(&self, place: &Place, name: &str) -> Result<Entry> {
        let scope = place.scope(&self.client);
        let wanted = Reference::parse(name)?.resolve(&self.kinds).await?;
        let entries = self.read(&scope, None).await?;
        let mut found = self.meant(&scope, entries, &wanted).await?;
        if let Wanted::Object(_) = wanted
            && found.len() > 1
        {
            let (open, _): (Vec<_>, Vec<_>) =
                found.iter().cloned().partition(|entry| entry.drift.status.state.is_open());
            if open.len() == 1 {
                found = open;
            }
        }
        match (found.pop(), found.is_empty()) {
            (Some(entry), true) => Ok(entry),
            (Some(entry), false) => {
                found.push(entry);
                bail!("{}", reference::ambiguous(name, &found))
            }
            (None, _) => bail!("there is no drift of {name:?} {scope}"),
        }
    }

    /// For each name the drifts that it means, among these and as they are selected. Who names a drift by its id means it
    /// even if it is over; no drift is found twice.
    ///
    /// # Errors
    /// If an id means nothing or too much.
    pub(crate) async fn named<'a>(
        &self,
        names: &'a [String],
        scope: &Scope,
        entries: &[Entry],
        selection: &Selection,
    ) -> Result<Vec<(&'a str, Vec<Entry>)>> {
        let mut known = BTreeSet::new();
        let mut all = Vec::new();
        for name in names {
            let wanted = Reference::parse(name)?.resolve(&self.kinds).await?;
            let mut found = match &wanted {
                Wanted::Id(_) => self.meant(scope, entries.to_vec(), &wanted).await?,
                Wanted::Object(_) => wanted.find(entries.to_vec())?,
            };
            found.retain(|Entry { drift, .. }| match &wanted {
                Wanted::Id(_) => selection.would_have(drift),
                Wanted::Object(_) => selection.has(drift),
            });
            let is_any = !found.is_empty();
            found.retain(|entry| known.insert(DriftKey::of(&entry.drift)));
            if is_any && found.is_empty() {
                continue;
            }
            all.push((name.as_str(), found));
        }
        Ok(all)
    }

    /// The drifts that a reference means. An id is looked for among those without a namespace, too.
    pub(crate) async fn meant(
        &self,
        scope: &Scope,
        entries: Vec<Entry>,
        wanted: &Wanted,
    ) -> Result<Vec<Entry>> {
        let found = wanted.find(entries)?;
        if !found.is_empty() || !matches!((scope, wanted), (Scope::Namespace(_), Wanted::Id(_))) {
            return wanted.found(found, scope);
        }
        // Who may not read them is told that there is none where they may.
        let others = self.list(&Scope::Cluster, None).await.unwrap_or_default();
        wanted.found(wanted.find(others)?, scope)
    }
}

/// The API server says no.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
struct Refusal {
    code: u16,
    message: String,
}

/// Waits for an answer, but not for ever.
pub(crate) async fn within<T>(what: &str, answer: impl Future<Output = Result<T, kube::Error>>) -> Result<T> {
    let answer = tokio::time::timeout(DEADLINE, answer).await;
    let seconds = DEADLINE.as_secs();
    let answer = answer.with_context(|| format!("{what}: no answer within {seconds} s"))?;
    let answer = answer.map_err(|error| match error {
        // Its own text would say everything twice.
        kube::Error::Api(status) => Refusal { code: status.code, message: status.message.clone() }.into(),
        error => anyhow::anyhow!(kausality_cluster::reason(&error)),
    });
    answer.context(what.to_owned())
}

/// The HTTP code with which the API server says no, if it does.
pub(crate) fn refused(error: &anyhow::Error) -> Option<u16> {
    error.downcast_ref::<Refusal>().map(|refusal| refusal.code)
}

/// What to do about a list that was not given.
fn explained(error: anyhow::Error, scope: &Scope, resource: &ApiResource) -> anyhow::Error {
    let plural = &resource.plural;
    match refused(&error) {
        Some(404) => anyhow::anyhow!(
            "this cluster has no {plural}.{GROUP}: is Kausality installed? `{} doctor` tells",
            crate::output::program()
        ),
        Some(403) => {
            let hint = match scope {
                Scope::Everywhere => ", or name a namespace with -n",
                _ => "",
            };
            anyhow::anyhow!(
                "you may not list {plural} {scope}: ask for the verb \"list\" on \"{plural}\" of {GROUP}{hint}"
            )
        }
        _ => error,
    }
}
