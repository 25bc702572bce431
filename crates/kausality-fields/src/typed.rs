//! Values under a type: what is owned of them, what differs, how they merge.
//!
//! All of it follows the API server, so that what is computed here is what it would store.

use crate::path::{Path, Step};
use crate::schema::{Resolved, ResolvedList, ResolvedMap, Scalar, Schema, TypeRef};
use crate::set::FieldSet;
use serde_json::Value;
use std::fmt;

mod compare;
mod equal;
mod fields;
mod identity;
mod items;
mod merge;
mod named;
mod reconcile;
mod validate;

pub use compare::Comparison;
pub(crate) use equal::same;

/// Levels of a value that are looked at. Below, it is a fault and not a guess.
const MAX_DEPTH: usize = crate::fieldsv1::MAX_DEPTH;

/// A type, and the schema that its parts are defined in.
#[derive(Debug, Clone, Copy)]
pub struct Type<'s> {
    schema: &'s Schema,
    of: &'s TypeRef,
    /// The way to a field that is as good as not there.
    hidden: &'s [&'s str],
}

/// What makes a value invalid, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Where in the value.
    pub path: Path,
    /// What is wrong there.
    pub problem: Invalid,
}

/// What is wrong in one place of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Invalid {
    /// The schema lacks this type, or says nothing of it.
    UndefinedType(String),
    /// The type has no such field.
    Undeclared,
    /// Something else must be there.
    Expected(&'static str),
    /// Two items of a list have the same identity.
    Duplicate(Step),
    /// An item of a list has no identity, and why.
    Unidentified(&'static str),
    /// It is nested more deeply than any object.
    TooDeep,
}

/// Whether two items of a list may have the same identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Duplicates {
    /// They may, as in objects that exist already: no one could fix them otherwise.
    Allowed,
    /// They may not, as in what is applied.
    Refused,
}

/// Whether the fields that identify an item are extracted with whatever else of it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keys {
    /// They are, so that the items can be told apart.
    Included,
    /// Only if they are asked for.
    AsAsked,
}

impl<'s> Type<'s> {
    /// The type that is used so in a schema.
    pub fn new(schema: &'s Schema, of: &'s TypeRef) -> Self {
        Self { schema, of, hidden: &[] }
    }

    /// The same type without the field at the end of this way, for [`validate`](Self::validate) and
    /// [`compare`](Self::compare): they need no copy of a value that has it.
    pub(crate) fn hiding(self, way: &'s [&'s str]) -> Self {
        Self { hidden: way, ..self }
    }

    /// The schema.
    pub fn schema(self) -> &'s Schema {
        self.schema
    }

    /// The use of the type.
    pub fn reference(self) -> &'s TypeRef {
        self.of
    }

    /// Whether a value is of this type.
    pub fn validate(self, value: &Value, duplicates: Duplicates) -> Result<(), Fault> {
        validate::validate(self, value, duplicates, 0)
    }

    /// The fields of a value: what somebody owns who applies it.
    pub fn field_set(self, value: &Value) -> Result<FieldSet, Fault> {
        fields::of(self, value)
    }

    /// What differs between two values of this type.
    pub fn compare(self, old: &Value, new: &Value) -> Result<Comparison, Fault> {
        compare::between(self, old, new)
    }

    /// What comes of applying one value to another: its fields win, the others stay.
    ///
    /// Items that both have come in the order of `new`; those of `old` alone keep their place among them.
    pub fn merge(self, old: &Value, new: &Value) -> Result<Value, Fault> {
        Ok(merge::merge(self, Some(old), Some(new), 0)?.unwrap_or(Value::Null))
    }

    /// Only the given fields of a value. Of an object or list that is asked for without its parts, its being there.
    pub fn extract(self, value: &Value, set: &FieldSet, keys: Keys) -> Result<Value, Fault> {
        items::extract(self, value, set, keys, 0)
    }

    /// All but the given fields of a value. An object or list that is left without parts becomes null.
    pub fn remove(self, value: &Value, set: &FieldSet) -> Result<Value, Fault> {
        items::remove(self, value, set, 0)
    }

    /// A value of which nothing is said, as the API server's own types write it: a field whose default is an empty
    /// object is there, and so on inside. It has no way to know of the null that an unset list or pointer may be
    /// written as (`spec.template.spec.containers`), for schemas do not tell.
    pub fn empty(self) -> Value {
        items::empty(self, 0)
    }

    /// The same set, in which every field that the type declares is a member if something below it is.
    pub(crate) fn with_declared_fields(self, set: &FieldSet) -> FieldSet {
        named::with_declared(self.schema, self.schema.resolve(self.of), set)
    }

    /// The same set, as it is after parts of the type have become atomic.
    pub(crate) fn reconcile(self, set: FieldSet) -> Result<FieldSet, Fault> {
        reconcile::reconcile(self, set)
    }

    fn resolve(self) -> Result<Resolved<'s>, Fault> {
        self.schema.resolve(self.of).ok_or_else(|| self.undefined())
    }

    fn undefined(self) -> Fault {
        let name = match self.of {
            TypeRef::Named(name, _) => name.as_str(),
            TypeRef::Inline(_) => "a type without a name",
        };
        Fault::from(Invalid::UndefinedType(name.to_owned()))
    }

    /// The shape that decides how a value is treated, out of those that its type allows.
    fn shape(self, resolved: Resolved<'s>) -> Result<Shape<'s>, Fault> {
        match resolved {
            Resolved { map: Some(map), .. } => Ok(Shape::Map(map)),
            Resolved { scalar: Some(scalar), .. } => Ok(Shape::Scalar(scalar)),
            Resolved { list: Some(list), .. } => Ok(Shape::List(list)),
            _ => Err(self.undefined()),
        }
    }

    /// The shape of this value.
    fn shape_of(self, value: &Value) -> Result<Shape<'s>, Fault> {
        self.shape(narrowed(self.resolve()?, Some(value)))
    }

    fn hides(self, name: &str) -> bool {
        self.hidden == [name]
    }

    fn field(self, map: ResolvedMap<'s>, name: &str) -> Result<Self, Fault> {
        let hidden = match self.hidden {
            [first, rest @ ..] if *first == name => rest,
            _ => &[],
        };
        match map.field(name) {
            Some(of) => Ok(Self { of, hidden, ..self }),
            None => Err(Fault::from(Invalid::Undeclared).below(field(name))),
        }
    }

    fn item(self, list: ResolvedList<'s>) -> Self {
        Self { of: list.element, hidden: &[], ..self }
    }
}

/// One of the shapes that a type allows.
enum Shape<'s> {
    Map(ResolvedMap<'s>),
    Scalar(Scalar),
    List(ResolvedList<'s>),
}

impl Shape<'_> {
    /// Whether both are objects, or scalars, or lists.
    fn is_like(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

/// Of the shapes that a type allows, the one that a value has. Null has none of them, and may be any.
fn narrowed<'s>(resolved: Resolved<'s>, value: Option<&Value>) -> Resolved<'s> {
    let none = Resolved { scalar: None, list: None, map: None };
    match value {
        Some(Value::Bool(_) | Value::Number(_) | Value::String(_)) if resolved.scalar.is_some() => {
            Resolved { scalar: resolved.scalar, ..none }
        }
        Some(Value::Array(_)) if resolved.list.is_some() => Resolved { list: resolved.list, ..none },
        Some(Value::Object(_)) if resolved.map.is_some() => Resolved { map: resolved.map, ..none },
        _ => resolved,
    }
}

fn field(name: &str) -> Step {
    Step::Field(name.to_owned())
}

fn bounded(depth: usize) -> Result<usize, Fault> {
    if depth < MAX_DEPTH { Ok(depth + 1) } else { Err(Fault::from(Invalid::TooDeep)) }
}

impl Fault {
    fn below(mut self, step: Step) -> Self {
        self.path.prepend(step);
        self
    }
}

impl From<Invalid> for Fault {
    fn from(problem: Invalid) -> Self {
        Self { path: Path::default(), problem }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.problem)
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UndefinedType(name) => write!(f, "the schema does not define its type ({name})"),
            Self::Undeclared => f.write_str("the schema declares no such field"),
            Self::Expected(what) => write!(f, "must be {what}"),
            Self::Duplicate(step) => write!(f, "more than one item is {}", Path::from_iter([step.clone()])),
            Self::Unidentified(why) => f.write_str(why),
            Self::TooDeep => write!(f, "nested deeper than {MAX_DEPTH} levels"),
        }
    }
}

impl std::error::Error for Fault {}

#[cfg(test)]
pub(crate) mod sample;
#[cfg(test)]
mod tests;
