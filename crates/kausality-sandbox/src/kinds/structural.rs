//! What a structural schema does to custom resources: it prunes, defaults and validates.

use serde_json::{Map, Value};

use crate::status::Cause;

/// What every object has, whatever its schema says.
const OBJECT: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Removes the fields that a schema does not know, and says which.
pub(crate) fn prune(schema: &Value, value: &mut Value) -> Vec<String> {
    let mut unknown = Vec::new();
    prune_below(schema, value, true, "", &mut unknown);
    unknown
}

fn prune_below(schema: &Value, value: &mut Value, root: bool, path: &str, unknown: &mut Vec<String>) {
    let object = root || schema["x-kubernetes-embedded-resource"] == true;
    match value {
        Value::Object(fields) => {
            let preserve = schema["x-kubernetes-preserve-unknown-fields"] == true;
            let properties = schema["properties"].as_object();
            let additional = schema.get("additionalProperties");
            fields.retain(|name, value| {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                if object && OBJECT.contains(&name.as_str()) {
                    return true;
                }
                if let Some(property) = properties.and_then(|properties| properties.get(name)) {
                    prune_below(property, value, false, &path, unknown);
                    return true;
                }
                match additional {
                    Some(Value::Bool(allowed)) if *allowed => return true,
                    Some(element @ Value::Object(_)) => {
                        prune_below(element, value, false, &path, unknown);
                        return true;
                    }
                    _ => {}
                }
                if !preserve {
                    unknown.push(path);
                }
                preserve
            });
        }
        Value::Array(items) => {
            if let Some(element) = schema.get("items") {
                for (nth, item) in items.iter_mut().enumerate() {
                    prune_below(element, item, false, &format!("{path}[{nth}]"), unknown);
                }
            }
        }
        _ => {}
    }
}

/// Sets what is not set to its default.
pub(crate) fn default(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, property) in schema["properties"].as_object().into_iter().flatten() {
                let default_value = property.get("default").filter(|default| !default.is_null());
                let unset =
                    fields.get(name).is_none_or(|value| value.is_null() && property["nullable"] != true);
                if let (Some(default_value), true) = (default_value, unset) {
                    fields.insert(name.clone(), default_value.clone());
                }
                if let Some(value) = fields.get_mut(name) {
                    default(property, value);
                }
            }
            if let Some(element @ Value::Object(_)) = schema.get("additionalProperties") {
                let known = schema["properties"].as_object();
                let free = fields
                    .iter_mut()
                    .filter(|(name, _)| known.is_none_or(|known| !known.contains_key(*name)));
                free.for_each(|(_, value)| default(element, value));
            }
        }
        Value::Array(items) => {
            if let Some(element) = schema.get("items") {
                items.iter_mut().for_each(|item| default(element, item));
            }
        }
        _ => {}
    }
}

/// What is wrong with a value.
pub(crate) fn validate(schema: &Value, value: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    check(schema, value, "", &mut causes);
    causes
}

fn check(schema: &Value, value: &Value, path: &str, causes: &mut Vec<Cause>) {
    if value.is_null() && schema["nullable"] == true {
        return;
    }
    if schema["x-kubernetes-int-or-string"] == true {
        if !value.is_string() && !value.is_i64() && !value.is_u64() {
            let why = format!("{path} in body must be of type integer,string: {:?}", name_of(value));
            causes.push(Cause::invalid(path, &name_of(value).into(), &why));
        }
        return;
    }
    if let Some(kind) = schema["type"].as_str()
        && !is_of(value, kind)
    {
        let found = name_of(value);
        let why = format!("{path} in body must be of type {kind}: {found:?}");
        causes.push(Cause { reason: "FieldValueTypeInvalid", ..Cause::invalid(path, &found.into(), &why) });
        return;
    }
    if let Some(allowed) = schema["enum"].as_array()
        && !allowed.contains(value)
    {
        let texts: Vec<_> = allowed
            .iter()
            .map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned))
            .collect();
        causes.push(Cause::unsupported(path, value, &texts));
    }
    match value {
        Value::Object(fields) => check_object(schema, fields, path, causes),
        Value::Array(items) => {
            check_count(schema, ("minItems", "maxItems"), items.len(), path, value, "items", causes);
            if let Some(element) = schema.get("items") {
                for (nth, item) in items.iter().enumerate() {
                    check(element, item, &format!("{path}[{nth}]"), causes);
                }
            }
        }
        Value::String(text) => {
            let length = text.chars().count();
            check_count(schema, ("minLength", "maxLength"), length, path, value, "chars long", causes);
        }
        Value::Number(number) => {
            let number = number.as_f64().unwrap_or_default();
            let bounds = [("minimum", "greater"), ("maximum", "less")];
            for (key, word) in bounds {
                let Some(bound) = schema[key].as_f64() else { continue };
                if if key == "minimum" { number < bound } else { number > bound } {
                    let why = format!("{path} in body should be {word} than or equal to {}", schema[key]);
                    causes.push(Cause::invalid(path, value, &why));
                }
            }
        }
        _ => {}
    }
}

fn check_object(schema: &Value, fields: &Map<String, Value>, path: &str, causes: &mut Vec<Cause>) {
    let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !fields.contains_key(name) {
            causes.push(Cause::required(below(name), ""));
        }
    }
    let properties = schema["properties"].as_object();
    for (name, value) in fields {
        if path.is_empty() && OBJECT.contains(&name.as_str()) {
            continue;
        }
        if let Some(property) = properties.and_then(|properties| properties.get(name)) {
            check(property, value, &below(name), causes);
        } else if let Some(element @ Value::Object(_)) = schema.get("additionalProperties") {
            check(element, value, &below(name), causes);
        }
    }
}

fn check_count(
    schema: &Value,
    (minimum, maximum): (&str, &str),
    count: usize,
    path: &str,
    value: &Value,
    what: &str,
    causes: &mut Vec<Cause>,
) {
    let limit = |key: &str| schema[key].as_u64().and_then(|limit| usize::try_from(limit).ok());
    if let Some(least) = limit(minimum).filter(|least| count < *least) {
        let verb = if what == "items" { "should have at least" } else { "should be at least" };
        causes.push(Cause::invalid(path, value, &format!("{path} in body {verb} {least} {what}")));
    }
    if let Some(most) = limit(maximum).filter(|most| count > *most) {
        let message = format!(
            "Too long: may not be more than {most} {}",
            if what == "items" { "items" } else { "bytes" }
        );
        causes.push(Cause { reason: "FieldValueTooLong", message, field: path.to_owned() });
    }
}

fn is_of(value: &Value, kind: &str) -> bool {
    match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "number" => value.is_number(),
        _ => true,
    }
}

fn name_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema() -> Value {
        json!({"type": "object", "properties": {"spec": {"type": "object", "required": ["size"], "properties": {
            "size": {"type": "integer", "minimum": 1}, "colour": {"type": "string", "default": "red", "enum": ["red"]},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}}})
    }

    #[test]
    fn unknown_fields_go_and_defaults_come() {
        let mut value = json!({"kind": "X", "spec": {"size": 1, "foo": 2, "free": {"a": 1}}, "bar": 1});
        assert_eq!(prune(&schema(), &mut value), ["bar", "spec.foo"]);
        default(&schema(), &mut value);
        assert_eq!(value, json!({"kind": "X", "spec": {"size": 1, "colour": "red", "free": {"a": 1}}}));
    }

    #[test]
    fn faults_are_told_as_the_api_server_does() {
        let check = |spec: Value, expected: &str| {
            let causes = validate(&schema(), &json!({"spec": spec}));
            assert_eq!(causes.len(), 1, "{causes:?}");
            assert_eq!(format!("{}: {}", causes[0].field, causes[0].message), expected);
        };
        check(json!({}), "spec.size: Required value");
        check(
            json!({"size": "x"}),
            r#"spec.size: Invalid value: "string": spec.size in body must be of type integer: "string""#,
        );
        check(
            json!({"size": 0}),
            "spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1",
        );
        check(
            json!({"size": 1, "colour": "blue"}),
            r#"spec.colour: Unsupported value: "blue": supported values: "red""#,
        );
    }
}
