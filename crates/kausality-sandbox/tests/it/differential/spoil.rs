//! What people and programs get wrong.

use serde_json::{Value, json};

use crate::differential::kinds::Kind;
use crate::differential::random::Random;

/// A value that is seldom right.
pub(crate) fn junk(random: &mut Random) -> Value {
    random
        .pick(&[
            json!("text"),
            json!(7),
            json!(-1),
            json!(1.5),
            json!(true),
            json!([]),
            json!({}),
            json!([1]),
            json!({"a": "b"}),
            json!(""),
            Value::Null,
        ])
        .clone()
}

/// Makes an object wrong in one place.
pub(crate) fn spoil(random: &mut Random, object: &mut Value) {
    match random.below(10) {
        0..3 => wrong_type(random, object),
        3 | 4 => unknown(random, object),
        5 => object["metadata"] = bad_metadata(random, object),
        6 => object["apiVersion"] = (*random.pick(&["v2", "apps/v1", "nope/v1", "v1", "", "a/b/c"])).into(),
        7 => object["kind"] = (*random.pick(&["Nope", "Pod", "ConfigMap", ""])).into(),
        8 => missing(random, object),
        _ => object["metadata"]["namespace"] = (*random.pick(&["other", "default"])).into(),
    }
}

/// A place in an object, by chance.
fn place<'o>(
    random: &mut Random,
    object: &'o mut Value,
    accept: fn(&Value) -> bool,
) -> Option<&'o mut Value> {
    let mut pointers = Vec::new();
    collect(object, String::new(), accept, &mut pointers);
    if pointers.is_empty() {
        return None;
    }
    let pointer = random.pick(&pointers);
    object.pointer_mut(pointer)
}

fn collect(value: &Value, path: String, accept: fn(&Value) -> bool, pointers: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                let key = key.replace('~', "~0").replace('/', "~1");
                collect(value, format!("{path}/{key}"), accept, pointers);
            }
        }
        Value::Array(items) => {
            for (nth, value) in items.iter().enumerate() {
                collect(value, format!("{path}/{nth}"), accept, pointers);
            }
        }
        _ => {}
    }
    if accept(value) && !path.is_empty() {
        pointers.push(path);
    }
}

/// A text where a number belongs, and so on.
fn wrong_type(random: &mut Random, object: &mut Value) {
    let Some(value) = place(random, object, |_| true) else { return };
    let others: Vec<Value> = [json!("text"), json!(7), json!(true), json!([7]), json!({"a": 7})]
        .into_iter()
        .filter(|other| std::mem::discriminant(other) != std::mem::discriminant(value))
        .collect();
    *value = random.pick(&others).clone();
}

fn unknown(random: &mut Random, object: &mut Value) {
    if let Some(Value::Object(fields)) = place(random, object, Value::is_object) {
        fields.insert("unheardOf".to_owned(), junk(random));
    }
}

fn missing(random: &mut Random, object: &mut Value) {
    if let Some(Value::Object(fields)) = place(random, object, Value::is_object) {
        let keys: Vec<String> = fields.keys().cloned().collect();
        if !keys.is_empty() {
            fields.remove(random.pick(&keys));
        }
    }
}

fn bad_metadata(random: &mut Random, object: &Value) -> Value {
    let mut metadata = object["metadata"].clone();
    if !metadata.is_object() {
        metadata = json!({});
    }
    match random.below(9) {
        0 => metadata["name"] = (*random.pick(&["Upper", "under_score", "", "a..b", "-a", "a/b"])).into(),
        1 => metadata["labels"] = json!({"app": random.pick(&["spaces in it", "-", "é"])}),
        2 => metadata["labels"] = json!({*random.pick(&["bad key", "/x", "a/b/c", "", "UP.com/x"]): "v"}),
        3 => metadata["annotations"] = json!({*random.pick(&["bad key", "/x", ""]): "v"}),
        4 => metadata["finalizers"] = json!([*random.pick(&["hold", "Bad/Name/x", "example.com/Ok", ""])]),
        5 => metadata["ownerReferences"] = json!([{"apiVersion": "v1", "kind": "X", "name": "x", "uid": ""}]),
        6 => metadata["generateName"] = "Bad_".into(),
        7 => metadata["managedFields"] = json!([{"manager": "m", "operation": "Nope"}]),
        _ => {
            let owner = |name: &str| json!({"apiVersion": "v1", "kind": "X", "name": name, "uid": name, "controller": true});
            metadata["ownerReferences"] = json!([owner("a"), owner("b")]);
        }
    }
    metadata
}

/// A request that makes no sense.
pub(crate) fn odd(random: &mut Random, kind: &Kind) -> Value {
    let (collection, object) = (kind.collection(), kind.object("a"));
    let merge = "application/merge-patch+json";
    match random.below(16) {
        0 => {
            json!({"do": format!("POST {collection}"), "body": random.pick(&["{bad", "", "[]", "null", "7", "{}", "{\"a\":1}x"])})
        }
        1 => json!({"do": format!("PUT {object}"), "body": random.pick(&["{bad", "", "[]", "null", "{}"])}),
        2 => {
            json!({"do": format!("PATCH {object}"), "type": merge, "body": random.pick(&["{bad", "", "[]", "null", "7", "{}"])})
        }
        3 => json!({"do": format!("PATCH {object}"), "type": "application/json-patch+json",
            "body": random.pick(&["{bad", "", "{}", "[]", "null", "[7]", "[{}]", "[{\"op\":\"add\"}]",
                "[{\"op\":\"add\",\"path\":\"nope\",\"value\":1}]", "[{\"op\":\"remove\",\"path\":\"\"}]"])}),
        4 => json!({"do": format!("PATCH {object}?fieldManager=m"), "type": "application/apply-patch+yaml",
            "body": random.pick(&["{bad", "", "[]", "null", "a: [", "{}", "text", "kind: X"])}),
        5 => {
            json!({"do": format!("PATCH {object}"), "type": random.pick(&["text/plain", "application/json", ""]), "body": "{}"})
        }
        6 => json!({"do": format!("POST {collection}"), "type": "text/plain", "body": "{}"}),
        7 => json!({"do": format!("POST {object}"), "body": {"kind": kind.kind, "apiVersion": kind.api}}),
        8 => json!({"do": format!("PUT {collection}"), "body": {"kind": kind.kind, "apiVersion": kind.api}}),
        9 => json!({"do": format!("PATCH {collection}"), "type": merge, "body": {}}),
        10 => json!({"do": format!("{} {object}/{}", random.pick(&["PUT", "PATCH", "GET", "DELETE", "POST"]),
            random.pick(&["nope", "status", "scale"])), "type": merge, "body": {}}),
        11 => json!({"do": format!("GET {}", object.replace("/v1/", "/v9/"))}),
        12 => json!({"do": format!("GET {object}s/x")}),
        13 => json!({"do": format!("DELETE {object}"), "body": random.pick(&["{bad", "[]", "{}", "null",
            "{\"kind\":\"Pod\",\"apiVersion\":\"v1\"}", "{\"unknown\":1}"])}),
        14 => json!({"do": format!("GET {collection}?labelSelector=a%20b%20c")}),
        _ => {
            json!({"do": format!("GET {collection}?fieldSelector={}", random.pick(&["metadata.name%3Da", "spec.nope%3D1", "x"]))})
        }
    }
}
