//! Types from OpenAPI v3, as an API server serves it for a group and version.
//!
//! ```
//! use kausality_fields::schema::{GroupVersionKind, openapi};
//!
//! let kinds = openapi::parse(r##"{"components": {"schemas": {
//!     "example.Bed": {"type": "object", "properties": {"plants": {"type": "array", "items": {
//!         "allOf": [{"$ref": "#/components/schemas/example.Plant"}], "default": {}},
//!         "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]}},
//!         "x-kubernetes-group-version-kind": [{"group": "garden", "version": "v1", "kind": "Bed"}]},
//!     "example.Plant": {"type": "object", "properties": {"name": {"type": "string"}}}}}}"##)?;
//!
//! let bed = kinds.resolve(&GroupVersionKind::new("garden/v1", "Bed")).and_then(|bed| bed.map).unwrap();
//! let plants = kinds.schema.resolve(bed.field("plants").unwrap()).and_then(|plants| plants.list).unwrap();
//! assert_eq!(plants.keys, ["name"]);
//! # Ok::<_, kausality_fields::schema::SchemaError>(())
//! ```
//!
//! The documents of `/openapi/v3/apis/apps/v1` and the like have the definitions that the API server itself makes the
//! types for managed fields of, custom resources included, so the types are the same. What it would refuse is refused
//! here, and so is a reference to nothing, which it would only find when it needs it.

use super::convert::{Scope, Source, is_alias};
use super::node::Node;
use super::{
    Atom, Format, GroupVersionKind, Kinds, Problem, Scalar, ScalarKind, Schema, SchemaError, deduced,
};
use serde_json::Value;

/// An amount of a resource. Its schema does not say what it is.
const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";

/// An object of unknown type, of which the API server knows that it is owned as a whole.
const RAW_EXTENSION: &str = "io.k8s.apimachinery.pkg.runtime.RawExtension";

/// The types of a document that is still text.
pub fn parse(text: &str) -> Result<Kinds, SchemaError> {
    let document: Value = serde_json::from_str(text).map_err(|error| SchemaError {
        place: String::new(),
        problem: Problem::NotJson(error.to_string()),
    })?;
    self::document(&document)
}

/// The types of a document.
pub fn document(document: &Value) -> Result<Kinds, SchemaError> {
    let document = Node::root(document);
    let components = document.require("components")?;
    let schemas = components.require("schemas")?;
    let scope = Scope::new(Source::Served(schemas.object()?), false);
    let mut kinds = Kinds { schema: Schema::deduced(), ..Kinds::default() };
    for (name, schema) in schemas.members()? {
        if is_alias(schema.value()) {
            continue;
        }
        let atom = match name.as_str() {
            QUANTITY => quantity(),
            RAW_EXTENSION => deduced::untyped(),
            _ => scope.definition(schema)?,
        };
        kinds.schema.types.insert(name.clone(), atom);
        for kind in kinds_of(schema)? {
            if kinds.types.insert(kind.clone(), name.clone()).is_some() {
                return Err(schema.error(Problem::DuplicateKind(kind)));
            }
        }
    }
    Ok(kinds)
}

fn quantity() -> Atom {
    let scalar = Scalar { kind: ScalarKind::Untyped, format: Some(Format::Quantity) };
    Atom { scalar: Some(scalar), ..Atom::default() }
}

/// The kinds that a definition is the type of. Some have many: options are read in every group.
fn kinds_of(schema: Node<'_, '_>) -> Result<Vec<GroupVersionKind>, SchemaError> {
    let Some(list) = schema.get("x-kubernetes-group-version-kind")? else { return Ok(Vec::new()) };
    let mut kinds = Vec::new();
    for item in list.items()? {
        let text = |name| item.require(name)?.text().map(str::to_owned);
        let kind = GroupVersionKind { group: text("group")?, version: text("version")?, kind: text("kind")? };
        if !kind.kind.is_empty() && !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    Ok(kinds)
}

#[cfg(test)]
mod tests;
