use super::{Redaction, redact, redact_both};
use crate::{Diff, Leaf, intent, object};
use serde_json::{Value, json};

fn salt() -> Redaction {
    Redaction::new("salt")
}

fn secret(data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": data})
}

/// Masks the digests, which other tests look at.
fn masked(text: &str) -> String {
    let mut parts = text.split("redacted:");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |masked, part| {
        let (digest, rest) = part.split_at(12);
        assert!(digest.chars().all(|c| c.is_ascii_hexdigit()), "{digest}");
        masked + "#" + rest
    })
}

fn check(old: Value, new: Value, expected: &str) {
    let diff = object(Some(&old), Some(&new), &salt());
    assert_eq!(masked(&diff.to_string()), expected, "from {old} to {new}");
    for text in [format!("{diff:?}"), serde_json::to_string(&diff).unwrap(), diff.to_string()] {
        assert!(!text.contains("plain"), "{text}");
    }
    for side in [old, new] {
        let text = redact(&side, &salt()).to_string();
        assert!(side.get("kind").is_none() || !text.contains("plain"), "{text}");
    }
}

#[test]
fn values_are_digests() {
    check(secret(json!({"a": "plain1"})), secret(json!({"a": "plain2"})), "data.a: # → #");
    check(secret(json!({"a": "plain"})), secret(json!({"a": "plain", "b": "plain"})), "data.b: + #");
    check(secret(json!({"a": "plain"})), secret(json!({})), "data.a: - #");
    check(secret(json!({"a": {"b": "plain"}})), secret(json!({"a": ["plain"]})), "data.a: # → #");
    check(secret(json!({"a": null})), secret(json!({"a": "plain"})), "data.a: # → #");
    let with = |name: &str, value| json!({"apiVersion": "v1", "kind": "Secret", name: value});
    check(
        with("x", json!(1)),
        with("stringData", json!({"a": "plain"})),
        "stringData: + {\"a\":\"#\"}\nx: - 1",
    );
    check(
        with("stringData", json!({"a": "plain"})),
        with("stringData", json!({"a": "plain2"})),
        "stringData.a: # → #",
    );
}

#[test]
fn what_stands_in_the_place_of_a_map_is_a_digest() {
    check(secret(json!("plain1")), secret(json!("plain2")), "data: # → #");
    check(secret(json!(["plain1"])), secret(json!(["plain2"])), "data: # → #");
    check(secret(json!([{"name": "plain1"}])), secret(json!([])), "data: # → #");
    check(secret(json!(null)), secret(json!({"a": "plain"})), r##"data: null → {"a":"#"}"##);
}

#[test]
fn copies_of_the_object_are_digests() {
    let bare = json!({"apiVersion": "v1", "kind": "Secret"});
    for name in super::COPIES {
        let annotations = |copy: &Value| json!({"annotations": {"a": "b", name: copy}});
        let with = |copy| json!({"apiVersion": "v1", "kind": "Secret", "metadata": annotations(&copy)});
        check(
            with(json!("plain1")),
            with(json!("plain2")),
            &format!(r#"metadata.annotations["{name}"]: # → #"#),
        );
        let removed = object(Some(&with(json!("plain"))), Some(&bare), &salt());
        let digest = salt().marker(&json!("plain"));
        assert_eq!(json!(removed), json!([{"path": "metadata", "old": annotations(&digest)}]));
    }
}

#[test]
fn one_side_that_is_a_secret_is_enough() {
    let (kind, data) = (json!({"kind": "Secret"}), json!({"data": {"a": "plain"}}));
    check(
        data.clone(),
        kind.clone(),
        r##"data: - {"a":"#"}
kind: + Secret"##,
    );
    check(
        kind.clone(),
        data,
        r##"data: + {"a":"#"}
kind: - Secret"##,
    );
    check(kind, json!("plain"), r##".: {"kind":"Secret"} → #"##);
}

#[test]
fn only_secrets_are_redacted() {
    let text = |api: &str, kind: &str| {
        let with = |value| json!({"apiVersion": api, "kind": kind, "data": {"a": value}});
        assert_eq!(redact(&with("x"), &salt()) == with("x"), kind != "Secret" || api == "x.io/v1");
        masked(&intent(Some(&with("x")), Some(&with("y")), &salt()).to_string())
    };
    assert_eq!(text("v1", "ConfigMap"), "data.a: x → y");
    assert_eq!(text("x.io/v1", "Secret"), "data.a: x → y");
    assert_eq!(text("v1", "Secret"), "data.a: # → #");
}

#[test]
fn a_missing_api_version_is_taken_for_v1() {
    let with = |value| json!({"kind": "Secret", "data": {"a": value}});
    assert_eq!(redact(&with(json!("plain")), &salt()), with(salt().marker(&json!("plain"))));
}

#[test]
fn the_rest_of_a_secret_stays() {
    let with = |data: Value, copy: &str| {
        json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "immutable": true, "data": data,
            "metadata": {"name": "s", "annotations": {"a": "b", "kubectl.kubernetes.io/last-applied-configuration": copy}}})
    };
    let safe = redact(&with(json!({"k": "v"}), "{}"), &salt());
    let digests = |pointer: &str| safe.pointer(pointer).cloned().unwrap();
    let copy = digests("/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration");
    assert_eq!(safe, with(json!({"k": digests("/data/k")}), copy.as_str().unwrap()));
}

#[test]
fn annotations_and_labels_that_quote_a_value_are_digests() {
    let with = |data: Value, text: &str| {
        json!({"kind": "Secret", "metadata": {"annotations": {"note": text}, "labels": {"note": text}},
            "data": data["data"], "stringData": data["stringData"]})
    };
    // "s3cret", "ab" and "other".
    let data =
        json!({"data": {"a": "czNjcmV0", "b": "YWI=", "c": "", "d": "IA=="}, "stringData": {"e": "other"}});
    let is_shown = |text: &str| {
        let object = with(data.clone(), text);
        let metadata = &redact(&object, &salt())["metadata"];
        let shown = &metadata["annotations"]["note"];
        assert!(shown == text || *shown == salt().marker(&json!(text)), "{shown}");
        assert_eq!(metadata["labels"]["note"], *shown);
        shown == text
    };
    for quoting in ["s3cret", "it was s3cret!", "czNjcmV0", "x=czNjcmV0;", "ab", "YWI", "another", "b3RoZXI="]
    {
        assert!(!is_shown(quoting), "{quoting}");
    }
    for harmless in ["", " ", "s3cre", "a", "abc", "stable"] {
        assert!(is_shown(harmless), "{harmless}");
    }
    let (old, new) = (
        with(json!({"data": {"a": "czNjcmV0"}}), "new is other"),
        with(json!({"stringData": {"a": "other"}}), "old was s3cret"),
    );
    let (safe_old, safe_new) = redact_both(Some(&old), Some(&new), &salt());
    for (object, alone, both) in [(old, 2, safe_old), (new, 2, safe_new)] {
        let quotes = |object: &Value| {
            object.to_string().matches(" is ").count() + object.to_string().matches(" was ").count()
        };
        assert_eq!((quotes(&redact(&object, &salt())), quotes(&both.unwrap())), (alone, 0));
    }
    assert_eq!(redact_both(None, None, &salt()), (None, None));
    let other = json!({"kind": "ConfigMap", "metadata": {"annotations": {"note": "s3cret"}}, "data": {"a": "s3cret"}});
    assert_eq!(redact_both(None, Some(&other), &salt()), (None, Some(other.clone())));
}

fn digests(old: &str, new: &str, salt: &str) -> [String; 2] {
    let Diff { changes } =
        intent(Some(&secret(json!({"a": old}))), Some(&secret(json!({"a": new}))), &Redaction::new(salt));
    let leaves = [changes[0].old.clone(), changes[0].new.clone()];
    leaves.map(|leaf| match leaf {
        Some(Leaf::Redacted(digest)) => digest,
        other => panic!("not redacted: {other:?}"),
    })
}

#[test]
fn digests_tell_values_apart_and_depend_on_the_salt() {
    let [x, y] = digests("x", "y", "salt");
    assert_ne!(x, y);
    assert_eq!(digests("y", "x", "salt"), [y, x.clone()]);
    assert_ne!(digests("x", "y", "pepper")[0], x);
    let safe = redact(&secret(json!({"b": "x"})), &salt());
    assert_eq!(safe["data"]["b"], format!("redacted:{x}"));
}

#[test]
fn the_hash_of_a_change_depends_on_the_salt() {
    let hash = |salt: &str| {
        intent(Some(&secret(json!({"a": "x"}))), Some(&secret(json!({"a": "y"}))), &Redaction::new(salt))
            .hash()
    };
    assert_eq!(hash("salt"), "a368e26c8dcd3918");
    assert_ne!(hash("salt"), hash("pepper"));
}

#[test]
fn the_salt_is_not_shown() {
    assert_eq!(format!("{:?}", Redaction::new("pepper")), "Redaction { .. }");
}

#[test]
fn a_literal_that_looks_like_a_digest_is_told_apart() {
    let config = |value| json!({"kind": "ConfigMap", "data": {"a": value}});
    let diff = intent(Some(&config("redacted:0")), Some(&config("x")), &salt());
    assert_eq!(diff.to_string(), r#"data.a: "redacted:0" → x"#);
}
