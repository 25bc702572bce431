//! Phases, for kinds that have nothing else.

use super::Standing;

/// Words for "it has got where it is meant to be", as kinds have them in `phase` or `state`.
const DONE: [&str; 17] = [
    "Active",
    "Applied",
    "Available",
    "Bound",
    "Complete",
    "Completed",
    "Deployed",
    "Established",
    "Healthy",
    "Initialized",
    "Provisioned",
    "Ready",
    "Released",
    "Running",
    "Succeeded",
    "Synced",
    "Valid",
];

/// Where an object stands by its phase, or by its state where it has none.
pub(super) fn standing(phase: &str, state: &str) -> Standing {
    let word = if phase.is_empty() { state } else { phase };
    if word.is_empty() {
        Standing::Silent
    } else if DONE.iter().any(|done| done.eq_ignore_ascii_case(word)) {
        Standing::Done
    } else {
        Standing::Busy("its phase is not one of those that mean done")
    }
}
