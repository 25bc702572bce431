//! What can be wrong with a schema.

use super::GroupVersionKind;
use std::fmt;

/// A schema that cannot be used, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaError {
    /// Where in the document, as a JSON pointer.
    pub place: String,
    /// What is wrong there.
    pub problem: Problem,
}

/// What is wrong in one place of a schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Problem {
    /// The text is not JSON, or is nested too deeply to be read.
    NotJson(String),
    /// Something must be there.
    Missing(&'static str),
    /// Something else must be there.
    Expected(&'static str),
    /// A word that has no meaning there.
    Unknown(String),
    /// A reference to a type that is not defined, or only as another name of one.
    UndefinedType(String),
    /// A reference to something other than a type in the same document.
    ForeignReference(String),
    /// More than one definition is the type of this kind.
    DuplicateKind(GroupVersionKind),
    /// The schema is nested deeper than this many types.
    TooDeep(usize),
}

impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.place.is_empty() { "/" } else { &self.place };
        write!(f, "the schema cannot be used: at {place}: {}", self.problem)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotJson(why) => write!(f, "not readable as JSON: {why}"),
            Self::Missing(what) => write!(f, "{what} is missing"),
            Self::Expected(what) => write!(f, "must be {what}"),
            Self::Unknown(word) => write!(f, "{word:?} is not known here"),
            Self::UndefinedType(name) => write!(f, "the type {name:?} is not defined"),
            Self::ForeignReference(to) => write!(f, "{to:?} is not a type of this document"),
            Self::DuplicateKind(kind) => write!(f, "another definition is the type of {kind} too"),
            Self::TooDeep(limit) => write!(f, "nested deeper than {limit} types"),
        }
    }
}

impl std::error::Error for SchemaError {}
