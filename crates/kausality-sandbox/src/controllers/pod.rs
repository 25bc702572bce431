//! Pods: in which state they are, which of them go first, and how they come from a template.

use std::cmp::Reverse;

use serde_json::{Value, json};

use super::{Resource, Time, conditions, object};

/// Whether it has not ended and is not to end.
pub(crate) fn active(pod: &Value) -> bool {
    !object::deleting(pod) && !finished(pod)
}

/// Whether it has ended by itself.
pub(crate) fn finished(pod: &Value) -> bool {
    matches!(object::text(&pod["status"]["phase"]), "Succeeded" | "Failed")
}

/// Whether it has ended well.
pub(crate) fn succeeded(pod: &Value) -> bool {
    pod["status"]["phase"] == "Succeeded"
}

/// Whether it has ended badly.
pub(crate) fn failed(pod: &Value) -> bool {
    pod["status"]["phase"] == "Failed"
}

/// Whether it is ready.
pub(crate) fn ready(pod: &Value) -> bool {
    conditions::holds(&pod["status"], "Ready")
}

/// Whether it runs and is ready.
pub(crate) fn running_and_ready(pod: &Value) -> bool {
    pod["status"]["phase"] == "Running" && ready(pod)
}

/// When it became ready, if it is.
fn ready_since(pod: &Value) -> Option<Time> {
    let condition = conditions::find(&pod["status"], "Ready").filter(|it| it["status"] == "True")?;
    Some(object::moment(&condition["lastTransitionTime"]).unwrap_or_default())
}

/// From when on it counts as available: some time after it became ready.
pub(crate) fn available_from(pod: &Value, min_ready_seconds: i64) -> Option<Time> {
    let since = ready_since(pod)?;
    Some(u64::try_from(min_ready_seconds).map_or(since, |seconds| since.after_seconds(seconds)))
}

/// Whether it has been ready for long enough. Moments of ready Pods have whole seconds, so that a Pod without a wait is
/// available at once.
pub(crate) fn available(pod: &Value, min_ready_seconds: i64, now: Time) -> bool {
    if min_ready_seconds <= 0 {
        ready(pod)
    } else {
        available_from(pod, min_ready_seconds).is_some_and(|at| at <= now)
    }
}

/// When the first of these Pods that is ready but not yet available will be.
pub(crate) fn next_available<'a>(
    pods: impl Iterator<Item = &'a Value>,
    min_ready_seconds: i64,
    now: Time,
) -> Option<Time> {
    if min_ready_seconds <= 0 {
        return None;
    }
    pods.filter_map(|pod| available_from(pod, min_ready_seconds)).filter(|at| *at > now).min()
}

/// Pods in the order in which they are deleted when there are too many: those first that are less far, cost less, are
/// younger.
pub(crate) fn in_deletion_order(mut pods: Vec<&Value>) -> Vec<&Value> {
    pods.sort_by_cached_key(|pod| (rank(pod), object::name(pod)));
    pods
}

fn rank(pod: &Value) -> (u8, bool, i64, Reverse<Option<Time>>, Reverse<Time>) {
    let phase = match object::text(&pod["status"]["phase"]) {
        "Running" => 2,
        "Unknown" => 1,
        _ => 0,
    };
    let cost = object::annotation(pod, "controller.kubernetes.io/pod-deletion-cost");
    let cost = cost.and_then(|cost| cost.parse().ok()).unwrap_or_default();
    (phase, ready(pod), cost, Reverse(ready_since(pod)), Reverse(object::created(pod)))
}

/// A Pod from a template, as its owner's controller creates it; the API makes up the rest of its name.
pub(crate) fn from_template(template: &Value, resource: &Resource, owner: &Value) -> Value {
    let mut metadata = json!({
        "generateName": format!("{}-", object::name(owner)),
        "namespace": object::namespace(owner),
        "ownerReferences": object::owned_by(resource, owner),
    });
    for field in ["labels", "annotations", "finalizers"] {
        let value = &template["metadata"][field];
        if !value.is_null() {
            metadata[field] = value.clone();
        }
    }
    json!({ "apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"] })
}

#[cfg(test)]
mod tests;
