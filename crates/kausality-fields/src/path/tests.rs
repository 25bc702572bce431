use super::{Path, Scalar, Step};
use serde_json::{Value, json};

fn field(name: &str) -> Step {
    Step::Field(name.to_owned())
}

fn key(parts: &[(&'static str, Value)]) -> Step {
    Step::Key(parts.iter().map(|(name, value)| ((*name).into(), Scalar::of(value).unwrap())).collect())
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
    check(&[field("finalizers"), Step::Value("x".into())], r#"finalizers["x"]"#);
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
fn numbers_are_equal_by_value() {
    let same = |a: Value, b: Value| Scalar::of(&a) == Scalar::of(&b);
    assert!(same(json!(1), json!(1.0)));
    assert!(same(json!(-3), json!(-3.0)));
    assert!(same(json!(1u64 << 63), json!((1u64 << 63) as f64)));
    assert!(!same(json!(u64::MAX), json!(u64::MAX as f64)));
    assert!(!same(json!(1e300), json!(1e301)));
    assert!(!same(json!(0.1), json!(0.2)));
    assert_eq!(Scalar::of(&json!(null)), None);
}
