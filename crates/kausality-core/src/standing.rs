//! What stands on a parent about a drift: who has approved or rejected it, and what keeps entries from counting.

use jiff::Timestamp;
use kausality_api::{
    annotation::{APPROVALS, REJECTIONS},
    approval::{Approval, Entries, Entry, Rejection},
    drift::DriftSpec,
};

use crate::{
    entries::Subject,
    summary::{ObjectId, Summary},
};

/// The entries on a parent, held against one drift.
#[derive(Clone, Debug)]
pub struct Standing {
    /// The rejections, in their order. One that holds beats every approval.
    pub rejections: Vec<Standpoint<Rejection>>,
    /// The approvals, in their order.
    pub approvals: Vec<Standpoint<Approval>>,
    /// What is wrong with rejections: each fault blocks every drift of the parent's children.
    pub rejection_faults: Vec<String>,
    /// What is wrong with approvals: each such entry approves nothing.
    pub approval_faults: Vec<String>,
}

/// One entry, held against a drift.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standpoint<T> {
    /// Its place in the list.
    pub place: usize,
    /// The entry.
    pub entry: T,
    /// Whether it names the child at all, be it by `*`.
    pub about_child: bool,
    /// Why it does not hold for the drift; nothing, if it does.
    pub void: Option<String>,
}

impl<T> Standpoint<T> {
    /// Whether it holds for the drift.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.void.is_none()
    }
}

impl Standing {
    /// What stands on `parent` about the drift.
    #[must_use]
    pub fn of(spec: &DriftSpec, parent: &Summary, now: Timestamp) -> Self {
        let child = ObjectId::of(&spec.child);
        let subject = Subject {
            child: &child,
            generation: parent.generation,
            change: spec,
            user: &spec.request.user,
            denied: spec.denied_by.is_some(),
            now,
        };
        let (rejections, rejection_faults) =
            held(parent, REJECTIONS, &child, |entry: &Rejection| subject.rejection_void(entry));
        let (approvals, approval_faults) =
            held(parent, APPROVALS, &child, |entry: &Approval| subject.approval_void(entry));
        Self { rejections, approvals, rejection_faults, approval_faults }
    }

    /// The rejection that stops the drift.
    #[must_use]
    pub fn rejection(&self) -> Option<&Rejection> {
        self.rejections.iter().find(|standpoint| standpoint.holds()).map(|standpoint| &standpoint.entry)
    }

    /// The approval that lets the drift pass, where no rejection stops it.
    #[must_use]
    pub fn approval(&self) -> Option<&Approval> {
        if self.rejection().is_some() || !self.rejection_faults.is_empty() {
            return None;
        }
        self.approvals.iter().find(|standpoint| standpoint.holds()).map(|standpoint| &standpoint.entry)
    }
}

fn held<T: Entry + Clone>(
    parent: &Summary,
    key: &str,
    child: &ObjectId,
    void: impl Fn(&T) -> Option<String>,
) -> (Vec<Standpoint<T>>, Vec<String>) {
    let Some(entries) = parent.annotation(key).map(Entries::<T>::decode) else { return Default::default() };
    let standpoints = entries.valid().map(|(place, entry)| Standpoint {
        place,
        entry: entry.clone(),
        about_child: entry.matches(&child.api_version, &child.kind, &child.namespace, &child.name),
        void: void(entry),
    });
    (standpoints.collect(), entries.faults().collect())
}

#[cfg(test)]
mod tests;
