//! Who owns a field, as far as people tell owners apart.

use std::{collections::BTreeSet, fmt};

use kausality_api::text::plain;
use kausality_fields::{
    FieldSet, Path,
    managed::{self, Entry, ManagedError, Operation},
};
use serde_json::Value;

/// A manager, and how it came to own. The version that it did so in is no part of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Owner {
    pub(super) manager: String,
    pub(super) operation: Operation,
    /// Empty for the object itself.
    pub(super) subresource: String,
}

impl From<&Entry> for Owner {
    fn from(entry: &Entry) -> Self {
        Self {
            manager: entry.manager.clone(),
            operation: entry.operation,
            subresource: entry.subresource.clone(),
        }
    }
}

/// `ci`, `hpa (update scale)`.
impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&plain(&self.manager))?;
        match (self.operation, self.subresource.as_str()) {
            (Operation::Apply, "") => Ok(()),
            (Operation::Apply, part) => write!(f, " ({})", plain(part)),
            (Operation::Update, "") => f.write_str(" (update)"),
            (Operation::Update, part) => write!(f, " (update {})", plain(part)),
        }
    }
}

/// What an object says of its owners.
#[derive(Clone, Debug, Default)]
pub(super) struct Ownership(Vec<Entry>);

impl Ownership {
    /// Of an object, or of one that does not exist.
    pub(super) fn of(object: Option<&Value>) -> Result<Self, ManagedError> {
        let managed = object.and_then(|object| object.pointer("/metadata/managedFields"));
        managed
            .filter(|managed| !managed.is_null())
            .map_or(Ok(Self::default()), |managed| managed::decode_value(managed).map(Self))
    }

    /// The owners of a field. Their entries are in the order of their last writes, which says nothing here.
    pub(super) fn of_field(&self, path: &Path) -> Vec<Owner> {
        let owners = self.0.iter().filter(|entry| entry.fields.has(path)).map(Owner::from);
        owners.collect::<BTreeSet<Owner>>().into_iter().collect()
    }

    /// All that anybody owns.
    pub(super) fn fields(&self) -> FieldSet {
        self.0.iter().fold(FieldSet::new(), |all, entry| all.union(&entry.fields))
    }

    /// What one owner has, in whatever version.
    fn of_owner(&self, owner: &Owner) -> FieldSet {
        let entries = self.0.iter().filter(|entry| &Owner::from(*entry) == owner);
        entries.fold(FieldSet::new(), |all, entry| all.union(&entry.fields))
    }

    /// The fields that have other owners there: of each owner, the innermost that it gained or lost.
    pub(super) fn moved(&self, after: &Self) -> BTreeSet<Path> {
        let owners: BTreeSet<Owner> = self.0.iter().chain(&after.0).map(Owner::from).collect();
        let moved = owners.iter().flat_map(|owner| {
            let (before, after) = (self.of_owner(owner), after.of_owner(owner));
            [before.difference(&after).leaves(), after.difference(&before).leaves()]
        });
        moved.flat_map(|set| set.iter().collect::<Vec<_>>()).collect()
    }
}
