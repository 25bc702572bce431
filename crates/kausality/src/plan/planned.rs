//! What a plan says of one object.

use kausality_fields::{Path, Step};
use serde_json::Value;

use super::owner::Owner;

/// One object, and what an apply would do to it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Planned {
    pub(super) object: Name,
    pub(super) action: Action,
    /// What would change, ordered by path.
    pub(super) fields: Vec<Field>,
    /// What one should know to read the fields.
    pub(super) notes: Vec<String>,
    /// Why it cannot be applied.
    pub(super) problems: Vec<Problem>,
}

/// Which object, and where it was declared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Name {
    pub(super) file: String,
    pub(super) api_version: String,
    pub(super) kind: String,
    /// Empty for what lives in no namespace.
    pub(super) namespace: String,
    pub(super) name: String,
}

/// What an apply would do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// The object does not exist.
    Create,
    /// Values, owners or both change.
    Change,
    /// Nothing changes.
    Nothing,
    /// Others hold fields with other values, and nobody said that they may be taken.
    Conflict,
    /// The API server refuses, or cannot be asked.
    Error,
}

/// One field that changes its value, its owners, or both.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Field {
    pub(super) path: Path,
    pub(super) change: Change,
    pub(super) owners: Owners,
    pub(super) conflict: Option<Conflict>,
}

/// What becomes of a value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Change {
    Added(Future),
    Changed(Value, Future),
    Removed(Value),
    /// The items of a list that both have, before and after.
    Reordered(Vec<Step>, Vec<Step>),
    /// Only its owners change. Objects and lists that have parts are not shown.
    Kept(Option<Value>),
}

/// A value to come.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Future {
    Known(Value),
    /// The server chooses it anew each time that it is asked.
    KnownAfterApply,
}

/// Who owns a field, before and after.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Owners {
    pub(super) before: Vec<Owner>,
    pub(super) after: Vec<Owner>,
}

/// Others want another value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Conflict {
    pub(super) with: Vec<Owner>,
    /// Whether the field is to be taken from them.
    pub(super) forced: bool,
}

/// One reason why an object cannot be applied.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Problem {
    pub(super) why: Why,
    /// Which field is to blame, if one is.
    pub(super) field: Option<Path>,
    pub(super) message: String,
    /// What was asked of a field that cannot change: the value it has, and the one it should get.
    pub(super) wanted: Vec<(Path, Option<Value>, Option<Value>)>,
}

/// The kinds of reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    /// The kind, or its version, is not served.
    NotServed,
    /// The namespace does not exist.
    NoNamespace,
    /// A field cannot change while the object lives.
    Immutable,
    /// A value is not valid, or a field is not known.
    Invalid,
    /// Admission says no.
    Denied,
    /// The user lacks a right.
    Forbidden,
    /// A webhook in the way cannot tell what it would do.
    NoDryRun,
    /// Anything else.
    Failed,
}

impl Action {
    /// The word for it in JSON.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Change => "change",
            Self::Nothing => "none",
            Self::Conflict => "conflict",
            Self::Error => "error",
        }
    }
}

impl Why {
    /// The word for it in JSON.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::NotServed => "NotServed",
            Self::NoNamespace => "NamespaceNotFound",
            Self::Immutable => "Immutable",
            Self::Invalid => "Invalid",
            Self::Denied => "Denied",
            Self::Forbidden => "Forbidden",
            Self::NoDryRun => "NoDryRun",
            Self::Failed => "Failed",
        }
    }
}

impl Problem {
    pub(super) fn new(why: Why, message: impl Into<String>) -> Self {
        Self { why, field: None, message: message.into(), wanted: Vec::new() }
    }
}

impl Owners {
    /// Those who stay come first: `a → a + b`.
    pub(super) fn new(before: Vec<Owner>, mut after: Vec<Owner>) -> Self {
        after.sort_by_key(|owner| !before.contains(owner));
        Self { before, after }
    }
}

impl Field {
    /// Whether somebody else holds it and nobody said that it may be taken.
    pub(super) fn is_held(&self) -> bool {
        self.conflict.as_ref().is_some_and(|conflict| !conflict.forced)
    }
}

impl Planned {
    /// An object that cannot be applied.
    pub(super) fn refused(object: Name, problems: Vec<Problem>) -> Self {
        Self { object, action: Action::Error, fields: Vec::new(), notes: Vec::new(), problems }
    }

    /// An object that can: what it takes follows from its fields.
    pub(super) fn foreseen(object: Name, exists: bool, fields: Vec<Field>) -> Self {
        let action = match fields.as_slice() {
            _ if !exists => Action::Create,
            [] => Action::Nothing,
            fields if fields.iter().any(Field::is_held) => Action::Conflict,
            _ => Action::Change,
        };
        Self { object, action, fields, notes: Vec::new(), problems: Vec::new() }
    }
}
