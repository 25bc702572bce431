use super::{Path, Step};
use crate::scalar::Scalar;
use serde_json::{Value, json};

fn field(name: &str) -> Step {
    Step::Field(name.to_owned())
}

fn key(parts: &[(&'static str, Value)]) -> Step {
    Step::Key(parts.iter().map(|(name, value)| ((*name).into(), Scalar::or_null(value).unwrap())).collect())
}

fn check(steps: &[Step], expected: &str) {
    let path: Path = steps.iter().cloned().collect();
    assert_eq!(path.to_string(), expected);
    assert_eq!(serde_json::to_value(&path).unwrap(), expected);
    assert_eq!(path.steps(), steps);
}

#[test]
fn steps_are_joined() {
    check(&[], ".");
    check(&[field("a"), field("b"), Step::Index(3), field("c")], "a.b[3].c");
    check(
        &[field("ports"), key(&[("port", json!(53)), ("protocol", json!("UDP"))])],
        "ports[port=53,protocol=UDP]",
    );
    check(&[field("finalizers"), Step::Value(Scalar::Text("x".into()))], r#"finalizers["x"]"#);
    check(&[field("ids"), Step::Value(Scalar::Integer(5))], "ids[=5]");
    check(&[field("ids"), key(&[("id", Value::Null)])], "ids[id=null]");
}

#[test]
fn unusual_field_names_are_quoted() {
    for plain in ["a", "a-b_c", "app/name", "$ref", "größe"] {
        check(&[field("m"), field(plain)], &format!("m.{plain}"));
    }
    for (name, quoted) in [
        ("", r#""""#),
        ("kubernetes.io/x", r#""kubernetes.io/x""#),
        ("a[0]", r#""a[0]""#),
        ("a b", r#""a b""#),
        ("a\"\\", r#""a\"\\""#),
        ("a\nb", r#""a\nb""#),
        ("a: x → y", r#""a: x → y""#),
    ] {
        check(&[field("m"), field(name), field("c")], &format!("m[{quoted}].c"));
        check(&[field(name)], &format!("[{quoted}]"));
    }
}

#[test]
fn unusual_key_values_are_quoted() {
    for plain in ["app", "/etc/ssl", "10.0.0.1", "node.kubernetes.io/arch", "fd00::1", "*.example.com"] {
        check(&[key(&[("k", json!(plain))])], &format!("[k={plain}]"));
    }
    for text in ["", "a b", "a,b=c", "a]", "1", "1.5", "true", "null"] {
        check(&[key(&[("k", json!(text))])], &format!(r#"[k="{text}"]"#));
    }
    for value in [json!(1), json!(1.5), json!(true)] {
        check(&[key(&[("k", value.clone())])], &format!("[k={value}]"));
    }
}

#[test]
fn steps_are_ordered_by_kind() {
    let ordered = [
        field("a"),
        field("b"),
        key(&[("name", json!("a"))]),
        key(&[("port", json!(80))]),
        key(&[("port", json!(443))]),
        key(&[("port", json!(443)), ("protocol", json!("TCP"))]),
        Step::Value(Scalar::Integer(9)),
        Step::Value(Scalar::Text("a".into())),
        Step::Index(0),
        Step::Index(10),
    ];
    assert!(ordered.is_sorted_by(|a, b| a < b));
}
