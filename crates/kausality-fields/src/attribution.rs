//! Who wrote what in one request.
//!
//! The API server has computed `metadata.managedFields` of the object that it asks about, so its difference from that
//! of the old object tells which manager wrote, which fields it came to own, and who lost them. [`attribute`] finds
//! that; [`Claims`] answers for any path who owns it.
//!
//! ```
//! use kausality_fields::attribution::attribute;
//!
//! let entry = |manager: &str, time: &str, fields: &str| format!(
//!     r#"{{"manager":"{manager}","operation":"Update","apiVersion":"apps/v1","time":"{time}","fieldsType":"FieldsV1","fieldsV1":{{"f:spec":{fields}}}}}"#);
//! let old = format!("[{}]", entry("helm", "2026-01-01T00:00:00Z", r#"{"f:paused":{},"f:replicas":{}}"#));
//! let new = format!("[{},{}]", entry("hpa", "2026-01-01T00:01:00Z", r#"{"f:replicas":{}}"#),
//!     entry("helm", "2026-01-01T00:00:00Z", r#"{"f:paused":{}}"#));
//!
//! let attribution = attribute(Some(&old), Some(&new))?;
//! assert_eq!(attribution.manager(), Some("hpa"));
//! assert_eq!(attribution.written[0].moves()?.gained.to_string(), "spec.replicas");
//! assert_eq!(attribution.reduced[0].owner.manager, "helm");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Sets of fields are read only where they differ, and those of an entry that came or went only when they are asked
//! for: the cost is about that of passing over the two lists once, and nothing if they are the same text.

use crate::fieldsv1::FieldsV1Error;
use crate::managed::{Identity, ManagedError, Operation};
use crate::set::FieldSet;
use serde::{Serialize, Serializer};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

mod owners;
mod raw;
mod scan;

pub use owners::{Claim, Claims, Handover, Owners, handovers};

/// The entry into which the API server folds the oldest ones when there are too many. Nobody writes under this name.
pub(crate) const ANCIENT: &str = "ancient-changes";

/// The entry of all that was there before the first server-side apply.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// Who owns a field: an entry of `metadata.managedFields`, without its fields.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Owner {
    /// The name that the manager gave itself.
    pub manager: String,
    /// How it came to own the field.
    #[serde(serialize_with = "operation")]
    pub operation: Operation,
    /// The part of the object that was written to, such as `status`; empty for the object itself.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub subresource: String,
    /// The version in which the fields of the entry are named.
    pub api_version: String,
    /// When the entry changed last, as the API server writes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
}

/// What one request did to the ownership of fields.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Attribution<'a> {
    /// The entries that the request wrote: those that came, gained a field, or have another time. In the order of
    /// their identity.
    ///
    /// There are none if the request only removed fields, or changed nothing but values within the second in which its
    /// manager wrote before.
    pub written: Vec<Moved<'a>>,
    /// The entries that only lost fields, or are gone: others took or removed what they owned. A manager that removes
    /// its own field by an update cannot be told from them.
    pub reduced: Vec<Moved<'a>>,
}

/// An entry that differs, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved<'a> {
    /// The entry as it is after the request, or was if it is gone.
    pub owner: Owner,
    fields: Fields<'a>,
}

/// The fields of an entry that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Fields<'a> {
    Came(&'a str),
    Gone(&'a str),
    Changed(Result<Moves, FieldsV1Error>),
}

/// The fields that an entry gained and lost.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Moves {
    /// Fields that it did not own before.
    #[serde(serialize_with = "paths")]
    pub gained: FieldSet,
    /// Fields that it does not own any more.
    #[serde(serialize_with = "paths")]
    pub lost: FieldSet,
}

impl Attribution<'_> {
    /// Whether the request left ownership as it was, as far as can be seen.
    pub fn is_empty(&self) -> bool {
        self.written.is_empty() && self.reduced.is_empty()
    }

    /// The manager that wrote; `None` if there is no evidence, or evidence of several.
    pub fn manager(&self) -> Option<&str> {
        let (first, rest) = self.written.split_first()?;
        let manager = first.owner.manager.as_str();
        rest.iter().all(|other| other.owner.manager == manager).then_some(manager)
    }
}

/// What a request did to the ownership of fields, from the texts of `metadata.managedFields` of `oldObject` and of
/// `object`. A list that is absent or null counts as empty.
///
/// An entry whose fields cannot be read is reported with the reason; lists that are no entries at all are an error.
pub fn attribute<'a>(
    before: Option<&'a str>,
    after: Option<&'a str>,
) -> Result<Attribution<'a>, ManagedError> {
    if before == after {
        return Ok(Attribution::default());
    }
    let [before, after] = [raw::entries(before)?, raw::entries(after)?];
    let [old, new] = [&before, &after].map(|list| list.iter().collect::<BTreeSet<_>>());
    let mut by_identity: BTreeMap<Identity, Pair<'a>> = BTreeMap::new();
    for (nth, entry) in before.iter().enumerate().filter(|(_, entry)| !new.contains(entry)) {
        let owner = entry.owner(nth)?;
        by_identity.entry(owner.identity()).or_default().before.push((owner, entry.fields));
    }
    for (nth, entry) in after.iter().enumerate().filter(|(_, entry)| !old.contains(entry)) {
        let owner = entry.owner(nth)?;
        by_identity.entry(owner.identity()).or_default().after.push((owner, entry.fields));
    }
    let mut attribution = Attribution::default();
    for (identity, pair) in by_identity {
        pair.judge(&identity, &mut attribution)?;
    }
    Ok(attribution)
}

/// The entries of one identity that differ, before and after.
#[derive(Default)]
struct Pair<'a> {
    before: Vec<(Owner, &'a str)>,
    after: Vec<(Owner, &'a str)>,
}

impl<'a> Pair<'a> {
    fn judge(mut self, identity: &Identity, attribution: &mut Attribution<'a>) -> Result<(), ManagedError> {
        if self.before.len() > 1 || self.after.len() > 1 {
            return Err(ManagedError { entry: None, reason: format!("{identity} is there more than once") });
        }
        let (moved, written) = match (self.before.pop(), self.after.pop()) {
            (None, None) => return Ok(()),
            (Some((owner, fields)), None) => (Moved { owner, fields: Fields::Gone(fields) }, false),
            (None, Some((owner, fields))) => (Moved { owner, fields: Fields::Came(fields) }, true),
            (Some((old, before)), Some((owner, after))) => {
                let moves = scan::moves(before, after);
                let gained = moves.as_ref().map_or(true, |moves| !moves.gained.is_empty());
                let written = gained || old.time != owner.time;
                (Moved { owner, fields: Fields::Changed(moves) }, written)
            }
        };
        match (written, [ANCIENT, BEFORE_FIRST_APPLY].contains(&identity.manager.as_str())) {
            (true, false) => attribution.written.push(moved),
            (true, true) => {}
            (false, _) => attribution.reduced.push(moved),
        }
        Ok(())
    }
}

impl Moved<'_> {
    /// What the entry gained and lost; an error if its fields cannot be read.
    pub fn moves(&self) -> Result<Cow<'_, Moves>, FieldsV1Error> {
        let read = FieldSet::from_fields_v1;
        match &self.fields {
            Fields::Came(fields) => Ok(Cow::Owned(Moves { gained: read(fields)?, ..Moves::default() })),
            Fields::Gone(fields) => Ok(Cow::Owned(Moves { lost: read(fields)?, ..Moves::default() })),
            Fields::Changed(Ok(moves)) => Ok(Cow::Borrowed(moves)),
            Fields::Changed(Err(error)) => Err(error.clone()),
        }
    }
}

impl Owner {
    /// What makes another entry the same as this one.
    pub fn identity(&self) -> Identity {
        Identity {
            manager: self.manager.clone(),
            operation: self.operation,
            api_version: (self.operation == Operation::Update).then(|| self.api_version.clone()),
            subresource: self.subresource.clone(),
        }
    }
}

fn operation<S: Serializer>(operation: &Operation, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(match operation {
        Operation::Apply => "Apply",
        Operation::Update => "Update",
    })
}

fn paths<S: Serializer>(set: &FieldSet, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(set)
}

/// The entry, with what it gained and lost or why that is unknown.
impl Serialize for Moved<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Shown<'a> {
            #[serde(flatten)]
            owner: &'a Owner,
            #[serde(flatten)]
            moves: Option<&'a Moves>,
            #[serde(skip_serializing_if = "Option::is_none")]
            unknown: Option<String>,
        }
        let moves = self.moves();
        let unknown = moves.as_ref().err().map(ToString::to_string);
        Shown { owner: &self.owner, moves: moves.as_deref().ok(), unknown }.serialize(serializer)
    }
}

#[cfg(test)]
mod tests;
