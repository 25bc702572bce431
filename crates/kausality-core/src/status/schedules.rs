//! Kinds whose controller acts again at a time that their status tells.

use jiff::Timestamp;

use super::Common;
use crate::{review::Object, summary};

/// When the controller of an object acts again without being asked.
pub(super) fn due(object: &Object<'_>, status: &Common) -> Option<Timestamp> {
    match (summary::group(&object.api_version), &*object.kind) {
        ("cert-manager.io", "Certificate") => status.renewal_time.parse().ok(),
        _ => None,
    }
}

/// When an object is due to be changed by its parent's controller, as that has written on it: Argo Rollouts keeps the old
/// ReplicaSet of a blue-green rollout for a while.
pub(crate) fn due_of_child(
    group: &str,
    kind: &str,
    annotation: impl Fn(&str) -> Option<String>,
) -> Option<Timestamp> {
    match (group, kind) {
        ("apps", "ReplicaSet") => annotation("scale-down-deadline")?.parse().ok(),
        _ => None,
    }
}
