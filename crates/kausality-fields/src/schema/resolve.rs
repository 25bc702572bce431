//! From a use of a type to what it says.

use super::{Atom, Field, Relationship, Scalar, Schema, TypeRef};
use std::collections::BTreeMap;

/// What a use of a type allows. It borrows from the schema.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Resolved<'s> {
    /// It may be a scalar.
    pub scalar: Option<Scalar>,
    /// It may be a list.
    pub list: Option<ResolvedList<'s>>,
    /// It may be an object.
    pub map: Option<ResolvedMap<'s>>,
}

/// A list, as it is in the place where its type is used.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ResolvedList<'s> {
    /// The type of its items.
    pub element: &'s TypeRef,
    /// Whether it is owned as a whole or item by item.
    pub relationship: Relationship,
    /// The fields that identify an item; without them items identify themselves.
    pub keys: &'s [String],
}

/// An object, as it is in the place where its type is used.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ResolvedMap<'s> {
    /// The fields that it is known to have.
    pub fields: &'s BTreeMap<String, Field>,
    /// The type of all other fields; without it there are none.
    pub element: Option<&'s TypeRef>,
    /// Whether it is owned as a whole or field by field.
    pub relationship: Relationship,
}

impl Schema {
    /// The definition with this name.
    pub fn definition(&self, name: &str) -> Option<&Atom> {
        self.types.get(name)
    }

    /// What the given use of a type allows, with its own relationship where it has one.
    ///
    /// `None` if the schema lacks the definition, or if a relationship is given to a type that has no parts. A
    /// definition is never another name of one, so this is a single step however the types refer to each other.
    pub fn resolve<'s>(&'s self, of: &'s TypeRef) -> Option<Resolved<'s>> {
        match of {
            TypeRef::Inline(atom) => Some(Resolved::of(atom)),
            TypeRef::Named(name, None) => self.definition(name).map(Resolved::of),
            TypeRef::Named(name, Some(relationship)) => {
                Resolved::of(self.definition(name)?).with(*relationship)
            }
        }
    }
}

impl<'s> Resolved<'s> {
    /// What a definition allows.
    pub fn of(atom: &'s Atom) -> Self {
        Self {
            scalar: atom.scalar,
            list: atom.list.as_ref().map(|list| ResolvedList {
                element: &list.element,
                relationship: list.relationship,
                keys: &list.keys,
            }),
            map: atom.map.as_ref().map(|map| ResolvedMap {
                fields: &map.fields,
                element: map.element.as_ref(),
                relationship: map.relationship,
            }),
        }
    }

    /// Of a type that may be both, the object alone takes the relationship, as in Kubernetes.
    fn with(mut self, relationship: Relationship) -> Option<Self> {
        match (&mut self.map, &mut self.list) {
            (Some(map), _) => map.relationship = relationship,
            (None, Some(list)) => list.relationship = relationship,
            (None, None) => return None,
        }
        Some(self)
    }
}

impl<'s> ResolvedMap<'s> {
    /// The type of the field with this name; `None` if the object has no such field.
    pub fn field(&self, name: &str) -> Option<&'s TypeRef> {
        self.fields.get(name).map(|field| &field.of).or(self.element)
    }
}
