//! What rules would have matched of the ledger.

use jiff::Timestamp;
use kausality_api::exception::RuleCause;
use kausality_core::{
    Review,
    exceptions::{Exceptions, Supposed},
};
use serde_json::Value;

use crate::{
    ledger::{Entry, request::review},
    output::count,
};

/// What rules would have matched.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Past {
    /// Drifts beside those that the rules were made of, in a few words each.
    matched: Vec<String>,
    /// How many were held against the rules.
    all: usize,
    /// How many cannot be: the ledger does not hold their objects.
    unclear: usize,
}

impl Past {
    pub(super) fn of(rules: &Exceptions, entries: &[Entry], chosen: &[Entry], now: Timestamp) -> Self {
        let mut past = Self::default();
        let is_chosen = |entry: &Entry| chosen.iter().any(|one| one.full_name() == entry.full_name());
        for entry in entries.iter().filter(|entry| !is_chosen(entry)) {
            past.all += 1;
            match review(&entry.drift.spec) {
                None => past.unclear += 1,
                Some(review) if matches(rules, &review, now) => {
                    let summary = &entry.drift.spec.summary;
                    past.matched.push(format!(
                        "{} {} of {}: {}",
                        entry.full_name(),
                        summary.child,
                        summary.parent,
                        summary.change
                    ));
                }
                Some(_) => {}
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
        if self.unclear > 0 {
            lines.push(format!("Of {}, the ledger does not hold the objects.", count(self.unclear, "drift")));
        }
        lines
    }
}

fn matches(rules: &Exceptions, review: &Value, now: Timestamp) -> bool {
    let text = review.to_string();
    let Ok(review) = Review::parse(text.as_bytes()) else { return false };
    let supposed = Supposed { review: &review, parent: None, namespace: None, cause: RuleCause::Drift, now };
    rules.judge(&supposed).ruled.is_some()
}

#[cfg(test)]
mod tests;
