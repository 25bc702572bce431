//! Configurations of admission webhooks.

use serde_json::{Value, json};

use super::names;
use crate::admission::conditions;
use crate::metadata::text;
use crate::status::Cause;

mod client;

const FAILURE_POLICIES: [&str; 2] = ["Fail", "Ignore"];
const MATCH_POLICIES: [&str; 2] = ["Equivalent", "Exact"];
const REINVOCATION_POLICIES: [&str; 2] = ["IfNeeded", "Never"];
const SIDE_EFFECTS: [&str; 2] = ["None", "NoneOnDryRun"];
const REVIEW_VERSIONS: [&str; 2] = ["v1", "v1beta1"];
const OPERATIONS: [&str; 5] = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
const SCOPES: [&str; 3] = ["*", "Cluster", "Namespaced"];

/// Faults of a MutatingWebhookConfiguration or ValidatingWebhookConfiguration that has its defaults.
pub(super) fn faults(configuration: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let mut known = Vec::new();
    for (nth, webhook) in items(&configuration["webhooks"]).enumerate() {
        let at = format!("webhooks[{nth}]");
        causes.extend(of_webhook(webhook, &at));
        causes.extend(review_versions(
            &webhook["admissionReviewVersions"],
            &format!("{at}.admissionReviewVersions"),
        ));
        let name = text(webhook, "/name");
        if known.contains(&name) {
            causes.push(Cause::duplicate(format!("{at}.name"), &json!(name)));
        } else if !name.is_empty() {
            known.push(name);
        }
    }
    causes
}

fn of_webhook(webhook: &Value, at: &str) -> Vec<Cause> {
    let mut causes = Vec::new();
    causes.extend(name(text(webhook, "/name"), &format!("{at}.name")));
    for (nth, rule) in items(&webhook["rules"]).enumerate() {
        causes.extend(of_rule(rule, &format!("{at}.rules[{nth}]")));
    }
    causes.extend(one_of(webhook, "failurePolicy", &FAILURE_POLICIES, at));
    causes.extend(one_of(webhook, "matchPolicy", &MATCH_POLICIES, at));
    if webhook["sideEffects"].is_null() {
        let why = format!("must specify one of {}", SIDE_EFFECTS.join(", "));
        causes.push(Cause::required(format!("{at}.sideEffects"), &why));
    }
    causes.extend(one_of(webhook, "sideEffects", &SIDE_EFFECTS, at));
    let timeout = &webhook["timeoutSeconds"];
    if timeout.as_i64().is_some_and(|seconds| !(1..=30).contains(&seconds)) {
        let why = "the timeout value must be between 1 and 30 seconds";
        causes.push(Cause::invalid(format!("{at}.timeoutSeconds"), timeout, why));
    }
    for key in ["namespaceSelector", "objectSelector"] {
        causes.extend(selector(&webhook[key], &format!("{at}.{key}")));
    }
    causes.extend(one_of(webhook, "reinvocationPolicy", &REINVOCATION_POLICIES, at));
    causes.extend(client::faults(&webhook["clientConfig"], &format!("{at}.clientConfig")));
    causes.extend(conditions::faults(&webhook["matchConditions"], &format!("{at}.matchConditions")));
    causes
}

/// A webhook's name is a domain: nobody else has one like it.
fn name(name: &str, at: &str) -> Option<Cause> {
    if name.is_empty() {
        return Some(Cause::required(at, ""));
    }
    let few = "should be a domain with at least three segments separated by dots";
    let why = names::subdomain_fault(name).or_else(|| (name.split('.').count() < 3).then_some(few));
    why.map(|why| Cause::invalid(at, &json!(name), why))
}

/// What is set, and none of those that there are.
fn one_of(object: &Value, key: &str, supported: &[&str], at: &str) -> Option<Cause> {
    let value = &object[key];
    let unknown = value.as_str().is_some_and(|value| !supported.contains(&value));
    unknown.then(|| Cause::unsupported(format!("{at}.{key}"), value, &owned(supported)))
}

fn review_versions(versions: &Value, at: &str) -> Vec<Cause> {
    let all: Vec<_> = texts(versions).collect();
    let known = REVIEW_VERSIONS.join(", ");
    if all.is_empty() {
        return vec![Cause::required(at, &format!("must specify one of {known}"))];
    }
    let mut causes = Vec::new();
    for (nth, version) in all.iter().enumerate() {
        let fault = if all.iter().take(nth).any(|before| before == version) {
            Some("duplicate version")
        } else {
            names::host_fault(version)
        };
        causes.extend(fault.map(|why| Cause::invalid(format!("{at}[{nth}]"), &json!(version), why)));
    }
    if !all.iter().any(|version| REVIEW_VERSIONS.contains(version)) {
        causes.push(Cause::invalid(at, versions, &format!("must include at least one of {known}")));
    }
    causes
}

fn of_rule(rule: &Value, at: &str) -> Vec<Cause> {
    let mut causes = list(rule, "operations", "operations", at);
    for (nth, operation) in texts(&rule["operations"]).enumerate() {
        if !OPERATIONS.contains(&operation) {
            let field = format!("{at}.operations[{nth}]");
            causes.push(Cause::unsupported(field, &json!(operation), &owned(&OPERATIONS)));
        }
    }
    causes.extend(list(rule, "apiGroups", "API groups", at));
    causes.extend(list(rule, "apiVersions", "API versions", at));
    let unnamed = texts(&rule["apiVersions"]).enumerate().filter(|(_, version)| version.is_empty());
    causes.extend(unnamed.map(|(nth, _)| Cause::required(format!("{at}.apiVersions[{nth}]"), "")));
    causes.extend(resources(&rule["resources"], &format!("{at}.resources")));
    causes.extend(one_of(rule, "scope", &SCOPES, at));
    causes
}

/// A list of a rule has something in it, and nothing beside a `*`.
fn list(rule: &Value, key: &str, called: &str, at: &str) -> Vec<Cause> {
    let (field, count) = (format!("{at}.{key}"), texts(&rule[key]).count());
    if count == 0 {
        return vec![Cause::required(field, "")];
    }
    if count > 1 && texts(&rule[key]).any(|it| it == "*") {
        let why = format!("if '*' is present, must not specify other {called}");
        return vec![Cause::invalid(field, &rule[key], &why)];
    }
    Vec::new()
}

/// Resources are named once, whatever stars there are.
fn resources(resources: &Value, at: &str) -> Vec<Cause> {
    let all: Vec<_> = texts(resources).collect();
    let mut causes = Vec::new();
    if all.is_empty() {
        causes.push(Cause::required(at, ""));
    }
    let (mut any_part_of, mut part_of_any) = (Vec::new(), Vec::new());
    // Of a list without parts the last counts, as in Kubernetes.
    let mut plain = false;
    for (nth, resource) in all.iter().enumerate() {
        let field = format!("{at}[{nth}]");
        if resource.is_empty() {
            causes.push(Cause::required(field, ""));
            continue;
        }
        let Some((whole, part)) = resource.split_once('/') else {
            plain = *resource != "*";
            continue;
        };
        let mut covered = |by: String| {
            let why = format!("if '{by}' is present, must not specify {resource}");
            causes.push(Cause::invalid(field.clone(), &json!(resource), &why));
        };
        if any_part_of.contains(&whole) {
            covered(format!("{whole}/*"));
        }
        if part_of_any.contains(&part) {
            covered(format!("*/{part}"));
        }
        if part == "*" {
            any_part_of.push(whole);
        }
        if whole == "*" {
            part_of_any.push(part);
        }
    }
    if all.len() > 1 && all.contains(&"*/*") {
        let why = "if '*/*' is present, must not specify other resources";
        causes.push(Cause::invalid(at, resources, why));
    }
    if plain && all.contains(&"*") {
        let why = "if '*' is present, must not specify other resources without subresources";
        causes.push(Cause::invalid(at, resources, why));
    }
    causes
}

/// Faults of a label selector.
fn selector(selector: &Value, at: &str) -> Vec<Cause> {
    let mut causes = names::labels(&selector["matchLabels"], &format!("{at}.matchLabels"));
    for (nth, expression) in items(&selector["matchExpressions"]).enumerate() {
        let field = |key: &str| format!("{at}.matchExpressions[{nth}].{key}");
        let values = texts(&expression["values"]).count();
        match text(expression, "/operator") {
            "In" | "NotIn" if values == 0 => {
                let why = "must be specified when `operator` is 'In' or 'NotIn'";
                causes.push(Cause::required(field("values"), why));
            }
            "Exists" | "DoesNotExist" if values > 0 => {
                let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                causes.push(Cause::forbidden(field("values"), why));
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => {
                let why = "not a valid selector operator";
                causes.push(Cause::invalid(field("operator"), &json!(other), why));
            }
        }
        let key = text(expression, "/key");
        if !names::is_qualified(key) {
            causes.push(Cause::invalid(field("key"), &json!(key), names::QUALIFIED));
        }
        for (nth, value) in texts(&expression["values"]).enumerate().filter(|(_, it)| !names::is_value(it)) {
            let field = format!("{}[{nth}]", field("values"));
            causes.push(Cause::invalid(field, &json!(value), names::LABEL_VALUE));
        }
    }
    causes
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn texts(value: &Value) -> impl Iterator<Item = &str> {
    items(value).map(|it| it.as_str().unwrap_or_default())
}

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

#[cfg(test)]
mod tests;
