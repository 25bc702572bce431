use serde_json::{Value, json};

use super::faults;

/// A webhook without faults, as it is once it has its defaults.
fn webhook() -> Value {
    json!({"name": "a.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"], "timeoutSeconds": 10,
        "failurePolicy": "Fail", "matchPolicy": "Equivalent", "namespaceSelector": {}, "objectSelector": {},
        "clientConfig": {"url": "https://example.com/review"},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"], "scope": "*"}]})
}

/// A webhook is changed by a merge patch; these fields are wrong with it then.
fn check(change: Value, expected: &[&str]) {
    let mut webhook = webhook();
    json_patch::merge(&mut webhook, &change);
    check_all(&[webhook], expected, &change);
}

fn check_all(webhooks: &[Value], expected: &[&str], what: &Value) {
    let causes = faults(&json!({"webhooks": webhooks}));
    let found: Vec<_> = causes.iter().map(|cause| cause.field.as_str()).collect();
    let expected: Vec<_> = expected.iter().map(|field| format!("webhooks{field}")).collect();
    assert_eq!(found, expected, "{what}: {causes:?}");
}

#[test]
fn what_is_right_is_taken() {
    check(json!({}), &[]);
    check(
        json!({"clientConfig": {"url": null, "service": {"name": "a", "namespace": "b", "port": 443}}}),
        &[],
    );
    check(json!({"admissionReviewVersions": ["v2", "v1beta1"], "sideEffects": "NoneOnDryRun"}), &[]);
    check(json!({"timeoutSeconds": 1}), &[]);
    check(json!({"timeoutSeconds": 30}), &[]);
    check(json!({"rules": null}), &[]);
    assert!(faults(&json!({})).is_empty());
}

#[test]
fn names_are_domains_and_unique() {
    for name in ["", "a", "a.b", "A.b.c", "a..b.c"] {
        check(json!({"name": name}), &["[0].name"]);
    }
    check_all(&[webhook(), webhook()], &["[1].name"], &json!("twice"));
    check_all(
        &[webhook(), json!({"name": "b.example.com"})],
        &["[1].sideEffects", "[1].clientConfig", "[1].admissionReviewVersions"],
        &json!("bare"),
    );
}

#[test]
fn policies_and_times_are_known() {
    check(json!({"sideEffects": null}), &["[0].sideEffects"]);
    for effects in ["", "Some", "Unknown", "Few"] {
        check(json!({"sideEffects": effects}), &["[0].sideEffects"]);
    }
    check(json!({"failurePolicy": "Maybe"}), &["[0].failurePolicy"]);
    check(json!({"matchPolicy": "Roughly"}), &["[0].matchPolicy"]);
    check(json!({"reinvocationPolicy": "Often"}), &["[0].reinvocationPolicy"]);
    for seconds in [-1, 0, 31] {
        check(json!({"timeoutSeconds": seconds}), &["[0].timeoutSeconds"]);
    }
}

#[test]
fn reviews_have_a_version_that_is_understood() {
    let check = |versions: Value, expected: &[&str]| {
        let expected: Vec<_> = expected.iter().map(|at| format!("[0].admissionReviewVersions{at}")).collect();
        let expected: Vec<_> = expected.iter().map(String::as_str).collect();
        check(json!({"admissionReviewVersions": versions}), &expected);
    };
    check(json!(null), &[""]);
    check(json!([]), &[""]);
    check(json!(["v2"]), &[""]);
    check(json!(["v1", "v1"]), &["[1]"]);
    check(json!(["v1", "V2"]), &["[1]"]);
    check(json!([""]), &["[0]", ""]);
}

#[test]
fn webhooks_are_somewhere() {
    let url = |url: &str, faults: usize| {
        check(json!({"clientConfig": {"url": url}}), &vec!["[0].clientConfig.url"; faults]);
    };
    url("http://example.com", 1);
    url("https:///review", 1);
    url("", 2);
    url("https://me@example.com", 1);
    url("https://example.com?a=b#c", 2);
    url("https://example.com:x/", 1);
    let service = |service: Value, expected: &[&str]| {
        let expected: Vec<_> = expected.iter().map(|at| format!("[0].clientConfig{at}")).collect();
        let expected: Vec<_> = expected.iter().map(String::as_str).collect();
        check(json!({"clientConfig": {"url": null, "service": service}}), &expected);
    };
    service(json!(null), &[""]);
    let with = |change: Value| {
        let mut service = json!({"name": "a", "namespace": "b", "port": 443});
        json_patch::merge(&mut service, &change);
        service
    };
    // Kubernetes takes the one for the other.
    service(with(json!({"name": ""})), &[".service.namespace"]);
    service(with(json!({"namespace": ""})), &[".service.name"]);
    service(with(json!({"port": 0})), &[".service.port"]);
    service(with(json!({"port": 65536})), &[".service.port"]);
    for path in ["review", "//", "/a//b", "/A"] {
        service(with(json!({"path": path})), &[".service.path"]);
    }
    for path in ["", "/", "/a/b/"] {
        service(with(json!({"path": path})), &[]);
    }
    check(json!({"clientConfig": {"service": {"name": "a", "namespace": "b"}}}), &["[0].clientConfig"]);
}

#[test]
fn rules_name_something_once() {
    let check = |change: Value, expected: &[&str]| {
        let mut rule = webhook()["rules"][0].take();
        json_patch::merge(&mut rule, &change);
        let expected: Vec<_> = expected.iter().map(|at| format!("[0].rules[0].{at}")).collect();
        let expected: Vec<_> = expected.iter().map(String::as_str).collect();
        check(json!({"rules": [rule]}), &expected);
    };
    for key in ["operations", "apiGroups", "apiVersions", "resources"] {
        check(json!({key: []}), &[key]);
        check(json!({key: null}), &[key]);
        check(json!({key: ["*"]}), &[]);
    }
    check(json!({"operations": ["*", "CREATE"]}), &["operations"]);
    check(json!({"operations": ["create"]}), &["operations[0]"]);
    check(json!({"apiGroups": ["*", "apps"]}), &["apiGroups"]);
    check(json!({"apiVersions": ["*", "v1"]}), &["apiVersions"]);
    check(json!({"apiVersions": [""]}), &["apiVersions[0]"]);
    check(json!({"resources": [""]}), &["resources[0]"]);
    check(json!({"resources": ["pods", "*/*"]}), &["resources"]);
    check(json!({"resources": ["*", "pods"]}), &["resources"]);
    check(json!({"resources": ["*", "pods/status"]}), &[]);
    check(json!({"resources": ["pods/*", "pods/status"]}), &["resources[1]"]);
    check(json!({"resources": ["pods/status", "pods/*"]}), &[]);
    check(json!({"resources": ["*/status", "pods/status"]}), &["resources[1]"]);
    check(json!({"scope": "Galaxy"}), &["scope"]);
}

#[test]
fn selectors_can_be_understood() {
    let check = |selector: Value, expected: &[&str]| {
        for key in ["namespaceSelector", "objectSelector"] {
            let expected: Vec<_> = expected.iter().map(|at| format!("[0].{key}.{at}")).collect();
            let expected: Vec<_> = expected.iter().map(String::as_str).collect();
            check(json!({key: selector.clone()}), &expected);
        }
    };
    check(json!({"matchLabels": {"a": "b"}}), &[]);
    check(json!({"matchLabels": {"a": "b c"}}), &["matchLabels"]);
    let expression = |key: &str, operator: &str, values: &[&str]| json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]});
    check(expression("a", "In", &["b"]), &[]);
    check(expression("a", "In", &[]), &["matchExpressions[0].values"]);
    check(expression("a", "Exists", &["b"]), &["matchExpressions[0].values"]);
    check(expression("a", "Like", &["b"]), &["matchExpressions[0].operator"]);
    check(expression("", "Exists", &[]), &["matchExpressions[0].key"]);
    check(expression("a", "In", &["b", "b c"]), &["matchExpressions[0].values[1]"]);
}
