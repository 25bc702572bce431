//! What a structural schema does to custom resources: it prunes, defaults and validates.

use serde_json::Value;

mod check;
mod format;

pub(crate) use check::validate;

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
