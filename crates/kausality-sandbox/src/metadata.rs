//! Objects' metadata: reading it, and what every kind does to it.

use serde_json::{Map, Value};

use crate::status::Failure;
use crate::types::decode::{Fill, decode};

const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// A text in an object; empty if it is not there.
pub(crate) fn text<'o>(object: &'o Value, pointer: &str) -> &'o str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// `metadata.<key>` as text; empty if it is not there.
pub(crate) fn field<'o>(object: &'o Value, key: &str) -> &'o str {
    member_of(object, key).and_then(Value::as_str).unwrap_or_default()
}

/// `metadata.<key>`. Unlike a JSON pointer, it allocates nothing.
pub(crate) fn member_of<'o>(object: &'o Value, key: &str) -> Option<&'o Value> {
    object.get("metadata")?.get(key)
}

pub(crate) fn name(object: &Value) -> &str {
    field(object, "name")
}

pub(crate) fn version(object: &Value) -> &str {
    field(object, "resourceVersion")
}

pub(crate) fn generation(object: &Value) -> u64 {
    member_of(object, "generation").and_then(Value::as_u64).unwrap_or(0)
}

pub(crate) fn finalizers(object: &Value) -> Vec<String> {
    let finalizers = member_of(object, "finalizers").and_then(Value::as_array);
    finalizers.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

pub(crate) fn is_deleting(object: &Value) -> bool {
    !field(object, "deletionTimestamp").is_empty()
}

/// The metadata of an object, made if it is not there.
pub(crate) fn of(object: &mut Value) -> &mut Map<String, Value> {
    member(object, "metadata")
}

/// An object inside of an object, made if it is not there.
pub(crate) fn member<'o>(object: &'o mut Value, key: &str) -> &'o mut Map<String, Value> {
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    let member = &mut object[key];
    if !member.is_object() {
        *member = Value::Object(Map::new());
    }
    as_map(member)
}

/// The map of a value, which becomes one if it is none.
pub(crate) fn as_map(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(map) => map,
        // Never: it was made an object just before, which the compiler cannot see.
        _ => Box::leak(Box::default()),
    }
}

/// Sets a field, or removes it.
pub(crate) fn set(map: &mut Map<String, Value>, key: &str, value: Option<Value>) {
    match value {
        Some(value) => {
            map.insert(key.to_owned(), value);
        }
        None => {
            map.remove(key);
        }
    }
}

/// Takes a field of the metadata from another object.
pub(crate) fn take(object: &mut Value, from: &Value, key: &str) {
    let value = member_of(from, key).cloned();
    set(of(object), key, value);
}

/// Reads the metadata of a custom resource as that of any other kind, and says which fields are not known.
pub(crate) fn clean(object: &mut Value, fill: Fill) -> Result<Vec<String>, Failure> {
    let Some(metadata) = object.get_mut("metadata") else { return Ok(Vec::new()) };
    let decoded = decode(OBJECT_META, metadata.take(), fill).map_err(Failure::bad_request)?;
    *metadata = decoded.value;
    Ok(decoded.unknown.into_iter().map(|field| format!("metadata.{field}")).collect())
}
