//! What rules that are not there yet will do to the drifts that they are made of.

use anyhow::{Result, bail};
use jiff::Timestamp;
use kausality_api::exception::Action;
use kausality_core::exceptions::Exceptions;

use super::{
    hold::{Told, hold},
    known::Known,
};
use crate::ledger::Entry;

/// What there is to say of the drifts that rules are made of: where it cannot be told whether they match.
///
/// # Errors
/// If no rule matches one of them: that is not what was meant.
pub(super) fn covered(
    rules: &Exceptions,
    chosen: &[Entry],
    known: &Known,
    now: Timestamp,
) -> Result<Vec<String>> {
    let mut notes = Vec::new();
    let mut missed = Vec::new();
    for entry in chosen {
        let name = entry.full_name();
        let told = hold(rules, &entry.drift.spec, known, now).into_iter().map(|(_, told)| told);
        // The rule that comes closest is the one that was made of it.
        match told.min_by_key(closeness) {
            Some(Told::Yes) => {}
            Some(Told::Unclear(why)) => {
                notes.push(format!("It cannot be told whether it matches {name}: {why}."));
            }
            Some(Told::No(why)) => missed.push(format!("{name}: {why}")),
            Some(Told::Beside(why)) => missed.push(format!("{name}: it {why}")),
            None => missed.push(format!("{name}: the ledger's entry cannot be understood")),
        }
    }
    if missed.is_empty() {
        return Ok(notes);
    }
    bail!(
        "the rule would not match what it is made of, and nothing was written:\n{}\n\
         Say something else with --cel, --any-field or --mode",
        missed.join("\n")
    )
}

fn closeness(told: &Told) -> u8 {
    match told {
        Told::Yes => 0,
        Told::Unclear(_) => 1,
        Told::No(_) => 2,
        Told::Beside(_) => 3,
    }
}

/// Rules that deny what is to be let pass: those win.
pub(super) fn denied(
    prohibitions: &Exceptions,
    chosen: &[Entry],
    known: &Known,
    now: Timestamp,
) -> Vec<String> {
    let mut cautions = Vec::new();
    for entry in chosen {
        let name = entry.full_name();
        for (rule, told) in hold(prohibitions, &entry.drift.spec, known, now) {
            if rule.action != Action::Deny || rule.dry_run {
                continue;
            }
            match told {
                Told::Yes => cautions
                    .push(format!("CAUTION: {name} will not pass: {rule} denies it, and what denies wins.")),
                Told::Unclear(why) => cautions.push(format!(
                    "CAUTION: {name} may not pass: whether {rule} denies it cannot be told, since {why}."
                )),
                Told::No(_) | Told::Beside(_) => {}
            }
        }
    }
    cautions
}

#[cfg(test)]
mod tests;
