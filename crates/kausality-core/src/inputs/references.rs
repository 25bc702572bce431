//! References in an object whose fields nobody has declared, by how they are spelt.

use serde_json::{Map, Value};

use crate::summary::ObjectId;

/// How deep references are looked for.
const MAX_DEPTH: usize = 16;

/// Whether an object refers to a ConfigMap: by a field that says so (`configMapRef.name`, `configMapName`, `configRef`), or by a
/// name beside `kind: ConfigMap`. An object without a namespace must name that of the ConfigMap.
pub(super) fn refers(object: &Value, namespace: &str, to: &ObjectId) -> bool {
    let look = Look { to, is_local: !namespace.is_empty() };
    let fields = object.as_object().into_iter().flatten();
    let intent = |name: &str| !matches!(name, "apiVersion" | "kind" | "metadata" | "status");
    let intent: Map<String, Value> =
        fields.filter(|(name, _)| intent(name)).map(|(name, value)| (name.clone(), value.clone())).collect();
    look.finds(&Value::Object(intent), MAX_DEPTH)
}

/// Whether a field is called after ConfigMaps.
fn says_so(field: &str) -> bool {
    let field = field.to_ascii_lowercase();
    field.starts_with("configmap") || matches!(&*field, "configref" | "configrefs" | "configname")
}

struct Look<'a> {
    to: &'a ObjectId,
    /// Whether the object that refers is in a namespace, which is then the one that it means.
    is_local: bool,
}

impl Look<'_> {
    fn finds(&self, value: &Value, depth: usize) -> bool {
        match value {
            _ if depth == 0 => false,
            Value::Array(items) => items.iter().any(|item| self.finds(item, depth - 1)),
            Value::Object(fields) => {
                let by_kind = fields.get("kind").is_some_and(|kind| kind == "ConfigMap") && self.is(fields);
                by_kind
                    || fields.iter().any(|(field, value)| {
                        says_so(field) && self.is_named(value) || self.finds(value, depth - 1)
                    })
            }
            _ => false,
        }
    }

    /// Whether the value of a field that is called after ConfigMaps names the one.
    fn is_named(&self, value: &Value) -> bool {
        match value {
            Value::String(name) => self.is_local && *name == self.to.name,
            Value::Array(items) => items.iter().any(|item| self.is_named(item)),
            Value::Object(fields) => {
                fields.get("kind").is_none_or(|kind| kind == "ConfigMap") && self.is(fields)
            }
            _ => false,
        }
    }

    /// Whether a reference of several fields is one to it.
    fn is(&self, reference: &Map<String, Value>) -> bool {
        let is = |field: &str, text: &str| reference.get(field).is_some_and(|value| value == text);
        let same_namespace = match reference.get("namespace") {
            Some(namespace) => *namespace == self.to.namespace,
            None => self.is_local,
        };
        is("name", &self.to.name) && same_namespace
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn map() -> ObjectId {
        ObjectId {
            api_version: "v1".to_owned(),
            kind: "ConfigMap".to_owned(),
            namespace: "shop".to_owned(),
            name: "settings".to_owned(),
        }
    }

    #[test]
    fn references_are_known_by_how_they_are_spelt() {
        for spec in [
            json!({"configRef": "settings"}),
            json!({"configMapName": "settings"}),
            json!({"configMaps": ["others", "settings"]}),
            json!({"template": {"volumes": [{"configMap": {"name": "settings"}}]}}),
            json!({"valuesFrom": [{"kind": "ConfigMap", "name": "settings"}]}),
            json!({"configRef": {"name": "settings", "namespace": "shop"}}),
        ] {
            assert!(refers(&json!({"spec": spec}), "shop", &map()), "{spec}");
        }
        for object in [
            json!({"spec": {"configRef": "others"}}),
            json!({"spec": {"title": "settings"}}),
            json!({"spec": {"loggingConfig": {"level": "settings"}}}),
            json!({"spec": {"configRef": {"level": "settings"}}}),
            json!({"spec": {"providerConfigRef": {"kind": "ProviderConfig", "name": "settings"}}}),
            json!({"spec": {"configRef": {"kind": "ProviderConfig", "name": "settings"}}}),
            json!({"spec": {"configRef": {"name": "settings", "namespace": "elsewhere"}}}),
            json!({"spec": {"valuesFrom": [{"kind": "Secret", "name": "settings"}]}}),
            json!({"metadata": {"labels": {"configRef": "settings"}}}),
            json!({"status": {"configRef": "settings"}}),
        ] {
            assert!(!refers(&object, "shop", &map()), "{object}");
        }
    }

    /// Anybody may make a ConfigMap of the same name in a namespace of their own.
    #[test]
    fn an_object_without_a_namespace_must_name_that_of_the_config_map() {
        for (spec, expected) in [
            (json!({"configRef": "settings"}), false),
            (json!({"configMapRef": {"name": "settings"}}), false),
            (json!({"configMapRef": {"name": "settings", "namespace": "shop"}}), true),
        ] {
            assert_eq!(refers(&json!({"spec": spec}), "", &map()), expected, "{spec}");
        }
    }
}
