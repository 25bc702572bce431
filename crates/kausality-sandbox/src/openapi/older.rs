//! Schemas in the older form, that of OpenAPI 2: kubectl checks with it what no server can check, as the items of a List.
//!
//! That form has no `oneOf` and no `nullable`, and a reference stands alone. What it cannot say is left open.

use serde_json::{Map, Value, json};

const SCHEMAS: &str = "#/components/schemas/";
const DEFINITIONS: &str = "#/definitions/";

/// A schema in the older form.
pub(super) fn schema(newer: &Value) -> Value {
    let Some(fields) = newer.as_object() else { return json!({}) };
    let wrapped = || fields.get("allOf")?.get(0)?.get("$ref");
    if let Some(reference) = fields.get("$ref").or_else(wrapped).and_then(Value::as_str) {
        return json!({"$ref": reference.replace(SCHEMAS, DEFINITIONS)});
    }
    let mut older = Map::new();
    for (key, value) in fields {
        if ["description", "format"].contains(&key.as_str()) || key.starts_with("x-") {
            older.insert(key.clone(), value.clone());
        }
    }
    if is_open(fields) {
        return older.into();
    }
    let kind = fields.get("type").cloned();
    // Numbers in a string, or a string: Kubernetes has no other choices.
    let kind = kind.or_else(|| fields.get("oneOf").map(|_| "string".into()));
    for (key, value) in [("type", kind), ("required", fields.get("required").cloned())] {
        older.extend(value.map(|value| (key.to_owned(), value)));
    }
    if let Some(items) = fields.get("items") {
        older.insert("items".to_owned(), schema(items));
    }
    if let Some(each) = fields.get("additionalProperties") {
        let each = if each.is_boolean() { each.clone() } else { schema(each) };
        older.insert("additionalProperties".to_owned(), each);
    }
    if let Some(properties) = fields.get("properties").and_then(Value::as_object) {
        let properties: Map<_, _> =
            properties.iter().map(|(name, newer)| (name.clone(), schema(newer))).collect();
        older.insert("properties".to_owned(), properties.into());
    }
    older.into()
}

/// Whether there can be anything.
fn is_open(fields: &Map<String, Value>) -> bool {
    let says = |key: &str| fields.get(key).is_some_and(|value| value == true);
    says("nullable")
        || says("x-kubernetes-preserve-unknown-fields")
        || (fields.get("type").is_some_and(|kind| kind == "array") && !fields.contains_key("items"))
}

/// A document in the protobuf form, as far as kubectl reads it: its definitions.
pub(super) fn protobuf(document: &Value) -> Vec<u8> {
    let mut out = Message::default();
    out.text(1, &document["swagger"]);
    let mut info = Message::default();
    info.text(1, &document["info"]["title"]).text(2, &document["info"]["version"]);
    out.message(2, &info).message(8, &Message::default()).message(9, &named(&document["definitions"]));
    out.0
}

/// The protobuf form of what has names.
fn named(schemas: &Value) -> Message {
    let mut out = Message::default();
    for (name, schema) in schemas.as_object().into_iter().flatten() {
        let mut entry = Message::default();
        entry.bytes(1, name.as_bytes()).message(2, &one(schema));
        out.message(1, &entry);
    }
    out
}

fn one(schema: &Value) -> Message {
    let mut out = Message::default();
    out.text(1, &schema["$ref"]).text(2, &schema["format"]).text(4, &schema["description"]);
    for field in schema["required"].as_array().into_iter().flatten() {
        out.text(19, field);
    }
    match schema.get("additionalProperties") {
        None => {}
        Some(Value::Bool(any)) => {
            out.message(21, &Message(vec![2 << 3, u8::from(*any)]));
        }
        Some(each) => {
            out.wrapped(21, &one(each));
        }
    }
    if schema["type"].is_string() {
        let mut kind = Message::default();
        kind.text(1, &schema["type"]);
        out.message(22, &kind);
    }
    if let Some(items) = schema.get("items") {
        out.wrapped(23, &one(items));
    }
    if let Some(properties) = schema.get("properties") {
        out.message(25, &named(properties));
    }
    for (name, value) in schema.as_object().into_iter().flatten().filter(|(name, _)| name.starts_with("x-")) {
        let (mut any, mut extension) = (Message::default(), Message::default());
        any.bytes(2, value.to_string().as_bytes());
        extension.bytes(1, name.as_bytes()).message(2, &any);
        out.message(31, &extension);
    }
    out
}

/// A message that is being written.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn bytes(&mut self, field: usize, bytes: &[u8]) -> &mut Self {
        self.number((field << 3) | 2);
        self.number(bytes.len());
        self.0.extend_from_slice(bytes);
        self
    }

    /// A text, if it is one.
    fn text(&mut self, field: usize, text: &Value) -> &mut Self {
        if let Some(text) = text.as_str() {
            self.bytes(field, text.as_bytes());
        }
        self
    }

    fn message(&mut self, field: usize, message: &Self) -> &mut Self {
        self.bytes(field, &message.0)
    }

    /// A message within one that has nothing else.
    fn wrapped(&mut self, field: usize, message: &Self) -> &mut Self {
        let mut around = Self::default();
        around.message(1, message);
        self.message(field, &around)
    }

    /// Seven bits a byte, the lowest first.
    fn number(&mut self, mut number: usize) {
        while number > 0x7f {
            self.0.push((number & 0x7f) as u8 | 0x80);
            number >>= 7;
        }
        self.0.push(number as u8);
    }
}
