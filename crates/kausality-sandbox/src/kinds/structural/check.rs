//! What a structural schema forbids.

use serde_json::{Map, Value};

use super::{OBJECT, format};
use crate::status::Cause;

const TYPE_INVALID: &str = "FieldValueTypeInvalid";

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
            let cause = Cause::invalid(path, &name_of(value).into(), &why);
            causes.push(Cause { reason: TYPE_INVALID, ..cause });
        }
        return;
    }
    if let Some(kind) = schema["type"].as_str()
        && !is_of(value, kind)
    {
        let found = name_of(value);
        let why = format!("{path} in body must be of type {kind}: {found:?}");
        causes.push(Cause { reason: TYPE_INVALID, ..Cause::invalid(path, &found.into(), &why) });
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
    check_choices(schema, value, path, causes);
    match value {
        Value::Object(fields) => check_object(schema, fields, path, causes),
        Value::Array(items) => {
            check_count(schema, ("minItems", "maxItems"), items.len(), path, value, "items", causes);
            check_keys(schema, items, path, causes);
            if let Some(element) = schema.get("items") {
                for (nth, item) in items.iter().enumerate() {
                    check(element, item, &format!("{path}[{nth}]"), causes);
                }
            }
        }
        Value::String(text) => {
            let length = text.chars().count();
            check_count(schema, ("minLength", "maxLength"), length, path, value, "chars long", causes);
            if let Some(pattern) = schema["pattern"].as_str()
                && !format::matches(pattern, text)
            {
                let why = format!("{path} in body should match '{pattern}'");
                causes.push(Cause::invalid(path, value, &why));
            }
            if let Some(kind) = schema["format"].as_str()
                && !format::is(kind, text)
            {
                let why = format!("{path} in body must be of type {kind}: {value}");
                causes.push(Cause { reason: TYPE_INVALID, ..Cause::invalid(path, value, &why) });
            }
        }
        Value::Number(number) => {
            let number = number.as_f64().unwrap_or_default();
            let bounds = [("minimum", "greater"), ("maximum", "less")];
            for (key, word) in bounds {
                let Some(bound) = schema[key].as_f64() else { continue };
                let exclusive =
                    schema[if key == "minimum" { "exclusiveMinimum" } else { "exclusiveMaximum" }] == true;
                let beyond = if key == "minimum" { number < bound } else { number > bound };
                if beyond || exclusive && number == bound {
                    let or_equal = if exclusive { "" } else { " or equal to" };
                    let why = format!("{path} in body should be {word} than{or_equal} {}", schema[key]);
                    causes.push(Cause::invalid(path, value, &why));
                }
            }
            if let Some(factor) = schema["multipleOf"].as_f64()
                && (number / factor).fract() != 0.0
            {
                let why = format!("{path} in body should be a multiple of {}", schema["multipleOf"]);
                causes.push(Cause::invalid(path, value, &why));
            }
        }
        _ => {}
    }
}

/// Of `anyOf` one must fit, of `oneOf` no other, of `allOf` all, and `not` must not.
fn check_choices(schema: &Value, value: &Value, path: &str, causes: &mut Vec<Cause>) {
    let faults = |schema: &Value| {
        let mut faults = Vec::new();
        check(schema, value, path, &mut faults);
        faults
    };
    let fitting = |key: &str| {
        let choices = schema[key].as_array()?;
        Some(choices.iter().filter(|choice| faults(choice).is_empty()).count())
    };
    // A real API server does not say where.
    let mut refuse = |why: &str| causes.push(Cause::invalid("<nil>", value, &format!("{path:?} {why}")));
    if fitting("anyOf") == Some(0) {
        refuse("must validate at least one schema (anyOf)");
    }
    match fitting("oneOf") {
        Some(0) => refuse("must validate one and only one schema (oneOf). Found none valid"),
        Some(many) if many > 1 => {
            refuse(&format!(
                "must validate one and only one schema (oneOf). Found {many} valid alternatives"
            ));
        }
        _ => {}
    }
    if schema.get("not").is_some_and(|not| faults(not).is_empty()) {
        refuse("must not validate the schema (not)");
    }
    for all in schema["allOf"].as_array().into_iter().flatten() {
        causes.extend(faults(all));
    }
}

/// Items of sets and of lists with keys are there once.
fn check_keys(schema: &Value, items: &[Value], path: &str, causes: &mut Vec<Cause>) {
    let keys = schema["x-kubernetes-list-map-keys"].as_array();
    let id = |item: &Value| match schema["x-kubernetes-list-type"].as_str() {
        Some("set") => Some(item.clone()),
        Some("map") => {
            let keys = keys.into_iter().flatten().filter_map(Value::as_str);
            let id: Map<String, Value> =
                keys.filter_map(|key| Some((key.to_owned(), item.get(key)?.clone()))).collect();
            Some(Value::Object(id))
        }
        _ => None,
    };
    let mut seen = Vec::new();
    for (nth, item) in items.iter().enumerate() {
        let Some(id) = id(item) else { return };
        if seen.contains(&id) {
            causes.push(Cause::duplicate(format!("{path}[{nth}]"), &id));
        }
        seen.push(id);
    }
}

fn check_object(schema: &Value, fields: &Map<String, Value>, path: &str, causes: &mut Vec<Cause>) {
    let limit = |key: &str| schema[key].as_u64().and_then(|limit| usize::try_from(limit).ok());
    if let Some(most) = limit("maxProperties").filter(|most| fields.len() > *most) {
        let message = format!("Too many: {}: must have at most {most} items", fields.len());
        causes.push(Cause { reason: "FieldValueTooMany", message, field: path.to_owned() });
    }
    if let Some(least) = limit("minProperties").filter(|least| fields.len() < *least) {
        let why = format!("{path} in body should have at least {least} properties");
        causes.push(Cause::invalid(path, &Value::Object(fields.clone()), &why));
    }
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
