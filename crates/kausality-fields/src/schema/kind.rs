//! The kinds of objects that a schema has types of.

use super::{Resolved, Schema, TypeRef};
use std::collections::BTreeMap;
use std::fmt;

/// What an object says of itself in `apiVersion` and `kind`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupVersionKind {
    /// The API group; empty for the core group.
    pub group: String,
    /// The version in the group.
    pub version: String,
    /// The kind.
    pub kind: String,
}

/// A schema, and which of its types are those of objects.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Kinds {
    /// The types.
    pub schema: Schema,
    /// The names of the types of objects.
    pub types: BTreeMap<GroupVersionKind, String>,
}

impl GroupVersionKind {
    /// The kind named by an object's `apiVersion` (`apps/v1`, `v1`) and `kind`.
    pub fn new(api_version: &str, kind: &str) -> Self {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        Self { group: group.to_owned(), version: version.to_owned(), kind: kind.to_owned() }
    }
}

impl fmt::Display for GroupVersionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { group, version, kind } = self;
        match group.as_str() {
            "" => write!(f, "{version}, Kind={kind}"),
            _ => write!(f, "{group}/{version}, Kind={kind}"),
        }
    }
}

impl Kinds {
    /// The type of objects of this kind, to be resolved in [`Kinds::schema`].
    pub fn type_of(&self, kind: &GroupVersionKind) -> Option<TypeRef> {
        Some(TypeRef::Named(self.types.get(kind)?.clone(), None))
    }

    /// What objects of this kind are made of.
    pub fn resolve(&self, kind: &GroupVersionKind) -> Option<Resolved<'_>> {
        self.schema.definition(self.types.get(kind)?).map(Resolved::of)
    }
}
