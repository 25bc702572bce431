//! The ReplicaSet controller: as many Pods as wanted, and counters of how far they are.

use std::collections::BTreeMap;

use kausality_api::selector::{LabelSelector, Labels};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    Action, Cache, Change, Controller, Key, Outcome, PODS, REPLICA_SETS, Refusal, Time, Watched, Write,
    conditions::{self, Condition},
    expectations::Expectations,
    garbage, object, pod,
};

/// At most this many Pods are created or deleted in one sync.
const BURST: usize = 500;

/// The condition that tells why Pods cannot be made.
const FAILURE: &str = "ReplicaFailure";

/// The ReplicaSet controller.
#[derive(Debug, Default)]
pub struct ReplicaSets {
    expectations: Expectations,
    /// Why Pods could not be created or deleted at the last attempt: a reason and a message.
    failures: BTreeMap<Key, (&'static str, String)>,
}

impl Controller for ReplicaSets {
    fn name(&self) -> &str {
        "replicaset-controller"
    }

    fn watches(&self) -> Watched {
        Watched::These(vec![REPLICA_SETS.clone(), PODS.clone()])
    }

    fn keys(&mut self, cache: &Cache, change: &Change) -> Vec<Key> {
        if change.resource == PODS {
            return self.expectations.observe(&REPLICA_SETS, cache, change);
        }
        if change.resource != REPLICA_SETS {
            return Vec::new();
        }
        let key = change.key();
        if change.after.is_none() {
            self.expectations.forget(&key);
        }
        vec![key]
    }

    fn sync(&mut self, cache: &Cache, key: &Key, now: Time) -> Outcome {
        let failure = self.failures.remove(key);
        let Some(set) = cache.at(key) else {
            self.expectations.forget(key);
            return Outcome::default();
        };
        let pods = cache.owned(&PODS, object::uid(set)).map(|pod| &**pod);
        let (pods, strangers): (Vec<_>, Vec<_>) = pods.partition(|pod| selects(set, pod));
        let (active, ended): (Vec<_>, Vec<_>) = pods.into_iter().partition(|pod| pod::active(pod));
        let mut writes = Vec::new();
        if self.expectations.satisfied(key, now) && !object::deleting(set) {
            writes = manage(set, &active);
            self.expectations.expect(key, &writes, now);
        }
        // First of all: what is not let go of is not replaced either.
        let strangers = strangers.into_iter().filter(|pod| !object::deleting(pod) && !object::deleting(set));
        let uid = [object::uid(set).to_owned()];
        writes.splice(0..0, strangers.map(|pod| garbage::let_go(&PODS, pod, &uid)));
        let status = status(set, &active, &ended, failure.as_ref(), now);
        if status != set["status"] {
            let status = Write::update_status(&REPLICA_SETS, object::with_status(set, status));
            // A failure is told before the same attempt fails again.
            writes.insert(if failure.is_some() { 0 } else { writes.len() }, status);
        }
        let min_ready = object::int(&set["spec"]["minReadySeconds"]);
        Outcome {
            writes,
            again: pod::next_available(active.into_iter(), min_ready, now),
            ..Outcome::default()
        }
    }

    fn refused(&mut self, key: &Key, undone: &[Write], refusal: &Refusal) {
        self.expectations.undone(key, undone);
        let Some(refused) = undone.first().filter(|write| refusal.stops(write)) else { return };
        let reason = match refused.action {
            Action::Create(_) => "FailedCreate",
            Action::Delete(_) => "FailedDelete",
            _ => return,
        };
        self.failures.insert(key.clone(), (reason, refusal.to_string()));
    }
}

/// Whether a Pod has the labels of those that the ReplicaSet keeps. One that lost them is let go of.
fn selects(set: &Value, pod: &Value) -> bool {
    let selector = LabelSelector::deserialize(&set["spec"]["selector"]).unwrap_or_default();
    selector.matches(&Labels::deserialize(&pod["metadata"]["labels"]).unwrap_or_default())
}

/// Creates what is missing, or deletes what is too much.
fn manage(set: &Value, active: &[&Value]) -> Vec<Write> {
    let wanted = usize::try_from(object::int_or(&set["spec"]["replicas"], 1)).unwrap_or_default();
    if active.len() < wanted {
        let pod = pod::from_template(&set["spec"]["template"], &REPLICA_SETS, set);
        return (active.len()..wanted).take(BURST).map(|_| Write::create(&PODS, pod.clone())).collect();
    }
    let surplus = (active.len() - wanted).min(BURST);
    if surplus == 0 {
        return Vec::new();
    }
    pod::in_deletion_order(active.to_vec())
        .into_iter()
        .take(surplus)
        .map(|pod| Write::delete(&PODS, pod, None))
        .collect()
}

fn status(
    set: &Value,
    active: &[&Value],
    ended: &[&Value],
    failure: Option<&(&'static str, String)>,
    now: Time,
) -> Value {
    let min_ready = object::int(&set["spec"]["minReadySeconds"]);
    let labels = set["spec"]["template"]["metadata"]["labels"].as_object();
    let labelled = |pod: &Value| {
        let has = &pod["metadata"]["labels"];
        labels.is_none_or(|labels| labels.iter().all(|(key, value)| has[key] == *value))
    };
    let (mut fully_labelled, mut ready, mut available) = (0, 0, 0);
    for pod in active {
        fully_labelled += i64::from(labelled(pod));
        if pod::ready(pod) {
            ready += 1;
            available += i64::from(min_ready <= 0 || pod::available(pod, min_ready, now));
        }
    }
    let terminating = ended.iter().filter(|pod| object::deleting(pod) && !pod::finished(pod)).count();
    let mut status = json!({
        "replicas": active.len(), "terminatingReplicas": terminating, "observedGeneration": object::generation(set)
    });
    object::count(&mut status, "fullyLabeledReplicas", fully_labelled);
    object::count(&mut status, "readyReplicas", ready);
    object::count(&mut status, "availableReplicas", available);
    if set["status"]["conditions"].is_array() {
        status["conditions"] = set["status"]["conditions"].clone();
    }
    match failure {
        Some((reason, message)) => {
            let condition = Condition { kind: FAILURE, status: "True", reason, message: message.clone() };
            conditions::set_plain(&mut status, &condition, now);
        }
        None => conditions::remove(&mut status, FAILURE),
    }
    status
}
