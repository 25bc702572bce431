//! Kinds whose controller acts again at a time that their status tells.

use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;

use super::{Common, lenient, parse};
use crate::{review::Object, summary};

/// When the controller of an object acts again without being asked.
pub(super) fn due(object: &Object<'_>, status: &Common) -> Option<Timestamp> {
    match (summary::group(&object.api_version), &*object.kind) {
        ("cert-manager.io", "Certificate") => status.renewal_time.parse().ok(),
        ("external-secrets.io", "ExternalSecret") => refresh(object, status),
        _ => None,
    }
}

/// When External Secrets reads a store again.
fn refresh(object: &Object<'_>, status: &Common) -> Option<Timestamp> {
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct Spec {
        #[serde(deserialize_with = "lenient")]
        refresh_interval: String,
        #[serde(deserialize_with = "lenient")]
        refresh_policy: String,
    }
    let spec: Spec = object.intent.field("spec").map(parse)?;
    let interval: SignedDuration = spec.refresh_interval.parse().ok()?;
    let last: Timestamp = status.refresh_time.parse().ok()?;
    // 0 stands for never.
    let is_periodic = matches!(&*spec.refresh_policy, "" | "Periodic") && !interval.is_zero();
    last.checked_add(interval).ok().filter(|_| is_periodic)
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
