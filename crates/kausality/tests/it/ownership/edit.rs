//! Random changes of objects.

use serde_json::{Value, json};

use crate::ownership::{
    content::{self, Extent},
    kinds::Kind,
    random::Random,
};

/// Does something to an object as a person with an editor would.
pub(crate) fn edit(kind: Kind, name: &str, object: &mut Value, random: &mut Random) {
    let part = content::object(kind, name, Extent::Part, random);
    let body = kind.body();
    match random.below(10) {
        0..3 => overlay(object, &part),
        3 => {
            if let Value::Object(labels) = part["metadata"]["labels"].clone() {
                object["metadata"]["labels"] = Value::Object(labels);
            }
        }
        4..6 => remove_field(&mut object[body], random),
        6..8 => on_a_list(&mut object[body], random, |list, random| {
            list.remove(random.below(list.len()));
        }),
        8 => on_a_list(&mut object[body], random, |list, _| list.reverse()),
        // Two with one name: in some lists the API server takes it.
        _ => on_a_list_of(&mut *object, random, is_named, |list, random| {
            let mut again = random.pick(list).clone();
            for field in ["value", "status"] {
                if again.get(field).is_some() {
                    again[field] = json!(*random.pick(&["1", "2", "True"]));
                }
            }
            list.push(again);
        }),
    }
}

/// Whether these are variables or conditions, of which there may be two with one name.
fn is_named(list: &[Value]) -> bool {
    list.iter().all(|item| item.get("value").is_some() || item.get("status").is_some())
}

/// Does something to what is applied that is rarely done, or not allowed.
pub(crate) fn oddity(config: &mut Value, kind: Kind, random: &mut Random) {
    let body = &mut config[kind.body()];
    match random.below(6) {
        0..3 => empty_something(body, random),
        3 => on_a_list(body, random, |list, random| list.push(random.pick(list).clone())),
        4 => body["undeclared"] = json!({"a": 1}),
        _ => on_a_list(body, random, |list, _| list.clear()),
    }
}

/// Puts nothing in the place of some field.
fn empty_something(value: &mut Value, random: &mut Random) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            let nth = random.below(fields.len());
            let Some((name, inner)) = fields.iter_mut().nth(nth) else { return };
            if NEEDED.contains(&name.as_str()) || (inner.is_object() || inner.is_array()) && random.chance(60)
            {
                empty_something(inner, random);
            } else {
                *inner = match inner {
                    Value::Object(_) => random.pick(&[json!({}), Value::Null]).clone(),
                    Value::Array(_) => random.pick(&[json!([]), Value::Null]).clone(),
                    _ => Value::Null,
                };
            }
        }
        Value::Array(items) if !items.is_empty() => {
            let nth = random.below(items.len());
            empty_something(&mut items[nth], random);
        }
        _ => {}
    }
}

/// Puts the fields of one value over those of another. Lists are replaced.
fn overlay(object: &mut Value, part: &Value) {
    match (object, part) {
        (Value::Object(object), Value::Object(part)) => {
            for (name, value) in part {
                overlay(object.entry(name.clone()).or_insert(Value::Null), value);
            }
        }
        (object, part) => *object = part.clone(),
    }
}

/// Does to a value what a merge patch says.
pub(crate) fn merge(value: &mut Value, patch: &Value) {
    match (value, patch) {
        (_, Value::Null) => {}
        (value, Value::Object(patch)) => {
            if !value.is_object() {
                *value = json!({});
            }
            let Some(fields) = value.as_object_mut() else { return };
            for (name, patch) in patch {
                if patch.is_null() {
                    fields.remove(name);
                } else {
                    merge(fields.entry(name.clone()).or_insert(Value::Null), patch);
                }
            }
        }
        (value, patch) => *value = patch.clone(),
    }
}

/// What an object cannot be without, or can never change.
const NEEDED: [&str; 10] = [
    "selector",
    "containers",
    "template",
    "matchLabels",
    "app",
    "name",
    "image",
    "clusterIP",
    "clusterIPs",
    "port",
];

fn remove_field(value: &mut Value, random: &mut Random) {
    match value {
        Value::Object(fields) => {
            let names: Vec<String> = fields.keys().cloned().collect();
            let [_, ..] = names.as_slice() else { return };
            let name = random.pick(&names);
            let inner = &mut fields[name];
            let has_parts = inner.is_object() || inner.as_array().is_some_and(|items| !items.is_empty());
            if NEEDED.contains(&name.as_str()) || has_parts && random.chance(70) {
                remove_field(inner, random);
            } else {
                fields.remove(name);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            let nth = random.below(items.len());
            remove_field(&mut items[nth], random);
        }
        _ => {}
    }
}

fn on_a_list(value: &mut Value, random: &mut Random, change: impl FnOnce(&mut Vec<Value>, &mut Random)) {
    on_a_list_of(value, random, |_| true, change);
}

/// Changes one of the lists that are like this, if there is one.
fn on_a_list_of(
    value: &mut Value,
    random: &mut Random,
    like: impl Fn(&[Value]) -> bool,
    change: impl FnOnce(&mut Vec<Value>, &mut Random),
) {
    let mut found = Vec::new();
    lists(value, String::new(), &mut found);
    found.retain(|at| value.pointer(at).and_then(Value::as_array).is_some_and(|list| like(list)));
    if let [_, ..] = found.as_slice()
        && let Some(list) = value.pointer_mut(random.pick::<String>(&found)).and_then(Value::as_array_mut)
    {
        change(list, random);
    }
}

/// Where lists with items are, except those of the API server itself.
fn lists(value: &Value, at: String, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields.iter().filter(|(name, _)| *name != "managedFields") {
                lists(value, format!("{at}/{}", name.replace('~', "~0").replace('/', "~1")), found);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (nth, item) in items.iter().enumerate() {
                lists(item, format!("{at}/{nth}"), found);
            }
            found.push(at);
        }
        _ => {}
    }
}
