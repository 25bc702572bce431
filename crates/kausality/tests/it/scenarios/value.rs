//! Values: placeholders, paths, and manifests laid over bases.

use std::collections::BTreeMap;

use kausality_api::{annotation::PREFIX, identity::UserHash};
use serde_json::{Map, Value};

/// Names of values that were learned.
pub(crate) type Learned = BTreeMap<String, Value>;

/// Controllers of kube-controller-manager, by the names of their service accounts.
const CONTROLLERS: &[&str] = &[
    "cronjob-controller",
    "daemon-set-controller",
    "deployment-controller",
    "generic-garbage-collector",
    "horizontal-pod-autoscaler",
    "job-controller",
    "namespace-controller",
    "node-controller",
    "pod-garbage-collector",
    "replicaset-controller",
    "statefulset-controller",
    "ttl-after-finished-controller",
];

/// The user behind a short name. `namespace/name` is a service account.
pub(crate) fn user(name: &str) -> String {
    if CONTROLLERS.contains(&name) {
        return format!("system:serviceaccount:kube-system:{name}");
    }
    match name.split_once('/') {
        Some((namespace, name)) => format!("system:serviceaccount:{namespace}:{name}"),
        None => name.to_owned(),
    }
}

/// Fills the placeholders of a value.
pub(crate) fn fill(value: &Value, learned: &Learned) -> Value {
    match value {
        Value::String(text) => fill_text(text, learned),
        Value::Array(items) => items.iter().map(|item| fill(item, learned)).collect(),
        Value::Object(fields) => {
            let filled = fields.iter().map(|(key, value)| (key.clone(), fill(value, learned)));
            Value::Object(filled.collect())
        }
        other => other.clone(),
    }
}

fn fill_text(text: &str, learned: &Learned) -> Value {
    if let Some(value) = text.strip_prefix('$').and_then(|name| learned.get(name)) {
        return value.clone();
    }
    let mut text = text.to_owned();
    // Longer names first: one may begin like another.
    let mut names: Vec<&String> = learned.keys().collect();
    names.sort_by_key(|name| std::cmp::Reverse(name.len()));
    for name in names {
        text = text.replace(&format!("${name}"), &as_text(&learned[name]));
    }
    while let Some(start) = text.find("$hash(") {
        let Some(end) = text[start..].find(')').map(|end| start + end) else { break };
        let hash = UserHash::of(&user(&text[start + 6..end]), "");
        text.replace_range(start..=end, &hash.to_string());
    }
    text.into()
}

/// A text as it is, anything else as JSON.
pub(crate) fn as_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned)
}

/// What is at a dotted path, or at a JSON pointer. Items of a list go by their number, type, name or rule.
pub(crate) fn at<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    if path.starts_with('/') {
        return object.pointer(path);
    }
    path.split('.').try_fold(object, |value, step| match value {
        Value::Array(items) => match step.parse::<usize>() {
            Ok(index) => items.get(index),
            Err(_) => items.iter().find(|item| ["type", "name", "rule"].iter().any(|key| item[*key] == step)),
        },
        _ => value.get(step),
    })
}

/// The fields of an object that are not as wanted.
pub(crate) fn differences(object: &Value, wanted: &BTreeMap<String, Value>) -> Vec<String> {
    let differ = wanted.iter().filter_map(|(path, wanted)| {
        let seen = at(object, path).unwrap_or(&Value::Null);
        (seen != wanted).then(|| format!("{path} is {seen}, expected {wanted}"))
    });
    differ.collect()
}

/// The full name of an annotation.
pub(crate) fn annotation(key: &str) -> String {
    if key.contains('/') { key.to_owned() } else { format!("{PREFIX}{key}") }
}

/// Annotations as they are sent.
pub(crate) fn annotations(short: &Value) -> Value {
    let pairs = short.as_object().into_iter().flatten().map(|(key, value)| {
        let value = if value.is_null() { Value::Null } else { as_text(value).into() };
        (annotation(key), value)
    });
    Value::Object(pairs.collect())
}

/// Lays a value over another: objects are merged, all else is replaced, and null removes.
pub(crate) fn lay_over(below: &mut Value, above: &Value) {
    let Value::Object(above) = above else {
        *below = above.clone();
        return;
    };
    if !below.is_object() {
        *below = Value::Object(Map::new());
    }
    let Some(below) = below.as_object_mut() else { return };
    for (key, value) in above {
        if value.is_null() {
            below.remove(key);
        } else {
            lay_over(below.entry(key.clone()).or_insert(Value::Null), value);
        }
    }
}
