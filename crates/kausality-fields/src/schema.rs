//! The types that objects are made of, as far as the ownership of fields depends on them.
//!
//! A type says of a value whether it is owned as a whole or part by part, and what identifies the items of a list.
//! One definition allows several shapes where Kubernetes does (an int-or-string, a value of any type).
//!
//! Types come [from OpenAPI](openapi::document) as an API server serves it, or [from a
//! CustomResourceDefinition](structural::custom_resource). Where there are none, those of [`Schema::deduced`] say of
//! any value what Kubernetes takes it for.

use std::collections::BTreeMap;

use serde_json::Value;

mod convert;
mod deduced;
mod error;
mod kind;
mod metadata;
mod node;
pub mod openapi;
mod resolve;
pub mod structural;

pub use deduced::{DEDUCED, UNTYPED};
pub use error::{Problem, SchemaError};
pub use kind::{GroupVersionKind, Kinds};
pub use resolve::{Resolved, ResolvedList, ResolvedMap};

/// Named types.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Schema {
    /// The definitions by name. They may refer to each other, and to themselves.
    pub types: BTreeMap<String, Atom>,
}

/// A use of a type.
#[derive(Debug, Clone, PartialEq)]
pub enum TypeRef {
    /// A definition of the schema; the relationship, where there is one, replaces that of its map or list.
    Named(String, Option<Relationship>),
    /// A type that has no name.
    Inline(Box<Atom>),
}

/// The shapes that a value may have.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Atom {
    /// It may be a scalar.
    pub scalar: Option<Scalar>,
    /// It may be a list.
    pub list: Option<List>,
    /// It may be an object.
    pub map: Option<Map>,
}

/// What a scalar may be, and how two of them compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scalar {
    /// Which JSON scalars are valid.
    pub kind: ScalarKind,
    /// Where two texts may mean the same.
    pub format: Option<Format>,
}

/// Which JSON scalars are valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScalarKind {
    /// A number.
    Numeric,
    /// A string.
    String,
    /// A boolean.
    Boolean,
    /// Any of them.
    Untyped,
}

/// Meanings that can be written in more than one way, or must not be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// An amount of a resource: `1`, `1000m`.
    Quantity,
    /// A number, or a string such as `25%`.
    IntOrString,
    /// A point in time: `2026-01-01T00:00:00Z`.
    DateTime,
    /// Bytes in base64, however the lines are broken.
    Bytes,
    /// A text that nobody is to see. Two that differ are two values.
    Password,
}

/// A list.
#[derive(Debug, Clone, PartialEq)]
pub struct List {
    /// The type of its items.
    pub element: TypeRef,
    /// Whether it is owned as a whole or item by item.
    pub relationship: Relationship,
    /// The fields that identify an item of an associative list; items of one without keys identify themselves.
    pub keys: Vec<String>,
}

/// An object, or a map from names to values.
#[derive(Debug, Clone, PartialEq)]
pub struct Map {
    /// The fields that it is known to have.
    pub fields: BTreeMap<String, Field>,
    /// The type of all other fields; without it there are none.
    pub element: Option<TypeRef>,
    /// Whether it is owned as a whole or field by field.
    pub relationship: Relationship,
}

/// A field of an object.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// Its type.
    pub of: TypeRef,
    /// What its absence means.
    pub default: Option<Value>,
}

/// Whether the parts of a value have owners of their own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Relationship {
    /// They have.
    #[default]
    Separable,
    /// The value is owned as a whole.
    Atomic,
}

#[cfg(test)]
mod tests;
