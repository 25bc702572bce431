//! What suites ask of changes and traces.

use std::collections::BTreeMap;

use kausality_api::annotation::{Suffix, TRACE};
use serde_json::Value;

use crate::log::Change;
use crate::stage::say;

/// Kausality saw all changes, and found none to be drift.
#[track_caller]
pub(crate) fn none_is_drift(changes: &[Change]) {
    assert!(!changes.is_empty());
    let drifts: Vec<_> = changes.iter().filter(|change| change.is_drift()).collect();
    assert!(drifts.is_empty(), "{} of {} changes: {drifts:#?}", drifts.len(), changes.len());
    let unseen: Vec<_> = changes.iter().filter(|change| change.cause.is_none()).collect();
    assert!(unseen.is_empty(), "without a cause: {unseen:#?}");
}

/// There are so many changes, all by this verb, and Kausality found all to be drift.
#[track_caller]
pub(crate) fn all_are_drift(what: &str, changes: &[Change], verb: &str, count: usize) {
    say(format_args!("{what}: {}", summary(changes)));
    let others: Vec<_> = changes.iter().filter(|change| !change.is_drift()).collect();
    assert!(others.is_empty(), "{what}: {others:#?}");
    assert_eq!(changes.len(), count, "{what}: {changes:#?}");
    assert!(changes.iter().all(|change| change.verb == verb), "{what}: {changes:#?}");
}

/// Its own trace, and not the copy of another's; null if it has none.
pub(crate) fn trace(object: &Value) -> Value {
    let key = Suffix::of_object(object).key(TRACE);
    let text = object["metadata"]["annotations"][key].as_str();
    text.map(|text| serde_json::from_str(text).unwrap()).unwrap_or_default()
}

/// How many changes there are, by user and cause.
pub(crate) fn summary(changes: &[Change]) -> String {
    let mut counts = BTreeMap::<_, usize>::new();
    for change in changes {
        let user = change.user.rsplit(':').next().unwrap_or_default();
        *counts.entry((user, change.cause.as_deref().unwrap_or("no cause"))).or_default() += 1;
    }
    let parts: Vec<_> =
        counts.iter().map(|((user, cause), count)| format!("{count} {cause} by {user}")).collect();
    format!("{} changes ({})", changes.len(), parts.join(", "))
}
