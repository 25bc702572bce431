//! Approvals that were used up a moment ago.
//!
//! Where a write meets a conflict in storage, the API server reads the object again and reviews the same write once
//! more. The approval is gone by then, but the change has not happened: the object is still as it was.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use kausality_api::approval::Approval;
use kausality_core::{intent::IntentHash, review::Request};

/// How long the API server may take to come back.
const MEMORY: Duration = Duration::from_secs(10);

/// How many are remembered.
const MAX_SPENT: usize = 1024;

/// A change of one object from one intent to another: once it has happened, it cannot happen again from there. The
/// creation of an object is none: it can.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Change {
    uid: String,
    from: IntentHash,
    to: Option<IntentHash>,
}

/// A change, and the version of the object that it starts from.
fn change(request: &Request<'_>) -> Option<(Change, String)> {
    let old =
        request.old_object.as_ref().filter(|_| request.sub_resource.is_empty() && !request.is_dry_run())?;
    let change = Change {
        uid: old.metadata.uid.to_string(),
        from: IntentHash::of(&old.intent),
        to: request.object.as_ref().map(|new| IntentHash::of(&new.intent)),
    };
    Some((change, old.metadata.resource_version.to_string()))
}

/// An approval that was used up.
#[derive(Debug)]
struct Use {
    at: Instant,
    change: Change,
    /// The version from which it was last tried. Storage lets one write pass from each, so one review will do.
    resource_version: String,
    approval: Approval,
}

/// Approvals that were used up a moment ago.
#[derive(Debug, Default)]
pub(crate) struct Spent {
    recent: Mutex<VecDeque<Use>>,
}

impl Spent {
    /// Notes that an approval was used up for a request.
    pub(crate) fn note(&self, request: &Request<'_>, approval: &Approval) {
        let Some((change, resource_version)) = change(request) else { return };
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if recent.len() >= MAX_SPENT {
            recent.pop_front();
        }
        recent.push_back(Use { at: Instant::now(), change, resource_version, approval: approval.clone() });
    }

    /// The approval that was used up for this very change a moment ago, if this is the first time that it comes from
    /// another version of the object.
    pub(crate) fn again(&self, request: &Request<'_>) -> Option<Approval> {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.retain(|used| used.at.elapsed() < MEMORY);
        if recent.is_empty() {
            return None;
        }
        let (change, resource_version) = change(request)?;
        let used = recent
            .iter_mut()
            .find(|used| used.change == change && used.resource_version != resource_version)?;
        used.resource_version = resource_version;
        Some(used.approval.clone())
    }
}

#[cfg(test)]
mod tests {
    use kausality_core::Review;

    use super::*;

    fn review(operation: &str, objects: &str) -> String {
        format!(
            r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{"operation":"{operation}",
            "kind":{{"kind":"A"}},"resource":{{"resource":"as"}},{objects}}}}}"#
        )
    }

    fn update(uid: &str, version: u8, from: u8, to: u8) -> String {
        let object = |size: u8| {
            format!(
                r#"{{"metadata":{{"uid":"{uid}","resourceVersion":"{version}"}},"spec":{{"size":{size}}}}}"#
            )
        };
        review("UPDATE", &format!(r#""oldObject":{},"object":{}"#, object(from), object(to)))
    }

    fn comes_again(spent: &Spent, review: &str) -> bool {
        spent.again(&Review::parse(review.as_bytes()).unwrap().request).is_some()
    }

    #[test]
    fn the_same_change_may_come_again_once_from_each_version() {
        let approval: Approval =
            serde_json::from_str(r#"{"apiVersion":"v1","kind":"A","name":"a","generation":1}"#).unwrap();
        let spent = Spent::default();
        spent.note(&Review::parse(update("u", 7, 1, 2).as_bytes()).unwrap().request, &approval);
        assert!(!comes_again(&spent, &update("u", 7, 1, 2)), "somebody else's, from the same version");
        assert!(comes_again(&spent, &update("u", 8, 1, 2)), "the same, after a conflict");
        assert!(!comes_again(&spent, &update("u", 8, 1, 2)));
        // Once it has happened it starts from elsewhere; and others are others.
        assert!(!comes_again(&spent, &update("u", 9, 2, 2)));
        assert!(!comes_again(&spent, &update("u", 9, 1, 3)));
        assert!(!comes_again(&spent, &update("v", 9, 1, 2)));
        let create = review("CREATE", r#""object":{"spec":{"size":1}}"#);
        spent.note(&Review::parse(create.as_bytes()).unwrap().request, &approval);
        assert!(!comes_again(&spent, &create));
    }
}
