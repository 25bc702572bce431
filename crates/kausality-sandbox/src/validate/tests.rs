use std::sync::LazyLock;

use super::*;
use crate::kinds::Registry;

static STRATEGY: LazyLock<Value> = LazyLock::new(
    || json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}}),
);

/// As it is once it has its defaults.
fn deployment() -> Value {
    json!({"metadata": {"name": "web"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "strategy": STRATEGY.clone(),
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}})
}

fn check(change: impl Fn(&mut Value), expected: &str) {
    let registry = Registry::built_in();
    let definition = registry.get("apps", "v1", "deployments").unwrap();
    let mut object = deployment();
    change(&mut object);
    let message = create(definition, &object).map_or_else(|failure| failure.message, |()| String::new());
    assert_eq!(message, expected);
}

#[test]
fn mistakes_are_told_as_the_api_server_does() {
    check(|_| {}, "");
    check(
        |object| {
            object["metadata"]["name"] = json!("Web_X");
            object["spec"] = json!({"strategy": STRATEGY.clone()});
        },
        "Deployment.apps \"Web_X\" is invalid: [metadata.name: Invalid value: \"Web_X\": a lowercase RFC 1123 \
         subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an \
         alphanumeric character (e.g. 'example.com', regex used for validation is \
         '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*'), spec.selector: Required value, \
         spec.template.metadata.labels: Invalid value: null: `selector` does not match template `labels`, \
         spec.template.spec.containers: Required value]",
    );
    check(
        |object| object["spec"]["selector"]["matchLabels"]["a"] = json!("c"),
        "Deployment.apps \"web\" is invalid: spec.template.metadata.labels: Invalid value: {\"a\":\"b\"}: \
         `selector` does not match template `labels`",
    );
}

#[test]
fn selectors_do_not_change() {
    let registry = Registry::built_in();
    let definition = registry.get("apps", "v1", "deployments").unwrap();
    let mut object = deployment();
    for pointer in ["/spec/selector/matchLabels/a", "/spec/template/metadata/labels/a"] {
        *object.pointer_mut(pointer).unwrap() = json!("c");
    }
    let failure = update(definition, "", &deployment(), &object).unwrap_err();
    assert_eq!(
        failure.message,
        "Deployment.apps \"web\" is invalid: spec.selector: Invalid value: {\"matchLabels\":{\"a\":\"c\"}}: \
         field is immutable"
    );
}
