#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use std::borrow::Cow;

use serde_json::{Value, json};

use super::*;

struct Known(Value);

impl Facts for Known {
    fn get(&self, name: &str) -> Cow<'_, Value> {
        Cow::Borrowed(&self.0[name])
    }
}

fn holds(source: &str) -> Result<bool, String> {
    let known = Known(json!({
        "object": {"metadata": {"name": "web", "labels": {"app": "web"}}, "spec": {"replicas": 3, "ratio": 0.5,
            "template": {"containers": [{"name": "a", "image": "a:1"}, {"name": "b", "image": "b:2"}]}}},
        "request": {"operation": "CREATE", "userInfo": {"username": "alice", "groups": ["dev"]},
            "resource": {"group": "apps", "version": "v1", "resource": "deployments"}, "dryRun": false},
    }));
    Expression::compile(source).unwrap_or_else(|error| panic!("{source}: {error}")).holds(&known)
}

#[test]
fn expressions_are_evaluated() {
    for (source, expected) in [
        ("request.operation == 'CREATE' && request.userInfo.username.startsWith('al')", true),
        ("object.spec.replicas > 2 && object.spec.replicas + 1 == 4", true),
        ("object.spec.ratio < 1.0", true),
        ("oldObject == null", true),
        ("has(object.spec.paused)", false),
        ("'dev' in request.userInfo.groups", true),
        ("object.spec.template.containers.exists(c, c.image.matches('^b:'))", true),
        ("object.spec.template.containers.all(c, c.image.endsWith(':1'))", false),
        ("object.spec.template.containers.map(c, c.name) == ['a', 'b']", true),
        ("object.spec.template.containers.filter(c, c.name == 'a').size() == 1", true),
        ("object.?spec.?paused.orValue(false) == false", true),
        ("object.metadata.labels[?'tier'].hasValue()", false),
        ("object.metadata.name.upperAscii() == 'WEB' && 'a,b'.split(',')[1] == 'b'", true),
        ("object.spec.missing == 1 || true", true),
        ("false && object.spec.missing == 1", false),
        ("object.spec.missing == 1 && false", false),
    ] {
        assert_eq!(holds(source), Ok(expected), "{source}");
    }
}

#[test]
fn what_is_missing_is_an_error() {
    for source in ["object.spec.missing == 1", "oldObject.spec == object.spec", "request.subResource == ''"] {
        assert!(holds(source).is_err(), "{source}");
    }
}

#[test]
fn nonsense_does_not_compile() {
    for (source, why) in [
        ("1 +", "compilation failed"),
        ("objekt.spec == 1", "undeclared reference to 'objekt'"),
        ("request.verb == 'create'", "undefined field 'verb'"),
        ("request.operation == 1", "found no matching overload for '_==_' applied to '(string, int)'"),
        ("request.operation", "must evaluate to bool but got string"),
        ("object.spec", "must evaluate to bool but got dyn"),
        ("object.spec.replicas.quantity() > 1", "undeclared reference to 'quantity'"),
        ("request.dryRun && 'x'", "found no matching overload for '_&&_'"),
        ("request.operation.exists(x, true)", "cannot be range of a comprehension"),
        ("[1, 'a'].size() == 2", "expected type 'int' but found 'string'"),
    ] {
        let error = Expression::compile(source).unwrap_err();
        assert!(error.contains(why), "{source}: {error}");
    }
    let error = Expression::compile("true &&\n  what").unwrap_err();
    assert!(
        error.ends_with("<input>:2:3: undeclared reference to 'what' (in container '')\n |   what\n | ..^"),
        "{error}"
    );
}

/// What would overflow the stack is refused; what is just below is evaluated.
#[test]
fn deep_expressions_are_refused_and_do_not_end_the_process() {
    let refused = |source: &str| {
        assert!(Expression::compile(source).is_err(), "{} bytes: {}", source.len(), &source[..40]);
    };
    refused(&"(".repeat(8000));
    refused(&format!("{}true{}", "(".repeat(500), ")".repeat(500)));
    refused(&format!("{}1 == 1", "1+".repeat(8000)));
    refused(&format!("object{} == 1", ".a".repeat(8000)));
    refused(&format!("object{} == 1", "[0]".repeat(5000)));
    refused(&format!("{}true", "true ? true : ".repeat(1000)));
    refused(&format!("{}1 == 1", "1-".repeat(8100)));
    refused(&format!("'{}' == ''", "x".repeat(MAX_SOURCE)));
    refused(&format!("{}object == 1", "object.f(".repeat(1000)));

    let deep = format!("object{} == 1 || true", ".a".repeat(MAX_DEPTH - 3));
    assert_eq!(holds(&deep), Ok(true));
    let deep = format!("{}1 == {}", "1+".repeat(MAX_DEPTH - 2), MAX_DEPTH - 1);
    assert_eq!(holds(&deep), Ok(true));
    let wide = vec!["request.operation == 'CREATE'"; 400].join(" && ");
    assert_eq!(holds(&wide), Ok(true));
    assert_eq!(holds(&format!("{}true", "!".repeat(8000))), Ok(true));
}

#[test]
fn loops_within_loops_are_bounded() {
    let list = json!(vec![1; 10_000]);
    let known = Known(json!({"object": list}));
    let source = "object.exists(a, object.exists(b, object.exists(c, a + b + c == 0)))";
    let error = Expression::compile(source).unwrap().holds(&known).unwrap_err();
    assert!(error.contains("cost limit exceeded"), "{error}");
}

/// What Kausality registers is evaluated on the spot, and asks about changes of the spec and of its own annotations.
#[test]
fn the_expression_that_kausality_registers_is_understood() {
    let registration = kausality_cluster::registration::Registration {
        name: "x".to_owned(),
        url: String::new(),
        ca_pem: None,
        kinds: Vec::new(),
        fail_closed: true,
        excluded_namespaces: Vec::new(),
    };
    let manifest = registration.manifest();
    let source = manifest.pointer("/webhooks/0/matchConditions/0/expression").and_then(Value::as_str);
    let expression = Expression::compile(source.unwrap()).unwrap();
    assert!(expression.extent.depth <= SHALLOW, "{}", expression.extent.depth);
    let check = |operation: &str, group: &str, new: Value, old: Value, expected: bool| {
        let object = |annotations: &Value| json!({"metadata": {"annotations": annotations}, "spec": {}});
        let request = json!({"operation": operation, "resource": {"group": group}});
        let facts = json!({"object": object(&new), "oldObject": object(&old), "request": request});
        assert_eq!(expression.holds(&Known(facts)), Ok(expected), "{operation} {group} {new} {old}");
    };
    check("UPDATE", "apps", json!({"a": "1"}), json!({}), false);
    check("UPDATE", "garden.io", json!({"a": "1"}), json!({}), true);
    check("CREATE", "apps", json!({"a": "1"}), json!({}), true);
    check("UPDATE", "apps", json!({"kausality.io/x": "1"}), json!({"kausality.io/x": "1"}), false);
    check("UPDATE", "apps", json!({"kausality.io/x": "1"}), json!({}), true);
    check("UPDATE", "apps", json!({}), json!({"kausality.io/x": "1"}), true);
    let approvals = json!({"kausality.io/approvals": "1"});
    check("UPDATE", "apps", json!({"kausality.io/approvals": "1", "a": "2"}), approvals, true);
}
