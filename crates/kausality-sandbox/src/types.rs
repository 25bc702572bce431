//! What the built-in kinds are made of: the OpenAPI definitions of a real API server without their descriptions.
//!
//! One document serves all: who owns which field (`kausality-fields` reads it), what may be in an object
//! ([`decode`]), how strategic patches merge lists, and what kubectl is told. `examples/types.rs` writes it.

use std::sync::{Arc, OnceLock};

use kausality_fields::schema::{Kinds, openapi};
use serde_json::{Map, Value, json};

pub(crate) mod decode;
pub(crate) mod protobuf;
pub(crate) mod quantity;
pub(crate) mod time;

const TEXT: &str = include_str!("types/built-in.json");

/// The definitions of the built-in kinds.
#[derive(Debug, Default)]
pub(crate) struct BuiltIn {
    /// OpenAPI schemas by name.
    pub(crate) schemas: Map<String, Value>,
    /// The same, as types whose fields have owners.
    pub(crate) kinds: Arc<Kinds>,
}

/// The definitions of the built-in kinds: data, read once.
pub(crate) fn built_in() -> &'static BuiltIn {
    static READ: OnceLock<BuiltIn> = OnceLock::new();
    READ.get_or_init(|| read().unwrap_or_default())
}

fn read() -> Option<BuiltIn> {
    let schemas: Map<String, Value> = serde_json::from_str(TEXT).ok()?;
    let document = json!({"components": {"schemas": schemas}});
    let kinds = openapi::document(&document).ok()?;
    Some(BuiltIn { schemas, kinds: Arc::new(kinds) })
}

/// The definition that a schema refers to, and its name; or the schema itself.
pub(crate) fn resolve<'s>(schemas: &'s Map<String, Value>, schema: &'s Value) -> (&'s str, &'s Value) {
    let all_of = || schema.get("allOf")?.get(0)?.get("$ref");
    let reference = schema.get("$ref").or_else(all_of).and_then(Value::as_str);
    let Some(name) = reference.and_then(|reference| reference.rsplit('/').next()) else {
        return ("", schema);
    };
    match schemas.get_key_value(name) {
        Some((name, definition)) => (name, definition),
        None => ("", &Value::Null),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kausality_fields::schema::GroupVersionKind;

    #[test]
    fn the_built_in_kinds_have_types() {
        let built_in = built_in();
        assert!(built_in.schemas.len() > 300);
        let deployment = GroupVersionKind::new("apps/v1", "Deployment");
        assert!(built_in.kinds.resolve(&deployment).is_some());
    }
}
