//! Approvals and rejections, held against one change.

use jiff::Timestamp;
use kausality_api::{
    approval::{Approval, ApprovalMode, Entries, Entry, Rejection},
    drift::DriftSpec,
};
use kausality_fields::Path;

use crate::{change::Change, gate::Used, summary::ObjectId};

/// A change, as far as entries speak of it.
pub(crate) trait Changed {
    /// Names exactly this change.
    fn hash(&self) -> String;
    /// Whether all that changes lies in these fields.
    fn is_within(&self, fields: &[String]) -> bool;
}

impl Changed for Change<'_> {
    fn hash(&self) -> String {
        Change::hash(self).to_owned()
    }

    fn is_within(&self, fields: &[String]) -> bool {
        self.lies_within(&parsed(fields))
    }
}

impl Change<'_> {
    /// Whether all that changes lies in these fields, the order of lists included. Not, if that takes too long to tell.
    pub(crate) fn lies_within(&self, fields: &[Path]) -> bool {
        !self.diff().is_empty() && self.can_compare(fields.len()) && all_within(self.paths(), fields)
    }

    /// Whether anything that changes may lie in these fields, or around them. It does, if that takes too long to tell.
    pub(crate) fn touches(&self, fields: &[Path]) -> bool {
        !self.can_compare(fields.len())
            || self.paths().any(|path| fields.iter().any(|field| path.may_touch(field)))
    }

    fn paths(&self) -> impl Iterator<Item = &Path> {
        self.diff().changes.iter().map(|change| &change.path).chain(self.orders())
    }
}

impl Changed for DriftSpec {
    fn hash(&self) -> String {
        self.diff.clone()
    }

    fn is_within(&self, fields: &[String]) -> bool {
        let paths: Option<Vec<Path>> =
            self.changes.iter().map(|change| kausality_fields::parse_path(&change.path).ok()).collect();
        self.more_changes == 0
            && !self.changes.is_empty()
            && paths.is_some_and(|paths| all_within(paths.iter(), &parsed(fields)))
    }
}

fn all_within<'a>(mut paths: impl Iterator<Item = &'a Path>, fields: &[Path]) -> bool {
    paths.all(|path| fields.iter().any(|field| path.is_within(field)))
}

/// Fields that people wrote. What names none is left out.
fn parsed(fields: &[String]) -> Vec<Path> {
    fields.iter().filter_map(|field| kausality_fields::parse_path(field).ok()).collect()
}

/// What entries are held against: a change of a child, and its parent as it is now.
pub(crate) struct Subject<'a> {
    pub child: &'a ObjectId,
    /// The parent's generation.
    pub generation: Option<i64>,
    pub change: &'a dyn Changed,
    /// Who makes the change.
    pub user: &'a str,
    /// Whether it is not a drift, and a rule of a policy denies it.
    pub denied: bool,
    pub now: Timestamp,
}

impl Subject<'_> {
    /// Why an approval does not hold here.
    pub(crate) fn approval_void(&self, entry: &Approval) -> Option<String> {
        self.unrelated(entry)
            .or_else(|| self.expired(entry.expires))
            .or_else(|| self.own(entry.by.as_deref()))
            .or_else(|| self.denied.then(|| self.falls_short(entry)).flatten())
            .or_else(|| self.other_diff(entry.diff.as_deref()))
            .or_else(|| {
                let covered = entry.fields.is_empty() || self.change.is_within(&entry.fields);
                (!covered).then(|| format!("is for {} only", entry.fields.join(", ")))
            })
    }

    /// Why a rejection does not hold here.
    pub(crate) fn rejection_void(&self, entry: &Rejection) -> Option<String> {
        // A generation that cannot be compared does not lift a rejection.
        let unrelated = self.unrelated(entry).filter(|_| self.generation.is_some() || !self.is_about(entry));
        unrelated.or_else(|| self.expired(entry.expires)).or_else(|| self.other_diff(entry.diff.as_deref()))
    }

    /// Whether an entry names this child.
    fn is_about(&self, entry: &impl Entry) -> bool {
        let ObjectId { api_version, kind, namespace, name } = self.child;
        entry.matches(api_version, kind, namespace, name)
    }

    /// Why an entry does not speak of this child at the parent's present generation.
    fn unrelated(&self, entry: &impl Entry) -> Option<String> {
        if !self.is_about(entry) {
            let (api_version, kind, name) = entry.subject();
            let place = entry.namespace().map(|namespace| format!("{namespace}/")).unwrap_or_default();
            return Some(format!("is for {api_version} {kind} {place}{name}"));
        }
        let bound = entry.generation()?;
        match self.generation {
            Some(generation) if bound == generation => None,
            Some(generation) => Some(format!("is for generation {bound}, the parent is at {generation}")),
            None => Some(format!("is for generation {bound}, the parent has none")),
        }
    }

    fn expired(&self, expires: Option<Timestamp>) -> Option<String> {
        let expires = expires.filter(|expires| self.now >= *expires)?;
        Some(format!("expired at {expires}"))
    }

    /// What is no person cannot vouch for itself, also where it had not yet been seen to be the controller.
    fn own(&self, by: Option<&str>) -> Option<String> {
        let own = by.is_some_and(|by| by == self.user && by.starts_with("system:"));
        own.then(|| format!("was given by {} itself", self.user))
    }

    /// Why an approval does not lift what a rule of a policy says: that takes somebody else, who has seen exactly this change.
    /// Approvals of drifts are for the parent's controller.
    fn falls_short(&self, entry: &Approval) -> Option<String> {
        match entry.by.as_deref() {
            None => Some("does not say who approved, and a policy denies this".to_owned()),
            Some(by) if by == self.user => {
                Some(format!("was given by {by}: what a policy denies is approved by somebody else"))
            }
            Some(_) if entry.diff.is_none() => Some(
                "names no \"diff\", and a policy denies this: only exactly this change can be approved"
                    .to_owned(),
            ),
            Some(_) => None,
        }
    }

    fn other_diff(&self, diff: Option<&str>) -> Option<String> {
        let wanted = diff?;
        let actual = self.change.hash();
        (wanted != actual).then(|| format!("is for the change {wanted}, this one is {actual}"))
    }
}

/// The namespace that entries for a child are bound to: that of the child, where its parent has none and so may have another of
/// the same name elsewhere.
#[must_use]
pub fn bound(parent: &ObjectId, namespace: &str) -> Option<String> {
    (parent.namespace.is_empty() && !namespace.is_empty()).then(|| namespace.to_owned())
}

/// The approval to use. Any valid entry will do; one that lasts is taken before one that is used up. `void` hears of those
/// that do not hold.
pub(crate) fn best(
    entries: &Entries<Approval>,
    subject: &Subject<'_>,
    mut void: impl FnMut(usize, String),
) -> Option<Used> {
    let mut best: Option<Used> = None;
    for (place, approval) in entries.valid() {
        if let Some(why) = subject.approval_void(approval) {
            void(place, why);
        } else if best.as_ref().is_none_or(|used| used.approval.mode == ApprovalMode::Once)
            && (best.is_none() || approval.mode != ApprovalMode::Once)
        {
            best = Some(Used { approval: approval.clone(), place });
        }
    }
    best
}
