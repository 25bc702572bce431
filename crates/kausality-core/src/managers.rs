//! What managed fields tell: who writes a parent's status, and who sends a request.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use kausality_api::annotation::PREFIX;
use kausality_fields::{
    Path,
    attribution::{Handover, attribute, handovers},
};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::value::RawValue;

use crate::review::{Metadata, Object, Request, Text};

#[derive(Deserialize)]
struct Entry<'a> {
    #[serde(borrow, default)]
    manager: Text<'a>,
    #[serde(borrow, default)]
    time: Text<'a>,
    #[serde(borrow, default)]
    subresource: Text<'a>,
    #[serde(borrow, default, rename = "fieldsV1")]
    fields: Option<&'a RawValue>,
}

fn entries<'a>(metadata: &Metadata<'a>) -> Vec<Entry<'a>> {
    let raw = metadata.managed_fields.map(|raw| serde_json::from_str(raw.get()));
    raw.and_then(Result::ok).unwrap_or_default()
}

/// Managers that people use, never controllers.
pub(crate) fn is_of_people(manager: &str) -> bool {
    manager.starts_with("kubectl") || matches!(manager, "cmctl" | "k9s" | "oc")
}

/// The commands of kubectl that write, each of which is a manager.
const KUBECTL: [&str; 17] = [
    "annotate",
    "autoscale",
    "client-side-apply",
    "create",
    "debug",
    "edit",
    "expose",
    "label",
    "last-applied",
    "patch",
    "replace",
    "rollout",
    "run",
    "scale",
    "set",
    "taint",
    "apply",
];

/// Managers of tools by which one asks a controller for something, by way of the status: `cmctl`, and plugins of kubectl such as
/// that of Argo Rollouts.
pub(crate) fn is_plugin(manager: &str) -> bool {
    manager == "cmctl" || manager.strip_prefix("kubectl-").is_some_and(|command| !KUBECTL.contains(&command))
}

/// The managers that report on an object as controllers do: they own `observedGeneration`, conditions or a phase in its
/// status.
#[must_use]
pub fn of_status(metadata: &Metadata<'_>) -> Vec<String> {
    #[derive(Deserialize)]
    struct Fields {
        #[serde(default, rename = "f:status")]
        status: Option<Status>,
    }
    #[derive(Deserialize)]
    struct Status {
        #[serde(default, rename = "f:observedGeneration")]
        observed_generation: Option<IgnoredAny>,
        #[serde(default, rename = "f:conditions")]
        conditions: Option<IgnoredAny>,
        #[serde(default, rename = "f:phase")]
        phase: Option<IgnoredAny>,
    }

    owners(metadata, |fields| {
        let fields = serde_json::from_str::<Fields>(fields).ok();
        fields.and_then(|fields| fields.status).is_some_and(|status| {
            status.observed_generation.is_some() || status.conditions.is_some() || status.phase.is_some()
        })
    })
    .into_iter()
    .filter(|manager| !is_of_people(manager))
    .collect()
}

/// The managers that made an owner the owner of an object: its controllers, if it controls the object.
pub(crate) fn of_owner(metadata: &Metadata<'_>, uid: &str) -> Vec<String> {
    if uid.is_empty() {
        return Vec::new();
    }
    let key = format!("k:{{\\\"uid\\\":\\\"{uid}\\\"}}");
    owners(metadata, |fields| fields.contains(&key))
}

/// Whether an object was there before it came to have this owner: whoever made that its owner has set nothing of what it wants.
pub(crate) fn is_adopted(metadata: &Metadata<'_>, uid: &str) -> bool {
    let sets_intent = |fields: &str| {
        let fields = serde_json::from_str::<BTreeMap<Text<'_>, IgnoredAny>>(fields).unwrap_or_default();
        fields.keys().any(|field| **field != *"f:metadata" && **field != *"f:status")
    };
    let (adopters, makers) = (of_owner(metadata, uid), owners(metadata, sets_intent));
    !adopters.is_empty() && !makers.is_empty() && !adopters.iter().any(|adopter| makers.contains(adopter))
}

/// The managers that keep an object from going until they have cleaned up after it.
pub(crate) fn of_finalizers(metadata: &Metadata<'_>) -> Vec<String> {
    owners(metadata, |fields| fields.contains("\"f:finalizers\""))
}

/// Those of our annotations that were written by the controllers of an object or of its parent: copies from elsewhere, not
/// somebody's decisions about this object. One that nobody owns may be a person's.
pub(crate) fn copied<'a>(metadata: &Metadata<'a>, controllers: &BTreeSet<String>) -> BTreeSet<&'a str> {
    let before = format!("\"f:{PREFIX}");
    let mut owned: BTreeMap<&str, bool> = BTreeMap::new();
    for entry in entries(metadata) {
        let fields = entry.fields.map_or("", RawValue::get);
        for (start, found) in fields.match_indices(&before) {
            let rest = fields.get(start + found.len() - PREFIX.len()..).unwrap_or_default();
            let key = rest.split_once('"').map_or(rest, |(key, _)| key);
            *owned.entry(key).or_insert(true) &= controllers.contains(&*entry.manager);
        }
    }
    owned.into_iter().filter(|(_, copied)| *copied).map(|(key, _)| key).collect()
}

/// Whether an annotation was sent by the client: API servers ascribe fields before admission, so that nobody owns what a webhook
/// adds. Without managed fields nothing can be told, and it counts as sent.
#[must_use]
pub fn is_sent(metadata: &Metadata<'_>, annotation: &str) -> bool {
    let key = format!("\"f:{annotation}\"");
    entries(metadata).is_empty() || !owners(metadata, |fields| fields.contains(&key)).is_empty()
}

/// Whether a request is sent by the controllers of its object or of the object's parent, as field managers tell: people's
/// annotations that it brings are copies.
pub(crate) fn copies(request: &Request<'_>) -> bool {
    let Some(shown) = request.old_object.as_ref().or(request.object.as_ref()) else { return false };
    let owner = shown.metadata.owner.as_ref().map_or("", |owner| &owner.uid);
    of_request(request).is_some_and(|manager| {
        of_owner(&shown.metadata, owner).contains(&manager) || of_status(&shown.metadata).contains(&manager)
    })
}

/// The managers whose fields are such.
fn owners(metadata: &Metadata<'_>, owns: impl Fn(&str) -> bool) -> Vec<String> {
    let mut known = BTreeSet::new();
    let owning = entries(metadata)
        .into_iter()
        .filter(|entry| entry.fields.is_some_and(|fields| owns(fields.get())))
        .map(|entry| entry.manager.to_string());
    owning.filter(|manager| known.insert(manager.clone())).collect()
}

/// That a manager wrote the status of an object, and when it last did so, to the second.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusWrite {
    /// The manager.
    pub manager: String,
    /// When.
    pub at: Timestamp,
}

/// Who wrote the status of an object, as far as its managed fields tell.
#[must_use]
pub fn status_writes(metadata: &Metadata<'_>) -> Vec<StatusWrite> {
    let of_status = entries(metadata).into_iter().filter(|entry| entry.subresource == "status");
    of_status
        .filter_map(|entry| {
            Some(StatusWrite { manager: entry.manager.to_string(), at: entry.time.parse().ok()? })
        })
        .collect()
}

/// When the status of an object was last written, as far as its managed fields tell.
#[must_use]
pub(crate) fn last_status_write(metadata: &Metadata<'_>) -> Option<Timestamp> {
    status_writes(metadata).into_iter().map(|write| write.at).max()
}

/// The write of a status that a request is, as its object will show it.
#[must_use]
pub fn status_write(request: &Request<'_>) -> Option<StatusWrite> {
    let writes = status_writes(&request.object.as_ref()?.metadata);
    // Where only values change, managed fields stay as they are: who alone reports on the object has written them.
    let alone = || {
        let manager = &writes.first()?.manager;
        writes.iter().all(|write| write.manager == *manager).then(|| manager.clone())
    };
    let manager = of_request(request).or_else(alone)?;
    writes.into_iter().filter(|write| write.manager == manager).max_by_key(|write| write.at)
}

/// When an object was last written, as far as its managed fields tell.
#[must_use]
pub fn last_write(metadata: &Metadata<'_>) -> Option<Timestamp> {
    entries(metadata).iter().filter_map(|entry| entry.time.parse().ok()).max()
}

/// The manager that sends a request: the one it names, else the one whose entry it changes.
#[must_use]
pub fn of_request(request: &Request<'_>) -> Option<String> {
    let named = request.options.as_ref().map(|options| &*options.field_manager).unwrap_or_default();
    if !named.is_empty() {
        return Some(named.to_owned());
    }
    let attribution = attribute(text(request.old_object.as_ref()), text(request.object.as_ref())).ok()?;
    let mut written = attribution
        .written
        .iter()
        .map(|moved| &moved.owner)
        .filter(|owner| owner.subresource == *request.sub_resource)
        .map(|owner| owner.manager.as_str());
    let manager = written.next()?;
    // Several managers cannot have sent one request: no evidence.
    written.all(|other| other == manager).then(|| manager.to_owned())
}

/// Who owned each of these fields before a request, and who does after; nothing if managed fields make no sense.
#[must_use]
pub fn of_fields<'p>(request: &Request<'_>, paths: impl IntoIterator<Item = &'p Path>) -> Vec<Handover> {
    handovers(text(request.old_object.as_ref()), text(request.object.as_ref()), paths).unwrap_or_default()
}

/// The managed fields of an object, unread.
fn text<'a>(object: Option<&Object<'a>>) -> Option<&'a str> {
    object?.metadata.managed_fields.map(RawValue::get)
}

#[cfg(test)]
mod tests;
