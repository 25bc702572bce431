//! Whether the child of an entry has moved on: the change that the entry speaks of cannot be made any more, and was not.
//!
//! An entry is closed by this only where there is no doubt. Subtrees may have been completed by others, items without a key may
//! have moved, values that are digests or were shortened cannot be compared: such fields say nothing.

use std::borrow::Cow;

use jiff::Timestamp;
use kausality_api::{
    drift::{Drift as Entry, DriftState, FieldChange, MAX_VALUE},
    text::fit,
};
use kausality_fields::{Path, Scalar, Step, parse_path};
use serde_json::Value;

/// What a digest begins with, as JSON. Whoever closes entries need not know the salt.
const DIGEST: &str = "\"redacted:";

/// What a scale request names, whatever the field is called in the object behind it.
const SCALED: &str = "spec.replicas";

/// Why an open entry is superseded, if it is, by what its child is now. Paths are named, values of the child are not.
pub(super) fn superseded(entry: &Entry, child: &Value) -> Option<String> {
    let Entry { spec, status, .. } = entry;
    if child["apiVersion"] != spec.child.api_version.as_str() {
        return None;
    }
    match spec.request.operation.as_str() {
        "CREATE" if status.state != DriftState::Passed && exists_since(child, status.last_seen) => {
            Some("the child has been created since".to_owned())
        }
        "UPDATE" => {
            let change = spec.changes.iter().find(|change| is_other(change, child))?;
            let side = |value: &Option<String>| value.clone().unwrap_or_else(|| "absent".to_owned());
            let (path, old, new) = (&change.path, side(&change.old), side(&change.new));
            Some(fit(&format!("{path} of the child has changed since: neither {old} nor {new}"), MAX_VALUE))
        }
        _ => None,
    }
}

/// Whether an object was created after the attempt, and stays. The API server tells the time in seconds.
fn exists_since(child: &Value, attempt: Timestamp) -> bool {
    let metadata = &child["metadata"];
    let created = metadata["creationTimestamp"].as_str().and_then(|text| text.parse::<Timestamp>().ok());
    let attempt = attempt.as_second();
    metadata["deletionTimestamp"].is_null() && created.is_some_and(|created| created.as_second() >= attempt)
}

/// Whether a field has certainly neither of the values that the change speaks of.
fn is_other(change: &FieldChange, child: &Value) -> bool {
    let (Some(old), Some(new)) = (recorded(change.old.as_deref()), recorded(change.new.as_deref())) else {
        return false;
    };
    let Ok(path) = parse_path(&change.path) else { return false };
    match find(child, &path) {
        Found::Value(value) => Scalar::of(value).is_some_and(|now| {
            let now = Some(now);
            now != old && now != new
        }),
        Found::Absent => old.is_some() && new.is_some() && change.path != SCALED,
        Found::Unclear => false,
    }
}

/// A value without parts, or that there was none; nothing, if it cannot be told.
#[allow(clippy::option_option, reason = "the outer one says whether it is known")]
fn recorded(text: Option<&str>) -> Option<Option<Scalar>> {
    let Some(text) = text else { return Some(None) };
    if text.starts_with(DIGEST) {
        return None;
    }
    match serde_json::from_str(text).ok()? {
        Value::Null => Some(None),
        value => Scalar::of(&value).map(Some),
    }
}

/// What is at a place.
enum Found<'a> {
    Value(&'a Value),
    Absent,
    /// It cannot be told which item is meant.
    Unclear,
}

fn find<'a>(object: &'a Value, path: &Path) -> Found<'a> {
    let mut at = object;
    for step in path.steps() {
        let next = match (step, at) {
            (Step::Field(name), Value::Object(fields)) => fields.get(name),
            (Step::Key(parts), Value::Array(items)) => {
                let mut found = None;
                for item in items {
                    match has_key(item, parts) {
                        Some(false) => {}
                        Some(true) if found.is_none() => found = Some(item),
                        Some(true) | None => return Found::Unclear,
                    }
                }
                found
            }
            _ => return Found::Unclear,
        };
        match next {
            None | Some(Value::Null) => return Found::Absent,
            Some(next) => at = next,
        }
    }
    Found::Value(at)
}

/// Whether an item has these values in these fields; nothing, if it lacks one of them.
fn has_key(item: &Value, key: &[(Cow<'static, str>, Scalar)]) -> Option<bool> {
    let mut is_it = true;
    for (name, value) in key {
        is_it &= Scalar::of(item.get(&**name)?)? == *value;
    }
    Some(is_it)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn entry(operation: &str, state: &str, changes: &Value) -> Entry {
        let noon = "2026-01-25T12:00:00.5Z";
        let entry = json!({
            "apiVersion": "kausality.io/v1alpha1", "kind": "Drift", "metadata": {"name": "d", "namespace": "shop"},
            "spec": {
                "id": "d", "parentIntent": "0", "diff": "d1ff", "changes": changes,
                "parent": {"apiVersion": "v1", "kind": "A", "name": "a", "lifecyclePhase": "Initialized"},
                "child": {"apiVersion": "b.io/v1", "kind": "B", "namespace": "shop", "name": "b", "uid": "1"},
                "request": {"user": "u", "uid": "1", "operation": operation},
                "summary": {"parent": "", "child": "", "actor": "", "change": ""},
            },
            "status": {"state": state, "count": 1, "firstSeen": noon, "lastSeen": noon, "countedAt": noon},
        });
        serde_json::from_value(entry).unwrap()
    }

    fn child(spec: &Value) -> Value {
        json!({"apiVersion": "b.io/v1", "kind": "B", "metadata": {"name": "b"}, "spec": spec})
    }

    /// Whether a change at a place is superseded by this spec of the child.
    fn moved(path: &str, old: Value, new: Value, spec: Value) -> bool {
        let text = |value: Value| (!value.is_null()).then(|| value.to_string());
        let mut change = json!({"path": path});
        for (side, value) in [("old", text(old)), ("new", text(new))] {
            if let Some(value) = value {
                change[side] = value.into();
            }
        }
        superseded(&entry("UPDATE", "Blocked", &json!([change])), &child(&spec)).is_some()
    }

    #[test]
    fn a_field_with_a_third_value_has_moved_on() {
        for (now, expected) in [(2, false), (3, false), (5, true)] {
            assert_eq!(moved("spec.size", json!(2), json!(3), json!({"size": now})), expected, "{now}");
        }
        assert!(!moved("spec.size", json!(2), json!(3), json!({"size": 2.0})), "the same, written otherwise");
        assert!(moved("spec.size", json!(2), json!(3), json!({})));
        assert!(!moved("spec.size", json!(2), json!(null), json!({})), "it has gone, as was wanted");
        assert!(!moved("spec.size", json!(null), json!(3), json!({})), "it is still not there");
        assert!(moved("spec.size", json!(null), json!(3), json!({"size": 5})));
        let image = |name: &str, image: &str| json!({"containers": [{"name": "side", "image": "z"}, {"name": name, "image": image}]});
        let path = "spec.containers[name=web].image";
        assert!(!moved(path, json!("a"), json!("b"), image("web", "a")));
        assert!(moved(path, json!("a"), json!("b"), image("web", "c")));
        assert!(moved(path, json!("a"), json!("b"), image("app", "a")), "the container has gone");
    }

    #[test]
    fn what_cannot_be_compared_closes_nothing() {
        let long = format!("\"{}…", "x".repeat(20));
        let of = |change: Value, spec: Value| {
            superseded(&entry("UPDATE", "Blocked", &json!([change])), &child(&spec))
        };
        for (change, spec) in [
            // A digest; a value that was cut; a path that was.
            (json!({"path": "spec.a", "old": "\"redacted:0\"", "new": "\"redacted:1\""}), json!({"a": "x"})),
            (json!({"path": "spec.a", "old": long, "new": "\"y\""}), json!({"a": "z"})),
            (json!({"path": "spec.a[name=…", "old": "1", "new": "2"}), json!({"a": 3})),
            // Subtrees, which others may have completed.
            (json!({"path": "spec.a", "new": "{\"b\":1}"}), json!({"a": {"b": 1, "c": 2}})),
            (json!({"path": "spec.a", "old": "1", "new": "2"}), json!({"a": [3]})),
            // Items that are known by their place, by two names, or by a key that not all have.
            (json!({"path": "spec.a[0]", "old": "1", "new": "2"}), json!({"a": [3]})),
            (json!({"path": "spec.a[\"x\"]", "old": "\"x\""}), json!({"a": ["y"]})),
            (
                json!({"path": "spec.a[name=x].b", "old": "1", "new": "2"}),
                json!({"a": [{"name": "x", "b": 3}, {"name": "x", "b": 4}]}),
            ),
            (json!({"path": "spec.a[name=x].b", "old": "1", "new": "2"}), json!({"a": [{"b": 3}]})),
            // Where a scale request is stored, the kind knows.
            (json!({"path": "spec.replicas", "old": "1", "new": "2"}), json!({"size": 3})),
        ] {
            assert_eq!(of(change.clone(), spec), None, "{change}");
        }
        let change = json!([{"path": "spec.a", "old": "1", "new": "2"}]);
        let mut other = child(&json!({"a": 3}));
        assert!(superseded(&entry("UPDATE", "Blocked", &change), &other).is_some());
        other["apiVersion"] = "b.io/v2".into();
        assert_eq!(superseded(&entry("UPDATE", "Blocked", &change), &other), None, "another version");
        assert_eq!(superseded(&entry("DELETE", "Blocked", &change), &child(&json!({"a": 3}))), None);
    }

    #[test]
    fn a_denied_creation_is_superseded_by_an_object_that_was_created_since_and_stays() {
        let since = |state: &str, metadata: Value| {
            let child = json!({"apiVersion": "b.io/v1", "kind": "B", "metadata": metadata});
            superseded(&entry("CREATE", state, &json!([])), &child).is_some()
        };
        let (before, after) = ("2026-01-25T11:59:59Z", "2026-01-25T12:00:00Z");
        assert!(since("Blocked", json!({"creationTimestamp": after})));
        assert!(since("Denied", json!({"creationTimestamp": after})));
        assert!(!since("Passed", json!({"creationTimestamp": after})), "it is the one that was let pass");
        assert!(
            !since("Blocked", json!({"creationTimestamp": before})),
            "it is wanted again, although it is there"
        );
        assert!(!since("Blocked", json!({"creationTimestamp": after, "deletionTimestamp": after})));
        assert!(!since("Blocked", json!({})));
    }

    #[test]
    fn it_is_told_which_field_but_not_what_it_is() {
        let changes = json!([{"path": "spec.a", "old": "1", "new": "1"}, {"path": "spec.size", "old": "2", "new": "3"}]);
        let said = superseded(&entry("UPDATE", "Passed", &changes), &child(&json!({"a": 1, "size": 5})));
        assert_eq!(said.unwrap(), "spec.size of the child has changed since: neither 2 nor 3");
    }
}
