//! What all objects have in common, read from their JSON. What is missing reads as empty.

use serde_json::{Map, Value, json};

use super::{Resource, Time};

/// `metadata.name`.
pub(crate) fn name(object: &Value) -> &str {
    text(&object["metadata"]["name"])
}

/// `metadata.namespace`.
pub(crate) fn namespace(object: &Value) -> &str {
    text(&object["metadata"]["namespace"])
}

/// `metadata.uid`.
pub(crate) fn uid(object: &Value) -> &str {
    text(&object["metadata"]["uid"])
}

/// `metadata.resourceVersion`.
pub(crate) fn version(object: &Value) -> &str {
    text(&object["metadata"]["resourceVersion"])
}

/// `metadata.generation`.
pub(crate) fn generation(object: &Value) -> i64 {
    int(&object["metadata"]["generation"])
}

/// `metadata.creationTimestamp`.
pub(crate) fn created(object: &Value) -> Time {
    moment(&object["metadata"]["creationTimestamp"]).unwrap_or_default()
}

/// Whether it is being deleted.
pub(crate) fn deleting(object: &Value) -> bool {
    object["metadata"]["deletionTimestamp"].is_string()
}

/// `metadata.finalizers`.
pub(crate) fn finalizers(object: &Value) -> impl Iterator<Item = &str> {
    items(&object["metadata"]["finalizers"]).iter().map(text)
}

/// One annotation.
pub(crate) fn annotation<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object["metadata"]["annotations"][key].as_str()
}

/// One label.
pub(crate) fn label<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object["metadata"]["labels"][key].as_str()
}

/// Writes an annotation.
pub(crate) fn annotate(object: &mut Value, key: &str, value: String) {
    entry(entry(object, "metadata"), "annotations")[key] = Value::String(value);
}

/// An ownerReference.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owner<'a>(&'a Value);

impl<'a> Owner<'a> {
    pub(crate) fn uid(self) -> &'a str {
        text(&self.0["uid"])
    }

    pub(crate) fn name(self) -> &'a str {
        text(&self.0["name"])
    }

    pub(crate) fn api_version(self) -> &'a str {
        text(&self.0["apiVersion"])
    }

    pub(crate) fn kind(self) -> &'a str {
        text(&self.0["kind"])
    }

    /// Whether it is the one that reconciles the object.
    pub(crate) fn controls(self) -> bool {
        self.0["controller"] == true
    }

    /// Whether a foreground deletion of the owner waits for the object.
    pub(crate) fn blocks(self) -> bool {
        self.0["blockOwnerDeletion"] == true
    }

    pub(crate) fn reference(self) -> &'a Value {
        self.0
    }
}

/// `metadata.ownerReferences`.
pub(crate) fn owner_references(object: &Value) -> &[Value] {
    items(&object["metadata"]["ownerReferences"])
}

/// All owners of an object.
pub(crate) fn owners(object: &Value) -> impl Iterator<Item = Owner<'_>> {
    owner_references(object).iter().map(Owner)
}

/// The owner that reconciles an object.
pub(crate) fn controller(object: &Value) -> Option<Owner<'_>> {
    owners(object).find(|owner| owner.controls())
}

/// The ownerReferences of what an object's controller makes for it.
pub(crate) fn owned_by(resource: &Resource, owner: &Value) -> Value {
    json!([{
        "apiVersion": resource.api_version(), "kind": resource.kind, "name": name(owner), "uid": uid(owner),
        "controller": true, "blockOwnerDeletion": true,
    }])
}

/// A text, or an empty one.
pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// A number, or 0.
pub(crate) fn int(value: &Value) -> i64 {
    value.as_i64().unwrap_or_default()
}

/// A number, or what the API would default it to.
pub(crate) fn int_or(value: &Value, default: i64) -> i64 {
    value.as_i64().unwrap_or(default)
}

/// A list, or an empty one.
pub(crate) fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// A moment.
pub(crate) fn moment(value: &Value) -> Option<Time> {
    Time::parse(value.as_str()?)
}

/// A field that is an object, made one if it is not.
pub(crate) fn entry<'a>(object: &'a mut Value, key: &str) -> &'a mut Value {
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    let field = &mut object[key];
    if !field.is_object() {
        *field = Value::Object(Map::new());
    }
    field
}

/// Writes a counter as the API does: 0 is left out.
pub(crate) fn count(status: &mut Value, key: &str, number: i64) {
    if number != 0 {
        status[key] = json!(number);
    }
}

/// A copy with another status.
pub(crate) fn with_status(object: &Value, status: Value) -> Value {
    let mut copy = object.clone();
    copy["status"] = status;
    copy
}
