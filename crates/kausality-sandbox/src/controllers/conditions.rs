//! Conditions of a status.

use serde_json::{Value, json};

use super::{Time, object};

/// A condition as a controller wants it to be.
#[derive(Clone, Debug)]
pub(crate) struct Condition<'a> {
    pub(crate) kind: &'a str,
    pub(crate) status: &'a str,
    pub(crate) reason: &'a str,
    pub(crate) message: String,
}

/// The condition of a type.
pub(crate) fn find<'a>(status: &'a Value, kind: &str) -> Option<&'a Value> {
    object::items(&status["conditions"]).iter().find(|condition| condition["type"] == kind)
}

/// Whether the condition of a type is true.
pub(crate) fn holds(status: &Value, kind: &str) -> bool {
    find(status, kind).is_some_and(|condition| condition["status"] == "True")
}

/// The reason of the condition of a type.
pub(crate) fn reason<'a>(status: &'a Value, kind: &str) -> &'a str {
    find(status, kind).map(|condition| object::text(&condition["reason"])).unwrap_or_default()
}

/// Sets a condition, unless one with the same status and reason is there. Like the real controllers, the changed one
/// goes to the end of the list, and keeps its transition time while its status stays. Says whether it changed anything.
pub(crate) fn set(status: &mut Value, condition: &Condition<'_>, now: Time) -> bool {
    let held = find(status, condition.kind);
    if held.is_some_and(|it| it["status"] == condition.status && it["reason"] == condition.reason) {
        return false;
    }
    renew(status, condition, now);
    true
}

/// Sets a condition with a fresh update time, whatever is there.
pub(crate) fn renew(status: &mut Value, condition: &Condition<'_>, now: Time) {
    let since = find(status, condition.kind)
        .filter(|it| it["status"] == condition.status)
        .map(|it| it["lastTransitionTime"].clone())
        .unwrap_or_else(|| json!(now.rfc3339()));
    remove(status, condition.kind);
    push(
        status,
        json!({
            "type": condition.kind, "status": condition.status, "reason": condition.reason,
            "message": condition.message, "lastUpdateTime": now.rfc3339(), "lastTransitionTime": since,
        }),
    );
}

/// Sets a condition that has no update time: those of all kinds but Deployments.
pub(crate) fn set_plain(status: &mut Value, condition: &Condition<'_>, now: Time) {
    if set(status, condition, now)
        && let Some(last) = status["conditions"].as_array_mut().and_then(|list| list.last_mut())
        && let Some(fields) = last.as_object_mut()
    {
        fields.remove("lastUpdateTime");
    }
}

/// Removes the condition of a type.
pub(crate) fn remove(status: &mut Value, kind: &str) {
    if let Some(list) = status["conditions"].as_array_mut() {
        list.retain(|condition| condition["type"] != kind);
        if list.is_empty()
            && let Some(fields) = status.as_object_mut()
        {
            fields.remove("conditions");
        }
    }
}

/// Adds a condition as it is.
pub(crate) fn push(status: &mut Value, condition: Value) {
    match status["conditions"].as_array_mut() {
        Some(list) => list.push(condition),
        None => status["conditions"] = Value::Array(vec![condition]),
    }
}
