use super::*;
use crate::review::Object;

fn hash(text: &str) -> IntentHash {
    IntentHash::of(&Object::parse(text).unwrap().intent)
}

#[track_caller]
fn check(a: &str, b: &str, equal: bool) {
    let (left, right) = (Object::parse(a).unwrap(), Object::parse(b).unwrap());
    assert_eq!(same(&left.intent, &right.intent), equal, "{a} / {b}");
    assert_eq!(same(&right.intent, &left.intent), equal, "{b} / {a}");
    assert_eq!(hash(a) == hash(b), equal, "hash of {a} / {b}");
}

#[test]
fn intent_is_all_but_metadata_and_status() {
    check(
        r#"{"kind":"A","metadata":{"name":"a"},"status":{"x":1}}"#,
        r#"{"kind":"B","apiVersion":"v1"}"#,
        true,
    );
    check(r#"{"spec":{"a":1}}"#, r#"{"spec":{"a":2}}"#, false);
    check(r#"{"data":{"a":"1"}}"#, r#"{"data":{"a":"2"}}"#, false);
    check(r#"{"rules":[]}"#, r#"{}"#, false);
    check(r#"{"spec":{}}"#, r#"{"data":{}}"#, false);
}

#[test]
fn meaning_counts_not_spelling() {
    check(r#"{"spec":{"a":1,"b":[1,2]}}"#, r#"{"spec":{ "b": [1, 2], "a": 1 }}"#, true);
    check(r#"{"spec":{"a":1.0}}"#, r#"{"spec":{"a":1}}"#, true);
    check(r#"{"spec":{"a":"é"}}"#, r#"{"spec":{"a":"\u00e9"}}"#, true);
    check(r#"{"spec":1,"data":2}"#, r#"{"data":2,"spec":1}"#, true);
    check(r#"{"spec":{"b":[2,1]}}"#, r#"{"spec":{"b":[1,2]}}"#, false);
    check(r#"{"spec":{"a":null}}"#, r#"{"spec":{}}"#, false);
    check(r#"{"spec":{"a":"1"}}"#, r#"{"spec":{"a":1}}"#, false);
    check(r#"{"spec":{"a":18446744073709551615}}"#, r#"{"spec":{"a":-1}}"#, false);
    check(r#"{"spec":{"a":0.1}}"#, r#"{"spec":{"a":0.2}}"#, false);
    check(r#"{"spec":["ab","c"]}"#, r#"{"spec":["a","bc"]}"#, false);
    check(r#"{"spec":[["a"],"b"]}"#, r#"{"spec":[["a","b"]]}"#, false);
}

#[test]
fn depth_is_no_trap() {
    let deep = |leaf: &str| format!(r#"{{"spec":{}{leaf}{}}}"#, "[".repeat(5000), "]".repeat(5000));
    check(&deep("1"), &deep("1"), true);
    check(&deep("1"), &deep("2"), false);
}

#[test]
fn the_hash_is_stable_and_reads_back() {
    let hash = hash(r#"{"spec":{"replicas":3}}"#);
    insta::assert_snapshot!(hash, @"7829e609ebec03de");
    assert_eq!(IntentHash::parse(&hash.to_string()), Some(hash));
    for bad in ["", "xyz", "123", "00000000000000000", "+123456789abcdef"] {
        assert_ne!(IntentHash::parse(bad).map(|hash| hash.to_string()).as_deref(), Some(bad), "{bad}");
    }
}
