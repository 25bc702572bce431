use std::collections::BTreeSet;

use serde_json::json;

use super::*;

#[test]
fn different_values_have_different_names() {
    let values = [
        json!(null),
        json!("null"),
        json!(1),
        json!("1"),
        json!([]),
        json!({}),
        json!([1, 2]),
        json!([[1], 2]),
        json!({ "a": "b" }),
        json!({ "ab": "" }),
        json!({ "a": { "b": "" } }),
        json!(["a", "b"]),
        json!(["ab"]),
    ];
    let names: BTreeSet<_> = values.iter().map(short).collect();
    assert_eq!(names.len(), values.len());
}

#[test]
fn a_name_is_stable_and_safe() {
    let one: Value = serde_json::from_str(r#"{"a": 1, "b": [true]}"#).unwrap();
    let two: Value = serde_json::from_str(r#"{"b": [true], "a": 1}"#).unwrap();
    assert_eq!(short(&one), short(&two));
    assert_eq!(short(&one).len(), 10);
    assert!(short(&one).bytes().all(|byte| ALPHABET.contains(&byte)));
    assert_eq!(short(&json!({ "image": "web:1" })), STABLE);
}

/// Names that are stored must not change.
const STABLE: &str = "h5hrrsxwtf";
