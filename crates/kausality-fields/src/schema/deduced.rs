//! The types of values that nothing is said about.

use super::{Atom, List, Map, Relationship, Scalar, ScalarKind, Schema, TypeRef};
use std::collections::BTreeMap;

/// The name of the type of a value that is owned as a whole, whatever it is.
pub const UNTYPED: &str = "__untyped_atomic_";

/// The name of the type of a value whose shape says how it is owned: an object field by field, the rest as a whole.
pub const DEDUCED: &str = "__untyped_deduced_";

impl Schema {
    /// The schema of objects of unknown kind. Their type is [`TypeRef::deduced`].
    pub fn deduced() -> Self {
        Self { types: BTreeMap::from([(UNTYPED.to_owned(), untyped()), (DEDUCED.to_owned(), deduced())]) }
    }
}

impl TypeRef {
    /// Any value, owned as a whole. Every schema defines it.
    pub fn untyped() -> Self {
        Self::Named(UNTYPED.to_owned(), None)
    }

    /// Any value, owned as its shape suggests. Every schema defines it.
    pub fn deduced() -> Self {
        Self::Named(DEDUCED.to_owned(), None)
    }
}

pub(super) fn untyped() -> Atom {
    Atom {
        scalar: Some(Scalar { kind: ScalarKind::Untyped, format: None }),
        list: Some(list_of_anything()),
        map: Some(map_of(TypeRef::untyped(), Relationship::Atomic)),
    }
}

fn deduced() -> Atom {
    Atom { map: Some(map_of(TypeRef::deduced(), Relationship::Separable)), ..untyped() }
}

fn list_of_anything() -> List {
    List { element: TypeRef::untyped(), relationship: Relationship::Atomic, keys: Vec::new() }
}

fn map_of(element: TypeRef, relationship: Relationship) -> Map {
    Map { fields: BTreeMap::new(), element: Some(element), relationship }
}
