//! Phases, for kinds that have nothing else.

use super::{Common, Standing};

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

/// Where an object stands by its phase, its state where it has none, or its health (Elastic's kinds).
pub(super) fn standing(status: &Common) -> Option<Standing> {
    let Common { phase, state, health, .. } = status;
    let word = [phase, state].into_iter().find(|word| !word.is_empty());
    match word {
        None if health.is_empty() => None,
        None if health.eq_ignore_ascii_case("green") || is_done(health) => Some(Standing::Done),
        None => Some(Standing::Busy("its health is not green")),
        Some(word) if is_done(word) => Some(Standing::Done),
        Some(_) => Some(Standing::Busy("its phase is not one of those that mean done")),
    }
}

fn is_done(word: &str) -> bool {
    DONE.iter().any(|done| done.eq_ignore_ascii_case(word))
}
