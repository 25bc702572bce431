//! References in an object whose fields nobody has declared, by how they are spelt.

use serde_json::Value;

use crate::summary::ObjectId;

/// How deep references are looked for.
const MAX_DEPTH: usize = 16;

/// Whether an object refers to another one, by name: in a field that says what kind it names (`configMapRef.name`, `configRef`),
/// or beside a field that does (`kind: ConfigMap`).
pub(super) fn refers(object: &Value, to: &ObjectId) -> bool {
    let fields = object.as_object().into_iter().flatten();
    let intent = |name: &&str| !matches!(*name, "apiVersion" | "kind" | "metadata" | "status");
    let look = Look { name: &to.name, kind: &to.kind, stem: stem(&to.kind) };
    fields
        .map(|(name, value)| (name.as_str(), value))
        .filter(|(name, _)| intent(name))
        .any(|(name, value)| look.finds(value, look.says_kind(name), MAX_DEPTH))
}

/// How names of fields begin that refer to a kind.
fn stem(kind: &str) -> String {
    // Many write `configRef` and mean a ConfigMap.
    kind.strip_suffix("Map").unwrap_or(kind).to_ascii_lowercase()
}

struct Look<'a> {
    name: &'a str,
    kind: &'a str,
    stem: String,
}

impl Look<'_> {
    fn says_kind(&self, field: &str) -> bool {
        field.to_ascii_lowercase().contains(&self.stem)
    }

    /// Whether the name is in a value. `told` is whether a field above says that the kind is meant.
    fn finds(&self, value: &Value, told: bool, depth: usize) -> bool {
        match value {
            _ if depth == 0 => false,
            Value::String(text) => told && text == self.name,
            Value::Array(items) => items.iter().any(|item| self.finds(item, told, depth - 1)),
            Value::Object(fields) => {
                let told = told || fields.get("kind").is_some_and(|kind| kind == self.kind);
                fields
                    .iter()
                    .any(|(field, value)| self.finds(value, told || self.says_kind(field), depth - 1))
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn references_are_known_by_how_they_are_spelt() {
        let map = ObjectId {
            api_version: "v1".to_owned(),
            kind: "ConfigMap".to_owned(),
            namespace: "shop".to_owned(),
            name: "settings".to_owned(),
        };
        for spec in [
            json!({"configRef": "settings"}),
            json!({"configMapName": "settings"}),
            json!({"template": {"volumes": [{"configMap": {"name": "settings"}}]}}),
            json!({"valuesFrom": [{"kind": "ConfigMap", "name": "settings"}]}),
        ] {
            assert!(refers(&json!({"spec": spec}), &map), "{spec}");
        }
        for object in [
            json!({"spec": {"configRef": "others"}}),
            json!({"spec": {"title": "settings"}}),
            json!({"spec": {"valuesFrom": [{"kind": "Secret", "name": "settings"}]}}),
            json!({"metadata": {"labels": {"config": "settings"}}}),
            json!({"status": {"configRef": "settings"}}),
        ] {
            assert!(!refers(&object, &map), "{object}");
        }
    }
}
