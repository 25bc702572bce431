//! Field sets as the API server writes them: FieldsV1.
//!
//! An object whose keys are steps: `f:` a field, `k:` the key of a list item, `v:` a member of a set, `i:` an index.
//! Empty objects are members. Where something lies below a member, the member is marked by `.`.

use crate::path::{Path, Step};
use crate::set::FieldSet;
use std::fmt;

mod read;
pub(crate) mod write;

/// Steps below the root that a set may have. Objects this deep are not read by the JSON parser either.
pub(crate) const MAX_DEPTH: usize = 100;

pub(crate) use write::Form;

/// Why a text is not a set of fields, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldsV1Error {
    /// The fields above the fault.
    pub place: Path,
    /// What is wrong there.
    pub problem: FieldsV1Problem,
}

/// What is wrong with a text that should be a set of fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldsV1Problem {
    /// It is not JSON, or has something other than an object where fields should be.
    Malformed(String),
    /// A key that is no step: too short, without a colon, or with an unreadable rest.
    BadElement(String),
    /// A key of an unknown kind. What it stands for cannot be guessed.
    UnknownElement(String),
    /// It is nested more deeply than any object.
    TooDeep,
}

impl FieldSet {
    /// Reads FieldsV1. Keys may come in any order; a set that was written by the API server reads in linear time.
    pub fn from_fields_v1(json: &str) -> Result<Self, FieldsV1Error> {
        read::text(json)
    }

    /// Writes FieldsV1, byte by byte as the API server stores it.
    pub fn to_fields_v1(&self) -> String {
        write::text(self, Form::Stored)
    }
}

impl FieldsV1Error {
    fn at(mut self, step: Step) -> Self {
        self.place.prepend(step);
        self
    }
}

impl From<FieldsV1Problem> for FieldsV1Error {
    fn from(problem: FieldsV1Problem) -> Self {
        Self { place: Path::default(), problem }
    }
}

impl fmt::Display for FieldsV1Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the set of fields cannot be read: at {}: {}", self.place, self.problem)
    }
}

impl fmt::Display for FieldsV1Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed(why) => f.write_str(why),
            Self::BadElement(why) => f.write_str(why),
            Self::UnknownElement(key) => {
                write!(f, "{key:?} is of an unknown kind (known are f:, k:, v:, i:)")
            }
            Self::TooDeep => write!(f, "nested deeper than {MAX_DEPTH} steps"),
        }
    }
}

impl std::error::Error for FieldsV1Error {}

#[cfg(test)]
mod tests;
