//! `matchConditions` of webhooks.
//!
//! There is no CEL here. The one expression that Kausality registers (`kausality-cluster`, `registration.rs`) is known,
//! and has an equivalent below; every other expression is taken to hold, so that a webhook is asked too often rather than
//! too rarely.

use serde_json::{Map, Value};

use super::review::{Attributes, Operation};

/// The name under which Kausality registers its expression.
const INTENT: &str = "intent-or-kausality-annotations";
const OURS: &str = "kausality.io/";
const WATCHED: [&str; 2] = ["kausality.io/approvals", "kausality.io/rejections"];

/// Whether a webhook is asked.
pub(super) fn hold(
    conditions: &[Value],
    attributes: &Attributes<'_>,
    object: Option<&Value>,
    old: Option<&Value>,
) -> bool {
    conditions.iter().all(|condition| condition["name"] != INTENT || matters(attributes, object, old))
}

/// Whether an update touches the spec or Kausality's annotations. Everything else matters.
fn matters(attributes: &Attributes<'_>, object: Option<&Value>, old: Option<&Value>) -> bool {
    let (Some(object), Some(old)) = (object, old) else { return true };
    let workload = ["apps", "batch"].contains(&attributes.call.definition.group.as_str());
    if attributes.operation != Operation::Update || !attributes.call.subresource.is_empty() || !workload {
        return true;
    }
    let (Some(spec), Some(old_spec)) = (object.get("spec"), old.get("spec")) else { return true };
    if spec != old_spec {
        return true;
    }
    let none = Map::new();
    let annotations = |object: &'_ Value| {
        object
            .pointer("/metadata/annotations")
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_else(|| none.clone())
    };
    let (new, old) = (annotations(object), annotations(old));
    new.iter().any(|(key, value)| {
        WATCHED.contains(&key.as_str()) || key.starts_with(OURS) && old.get(key) != Some(value)
    }) || old.keys().any(|key| key.starts_with(OURS) && !new.contains_key(key))
}
