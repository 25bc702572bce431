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

#[cfg(test)]
thread_local! {
    /// How many values have been read.
    pub(crate) static READ: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Reads a value as one of a definition. The error is Go's.
pub(crate) fn decode(definition: &str, mut value: Value, fill: Fill) -> Result<Decoded, String> {
    #[cfg(test)]
    READ.set(READ.get() + 1);
    let schemas = &built_in().schemas;
    let mut reader = Reader { schemas, fill, unknown: Vec::new() };
    if let Some((name, schema)) = schemas.get_key_value(definition) {
        reader.read(schema, &mut value, &Place { above: None, step: Way::Here, holder: "", name })?;
    }
    Ok(Decoded { value, unknown: reader.unknown })
}

struct Reader<'s> {
    schemas: &'s Map<String, Value>,
    fill: Fill,
    unknown: Vec<String>,
}

/// Where the reader is. It becomes text only where something is told of it.
struct Place<'p> {
    above: Option<&'p Place<'p>>,
    step: Way<'p>,
    /// The definition that holds the field.
    holder: &'p str,
    /// The definition of the value itself.
    name: &'p str,
}

/// The way from one place to the next.
enum Way<'p> {
    Here,
    Field(&'p str),
    /// A key of a map.
    Key(&'p str),
    Item(usize),
}

impl<'p> Place<'p> {
    /// A field of what a definition holds.
    fn field(&'p self, name: &'p str, holder: &'p str) -> Self {
        Self { above: Some(self), step: Way::Field(name), holder, name: "" }
    }

    /// What is below something that has no definition of its own.
    fn below(&'p self, step: Way<'p>) -> Self {
        Self { above: Some(self), step, holder: self.holder, name: "" }
    }

    /// With keys and the indices of items.
    fn path(&self) -> String {
        let mut path = self.above.map(Self::path).unwrap_or_default();
        match self.step {
            Way::Here => {}
            Way::Field(name) | Way::Key(name) => join(&mut path, name),
            Way::Item(nth) => path.push_str(&format!("[{nth}]")),
        }
        path
    }

    /// Without, as Go's errors name it.
    fn fields(&self) -> String {
        let mut path = self.above.map(Self::fields).unwrap_or_default();
        if let Way::Field(name) = self.step {
            join(&mut path, name);
        }
        path
    }
}

fn join(path: &mut String, name: &str) {
    if !path.is_empty() {
        path.push('.');
    }
    path.push_str(name);
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
    /// Brings a value into the form of its type.
    fn read(&mut self, schema: &'s Value, value: &mut Value, place: &Place<'_>) -> Result<(), String> {
        let (name, schema) = resolve(self.schemas, schema);
        let name = if name.is_empty() { place.name } else { name };
        // What is applied is compared as it is written.
        let exact = self.fill == Fill::Nothing;
        if !name.is_empty() {
            if FREE.contains(&name) || name == FREE_TOO {
                return Ok(());
            }
            if let Some(read) = special(name, value, exact) {
                return read;
            }
        }
        let kind = schema.get("type").and_then(Value::as_str).unwrap_or_default();
        if !exact && schema.get("format").is_some_and(|format| format == "byte") {
            *value = bytes(value).unwrap_or_else(|| Err(self.mismatch(schema, value, place)))?;
            return Ok(());
        }
        match (kind, &mut *value) {
            ("object", Value::Object(fields)) => self.object(name, schema, fields, place),
            ("array", Value::Array(items)) => {
                let Some(schema) = schema.get("items") else { return Ok(()) };
                let mut items = items.iter_mut().enumerate();
                items.try_for_each(|(nth, item)| self.read(schema, item, &place.below(Way::Item(nth))))
            }
            ("string", Value::String(_)) | ("boolean", Value::Bool(_)) | ("number", Value::Number(_)) => {
                Ok(())
            }
            ("integer", Value::Number(number)) if number.is_i64() || number.is_u64() => Ok(()),
            ("", _) => Ok(()),
            (_, value) => Err(self.mismatch(schema, value, place)),
        }
    }

    fn object(
        &mut self,
        name: &str,
        schema: &'s Value,
        fields: &mut Map<String, Value>,
        place: &Place<'_>,
    ) -> Result<(), String> {
        if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
            let mut done = Ok(());
            fields.retain(|field, value| {
                let Some(property) = properties.get(field) else {
                    self.unknown.push(place.field(field, name).path());
                    return false;
                };
                let known = !value.is_null();
                if known && done.is_ok() {
                    done = self.read(property, value, &place.field(field, name));
                }
                known
            });
            done?;
            if self.fill == Fill::Zero {
                self.zero(name, schema, properties, fields, place)?;
                for (field, empty) in when_empty(name) {
                    match empty {
                        Empty::Omitted if fields.get(field).is_some_and(is_empty) => {
                            fields.remove(field);
                        }
                        Empty::Null if !fields.contains_key(field) => {
                            fields.insert(field.to_owned(), Value::Null);
                        }
                        Empty::Omitted | Empty::Null => {}
                    }
                }
            }
        } else if let Some(element) = schema.get("additionalProperties") {
            for (field, value) in fields.iter_mut() {
                match value {
                    Value::Null => *value = zero_of(element),
                    value => self.read(element, value, &place.below(Way::Key(field)))?,
                }
            }
        }
        Ok(())
    }

    /// Adds what Go writes of fields that nobody has set.
    fn zero(
        &mut self,
        name: &str,
        schema: &'s Value,
        properties: &'s Map<String, Value>,
        fields: &mut Map<String, Value>,
        place: &Place<'_>,
    ) -> Result<(), String> {
        for (field, property) in properties {
            let Some(default) = property.get("default") else { continue };
            if fields.contains_key(field) {
                continue;
            }
            if default.is_object() {
                let (_, target) = resolve(self.schemas, property);
                if target.get("properties").is_some() && name != OBJECT_META {
                    let mut empty = json!({});
                    self.read(property, &mut empty, &place.below(Way::Here))?;
                    fields.insert(field.clone(), empty);
                }
                continue;
            }
            let required = schema.get("required").and_then(Value::as_array);
            let required = required.is_some_and(|names| names.iter().any(|name| name == field));
            if required || default != "" || ALWAYS.contains(&(name, field)) {
                fields.insert(field.clone(), default.clone());
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
                    place.fields(),
                    go_type(schema)
                );
            }
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        };
        let (holder, fields, go) = (short(place.holder), place.fields(), go_type(schema));
        if fields.is_empty() {
            return format!("json: cannot unmarshal {found} into Go value of type {go}");
        }
        format!("json: cannot unmarshal {found} into Go struct field {holder}.{fields} of type {go}")
    }
}

/// Types that Go reads in a way of their own; `None` for all others.
fn special(name: &str, value: &mut Value, exact: bool) -> Option<Result<(), String>> {
    let read = match (name, &*value) {
        (QUANTITY, Value::Number(_) | Value::String(_)) if exact => return Some(Ok(())),
        (QUANTITY, Value::Number(number)) => quantity::canonical(&number.to_string()),
        (QUANTITY, Value::String(text)) => quantity::canonical(text),
        (QUANTITY, other) => quantity::canonical(&other.to_string()),
        (TIME, Value::String(text)) if !exact => time::seconds(text),
        (MICRO_TIME, Value::String(text)) if !exact => time::microseconds(text),
        (INT_OR_STRING, Value::Number(_) | Value::String(_)) => return Some(Ok(())),
        (INT_OR_STRING, _) if exact => return Some(Ok(())),
        (INT_OR_STRING, other) => Err(format!("json: cannot unmarshal {other} into Go value of type int32")),
        _ => return None,
    };
    Some(read.map(|text| *value = text.into()))
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
