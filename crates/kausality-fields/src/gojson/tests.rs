use super::{Escape, string, value};
use serde_json::{Value, json};

#[track_caller]
fn check_string(text: &str, least: &str, html: &str) {
    for (escape, expected) in [(Escape::Least, least), (Escape::Html, html)] {
        let mut out = String::new();
        string(&mut out, text, escape);
        assert_eq!(out, expected);
    }
}

#[track_caller]
fn check(of: Value, expected: &str) {
    let mut out = String::new();
    value(&mut out, &of);
    assert_eq!(out, expected);
}

#[test]
fn strings_are_escaped_as_go_does() {
    check_string("", r#""""#, r#""""#);
    check_string("a/ä\u{7f}", "\"a/ä\u{7f}\"", "\"a/ä\u{7f}\"");
    check_string("\"\\\n\r\t\u{8}\u{0}", r#""\"\\\n\r\t\u0008\u0000""#, r#""\"\\\n\r\t\u0008\u0000""#);
    check_string("<&>", r#""<&>""#, r#""\u003c\u0026\u003e""#);
    check_string("a\u{2028}b\u{2029}", "\"a\u{2028}b\u{2029}\"", r#""a\u2028b\u2029""#);
}

#[test]
fn numbers_are_written_as_go_does() {
    for (number, expected) in [
        (json!(0), "0"),
        (json!(-53), "-53"),
        (json!(53.0), "53"),
        (json!(0.1), "0.1"),
        (json!(1e20), "100000000000000000000"),
        (json!(1e21), "1e+21"),
        (json!(1.5e300), "1.5e+300"),
        (json!(0.000001), "0.000001"),
        (json!(1e-7), "1e-07"),
        (json!(-2.5e-10), "-2.5e-10"),
        (json!(i64::MAX), "9223372036854775807"),
        (json!(u64::MAX), "18446744073709552000"),
    ] {
        check(number, expected);
    }
}

#[test]
fn keys_are_sorted() {
    check(json!({"b": [1, null, true], "a": {"<": "&"}}), r#"{"a":{"\u003c":"\u0026"},"b":[1,null,true]}"#);
}
