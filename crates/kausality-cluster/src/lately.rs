//! Changes of intent that were allowed here a moment ago, and that watches may not have shown yet.
//!
//! A review is no proof of storage, so nothing is decided by this. It only says that a watch is worth waiting for.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use kausality_core::review::Request;
use tokio::time::Instant;

/// A change that has not shown by then has failed.
const MEMORY: Duration = Duration::from_secs(2);

/// How many are remembered.
const MAX_CHANGES: usize = 4096;

/// Changes by the uid of their object.
#[derive(Debug, Default)]
pub(crate) struct Lately(Mutex<HashMap<String, Change>>);

#[derive(Debug)]
struct Change {
    at: Instant,
    /// The version that was changed.
    from: u64,
}

impl Lately {
    /// Notes a request that was allowed to change an object.
    pub(crate) fn note(&self, request: &Request<'_>) {
        let Some(old) = request.old_object.as_ref().filter(|_| !request.is_dry_run()) else { return };
        let Ok(from) = old.metadata.resource_version.parse() else { return };
        let mut changes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if changes.len() >= MAX_CHANGES {
            changes.retain(|_, change| change.at.elapsed() < MEMORY);
        }
        if changes.len() < MAX_CHANGES {
            changes.insert(old.metadata.uid.to_string(), Change { at: Instant::now(), from });
        }
    }

    /// Whether an object that is known at this version has a change under way.
    pub(crate) fn is_under_way(&self, uid: &str, version: &str) -> bool {
        let Ok(version) = version.parse::<u64>() else { return false };
        let changes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        changes.get(uid).is_some_and(|change| change.at.elapsed() < MEMORY && version <= change.from)
    }
}

#[cfg(test)]
mod tests {
    use kausality_core::Review;

    use super::*;

    fn note(lately: &Lately, uid: &str, version: &str, dry_run: bool) {
        let object = format!(r#"{{"metadata":{{"uid":"{uid}","resourceVersion":"{version}"}}}}"#);
        let review = format!(
            r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{"operation":"UPDATE",
            "kind":{{"kind":"A"}},"resource":{{"resource":"as"}},"dryRun":{dry_run},
            "oldObject":{object},"object":{object}}}}}"#
        );
        lately.note(&Review::parse(review.as_bytes()).unwrap().request);
    }

    #[test]
    fn a_change_is_under_way_until_a_later_version_shows() {
        let lately = Lately::default();
        note(&lately, "u", "9", false);
        assert!(lately.is_under_way("u", "9"));
        assert!(lately.is_under_way("u", "8"), "further behind");
        assert!(!lately.is_under_way("u", "10"));
        assert!(!lately.is_under_way("v", "9"));
        note(&lately, "w", "9", true);
        assert!(!lately.is_under_way("w", "9"), "a dry run changes nothing");
    }
}
