//! `matchConditions` of webhooks.
//!
//! There is no CEL here. The one expression that Kausality registers is known to the letter, and has an equivalent below.
//! Every other expression is taken to hold, so that a webhook is asked too often rather than too rarely.

use serde_json::{Map, Value};

use super::review::{Attributes, Operation};

/// What `kausality-cluster` registers (`registration.rs`).
const INTENT: &str = "request.operation != 'UPDATE' || has(request.subResource) \
    || !(request.resource.group in ['apps', 'batch']) \
    || !has(object.spec) || !has(oldObject.spec) || object.spec != oldObject.spec \
    || (has(object.metadata.annotations) && object.metadata.annotations.exists(k, \
        k in ['kausality.io/approvals', 'kausality.io/rejections'] \
        || (k.startsWith('kausality.io/') && !(has(oldObject.metadata.annotations) \
            && k in oldObject.metadata.annotations \
            && oldObject.metadata.annotations[k] == object.metadata.annotations[k])))) \
    || (has(oldObject.metadata.annotations) && oldObject.metadata.annotations.exists(k, \
        k.startsWith('kausality.io/') && !(has(object.metadata.annotations) && k in object.metadata.annotations)))";
const OURS: &str = "kausality.io/";
const WATCHED: [&str; 2] = ["kausality.io/approvals", "kausality.io/rejections"];

/// Whether a webhook is asked.
pub(super) fn hold(
    conditions: &[Value],
    attributes: &Attributes<'_>,
    object: Option<&Value>,
    old: Option<&Value>,
) -> bool {
    conditions.iter().all(|condition| {
        let expression = condition["expression"].as_str().unwrap_or_default();
        !is_intent(expression) || matters(attributes, object, old)
    })
}

/// Whether an expression is the known one, however it is spaced.
fn is_intent(expression: &str) -> bool {
    expression.split_whitespace().eq(INTENT.split_whitespace())
}

/// Whether an update touches the spec or Kausality's annotations. Everything else matters.
fn matters(attributes: &Attributes<'_>, object: Option<&Value>, old: Option<&Value>) -> bool {
    let (Some(object), Some(old)) = (object, old) else { return true };
    let workload = ["apps", "batch"].contains(&attributes.call.definition.group.as_str());
    if attributes.operation != Operation::Update || !attributes.call.subresource.is_empty() || !workload {
        return true;
    }
    let (Some(spec), Some(old_spec)) = (object.get("spec"), old.get("spec")) else { return true };
    spec != old_spec || annotations_matter(annotations(object), annotations(old))
}

fn annotations_matter(new: Option<&Map<String, Value>>, old: Option<&Map<String, Value>>) -> bool {
    let in_old = |key: &str| old.and_then(|old| old.get(key));
    let in_new = |key: &str| new.and_then(|new| new.get(key));
    let set = new.into_iter().flatten().any(|(key, value)| {
        WATCHED.contains(&key.as_str()) || (key.starts_with(OURS) && in_old(key) != Some(value))
    });
    set || old.into_iter().flatten().any(|(key, _)| key.starts_with(OURS) && in_new(key).is_none())
}

fn annotations(object: &Value) -> Option<&Map<String, Value>> {
    object.pointer("/metadata/annotations").and_then(Value::as_object)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_expression_that_kausality_registers_is_known() {
        let registration = kausality_cluster::registration::Registration {
            name: "x".to_owned(),
            url: String::new(),
            ca_pem: None,
            kinds: Vec::new(),
            fail_closed: true,
            excluded_namespaces: Vec::new(),
        };
        let manifest = registration.manifest();
        let expression = manifest.pointer("/webhooks/0/matchConditions/0/expression").and_then(Value::as_str);
        assert!(is_intent(expression.unwrap()), "write its equivalent here: {expression:?}");
    }

    #[test]
    fn only_annotations_of_kausality_matter() {
        let check = |new: Value, old: Value, expected: bool| {
            assert_eq!(annotations_matter(new.as_object(), old.as_object()), expected, "{new} {old}");
        };
        check(json!({"a": "1"}), json!({}), false);
        check(json!({"kausality.io/x": "1"}), json!({"kausality.io/x": "1"}), false);
        check(json!({"kausality.io/x": "1"}), json!({}), true);
        check(json!({}), json!({"kausality.io/x": "1"}), true);
        check(json!({"kausality.io/approvals": "1", "a": "2"}), json!({"kausality.io/approvals": "1"}), true);
    }
}
