//! What is written when an entry has been seen again.

use jiff::Timestamp;
use kausality_api::drift::{Drift as Entry, PARENT_UID};
use kube::core::DynamicObject;
use serde_json::{Value, json};

use super::tab::{Fresh, Sighting};

/// What a count finds an entry in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// It is open, and stays so.
    Open,
    /// It is over, and all that is to be counted was seen before: it stays over.
    Over,
}

/// What changes in an entry that has been seen again.
pub(super) fn counted(entry: &Entry, unwritten: u64, last: &Sighting, now: Timestamp, found: Found) -> Value {
    let mut patch = json!({
        "metadata": {"resourceVersion": entry.metadata.resource_version},
        "status": {
            "count": entry.status.count.saturating_add(unwritten),
            "lastSeen": last.at.max(entry.status.last_seen),
            "countedAt": now,
        },
    });
    // Another replica may have written what became of it later.
    if found == Found::Open && last.at >= entry.status.last_seen {
        patch["status"]["state"] = json!(last.state);
        patch["status"]["explanation"] = json!(last.explanation);
    }
    patch
}

/// What becomes of an entry when its drift occurs anew, as the operations of a JSON patch: a merge would leave fields of
/// the old objects behind. Endpoints are told again, and can tell by the request that it is not the same occurrence.
pub(super) fn renewed(object: &DynamicObject, fresh: &Fresh, last: &Sighting, now: Timestamp) -> Value {
    let Entry { metadata, spec, status, .. } = &*fresh.entry;
    let mut labels = object.metadata.labels.clone().unwrap_or_default();
    labels.remove(PARENT_UID);
    labels.extend(metadata.labels.clone());
    let mut status = status.clone();
    (status.state, status.explanation) = (last.state, last.explanation.clone());
    (status.count, status.last_seen, status.counted_at) = (fresh.count, last.at, now);
    let replace = |path: &str, value: Value| json!({"op": "add", "path": path, "value": value});
    json!([
        replace("/metadata/resourceVersion", json!(object.metadata.resource_version)),
        replace("/metadata/labels", json!(labels)),
        replace("/spec", json!(spec)),
        replace("/status", json!(status)),
    ])
}
