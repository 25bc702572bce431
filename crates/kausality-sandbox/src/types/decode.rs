//! What the API server reads of the JSON that it is sent, for kinds that it was built with.

use base64::Engine as _;
use serde_json::{Map, Value, json};

use super::protobuf::{Empty, when_empty};
use super::{built_in, quantity, resolve, time};

/// Whether fields that Go always writes are added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fill {
    /// They are, as in every object.
    Zero,
    /// They are not, as in what is applied.
    Nothing,
}

/// An object, as far as its type knows it.
#[derive(Debug)]
pub(crate) struct Decoded {
    /// What is known.
    pub(crate) value: Value,
    /// The fields that are not: `spec.template.spec.containers[0].imag`.
    pub(crate) unknown: Vec<String>,
}

/// Reads a value as one of a definition. The error is Go's.
pub(crate) fn decode(definition: &str, value: Value, fill: Fill) -> Result<Decoded, String> {
    let schemas = &built_in().schemas;
    let mut reader = Reader { schemas, fill, unknown: Vec::new() };
    let value = match schemas.get(definition) {
        Some(schema) => reader.read(schema, value, &Place { name: definition, ..Place::default() })?,
        None => value,
    };
    Ok(Decoded { value, unknown: reader.unknown })
}

struct Reader<'s> {
    schemas: &'s Map<String, Value>,
    fill: Fill,
    unknown: Vec<String>,
}

/// Where the reader is.
#[derive(Clone, Default)]
struct Place<'p> {
    /// With the indices of items.
    path: String,
    /// Without, as Go's errors name it.
    fields: String,
    /// The definition that holds the field.
    holder: &'p str,
    /// The definition of the value itself.
    name: &'p str,
}

/// What may be any JSON.
const FREE: [&str; 5] = [
    "io.k8s.apimachinery.pkg.runtime.RawExtension",
    "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrArray",
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrBool",
];
const FREE_TOO: &str =
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaPropsOrStringArray";
const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";
const TIME: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Time";
const MICRO_TIME: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime";
const INT_OR_STRING: &str = "io.k8s.apimachinery.pkg.util.intstr.IntOrString";

/// Empty texts that Go writes although they are optional.
const ALWAYS: [(&str, &str); 3] = [
    ("io.k8s.api.core.v1.Event", "reportingComponent"),
    ("io.k8s.api.core.v1.Event", "reportingInstance"),
    ("io.k8s.api.apps.v1.StatefulSetSpec", "serviceName"),
];

impl<'s> Reader<'s> {
    fn read(&mut self, schema: &'s Value, value: Value, place: &Place<'s>) -> Result<Value, String> {
        let (name, schema) = resolve(self.schemas, schema);
        let name = if name.is_empty() { place.name } else { name };
        if FREE.contains(&name) || name == FREE_TOO {
            return Ok(value);
        }
        // What is applied is compared as it is written.
        let exact = self.fill == Fill::Nothing;
        match (name, &value) {
            (QUANTITY, Value::Number(_) | Value::String(_)) if exact => return Ok(value),
            (QUANTITY, Value::Number(number)) => return Ok(quantity::canonical(&number.to_string())?.into()),
            (QUANTITY, Value::String(text)) => return Ok(quantity::canonical(text)?.into()),
            (QUANTITY, other) => return Ok(quantity::canonical(&other.to_string())?.into()),
            (TIME, Value::String(text)) if !exact => return Ok(time::seconds(text)?.into()),
            (MICRO_TIME, Value::String(text)) if !exact => return Ok(time::microseconds(text)?.into()),
            (INT_OR_STRING, Value::Number(_) | Value::String(_)) => return Ok(value),
            (INT_OR_STRING, _) if exact => return Ok(value),
            (INT_OR_STRING, other) => {
                return Err(format!("json: cannot unmarshal {other} into Go value of type int32"));
            }
            _ => {}
        }
        let kind = schema.get("type").and_then(Value::as_str).unwrap_or_default();
        if !exact && schema.get("format").is_some_and(|format| format == "byte") {
            return bytes(&value).unwrap_or_else(|| Err(self.mismatch(schema, &value, place)));
        }
        match (kind, value) {
            ("object", Value::Object(fields)) => self.object(name, schema, fields, place),
            ("array", Value::Array(items)) => {
                let Some(schema) = schema.get("items") else { return Ok(Value::Array(items)) };
                let item = |(nth, value)| {
                    let path = format!("{}[{nth}]", place.path);
                    self.read(schema, value, &Place { path, name: "", ..place.clone() })
                };
                Ok(Value::Array(items.into_iter().enumerate().map(item).collect::<Result<_, _>>()?))
            }
            ("string", value @ Value::String(_)) | ("boolean", value @ Value::Bool(_)) => Ok(value),
            ("integer", Value::Number(number)) if number.is_i64() || number.is_u64() => {
                Ok(Value::Number(number))
            }
            ("number", value @ Value::Number(_)) | ("", value) => Ok(value),
            (_, value) => Err(self.mismatch(schema, &value, place)),
        }
    }

    fn object(
        &mut self,
        name: &'s str,
        schema: &'s Value,
        fields: Map<String, Value>,
        place: &Place<'s>,
    ) -> Result<Value, String> {
        let below = |field: &str, holder| {
            let join =
                |path: &str| if path.is_empty() { field.to_owned() } else { format!("{path}.{field}") };
            Place { path: join(&place.path), fields: join(&place.fields), holder, name: "" }
        };
        let mut read = Map::new();
        if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
            for (field, value) in fields {
                let Some(property) = properties.get(&field) else {
                    self.unknown.push(below(&field, name).path);
                    continue;
                };
                if !value.is_null() {
                    let value = self.read(property, value, &below(&field, name))?;
                    read.insert(field, value);
                }
            }
            if self.fill == Fill::Zero {
                self.zero(name, schema, properties, &mut read, place)?;
                for (field, empty) in when_empty(name) {
                    match empty {
                        Empty::Omitted if read.get(field).is_some_and(is_empty) => {
                            read.remove(field);
                        }
                        Empty::Null if !read.contains_key(field) => {
                            read.insert(field.to_owned(), Value::Null);
                        }
                        Empty::Omitted | Empty::Null => {}
                    }
                }
            }
        } else if let Some(element) = schema.get("additionalProperties") {
            for (field, value) in fields {
                let value = match value {
                    Value::Null => zero_of(element),
                    value => {
                        let path = below(&field, "").path;
                        self.read(element, value, &Place { path, name: "", ..place.clone() })?
                    }
                };
                read.insert(field, value);
            }
        } else {
            read = fields;
        }
        Ok(Value::Object(read))
    }

    /// Adds what Go writes of fields that nobody has set.
    fn zero(
        &mut self,
        name: &'s str,
        schema: &'s Value,
        properties: &'s Map<String, Value>,
        read: &mut Map<String, Value>,
        place: &Place<'s>,
    ) -> Result<(), String> {
        for (field, property) in properties {
            let Some(default) = property.get("default") else { continue };
            if read.contains_key(field) {
                continue;
            }
            if default.is_object() {
                let (_, target) = resolve(self.schemas, property);
                if target.get("properties").is_some() && name != OBJECT_META {
                    let empty = self.read(property, json!({}), &Place { name: "", ..place.clone() })?;
                    read.insert(field.clone(), empty);
                }
                continue;
            }
            let required = schema.get("required").and_then(Value::as_array);
            let required = required.is_some_and(|names| names.iter().any(|name| name == field));
            if required || default != "" || ALWAYS.contains(&(name, field)) {
                read.insert(field.clone(), default.clone());
            }
        }
        Ok(())
    }

    fn mismatch(&self, schema: &Value, value: &Value, place: &Place<'_>) -> String {
        let found = match value {
            Value::Null => "null",
            Value::Bool(_) => "bool",
            Value::Number(number) if number.is_f64() => {
                return format!(
                    "json: cannot unmarshal number {number} into Go struct field {}.{} of type {}",
                    short(place.holder),
                    place.fields,
                    go_type(schema)
                );
            }
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        };
        let (holder, fields, go) = (short(place.holder), &place.fields, go_type(schema));
        if fields.is_empty() {
            return format!("json: cannot unmarshal {found} into Go value of type {go}");
        }
        format!("json: cannot unmarshal {found} into Go struct field {holder}.{fields} of type {go}")
    }
}

/// Bytes are base64, or a list of numbers.
fn bytes(value: &Value) -> Option<Result<Value, String>> {
    use base64::engine::general_purpose::STANDARD;
    match value {
        Value::String(text) => {
            let faulty = |error| format!("illegal base64 data: {error}");
            Some(STANDARD.decode(text.as_bytes()).map(|_| value.clone()).map_err(faulty))
        }
        Value::Array(items) => {
            let byte = |item: &Value| item.as_u64().and_then(|number| u8::try_from(number).ok());
            let bytes: Option<Vec<u8>> = items.iter().map(byte).collect();
            bytes.map(|bytes| Ok(STANDARD.encode(bytes).into()))
        }
        _ => None,
    }
}

const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::String(text) => text.is_empty(),
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::Bool(set) => !set,
        Value::Null => false,
    }
}

fn zero_of(schema: &Value) -> Value {
    if resolve(&built_in().schemas, schema).0 == QUANTITY {
        return "0".into();
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("string") => "".into(),
        Some("integer" | "number") => 0.into(),
        Some("boolean") => false.into(),
        _ => Value::Null,
    }
}

fn short(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

fn go_type(schema: &Value) -> String {
    let text = |key: &str| schema.get(key).and_then(Value::as_str).unwrap_or_default();
    match (text("type"), text("format")) {
        ("integer", "") => "int".to_owned(),
        ("integer", format) => format.to_owned(),
        ("number", _) => "float64".to_owned(),
        ("boolean", _) => "bool".to_owned(),
        ("string", "byte") => "[]uint8".to_owned(),
        ("string", _) => "string".to_owned(),
        ("array", _) => format!("[]{}", schema.get("items").map(go_type).unwrap_or_default()),
        ("object", _) => match schema.get("additionalProperties") {
            Some(element) => format!("map[string]{}", go_type(element)),
            None => "struct".to_owned(),
        },
        _ => "value".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEPLOYMENT: &str = "io.k8s.api.apps.v1.Deployment";

    #[test]
    fn unknown_fields_are_dropped_and_told() {
        let value =
            json!({"spec": {"foo": 1, "template": {"spec": {"containers": [{"name": "a", "bar": 2}]}}}});
        let decoded = decode(DEPLOYMENT, value, Fill::Nothing).unwrap();
        assert_eq!(decoded.unknown, ["spec.foo", "spec.template.spec.containers[0].bar"]);
        assert_eq!(decoded.value, json!({"spec": {"template": {"spec": {"containers": [{"name": "a"}]}}}}));
    }

    #[test]
    fn faults_are_told_in_the_words_of_go() {
        let error = decode(DEPLOYMENT, json!({"spec": {"replicas": "x"}}), Fill::Zero).unwrap_err();
        assert_eq!(
            error,
            "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32"
        );
    }

    #[test]
    fn what_go_always_writes_is_there() {
        let set = decode("io.k8s.api.apps.v1.ReplicaSet", json!({"spec": {}}), Fill::Zero).unwrap().value;
        assert_eq!(set["status"], json!({"replicas": 0}));
        assert_eq!(set["metadata"], json!({}));
    }
}
