//! Objects, from bases and differences.

use std::collections::BTreeMap;

use kausality_api::{
    annotation::Suffix,
    identity::{Hashes, UserHash},
};
use kausality_core::{intent::IntentHash, review::Object};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::cases::case::Patch;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Base {
    pub resource: String,
    /// The group of the resource where it is not that of the kind.
    pub group: Option<String>,
    object: Patch,
}

#[derive(Deserialize)]
pub(crate) struct Bases(BTreeMap<String, Base>);

/// What short forms in annotations stand for.
#[derive(Default)]
pub(crate) struct Meaning {
    /// The child that entries without a subject speak of.
    pub child: Option<(String, String, String)>,
    /// The hash that `diff: this` stands for.
    pub diff: Option<String>,
}

impl Bases {
    pub(crate) fn get(&self, name: &str) -> &Base {
        self.0.get(name).unwrap_or_else(|| panic!("there is no base {name:?}"))
    }

    /// The object of a base with a difference.
    pub(crate) fn object(&self, base: &str, patch: &Patch, meaning: &Meaning) -> Value {
        let mut whole = self.get(base).object.clone();
        whole.annotations.extend(patch.annotations.clone());
        let mut object = json!({"metadata": {}});
        apply_fields(&mut object, &whole);
        apply_fields(&mut object, patch);
        apply_annotations(&mut object, &whole.annotations, meaning);
        object
    }
}

/// An object with a difference.
pub(crate) fn changed(object: &Value, patch: &Patch, meaning: &Meaning) -> Value {
    let mut object = object.clone();
    apply_fields(&mut object, patch);
    apply_annotations(&mut object, &patch.annotations, meaning);
    object
}

/// What an object is on CREATE: the API server has not numbered it, and Kausality has not seen it.
pub(crate) fn unborn(mut object: Value) -> Value {
    let metadata = object["metadata"].as_object_mut().unwrap();
    for key in ["uid", "resourceVersion", "generation", "annotations", "managedFields"] {
        metadata.remove(key);
    }
    object.as_object_mut().unwrap().remove("status");
    object
}

fn apply_fields(object: &mut Value, patch: &Patch) {
    let fields = [
        ("apiVersion", &patch.api_version),
        ("kind", &patch.kind),
        ("metadata", &patch.metadata),
        ("spec", &patch.spec),
        ("data", &patch.data),
        ("rules", &patch.rules),
        ("status", &patch.status),
    ];
    for (key, value) in fields {
        if let Some(value) = value {
            json_patch::merge(object, &json!({key: value}));
        }
    }
}

fn apply_annotations(object: &mut Value, annotations: &BTreeMap<String, Value>, meaning: &Meaning) {
    for (name, value) in annotations {
        let text = text(name, value, object, meaning);
        let key = stored_key(name, object);
        json_patch::merge(object, &json!({"metadata": {"annotations": {key: text}}}));
    }
}

/// The annotation that a name in a case stands for.
pub(crate) fn key(name: &str) -> String {
    if name.contains('/') { name.to_owned() } else { format!("kausality.io/{name}") }
}

/// The annotation under which it is stored on an object.
pub(crate) fn stored_key(name: &str, object: &Value) -> String {
    Suffix::of_object(object).key(&key(name))
}

/// The annotation's value that a value in a case stands for; `null` removes.
pub(crate) fn text(name: &str, value: &Value, object: &Value, meaning: &Meaning) -> Value {
    match (name, value) {
        ("settled", Value::String(word)) if word == "here" => hash(object).into(),
        ("settled", Value::String(word)) if word.starts_with("MARK") => {
            word.replacen("MARK", &hash(object), 1).into()
        }
        ("settled", Value::String(word)) if word.starts_with("elsewhere") => {
            word.replacen("elsewhere", &hash(&json!({"spec": "other"})), 1).into()
        }
        (_, Value::Null | Value::String(_)) => value.clone(),
        ("controllers" | "updaters", Value::Array(users)) => hashes(users).into(),
        ("trace", Value::Array(hops)) => json!(hops.iter().map(hop).collect::<Vec<_>>()).to_string().into(),
        ("approvals" | "rejections", Value::Array(entries)) => {
            let entries: Vec<Value> = entries.iter().map(|it| entry(it, meaning)).collect();
            json!(entries).to_string().into()
        }
        _ => value.to_string().into(),
    }
}

fn hash(object: &Value) -> String {
    let text = object.to_string();
    IntentHash::of(&Object::parse(&text).unwrap().intent).to_string()
}

fn hashes(users: &[Value]) -> String {
    let mut hashes = Hashes::default();
    for user in users {
        hashes.note(UserHash::of(user.as_str().unwrap(), ""), &Hashes::default());
    }
    hashes.encode()
}

fn hop(hop: &Value) -> Value {
    let Value::String(user) = hop else { return hop.clone() };
    json!({"apiVersion": "example.com/v1", "kind": "Cluster", "name": "prod", "generation": 3, "user": user,
        "timestamp": "2026-01-01T00:00:00Z"})
}

fn entry(entry: &Value, meaning: &Meaning) -> Value {
    let Value::Object(fields) = entry else { return entry.clone() };
    let mut fields: Map<String, Value> = fields.clone();
    let named = ["apiVersion", "kind", "name"].iter().any(|key| fields.contains_key(*key));
    if let (false, Some((api_version, kind, name))) = (named, &meaning.child) {
        fields.insert("apiVersion".to_owned(), json!(api_version));
        fields.insert("kind".to_owned(), json!(kind));
        fields.insert("name".to_owned(), json!(name));
    }
    if let (Some("this"), Some(diff)) = (fields.get("diff").and_then(Value::as_str), &meaning.diff) {
        fields.insert("diff".to_owned(), json!(diff));
    }
    Value::Object(fields)
}

/// Lays one value over another. Unlike a merge, `null` stays: it may stand for a removal from a base. What is
/// unreadable replaces what could be read.
pub(crate) fn overlay(under: &mut Value, over: &Value) {
    match (under, over) {
        (Value::Object(under), Value::Object(over)) if !over.contains_key("unreadable") => {
            for (key, value) in over {
                overlay(under.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (under, over) => *under = over.clone(),
    }
}
