//! Whether the object that we make by an apply is the one that the API server stored.

use serde_json::Value;

use crate::ownership::content::QUANTITIES;

/// Objects whose keys are data: nothing is added to them by default.
const MAPS: [&str; 9] = [
    "labels",
    "annotations",
    "data",
    "binaryData",
    "matchLabels",
    "nodeSelector",
    "limits",
    "frozen",
    "extra",
];

/// What the API server writes alone, and what it takes back when what it went with is gone.
const ITS_OWN: [&str; 5] =
    ["resourceVersion", "generation", "managedFields", "creationTimestamp", "sessionAffinityConfig"];

/// The first place where they differ. A field that we do not have may have been chosen by the API server.
pub(crate) fn difference(
    ours: &Value,
    stored: &Value,
    subresource: &str,
    has_status: bool,
) -> Option<String> {
    let (Some(ours), Some(stored)) = (ours.as_object(), stored.as_object()) else {
        return Some("not an object".to_owned());
    };
    let names = ours.keys().filter(|name| match (name.as_str(), subresource) {
        ("status", "") => !has_status,
        (name, "") => !matches!(name, "apiVersion" | "kind"),
        (name, subresource) => name == subresource,
    });
    names
        .into_iter()
        .find_map(|name| between(name, &ours[name], stored.get(name).unwrap_or(&Value::Null), name))
}

fn between(name: &str, ours: &Value, stored: &Value, at: &str) -> Option<String> {
    match (ours, stored) {
        _ if is_nothing(ours) && is_nothing(stored) => None,
        // A default.
        _ if is_nothing(ours) && !MAPS.contains(&name) && !stored.is_array() => None,
        (Value::Object(ours), Value::Object(stored)) => {
            let extra = stored.iter().find(|(key, value)| {
                MAPS.contains(&name) && !is_nothing(value) && ours.get(*key).is_none_or(is_nothing)
            });
            if let Some((key, _)) = extra {
                return Some(format!("{at}.{key} is stored, and we have it not"));
            }
            let fields = ours.iter().filter(|(key, _)| !ITS_OWN.contains(&key.as_str()));
            fields.into_iter().find_map(|(key, value)| {
                between(key, value, stored.get(key).unwrap_or(&Value::Null), &format!("{at}.{key}"))
            })
        }
        (Value::Array(ours), Value::Array(stored)) if ours.len() == stored.len() => {
            let items = ours.iter().zip(stored).enumerate();
            items
                .into_iter()
                .find_map(|(nth, (ours, stored))| between("", ours, stored, &format!("{at}[{nth}]")))
        }
        (ours, stored) if canonical(ours) == canonical(stored) => None,
        (ours, stored) => Some(format!("{at}: we have {ours}, stored is {stored}")),
    }
}

/// Go does not tell these from each other, nor from what is absent.
fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().all(is_nothing),
    }
}

fn canonical(value: &Value) -> String {
    let text = match value {
        Value::Number(number) => number.as_f64().unwrap_or_default().to_string(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    QUANTITIES
        .iter()
        .find(|(written, _)| *written == text)
        .map_or(text, |(_, canonical)| (*canonical).to_owned())
}
