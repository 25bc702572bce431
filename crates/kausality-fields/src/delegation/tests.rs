use super::*;
use serde_json::json;
use std::borrow::Cow;

fn field(name: &str) -> Step {
    Step::Field(name.to_owned())
}

fn key(parts: &[(&'static str, Value)]) -> Step {
    Step::Key(parts.iter().map(|(name, value)| (Cow::Borrowed(*name), Scalar::of(value).unwrap())).collect())
}

fn delegation(text: &str) -> Delegation {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

fn check(delegation: &str, steps: &[Step], manager: &str, value: Value) -> bool {
    self::delegation(delegation).allows(&steps.iter().cloned().collect(), manager, Some(&value))
}

fn replicas(delegation: &str, manager: &str, value: Value) -> bool {
    check(delegation, &[field("spec"), field("replicas")], manager, value)
}

#[test]
fn a_field_is_left_to_one_manager_or_to_any() {
    assert!(replicas("spec.replicas=hpa-controller", "hpa-controller", json!(3)));
    assert!(!replicas("spec.replicas=hpa-controller", "helm", json!(3)));
    assert!(replicas("spec.replicas=*", "helm", json!(3)));
    assert!(replicas("spec=*", "helm", json!(3)));
    assert!(replicas("spec.*=*", "helm", json!(3)));
    assert!(!replicas("spec.replicas.x=*", "helm", json!(3)));
    assert!(!replicas("spec.paused=*", "helm", json!(3)));
    assert!(replicas(r#"spec.replicas="system:x""#, "system:x", json!(3)));
}

#[test]
fn bounds_are_included() {
    for (value, within) in [(0, false), (1, true), (10, true), (11, false)] {
        assert_eq!(
            replicas("spec.replicas=kube-controller-manager:1..10", "kube-controller-manager", json!(value)),
            within
        );
    }
    assert!(replicas("spec.replicas=*:1..", "x", json!(1_000_000)));
    assert!(!replicas("spec.replicas=*:..5", "x", json!(6)));
    assert!(replicas("spec.replicas=*:100m..1Gi", "x", json!("500Mi")));
    assert!(!replicas("spec.replicas=*:100m..1Gi", "x", json!("2Gi")));
    assert!(!replicas("spec.replicas=*:1..2", "x", json!("many")));
    assert!(!replicas("spec.replicas=*:1..2", "x", json!(null)));
    let path = [field("spec"), field("replicas")].into_iter().collect();
    assert!(!delegation("spec.replicas=*:1..2").allows(&path, "x", None));
    assert!(delegation("spec.replicas=*").allows(&path, "x", None));
}

#[test]
fn items_are_named_by_key_by_value_by_position_or_not_at_all() {
    let containers = || vec![field("spec"), field("containers")];
    let of = |step: Step| [containers(), vec![step, field("resources"), field("cpu")]].concat();
    let app = of(key(&[("name", json!("app"))]));
    assert!(check("spec.containers[*].resources=vpa", &app, "vpa", json!("1")));
    assert!(check("spec.containers[name=app].resources=vpa", &app, "vpa", json!("1")));
    assert!(check(r#"spec.containers[name="app"]=vpa"#, &app, "vpa", json!("1")));
    assert!(!check("spec.containers[name=db].resources=vpa", &app, "vpa", json!("1")));
    assert!(!check("spec.containers.*.resources=vpa", &app, "vpa", json!("1")));

    let port = [field("ports"), key(&[("port", json!(53)), ("protocol", json!("UDP"))]), field("nodePort")];
    for (text, covered) in [
        ("ports[port=53,protocol=UDP].nodePort=*", true),
        ("ports[port=53].nodePort=*", true),
        ("ports[protocol=UDP].nodePort=*", true),
        ("ports[port=53,protocol=TCP].nodePort=*", false),
        (r#"ports[port="53"].nodePort=*"#, false),
        ("ports[name=dns].nodePort=*", false),
    ] {
        assert_eq!(check(text, &port, "x", json!(1)), covered, "{text}");
    }

    let finalizer = [field("finalizers"), Step::Value(Scalar::Text("a.b/c".to_owned()))];
    assert!(check(r#"finalizers["a.b/c"]=*"#, &finalizer, "x", json!(1)));
    assert!(check("finalizers[=a.b/c]=*", &finalizer, "x", json!(1)));
    assert!(check("l[=53]=*", &[field("l"), Step::Value(Scalar::Integer(53))], "x", json!(1)));
    assert!(check("l[2]=*", &[field("l"), Step::Index(2)], "x", json!(1)));
    assert!(check("l[*]=*", &[field("l"), Step::Index(2)], "x", json!(1)));
    assert!(!check("l[2]=*", &[field("l"), Step::Value(Scalar::Integer(2))], "x", json!(1)));
}

/// A path is understood as it is shown.
#[test]
fn names_with_dots_are_in_quotes() {
    let label = [field("metadata"), field("labels"), field("app.kubernetes.io/name")];
    let shown = Path::from_iter(label.clone()).to_string();
    assert_eq!(shown, r#"metadata.labels["app.kubernetes.io/name"]"#);
    assert!(check(&format!("{shown}=x"), &label, "x", json!("shop")));
    assert!(!check("metadata.labels.app.kubernetes.io/name=x", &label, "x", json!("shop")));
    assert!(check(r#"["a b"].c=x"#, &[field("a b"), field("c")], "x", json!(1)));
}

#[test]
fn what_is_wrong_is_pointed_at() {
    for (text, caret, problem) in [
        ("", 0, "the name of a field is missing"),
        ("spec.replicas", 13, "a path, then = and a manager"),
        ("spec..replicas=x", 5, "the name of a field is missing"),
        ("spec.replicas=", 14, "the name of a manager is missing"),
        ("spec.replicas=:1..2", 14, "the name of a manager is missing"),
        ("spec.replicas=hpa:1-10", 18, "bounds are LOW..HIGH"),
        ("spec.replicas=hpa:..", 18, "bounds are LOW..HIGH"),
        ("spec.replicas=hpa:a..10", 18, "not a number"),
        ("spec.replicas=hpa:1..b", 21, "not a number"),
        ("spec.replicas=hpa:3..1", 18, "the lower bound is above"),
        ("spec.c[name=app.x=y", 19, "] is missing"),
        ("spec.c[name]=y", 11, "= and a value are missing"),
        ("spec.c[]=y", 7, "in brackets goes"),
        ("spec.c[name=]=y", 12, "a value is missing"),
        ("spec.c[\"a]=y", 7, "the text in quotes does not end"),
        ("spec.re*=y", 5, "* stands for a whole name only"),
        ("spec.ä b=y", 6, "a path, then ="),
        ("spec.x=\"a\"b", 10, "only bounds may follow"),
        ("l[99999999999999999999999]=x", 2, "no list is that long"),
    ] {
        let error = text.parse::<Delegation>().unwrap_err();
        assert_eq!(error.position, caret, "{error}");
        assert!(error.problem.starts_with(problem), "{error}");
    }
    let error = "spec.replicas=hpa:1-10".parse::<Delegation>().unwrap_err();
    assert_eq!(
        error.to_string(),
        "not a delegation (PATH=MANAGER or PATH=MANAGER:LOW..HIGH): bounds are LOW..HIGH; put the manager in quotes \
         if the colon is part of its name\n  spec.replicas=hpa:1-10\n                    ^"
    );
}
