//! The other drifts of a child: an approval that is not exact is for any change of it.

use jiff::Timestamp;
use kausality_api::{
    approval::ApprovalMode,
    drift::{Drift, cause::DriftKey},
};
use kausality_core::{Summary, standing::Standing};

use crate::{ledger::Entry, output::count};

/// The drifts that there are beside the one that is approved.
#[derive(Clone, Debug, Default)]
pub(super) struct Others {
    /// Those that are approved by the same command.
    chosen: Vec<Drift>,
    /// Open ones that are not.
    open: Vec<Drift>,
}

impl Others {
    /// Of all that are known. `force`: what is over is approved, too.
    pub(super) fn of(chosen: &[Entry], all: Vec<Entry>, force: bool) -> Self {
        let is_open = |drift: &Drift| drift.status.state.is_open();
        let chosen: Vec<Drift> =
            chosen.iter().map(|entry| entry.drift.clone()).filter(|drift| force || is_open(drift)).collect();
        let is_chosen = |drift: &Drift| chosen.iter().any(|one| DriftKey::of(one) == DriftKey::of(drift));
        let open = all.into_iter().map(|entry| entry.drift);
        let open = open.filter(|drift| is_open(drift) && !is_chosen(drift)).collect();
        Self { chosen, open }
    }

    /// Whether another drift of the same child is approved, too.
    pub(super) fn has_chosen(&self, entry: &Entry) -> bool {
        self.chosen.iter().any(|other| is_other(other, &entry.drift))
    }

    /// That open drifts of the same child are covered by what is on the parent now, and were not before.
    pub(super) fn covered(
        &self,
        entry: &Entry,
        [before, after]: [&Summary; 2],
        mode: ApprovalMode,
        now: Timestamp,
    ) -> Option<String> {
        let intent = after.intent.to_string();
        let is_covered = |drift: &Drift, parent| Standing::of(&drift.spec, parent, now).approval().is_some();
        let number = (self.open.iter())
            .filter(|other| is_other(other, &entry.drift) && other.spec.parent_intent == intent)
            .filter(|other| is_covered(other, after) && !is_covered(other, before))
            .count();
        if number == 0 {
            return None;
        }
        let used_up =
            if mode == ApprovalMode::Once { ", and the first of these changes uses it up" } else { "" };
        let (others, child) = (count(number, "other open drift"), &entry.drift.spec.summary.child);
        Some(format!(
            "the approval covers {others} of {child}, too{used_up}: --exact binds it to this one only"
        ))
    }
}

/// Whether it is another drift of the same child.
fn is_other(other: &Drift, drift: &Drift) -> bool {
    let child = |drift: &Drift| {
        let child = &drift.spec.child;
        [&child.api_version, &child.kind, &child.namespace, &child.name].map(Clone::clone)
    };
    DriftKey::of(other) != DriftKey::of(drift)
        && child(other) == child(drift)
        && other.spec.parent.uid == drift.spec.parent.uid
}
