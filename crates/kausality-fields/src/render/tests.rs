use super::{excerpt, first_shown};
use crate::{Leaf, Redaction, intent};
use serde_json::{Value, json};

fn check(value: Value, expected: &str) {
    assert_eq!(Leaf::Value(value).to_string(), expected);
}

fn change(old: &str, new: &str) -> String {
    let object = |value| json!({"a": value});
    intent(Some(&object(old)), Some(&object(new)), &Redaction::new("")).to_string()
}

#[test]
fn plain_words_stand_without_quotes() {
    for word in ["a", "registry.io/shop/app:1.0@sha256:00", "--log=debug", "25%", "10.0.0.1", "a,b", "é"] {
        check(json!(word), word);
    }
    for text in
        ["", "a b", "1", "1.0", "1e3", "true", "false", "null", "+", "-", "redacted:00", "{}", "a…", "→"]
    {
        check(json!(text), &format!("\"{text}\""));
    }
}

#[test]
fn other_values_are_json() {
    check(json!(null), "null");
    check(json!(1.5), "1.5");
    check(json!([]), "[]");
    check(json!({}), "{}");
    check(
        json!({"z": [1, "a", {"q": null}, [], {}], "b": {"y": true, "x": ""}}),
        r#"{"b":{"x":"","y":true},"z":[1,"a",{"q":null},[],{}]}"#,
    );
}

#[test]
fn nothing_breaks_the_line() {
    check(json!("a\nb\r\tc"), r#""a\nb\r\tc""#);
    check(json!("say \"hi\" \\"), r#""say \"hi\" \\""#);
    check(json!("\u{1b}[31m\u{7f}\u{9b}\u{85}"), r#""\u001b[31m\u007f\u009b\u0085""#);
    check(json!("a\u{2028}b\u{202e}c\u{200b}d\u{feff}"), r#""a\u2028b\u202ec\u200bd\ufeff""#);
    check(json!({"a\nb": "c\nd"}), r#"{"a\nb":"c\nd"}"#);
}

#[test]
fn long_values_are_cut_to_80_characters() {
    let long = |length| "é".repeat(length);
    assert_eq!(change("x", &long(80)), format!("a: x → {}", long(80)));
    assert_eq!(change("x", &long(81)), format!("a: x → {}…", long(79)));
    let added = intent(None, Some(&json!({"a": [long(100)]})), &Redaction::new("")).to_string();
    assert_eq!(added, format!("a: + [\"{}…", long(77)));
    let removed = intent(Some(&json!({"a": long(100)})), None, &Redaction::new("")).to_string();
    assert_eq!(removed, format!("a: - {}…", long(79)));
}

#[test]
fn long_values_that_begin_alike_are_shown_where_they_differ() {
    let (same, context) = ("s".repeat(500), "s".repeat(20));
    assert_eq!(
        change(&format!("{same}old"), &format!("{same}new")),
        format!("a: …{context}old → …{context}new")
    );
    assert_eq!(change(&same, &format!("{same}new")), format!("a: …{context} → …{context}new"));
    let tail = "t".repeat(100);
    let cut = "t".repeat(80 - 20 - 1 - 3 - 1);
    assert_eq!(
        change(&format!("{same}old{tail}"), &format!("{same}new{tail}")),
        format!("a: …{context}old{cut}… → …{context}new{cut}…")
    );
}

#[test]
fn an_early_difference_is_shown_from_the_start() {
    let (old, new) = ("s".repeat(60) + "old" + &"t".repeat(80), "s".repeat(60) + "new");
    assert_eq!(first_shown(&old, &new), 0);
    assert_eq!(first_shown(&format!("s{old}"), &format!("s{new}")), 41);
    assert_eq!(excerpt("abc", 0), "abc");
    assert_eq!(excerpt("abc", 1), "…bc");
}

#[test]
fn many_changes_can_be_limited() {
    let object = |value: usize| Value::Object((0..5).map(|n| (format!("f{n}"), json!(value))).collect());
    let diff = intent(Some(&object(1)), Some(&object(2)), &Redaction::new(""));
    assert_eq!(diff.limited(0).to_string(), "… and 5 more");
    assert_eq!(diff.limited(2).to_string(), "f0: 1 → 2\nf1: 1 → 2\n… and 3 more");
    assert_eq!(diff.limited(5).to_string(), diff.to_string());
    assert_eq!(diff.to_string().lines().count(), 5);
    assert_eq!(crate::Diff::default().limited(0).to_string(), "");
}
