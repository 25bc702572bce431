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
pub(crate) struct Change {
    uid: String,
    from: IntentHash,
    to: Option<IntentHash>,
}

impl Change {
    pub(crate) fn of(request: &Request<'_>) -> Option<Self> {
        let old = request
            .old_object
            .as_ref()
            .filter(|_| request.sub_resource.is_empty() && !request.is_dry_run())?;
        Some(Self {
            uid: old.metadata.uid.to_string(),
            from: IntentHash::of(&old.intent),
            to: request.object.as_ref().map(|new| IntentHash::of(&new.intent)),
        })
    }
}

/// What was used up, and for which change.
#[derive(Debug, Default)]
pub(crate) struct Spent {
    recent: Mutex<VecDeque<(Instant, Change, Approval)>>,
}

impl Spent {
    /// Notes that an approval was used up for a change.
    pub(crate) fn note(&self, change: Change, approval: Approval) {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if recent.len() >= MAX_SPENT {
            recent.pop_front();
        }
        recent.push_back((Instant::now(), change, approval));
    }

    /// The approval that was used up for this very change a moment ago.
    pub(crate) fn find(&self, change: &Change) -> Option<Approval> {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.retain(|(at, ..)| at.elapsed() < MEMORY);
        recent.iter().find(|(_, spent, _)| spent == change).map(|(.., approval)| approval.clone())
    }
}

#[cfg(test)]
mod tests {
    use kausality_core::Review;

    use super::*;

    fn change(operation: &str, objects: &str) -> Option<Change> {
        let review = format!(
            r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{"operation":"{operation}",
            "kind":{{"kind":"A"}},"resource":{{"resource":"as"}},{objects}}}}}"#
        );
        Change::of(&Review::parse(review.as_bytes()).unwrap().request)
    }

    #[test]
    fn the_same_change_of_the_same_object_is_known_again() {
        let approval: Approval =
            serde_json::from_str(r#"{"apiVersion":"v1","kind":"A","name":"a","generation":1}"#).unwrap();
        let update = |uid: &str, from: u8, to: u8| {
            let object = |size: u8| format!(r#"{{"metadata":{{"uid":"{uid}"}},"spec":{{"size":{size}}}}}"#);
            change("UPDATE", &format!(r#""oldObject":{},"object":{}"#, object(from), object(to)))
        };
        let spent = Spent::default();
        spent.note(update("u", 1, 2).unwrap(), approval.clone());
        assert_eq!(spent.find(&update("u", 1, 2).unwrap()), Some(approval));
        // Once it has happened it starts from elsewhere; and others are others.
        for other in [update("u", 2, 2), update("u", 1, 3), update("v", 1, 2)] {
            assert_eq!(spent.find(&other.unwrap()), None);
        }
        assert_eq!(change("CREATE", r#""object":{"spec":{"size":1}}"#), None);
    }
}
