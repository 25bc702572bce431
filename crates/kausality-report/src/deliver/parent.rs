//! Whether a parent is snoozed, read live: a person who has just silenced it is not to be told.

use std::time::Duration;

use jiff::Timestamp;
use kausality_api::{
    annotation::{SNOOZE, SNOOZE_UNTIL},
    report::ParentReference,
    snooze::Snooze,
};
use kausality_cluster::{Kinds, UnknownKind};
use kube::{Api, Client};

/// What is known of a parent's snooze.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Quiet {
    /// It is snoozed until then, or was; or never was.
    Known(Option<Timestamp>),
    /// The parent is gone.
    Gone,
    /// Nobody can tell at present, for this reason.
    Unknown(String),
}

/// Looks whether a parent is snoozed. Where it may not be read at all, it counts as awake: better told than kept quiet.
pub(super) async fn quiet(
    client: &Client,
    kinds: &Kinds,
    parent: &ParentReference,
    within: Duration,
) -> Quiet {
    let kind = match kinds.of_kind(&parent.api_version, &parent.kind).await {
        Ok(kind) => kind,
        Err(UnknownKind::NotServed(_)) => return Quiet::Gone,
        Err(error) => return Quiet::Unknown(error.to_string()),
    };
    let api: Api<kube::core::DynamicObject> = if kind.namespaced {
        Api::namespaced_with(client.clone(), &parent.namespace, &kind.resource)
    } else {
        Api::all_with(client.clone(), &kind.resource)
    };
    let (kind, namespace, name) = (&parent.kind, &parent.namespace, &parent.name);
    let found = match tokio::time::timeout(within, api.get_metadata_opt(name)).await {
        Ok(Ok(found)) => found,
        Ok(Err(kube::Error::Api(status))) if status.code == 403 => {
            tracing::warn!(kind, namespace, name, "may not be read: it counts as not snoozed");
            return Quiet::Known(None);
        }
        Ok(Err(error)) => return Quiet::Unknown(error.to_string()),
        Err(_) => return Quiet::Unknown(format!("no answer within {within:?}")),
    };
    let same = |uid: &Option<String>| parent.uid.is_none() || *uid == parent.uid;
    match found.filter(|found| same(&found.metadata.uid)) {
        None => Quiet::Gone,
        Some(found) => {
            let annotations = found.metadata.annotations.unwrap_or_default();
            let texts = [SNOOZE, SNOOZE_UNTIL].into_iter().filter_map(|name| annotations.get(name));
            // One that cannot be understood silences nothing.
            Quiet::Known(texts.filter_map(|text| Snooze::decode(text).ok()).map(|snooze| snooze.expiry).max())
        }
    }
}
