use super::{Encoder, same};
use serde_json::{Value, json};

fn check(a: Value, b: Value, expected: bool) {
    assert_eq!(same(None, &a, &b), expected, "{a} and {b}");
    assert_eq!(same(None, &b, &a), expected, "{b} and {a}");
}

#[test]
fn the_same_meaning_has_one_encoding() {
    check(json!({"a": [1, 2.0]}), json!({"a": [1.0, 2]}), true);
    check(
        json!({"env": [{"name": "a"}, {"name": "b"}]}),
        json!({"env": [{"name": "b"}, {"name": "a"}]}),
        true,
    );
    check(json!({"finalizers": ["a", "b"]}), json!({"finalizers": ["b", "a"]}), true);
    assert!(same(Some("finalizers"), &json!(["a", "b"]), &json!(["b", "a"])));
}

#[test]
fn other_meanings_have_other_encodings() {
    check(json!(["a", "b"]), json!(["b", "a"]), false);
    check(json!(["ab", "c"]), json!(["a", "bc"]), false);
    check(json!([[], 1]), json!([[1]]), false);
    check(json!([["a"], "b"]), json!([["a", "b"]]), false);
    check(json!({"a": {"b": 1}}), json!({"a": {}, "b": 1}), false);
    check(json!({"a": null}), json!({}), false);
    check(json!([]), json!({}), false);
    check(json!(null), json!(false), false);
    check(json!("1"), json!(1), false);
    check(json!(0.5), json!("0.5"), false);
    check(json!(true), json!(false), false);
}

#[test]
fn a_digest_is_hexadecimal_sha_256() {
    assert_eq!(Encoder::default().digest(16), "e3b0c44298fc1c14");
}
