//! Types from a CustomResourceDefinition, for when the API server does not serve it yet.
//!
//! The API server makes OpenAPI v3 of each version and its types for managed fields of that, so the rules are those of
//! [`openapi`](super::openapi), with these additions:
//!
//! * An object has `apiVersion`, `kind` and `metadata`, whatever its schema says of them; so has every part that is an
//!   embedded resource.
//! * `x-kubernetes-preserve-unknown-fields` opens an object and all that it contains: fields that are declared keep
//!   their types, all others have the type that their shape suggests. `spec.preserveUnknownFields`, which only old
//!   definitions have, does so for everything.
//! * A version without a schema, or one that is said not to be structural, is an object of which nothing is known.
//!   Not even its `metadata` has a type.

use super::convert::{Scope, Source};
use super::node::Node;
use super::{
    Atom, GroupVersionKind, Kinds, Map, Problem, Relationship, Schema, SchemaError, TypeRef, metadata,
};
use serde_json::Value;
use std::collections::BTreeMap;

/// The types of all versions of a CustomResourceDefinition (`apiextensions.k8s.io/v1`).
pub fn custom_resource(definition: &Value) -> Result<Kinds, SchemaError> {
    let definition = Node::root(definition);
    let structural = !is_said_not_structural(definition)?;
    let spec = definition.require("spec")?;
    let open = spec.flag_of("preserveUnknownFields")?;
    let group = spec.require("group")?.text()?;
    let names = spec.require("names")?;
    let kind = names.require("kind")?.text()?;

    let mut kinds = Kinds { schema: Schema::deduced(), ..Kinds::default() };
    kinds.schema.types.extend(metadata::definitions(open));
    for entry in spec.require("versions")?.items()? {
        let atom = match entry.get("schema")? {
            Some(schema) if structural => object(schema, open)?,
            _ => unknown_object(),
        };
        let version = entry.require("name")?.text()?;
        let name = type_name(group, version, kind);
        let kind =
            GroupVersionKind { group: group.to_owned(), version: version.to_owned(), kind: kind.to_owned() };
        kinds.schema.types.insert(name.clone(), atom);
        if kinds.types.insert(kind.clone(), name).is_some() {
            return Err(entry.error(Problem::DuplicateKind(kind)));
        }
    }
    Ok(kinds)
}

/// The name that the API server gives to the type: `io.example.garden.v1.Bed` for a Bed of `garden.example.io/v1`.
fn type_name(group: &str, version: &str, kind: &str) -> String {
    let mut parts: Vec<_> = group.rsplit('.').collect();
    parts.extend([version, kind]);
    parts.join(".")
}

fn object(schema: Node<'_, '_>, open: bool) -> Result<Atom, SchemaError> {
    let Some(schema) = schema.get("openAPIV3Schema")? else { return Ok(unknown_object()) };
    let atom = Scope::new(Source::Structural, open).definition(schema)?;
    match atom.map {
        Some(_) => Ok(atom),
        None => Err(schema.error(Problem::Expected("the schema of an object"))),
    }
}

fn unknown_object() -> Atom {
    let element = Some(TypeRef::deduced());
    let map = Map { fields: BTreeMap::new(), element, relationship: Relationship::Separable };
    Atom { map: Some(map), ..Atom::default() }
}

/// Whether the API server found that the schema does not meet the rules of structural schemas.
fn is_said_not_structural(definition: Node<'_, '_>) -> Result<bool, SchemaError> {
    let Some(status) = definition.get("status")? else { return Ok(false) };
    let Some(conditions) = status.get("conditions")? else { return Ok(false) };
    for condition in conditions.items()? {
        if condition.text_of("type")? == "NonStructuralSchema" {
            return Ok(condition.text_of("status")? == "True");
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests;
