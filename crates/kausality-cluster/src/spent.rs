//! Approvals that were used up a moment ago, for the same request.
//!
//! Where another webhook has changed the object after us, the API server asks again. The approval is gone by then, but the
//! change has not happened, and may be another than the parent has a record of (`core::used`).

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use kausality_api::{annotation::TRACE, approval::Approval, trace::Trace};
use kausality_core::{managers, review::Request};
use tokio::time::Instant;

/// How long the API server may take to come back.
const MEMORY: Duration = Duration::from_secs(10);

/// How many are remembered.
const MAX_SPENT: usize = 1024;

/// What a write starts from: the kind, the name, and the stored version, if there is one.
fn start(request: &Request<'_>) -> [String; 5] {
    let object = request.object.as_ref().or(request.old_object.as_ref());
    let version = request.old_object.as_ref().map(|old| old.metadata.resource_version.to_string());
    [
        request.resource.group.to_string(),
        request.resource.resource.to_string(),
        request.namespace.to_string(),
        object.map(|object| object.metadata.any_name().to_owned()).unwrap_or_default(),
        version.unwrap_or_default(),
    ]
}

/// The request that last wrote the trace which an object brings along.
fn traced(request: &Request<'_>) -> Option<String> {
    let sent = request.object.as_ref()?;
    // Whoever creates an object with the trace of another that is stored by then has copied it. Elsewhere, storage takes one
    // write from each version.
    if request.old_object.is_none() && managers::is_sent(&sent.metadata, &sent.suffix().key(TRACE)) {
        return None;
    }
    let trace = Trace::decode(sent.metadata.annotations.get(TRACE)?).ok()?;
    trace.hops().last()?.request_uid.clone()
}

/// An approval that was used up.
#[derive(Debug)]
struct Use {
    at: Instant,
    approval: Approval,
    /// The request whose answer it went into. Only the API server knows its uid before the object is stored.
    request: String,
    /// Where that request started from.
    start: [String; 5],
}

/// Approvals that were used up a moment ago.
#[derive(Debug, Default)]
pub(crate) struct Spent {
    recent: Mutex<VecDeque<Use>>,
}

impl Spent {
    /// Notes that an approval was used up for a request.
    pub(crate) fn note(&self, request: &Request<'_>, approval: &Approval) {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if recent.len() >= MAX_SPENT {
            recent.pop_front();
        }
        recent.push_back(Use {
            at: Instant::now(),
            approval: approval.clone(),
            request: request.uid.to_string(),
            start: start(request),
        });
    }

    /// The approval that was used up for this very request a moment ago, if this is the first time that it comes back from
    /// another webhook.
    pub(crate) fn again(&self, request: &Request<'_>) -> Option<Approval> {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.retain(|used| used.at.elapsed() < MEMORY);
        if recent.is_empty() || request.is_dry_run() {
            return None;
        }
        let (traced, start) = (traced(request)?, start(request));
        let came_back = recent.iter().position(|used| used.request == traced && used.start == start)?;
        recent.remove(came_back).map(|used| used.approval)
    }
}

#[cfg(test)]
mod tests {
    use kausality_api::annotation::Suffix;
    use kausality_core::Review;
    use serde_json::{Value, json};

    use super::*;

    fn approval() -> Approval {
        serde_json::from_value(json!({"apiVersion": "v1", "kind": "A", "name": "a", "generation": 1}))
            .unwrap()
    }

    fn review(uid: &str, operation: &str, old: Option<Value>, new: Value) -> Vec<u8> {
        let request = json!({"uid": uid, "operation": operation, "kind": {"kind": "A"},
            "resource": {"resource": "as"}, "oldObject": old, "object": new});
        let review =
            json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request});
        serde_json::to_vec(&review).unwrap()
    }

    /// The creation of an object that a request has been answered for. Whoever copies an annotation owns it.
    fn creation(uid: &str, name: &str, answered: Option<&str>, copied: bool) -> Vec<u8> {
        let mut object = json!({"metadata": {"generateName": name}, "spec": {"size": 1}});
        let key = Suffix::of_object(&object).key(TRACE);
        let mut fields = json!({"f:spec": {"f:size": {}}});
        if let Some(answered) = answered {
            let trace = json!([{"apiVersion": "v1", "kind": "A", "name": "a", "user": "c",
                "timestamp": "2026-01-01T00:00:00Z", "requestUID": answered}]);
            object["metadata"]["annotations"] = json!({&key: trace.to_string()});
        }
        if copied {
            fields["f:metadata"] = json!({"f:annotations": {format!("f:{key}"): {}}});
        }
        object["metadata"]["managedFields"] =
            json!([{"manager": "c", "operation": "Update", "fieldsV1": fields}]);
        review(uid, "CREATE", None, object)
    }

    fn note(spent: &Spent, review: &[u8]) {
        spent.note(&Review::parse(review).unwrap().request, &approval());
    }

    fn comes_again(spent: &Spent, review: &[u8]) -> bool {
        spent.again(&Review::parse(review).unwrap().request).is_some()
    }

    #[test]
    fn a_creation_may_come_back_once_from_another_webhook() {
        let spent = Spent::default();
        let fresh = |uid: &str, name: &str, answered| creation(uid, name, answered, false);
        note(&spent, &fresh("1", "a-", None));
        assert!(!comes_again(&spent, &fresh("2", "a-", None)), "another creation");
        assert!(!comes_again(&spent, &fresh("3", "a-", Some("2"))), "another answer");
        assert!(!comes_again(&spent, &fresh("3", "b-", Some("1"))), "another object");
        assert!(!comes_again(&spent, &creation("3", "a-", Some("1"), true)), "a copy of one that is stored");
        assert!(comes_again(&spent, &fresh("3", "a-", Some("1"))));
        assert!(!comes_again(&spent, &fresh("4", "a-", Some("1"))), "once");
    }
}
