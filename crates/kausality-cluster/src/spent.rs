//! Approvals that were used up a moment ago.
//!
//! The API server may review one write several times. Where it meets a conflict in storage, the object is read again
//! and the same write reviewed once more; where another webhook has changed the object after us, we are asked again.
//! The approval is gone by then, but the change has not happened.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use kausality_api::{annotation::TRACE, approval::Approval, trace::Trace};
use kausality_core::{intent::IntentHash, review::Request};
use kube::{ResourceExt as _, api::ListParams, core::DynamicObject};
use tokio::time::{Instant, timeout_at};

use crate::cluster::{Cluster, api};

/// How long the API server may take to come back.
const MEMORY: Duration = Duration::from_secs(10);

/// How many are remembered.
const MAX_SPENT: usize = 1024;

/// A change of one object from one intent to another. Once it has happened it cannot happen again from there: whoever
/// changes the object back makes another trace, and another generation. The creation of an object is none: it can.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Change {
    uid: String,
    generation: Option<i64>,
    trace: Option<String>,
    from: IntentHash,
    to: Option<IntentHash>,
}

impl Change {
    fn of(request: &Request<'_>) -> Option<Self> {
        let old = request.old_object.as_ref().filter(|_| request.sub_resource.is_empty())?;
        Some(Self {
            uid: old.metadata.uid.to_string(),
            generation: old.metadata.generation,
            trace: old.metadata.annotations.get(TRACE).map(ToOwned::to_owned),
            from: old.intent.hash(),
            to: request.object.as_ref().map(|new| new.intent.hash()),
        })
    }
}

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
    let trace = Trace::decode(request.object.as_ref()?.metadata.annotations.get(TRACE)?).ok()?;
    trace.hops().last()?.request_uid.clone()
}

/// An approval that was used up.
#[derive(Debug)]
struct Use {
    at: Instant,
    approval: Approval,
    /// The request whose answer it went into, until it has come back from another webhook. Only the API server knows
    /// its uid before the object is stored; afterwards storage refuses what starts from the same version.
    request: Option<String>,
    /// Where that request started from.
    start: [String; 5],
    change: Option<Change>,
    /// The labels of what was sent, as a selector.
    labels: String,
    /// The version from which the change was last tried. Storage lets one write pass from each, so one review will do.
    resource_version: String,
}

/// Approvals that were used up a moment ago.
#[derive(Debug, Default)]
pub(crate) struct Spent {
    recent: Mutex<VecDeque<Use>>,
}

impl Spent {
    /// Notes that an approval was used up for a request.
    pub(crate) fn note(&self, request: &Request<'_>, approval: &Approval) {
        let start = start(request);
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if recent.len() >= MAX_SPENT {
            recent.pop_front();
        }
        recent.push_back(Use {
            at: Instant::now(),
            approval: approval.clone(),
            request: Some(request.uid.to_string()),
            resource_version: start[4].clone(),
            start,
            labels: labels(request),
            change: Change::of(request),
        });
    }

    /// The approval that was used up for this very change a moment ago, if this is the first time that it comes back
    /// from another webhook, or from another version of the object.
    pub(crate) fn again(&self, request: &Request<'_>) -> Option<Again> {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        recent.retain(|used| used.at.elapsed() < MEMORY);
        if recent.is_empty() || request.is_dry_run() {
            return None;
        }
        let start = start(request);
        if let Some(traced) = traced(request) {
            let came_back = |used: &&mut Use| used.request.as_ref() == Some(&traced) && used.start == start;
            if let Some(used) = recent.iter_mut().find(came_back) {
                used.request = None;
                let answered = Answered { request: traced, labels: used.labels.clone() };
                return Some(Again { approval: used.approval.clone(), answered: Some(answered) });
            }
        }
        let change = Change::of(request)?;
        let [.., version] = start;
        let used = recent
            .iter_mut()
            .find(|used| used.change.as_ref() == Some(&change) && used.resource_version != version)?;
        used.resource_version = version;
        Some(Again { approval: used.approval.clone(), answered: None })
    }
}

/// An approval whose change comes again.
#[derive(Debug)]
pub(crate) struct Again {
    pub approval: Approval,
    /// What the change says it was answered for, as its trace tells.
    pub answered: Option<Answered>,
}

/// A request that was answered. Anybody could have copied its uid from an object which is stored by now.
#[derive(Debug)]
pub(crate) struct Answered {
    request: String,
    labels: String,
}

fn labels(request: &Request<'_>) -> String {
    let labels = request.object.as_ref().map(|object| object.metadata.labels()).unwrap_or_default();
    let labels: Vec<String> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    labels.join(",")
}

impl Cluster {
    /// Whether a creation merely copies the trace of an object that is stored already. Where the API server makes up the name,
    /// nothing else keeps the same creation from passing twice; what cannot be found out does not pass.
    pub(crate) async fn is_copy(&self, request: &Request<'_>, answered: &Answered, until: Instant) -> bool {
        let Some(sent) = request.object.as_ref().filter(|sent| sent.metadata.name.is_empty()) else {
            return false;
        };
        let Ok(kind) = self.kinds.of_resource(&request.resource.group, &request.resource.resource).await
        else {
            return true;
        };
        let alike = ListParams::default().labels(&answered.labels);
        let list = api(&self.client, &kind, &request.namespace);
        let stored = timeout_at(until, list.list(&alike)).await;
        let key = sent.suffix().key(TRACE);
        let is_answered = |object: &DynamicObject| {
            let trace = object.annotations().get(&key).and_then(|text| Trace::decode(text).ok());
            trace.is_some_and(|trace| {
                trace.hops().last().is_some_and(|hop| hop.request_uid.as_deref() == Some(&*answered.request))
            })
        };
        match stored {
            Ok(Ok(stored)) => stored.items.iter().any(is_answered),
            _ => true,
        }
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

    fn update(uid: &str, version: u8, from: u8, to: u8) -> Vec<u8> {
        traced_update("t", uid, version, from, to)
    }

    fn traced_update(trace: &str, uid: &str, version: u8, from: u8, to: u8) -> Vec<u8> {
        let object = |size: u8| {
            json!({"metadata": {"uid": uid, "resourceVersion": version.to_string(), "annotations": {Suffix::of("", "", "", "").key(TRACE): trace}},
                "spec": {"size": size}})
        };
        review("r", "UPDATE", Some(object(from)), object(to))
    }

    /// The creation of an object that a request has been answered for.
    fn creation(uid: &str, name: &str, answered: Option<&str>) -> Vec<u8> {
        let mut object = json!({"metadata": {"generateName": name}, "spec": {"size": 1}});
        if let Some(answered) = answered {
            let trace = json!([{"apiVersion": "v1", "kind": "A", "name": "a", "user": "c",
                "timestamp": "2026-01-01T00:00:00Z", "requestUID": answered}]);
            object["metadata"]["annotations"] =
                json!({Suffix::of_object(&object).key(TRACE): trace.to_string()});
        }
        review(uid, "CREATE", None, object)
    }

    fn note(spent: &Spent, review: &[u8]) {
        spent.note(&Review::parse(review).unwrap().request, &approval());
    }

    fn comes_again(spent: &Spent, review: &[u8]) -> bool {
        spent.again(&Review::parse(review).unwrap().request).is_some()
    }

    #[test]
    fn the_same_change_may_come_again_once_from_each_version() {
        let spent = Spent::default();
        note(&spent, &update("u", 7, 1, 2));
        assert!(!comes_again(&spent, &update("u", 7, 1, 2)), "somebody else's, from the same version");
        assert!(comes_again(&spent, &update("u", 8, 1, 2)), "the same, after a conflict");
        assert!(!comes_again(&spent, &update("u", 8, 1, 2)));
        // Somebody has changed it back: that is another trace.
        assert!(!comes_again(&spent, &traced_update("o", "u", 9, 1, 2)));
        // Once it has happened it starts from elsewhere; and others are others.
        assert!(!comes_again(&spent, &update("u", 9, 2, 2)));
        assert!(!comes_again(&spent, &update("u", 9, 1, 3)));
        assert!(!comes_again(&spent, &update("v", 9, 1, 2)));
    }

    #[test]
    fn a_creation_may_come_back_once_from_another_webhook() {
        let spent = Spent::default();
        note(&spent, &creation("1", "a-", None));
        assert!(!comes_again(&spent, &creation("2", "a-", None)), "another creation");
        assert!(!comes_again(&spent, &creation("3", "a-", Some("2"))), "another answer");
        assert!(!comes_again(&spent, &creation("3", "b-", Some("1"))), "another object");
        assert!(comes_again(&spent, &creation("3", "a-", Some("1"))));
        assert!(!comes_again(&spent, &creation("4", "a-", Some("1"))), "once");
    }
}
