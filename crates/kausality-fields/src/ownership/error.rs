//! What can stand in the way of an apply or an update.

use crate::path::Path;
use crate::set::FieldSet;
use crate::typed::Fault;
use std::collections::BTreeMap;
use std::fmt;

/// Why an apply or an update cannot be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OwnershipError<Id> {
    /// It would take fields from others.
    Conflicts(Conflicts<Id>),
    /// An object is not of its type.
    Invalid(Fault),
    /// An object cannot be brought into a version that somebody owns fields of.
    Conversion {
        /// The version.
        version: String,
        /// Why not.
        reason: String,
    },
}

/// The fields of others that an apply would change, by their owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflicts<Id>(pub BTreeMap<Id, FieldSet>);

impl<Id> Conflicts<Id> {
    /// Owner and path of each, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&Id, Path)> {
        self.0.iter().flat_map(|(id, fields)| fields.iter().map(move |path| (id, path)))
    }

    /// All fields, whoever owns them.
    pub fn fields(&self) -> FieldSet {
        self.0.values().fold(FieldSet::new(), |all, fields| all.union(fields))
    }
}

impl<Id> From<Fault> for OwnershipError<Id> {
    fn from(fault: Fault) -> Self {
        Self::Invalid(fault)
    }
}

impl<Id: fmt::Display> fmt::Display for Conflicts<Id> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, (id, path)) in self.iter().enumerate() {
            write!(f, "{}conflict with {id}: {path}", if nth == 0 { "" } else { "\n" })?;
        }
        Ok(())
    }
}

impl<Id: fmt::Display> fmt::Display for OwnershipError<Id> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Conflicts(conflicts) => conflicts.fmt(f),
            Self::Invalid(fault) => write!(f, "the object does not fit its type: {fault}"),
            Self::Conversion { version, reason } => {
                write!(f, "the object cannot be had in version {version}: {reason}")
            }
        }
    }
}

impl<Id: fmt::Display + fmt::Debug> std::error::Error for OwnershipError<Id> {}
