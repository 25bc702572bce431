//! What rules would have matched of the ledger.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kausality_api::drift::cause::DriftKey;
use kausality_core::exceptions::Exceptions;

use super::{
    hold::{Told, hold},
    known::Known,
};
use crate::{ledger::Entry, output::count};

/// What rules would have matched.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Past {
    /// Drifts beside those that the rules were made of, in a few words each.
    matched: Vec<String>,
    /// How many were held against the rules.
    all: usize,
    /// Of how many it cannot be told, and why.
    unclear: BTreeMap<String, usize>,
}

impl Past {
    pub(super) fn of(
        rules: &Exceptions,
        entries: &[Entry],
        chosen: &[Entry],
        known: &Known,
        now: Timestamp,
    ) -> Self {
        let mut past = Self::default();
        let is_same = |one: &Entry, other: &Entry| DriftKey::of(&one.drift) == DriftKey::of(&other.drift);
        for entry in entries.iter().filter(|entry| !chosen.iter().any(|one| is_same(one, entry))) {
            past.all += 1;
            let told = hold(rules, &entry.drift.spec, known, now);
            if told.iter().any(|(_, told)| *told == Told::Yes) {
                let summary = &entry.drift.spec.summary;
                past.matched.push(format!(
                    "{} {} of {}: {}",
                    entry.full_name(),
                    summary.child,
                    summary.parent,
                    summary.change
                ));
                continue;
            }
            let unclear = told.into_iter().find_map(|(_, told)| match told {
                Told::Unclear(why) => Some(why),
                _ => None,
            });
            if let Some(why) = unclear {
                *past.unclear.entry(why).or_default() += 1;
            }
        }
        past
    }

    /// The same for people, at most so many drifts of it.
    pub(super) fn lines(&self, most: usize) -> Vec<String> {
        let others = count(self.all, "other drift");
        let mut lines = vec![match (self.all, self.matched.len()) {
            (0, _) => "There is no other drift in the ledger that it could have matched.".to_owned(),
            (_, 0) => format!("It would have matched none of {others} in the ledger."),
            (_, matched) => format!("It would also have matched {matched} of {others} in the ledger:"),
        }];
        lines.extend(self.matched.iter().take(most).map(|drift| format!("  {drift}")));
        if self.matched.len() > most {
            lines.push(format!("  … and {} more", self.matched.len() - most));
        }
        for (why, drifts) in &self.unclear {
            lines.push(format!("Of {}, it cannot be told: {why}.", count(*drifts, "drift")));
        }
        lines
    }
}

#[cfg(test)]
mod tests;
