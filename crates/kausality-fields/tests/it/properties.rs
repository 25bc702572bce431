//! What must hold for any two objects.

use kausality_fields::{Diff, Redaction, intent, object, redact};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// A word that must not come out again, and its base64 form as in a Secret's `data`.
const PLAIN: [&str; 2] = ["hunter2", "aHVudGVyMg=="];

/// Small alphabets, so that two values are often alike.
fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..3i64).prop_map(Value::from),
        (0..3i64).prop_map(|n| Value::from(n as f64)),
        "[ab]{0,2}".prop_map(Value::from),
    ]
}

/// Objects whose lists are, by their field's name, ordered, a set, or keyed by name.
fn tree() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(4, 24, 4, |inner| {
        let fields = btree_map("[ab.]", inner.clone(), 0..3);
        let args = vec(inner.clone().prop_filter("no keys", |value| !value.is_object()), 0..3);
        let finalizers = btree_map("[abc]", Just(()), 0..3);
        let containers = btree_map("[abc]", inner, 0..3);
        (fields, args, finalizers, containers, 0..8u8).prop_map(
            |(fields, args, finalizers, containers, lists)| {
                let mut object: Map<_, _> = fields.into_iter().collect();
                let item = |(name, value)| json!({"name": name, "value": value});
                for (bit, name, list) in [
                    (1, "args", args),
                    (2, "finalizers", finalizers.into_keys().map(Value::from).collect()),
                    (4, "containers", containers.into_iter().map(item).collect()),
                ] {
                    if lists & bit != 0 {
                        object.insert(name.to_owned(), Value::Array(list));
                    }
                }
                Value::Object(object)
            },
        )
    })
}

/// The same meaning, written differently: lists without order are turned round, integers become floats.
fn rewritten(value: &Value) -> Value {
    match value {
        Value::Number(number) => number.as_f64().map_or(Value::Null, Value::from),
        Value::Array(list) => list.iter().map(rewritten).collect(),
        Value::Object(map) => {
            let field = |(name, value): (&String, &Value)| {
                let mut value = rewritten(value);
                if let (true, Some(list)) = (is_unordered(name), value.as_array_mut()) {
                    list.reverse();
                }
                (name.clone(), value)
            };
            map.iter().map(field).collect()
        }
        scalar => scalar.clone(),
    }
}

/// One form for everything of one meaning, found without the crate.
fn normal(value: &Value) -> Value {
    match rewritten(value) {
        Value::Array(list) => list.iter().map(normal).collect(),
        Value::Object(map) => {
            let field = |(name, value): (&String, &Value)| {
                let mut value = normal(value);
                if let (true, Some(list)) = (is_unordered(name), value.as_array_mut()) {
                    list.sort_by_key(ToString::to_string);
                }
                (name.clone(), value)
            };
            map.iter().map(field).collect()
        }
        scalar => scalar,
    }
}

fn is_unordered(field: &str) -> bool {
    matches!(field, "finalizers" | "containers")
}

fn spec(old: &Value, new: &Value) -> Diff {
    intent(Some(&json!({"spec": old})), Some(&json!({"spec": new})), &Redaction::new("salt"))
}

/// Anything that a hostile or broken client could put where a Secret's data goes, full of plain values.
fn hostile() -> impl Strategy<Value = Value> {
    let plain = prop_oneof![
        Just(json!(PLAIN[0])),
        Just(json!(PLAIN[1])),
        "[a-z]{0,4}".prop_map(|text| json!(format!("{text}{}\n{text}", PLAIN[0]))),
        Just(Value::Null),
    ];
    plain.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Value::from),
            btree_map("[ab]", inner.clone(), 0..3).prop_map(|map| map.into_iter().collect()),
            inner.prop_map(|value| json!([{"name": PLAIN[0], "value": value}])),
        ]
    })
}

fn secret() -> impl Strategy<Value = Value> {
    (hostile(), hostile(), hostile(), 0..16u8).prop_map(|(data, string_data, applied, fields)| {
        let mut secret = json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque"});
        for (bit, name, value) in [
            (1, "data", data),
            (2, "stringData", string_data),
            (
                4,
                "metadata",
                json!({"annotations": {"kubectl.kubernetes.io/last-applied-configuration": applied}}),
            ),
            (8, "immutable", json!(true)),
        ] {
            if let (true, Some(object)) = (fields & bit != 0, secret.as_object_mut()) {
                object.insert(name.to_owned(), value);
            }
        }
        secret
    })
}

fn assert_safe(text: &str) -> Result<(), TestCaseError> {
    for plain in PLAIN {
        prop_assert!(!text.contains(plain), "{plain} in {text}");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_differs_from_itself(x in tree()) {
        prop_assert!(spec(&x, &x).is_empty());
        prop_assert!(spec(&x, &rewritten(&x)).is_empty());
    }

    #[test]
    fn a_diff_is_empty_exactly_if_the_meaning_is_the_same(x in tree(), y in tree()) {
        prop_assert_eq!(spec(&x, &y).is_empty(), normal(&x) == normal(&y));
    }

    #[test]
    fn a_hash_depends_on_meaning_alone(x in tree(), y in tree()) {
        let hash = spec(&x, &y).hash();
        prop_assert_eq!(&spec(&rewritten(&x), &rewritten(&y)).hash(), &hash);
        if normal(&x) != normal(&y) {
            prop_assert_ne!(&spec(&y, &x).hash(), &hash);
        }
    }

    #[test]
    fn changes_are_ordered_and_shown_one_a_line(x in tree(), y in tree()) {
        let diff = spec(&x, &y);
        prop_assert!(diff.changes.is_sorted_by(|a, b| a.path < b.path));
        prop_assert_eq!(diff.to_string().lines().count(), diff.len());
    }

    #[test]
    fn plain_values_of_secrets_are_out_of_reach(x in secret(), y in secret()) {
        let redaction = Redaction::new("salt");
        for (old, new) in [(Some(&x), Some(&y)), (None, Some(&x)), (Some(&x), None)] {
            for diff in [intent(old, new, &redaction), object(old, new, &redaction)] {
                assert_safe(&diff.to_string())?;
                assert_safe(&format!("{diff:?}"))?;
                assert_safe(&json!(diff).to_string())?;
            }
        }
        assert_safe(&redact(&x, &redaction).to_string())?;
    }

    #[test]
    fn a_secret_changes_exactly_if_its_values_do(x in secret(), y in secret()) {
        let diff = object(Some(&x), Some(&y), &Redaction::new("salt"));
        let shown = |value| redact(value, &Redaction::new("salt"));
        prop_assert_eq!(diff.is_empty(), shown(&x) == shown(&y));
    }
}

/// Says something only if `preserve_order` of serde_json is on, as any crate of a build can ask for.
#[test]
fn the_order_of_keys_is_nothing() -> serde_json::Result<()> {
    let one: Value = serde_json::from_str(r#"{"spec": {"x": {"b": 1, "a": {"d": 1, "c": 2}}}}"#)?;
    let other: Value = serde_json::from_str(r#"{"spec": {"x": {"a": {"c": 2, "d": 1}, "b": 1}}}"#)?;
    let added = |object| intent(None, Some(object), &Redaction::new("salt"));
    assert_eq!(added(&one).hash(), added(&other).hash());
    assert_eq!(added(&one).to_string(), added(&other).to_string());
    assert!(spec(&one, &other).is_empty());
    Ok(())
}
