//! Rules held against drifts of the ledger, as far as that can be told.

use jiff::Timestamp;
use kausality_api::drift::DriftSpec;
use kausality_core::{
    Review,
    exceptions::{Exceptions, Held, Match, Need, Ruled, Supposed},
};

use super::known::Known;
use crate::ledger::{
    request::{objects, review},
    rules::cause,
};

/// Whether a rule matches a drift.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Told {
    Yes,
    /// It is about such drifts, and does not: why.
    No(String),
    /// It is about others: in which way.
    Beside(String),
    /// Why that cannot be told.
    Unclear(String),
}

/// What each rule says of a drift.
pub(super) fn hold(
    rules: &Exceptions,
    drift: &DriftSpec,
    known: &Known,
    now: Timestamp,
) -> Vec<(Ruled, Told)> {
    let told = |Held { rule, matches, needs }: Held| {
        let lacking = needs.into_iter().find_map(|need| lacking(need, drift, known));
        let told = match (matches, lacking) {
            (Match::Beside(why), _) => Told::Beside(why),
            (_, Some(why)) => Told::Unclear(why),
            (Match::Yes(_), None) => Told::Yes,
            (Match::No(why), None) => Told::No(why),
        };
        (rule, told)
    };
    held(rules, drift, known, now).into_iter().map(told).collect()
}

/// What the rules that are about such drifts need to know.
pub(super) fn needs(rules: &Exceptions, drift: &DriftSpec, now: Timestamp) -> Vec<Need> {
    let held = held(rules, drift, &Known::default(), now);
    held.into_iter().filter(|it| !matches!(it.matches, Match::Beside(_))).flat_map(|it| it.needs).collect()
}

fn held(rules: &Exceptions, drift: &DriftSpec, known: &Known, now: Timestamp) -> Vec<Held> {
    let text = review(drift).to_string();
    let Ok(review) = Review::parse(text.as_bytes()) else { return Vec::new() };
    rules.hold_each(&Supposed {
        review: &review,
        parent: known.parent(drift).ok(),
        namespace: known.labels(&drift.child.namespace).ok(),
        cause: cause(drift),
        now,
    })
}

/// Why something is not known of a drift, if it is not.
fn lacking(need: Need, drift: &DriftSpec, known: &Known) -> Option<String> {
    match need {
        Need::Fields | Need::Values if objects(drift).is_none() => {
            Some("the ledger does not hold the objects".to_owned())
        }
        Need::Fields => None,
        Need::Values => {
            (drift.child.kind == "Secret").then(|| "the ledger holds no values of Secrets".to_owned())
        }
        Need::Request => Some("the ledger does not hold the whole request".to_owned()),
        Need::Parent => known.parent(drift).err(),
        Need::Namespace if drift.child.namespace.is_empty() => None,
        Need::Namespace => known.labels(&drift.child.namespace).err(),
    }
}
