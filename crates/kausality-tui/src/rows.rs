//! The lines of the list: causes, and below each the drifts that it has.

use std::collections::BTreeSet;

use jiff::Timestamp;
use kausality_api::drift::{
    Drift,
    cause::{Cause, DriftKey, causes},
};

/// A line of the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Row {
    Cause(CauseKey),
    Drift(DriftKey),
}

/// Names a cause: who, and since when.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct CauseKey {
    user: String,
    since: Timestamp,
}

impl CauseKey {
    pub(crate) fn of(cause: &Cause) -> Self {
        Self { user: cause.user.clone(), since: cause.first_seen }
    }
}

/// The causes of drifts, and the lines that show them. A cause of a single drift is that drift.
pub(crate) fn arrange<'a>(
    drifts: impl Iterator<Item = &'a Drift>,
    folded: &BTreeSet<CauseKey>,
) -> (Vec<Cause>, Vec<Row>) {
    let causes = causes(drifts);
    let mut rows = Vec::new();
    for cause in &causes {
        if cause.drifts.len() > 1 {
            let key = CauseKey::of(cause);
            let hidden = folded.contains(&key);
            rows.push(Row::Cause(key));
            if hidden {
                continue;
            }
        }
        rows.extend(cause.drifts.iter().cloned().map(Row::Drift));
    }
    (causes, rows)
}

/// Whether a drift has all the words of a filter somewhere.
pub(crate) fn matches(drift: &Drift, filter: &str) -> bool {
    let summary = &drift.spec.summary;
    let texts = [
        drift.metadata.namespace.as_str(),
        &drift.metadata.name,
        drift.status.state.as_str(),
        &summary.parent,
        &summary.child,
        &drift.spec.request.user,
        &summary.change,
    ];
    let text = texts.join(" ").to_lowercase();
    filter.to_lowercase().split_whitespace().all(|word| text.contains(word))
}
