//! One OpenAPI schema to one type, by the rules of the API server.
//!
//! The rules are those by which the API server makes the types for managed fields from OpenAPI v3. What they do not
//! look at has no effect on ownership: `oneOf`, `anyOf`, `not`, `nullable`, `enum`, bounds, patterns, and `allOf` but
//! for the single reference in it that stands for the reference itself.

use super::node::Node;
use super::{
    Atom, Field, Format, List, Map, Problem, Relationship, Scalar, ScalarKind, SchemaError, TypeRef, metadata,
};
use serde_json::Value;
use std::collections::BTreeMap;

/// How many types may be nested in each other without a name.
const MAX_DEPTH: usize = 128;

/// Where the schemas come from.
#[derive(Clone, Copy)]
pub(super) enum Source<'d> {
    /// An API server, which has written out all there is. References are to these definitions.
    Served(&'d serde_json::Map<String, Value>),
    /// A CustomResourceDefinition. There are no references, and what every object has is not written out.
    Structural,
}

/// What is inherited by the types inside a type.
#[derive(Clone, Copy)]
pub(super) struct Scope<'d> {
    source: Source<'d>,
    /// Objects may have fields that they do not declare.
    open: bool,
    depth: usize,
}

impl<'d> Scope<'d> {
    /// The scope of a definition.
    pub(super) fn new(source: Source<'d>, open: bool) -> Self {
        Self { source, open, depth: 0 }
    }

    /// The type of a schema, be it a reference or not.
    fn type_of(self, schema: Node<'_, 'd>) -> Result<TypeRef, SchemaError> {
        if let Some(name) = self.source.reference(schema)? {
            return Ok(TypeRef::Named(name, map_relationship(schema)?));
        }
        let inner = Scope { depth: self.depth + 1, ..self };
        Ok(TypeRef::Inline(Box::new(inner.definition(schema)?)))
    }

    /// The shapes that a schema allows.
    pub(super) fn definition(mut self, schema: Node<'_, 'd>) -> Result<Atom, SchemaError> {
        if self.depth > MAX_DEPTH {
            return Err(schema.error(Problem::TooDeep(MAX_DEPTH)));
        }
        self.open |= schema.flag_of("x-kubernetes-preserve-unknown-fields")?;
        Ok(match type_name(schema)? {
            "" => Atom {
                scalar: Some(Scalar { kind: ScalarKind::Untyped, format: format(schema)? }),
                list: Some(self.list(schema)?),
                map: Some(self.map(schema)?),
            },
            "object" => Atom { map: Some(self.map(schema)?), ..Atom::default() },
            "array" => {
                schema.require("items")?;
                Atom { list: Some(self.list(schema)?), ..Atom::default() }
            }
            "integer" | "number" => scalar(ScalarKind::Numeric, None),
            "boolean" => scalar(ScalarKind::Boolean, None),
            // Bytes are written as text. In any other format the API server takes every scalar.
            "string" => match schema.text_of("format")? {
                "" => scalar(ScalarKind::String, None),
                "byte" => scalar(ScalarKind::String, Some(Format::Bytes)),
                _ => scalar(ScalarKind::Untyped, format(schema)?),
            },
            unknown => return Err(schema.require("type")?.error(Problem::Unknown(unknown.to_owned()))),
        })
    }

    fn list(self, schema: Node<'_, 'd>) -> Result<List, SchemaError> {
        let element = match schema.get("items")? {
            Some(items) => self.type_of(items)?,
            None => TypeRef::untyped(),
        };
        let (relationship, keys) = match self.source {
            Source::Served(_) => list_type(schema)?.map_or_else(|| patch_strategy(schema), Ok)?,
            Source::Structural => list_type(schema)?.unwrap_or((Relationship::Atomic, Vec::new())),
        };
        Ok(List { element, relationship, keys })
    }

    fn map(self, schema: Node<'_, 'd>) -> Result<Map, SchemaError> {
        let mut fields = BTreeMap::new();
        if let Some(properties) = schema.get("properties")? {
            for (name, property) in properties.members()? {
                fields.insert(name.clone(), self.field(property)?);
            }
        }
        if self.is_object(schema)? {
            fields.extend(metadata::fields());
        }
        let element = match schema.get("additionalProperties")? {
            // An object that is said nothing about may have any fields.
            None => (self.open || fields.is_empty()).then(TypeRef::deduced),
            Some(additional) => match additional.value() {
                Value::Bool(allowed) => allowed.then(TypeRef::deduced),
                _ => Some(self.type_of(additional)?),
            },
        };
        Ok(Map { fields, element, relationship: map_relationship(schema)?.unwrap_or_default() })
    }

    fn field(self, property: Node<'_, 'd>) -> Result<Field, SchemaError> {
        let default = property.get("default")?.map(|default| default.value().clone());
        Ok(Field { of: self.type_of(property)?, default })
    }

    /// Whether the API server adds what every object has. The outermost schema of a CustomResourceDefinition is that
    /// of an object.
    fn is_object(self, schema: Node<'_, 'd>) -> Result<bool, SchemaError> {
        match self.source {
            Source::Served(_) => Ok(false),
            Source::Structural => Ok(self.depth == 0 || schema.flag_of("x-kubernetes-embedded-resource")?),
        }
    }
}

impl Source<'_> {
    /// The name of the type that the schema refers to. A reference beside which something is said (a default, a
    /// description) is written as the only part of `allOf`.
    fn reference(self, schema: Node<'_, '_>) -> Result<Option<String>, SchemaError> {
        if let Some(to) = schema.get("$ref")? {
            return self.referred(to).map(Some);
        }
        let Some(parts) = schema.get("allOf")? else { return Ok(None) };
        let mut items = parts.items()?;
        let (Some(only), None) = (items.next(), items.next()) else { return Ok(None) };
        only.get("$ref")?.map(|to| self.referred(to)).transpose()
    }

    fn referred(self, to: Node<'_, '_>) -> Result<String, SchemaError> {
        let pointer = to.text()?;
        let name = pointer.strip_prefix("#/components/schemas/").filter(|name| !name.contains('/'));
        let (Source::Served(definitions), Some(name)) = (self, name) else {
            return Err(to.error(Problem::ForeignReference(pointer.to_owned())));
        };
        let name = name.replace("~1", "/").replace("~0", "~");
        match definitions.get(&name) {
            Some(definition) if !is_alias(definition) => Ok(name),
            _ => Err(to.error(Problem::UndefinedType(name))),
        }
    }
}

fn scalar(kind: ScalarKind, format: Option<Format>) -> Atom {
    Atom { scalar: Some(Scalar { kind, format }), ..Atom::default() }
}

/// The type as a word; empty if there is none. Of a list of types the first counts, as for the API server.
fn type_name<'d>(schema: Node<'_, 'd>) -> Result<&'d str, SchemaError> {
    match schema.get("type")? {
        Some(types) if types.value().is_array() => types.items()?.next().map_or(Ok(""), |first| first.text()),
        Some(name) => name.text(),
        None => Ok(""),
    }
}

fn format(schema: Node<'_, '_>) -> Result<Option<Format>, SchemaError> {
    if schema.flag_of("x-kubernetes-int-or-string")? {
        return Ok(Some(Format::IntOrString));
    }
    Ok(match schema.text_of("format")? {
        "int-or-string" => Some(Format::IntOrString),
        "date-time" => Some(Format::DateTime),
        "password" => Some(Format::Password),
        _ => None,
    })
}

/// Whether a definition is only another name of one. The API server makes no type of it.
pub(super) fn is_alias(definition: &Value) -> bool {
    definition.get("$ref").is_some_and(|to| !to.is_null())
}

fn map_relationship(schema: Node<'_, '_>) -> Result<Option<Relationship>, SchemaError> {
    let Some(node) = schema.get("x-kubernetes-map-type")? else { return Ok(None) };
    match node.text()? {
        "atomic" => Ok(Some(Relationship::Atomic)),
        "granular" => Ok(Some(Relationship::Separable)),
        unknown => Err(node.error(Problem::Unknown(unknown.to_owned()))),
    }
}

fn list_type(schema: Node<'_, '_>) -> Result<Option<(Relationship, Vec<String>)>, SchemaError> {
    let Some(node) = schema.get("x-kubernetes-list-type")? else { return Ok(None) };
    match node.text()? {
        "atomic" => Ok(Some((Relationship::Atomic, Vec::new()))),
        "set" => Ok(Some((Relationship::Separable, Vec::new()))),
        "map" => {
            let keys = schema.require("x-kubernetes-list-map-keys")?;
            let keys = keys.items()?.map(|key| key.text().map(str::to_owned)).collect::<Result<_, _>>()?;
            Ok(Some((Relationship::Separable, keys)))
        }
        unknown => Err(node.error(Problem::Unknown(unknown.to_owned()))),
    }
}

/// What lists said of themselves before there were list types. One that is merged without a key is a set.
fn patch_strategy(schema: Node<'_, '_>) -> Result<(Relationship, Vec<String>), SchemaError> {
    let Some(node) = schema.get("x-kubernetes-patch-strategy")? else {
        return Ok((Relationship::Atomic, Vec::new()));
    };
    match node.text()? {
        "merge" | "merge,retainKeys" => {
            let key = schema.get("x-kubernetes-patch-merge-key")?;
            let key = key.map(|key| key.text().map(str::to_owned)).transpose()?;
            Ok((Relationship::Separable, Vec::from_iter(key)))
        }
        "retainKeys" => Ok((Relationship::Atomic, Vec::new())),
        unknown => Err(node.error(Problem::Unknown(unknown.to_owned()))),
    }
}
