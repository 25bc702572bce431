//! The lifecycle phase of a parent.

use kausality_api::{
    annotation,
    phase::{Phase, says_initialized},
};

use crate::{
    settle::{self, Settled},
    summary::Summary,
};

/// The phase, and what shows it.
#[must_use]
pub fn of(parent: &Summary, settled: &Settled) -> (Phase, &'static str) {
    if parent.deleting {
        return (Phase::Deleting, "deletionTimestamp is set");
    }
    if is_marked(|key| parent.annotation(key)) {
        return (Phase::Initialized, "recorded");
    }
    if parent.status.ready {
        return (Phase::Initialized, "condition Initialized or Ready is True");
    }
    if *settled == Settled::Quiet || settle::is_steady(parent) {
        return (Phase::Initialized, "in steady state");
    }
    (Phase::Initializing, "never seen ready or in steady state")
}

/// Whether annotations record that an object has been initialized.
pub(crate) fn is_marked<'a>(annotation: impl Fn(&str) -> Option<&'a str>) -> bool {
    annotation(annotation::PHASE).is_some_and(says_initialized)
        || annotation(annotation::INITIALIZED) == Some("true")
}
