//! The DaemonSet controller: a Pod for each node.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Value, json};

use super::{
    CONTROLLER_REVISIONS, Cache, Change, Controller, DAEMON_SETS, Key, NODES, Outcome, PODS, Refusal, Time,
    Watched, Write,
    expectations::Expectations,
    object, pod,
    revision::{Revision, Revisions},
};

/// The label of a Pod with the hash of its template.
const HASH: &str = "controller-revision-hash";

/// The DaemonSet controller. It knows no taints and no node selectors: each node gets a Pod.
#[derive(Debug, Default)]
pub struct DaemonSets {
    expectations: Expectations,
}

impl Controller for DaemonSets {
    fn name(&self) -> &str {
        "daemon-set-controller"
    }

    fn watches(&self) -> Watched {
        Watched::These(vec![DAEMON_SETS.clone(), CONTROLLER_REVISIONS.clone(), PODS.clone(), NODES.clone()])
    }

    fn keys(&mut self, cache: &Cache, change: &Change) -> Vec<Key> {
        if change.resource == PODS {
            return self.expectations.observe(&DAEMON_SETS, cache, change);
        }
        if change.resource == NODES && (change.before.is_none() || change.after.is_none()) {
            return cache.list(&DAEMON_SETS).map(|set| DAEMON_SETS.key_of(set)).collect();
        }
        if change.resource == DAEMON_SETS { vec![change.key()] } else { Vec::new() }
    }

    fn sync(&mut self, cache: &Cache, key: &Key, now: Time) -> Outcome {
        let Some(set) = cache.at(key) else {
            self.expectations.forget(key);
            return Outcome::default();
        };
        let revisions = Revisions::of(cache, &DAEMON_SETS, set);
        let pods: Vec<_> = cache.owned(&PODS, object::uid(set)).collect();
        let pass = Pass::new(cache, set, &revisions.update, &pods, now);
        let mut writes: Vec<_> = revisions.write.iter().cloned().collect();
        if !object::deleting(set) && self.expectations.satisfied(key, now) {
            let moves = pass.moves();
            self.expectations.expect(key, &moves, now);
            writes.extend(moves);
        }
        let status = pass.status();
        if status != set["status"] {
            writes.push(Write::update_status(&DAEMON_SETS, object::with_status(set, status)));
        }
        let in_use = |it: &Revision| pods.iter().any(|pod| object::label(pod, HASH) == Some(it.hash()));
        writes.extend(revisions.surplus(set, in_use));
        let again = pod::next_available(pods.iter().map(|pod| &***pod), pass.min_ready, now);
        Outcome { writes, again, ..Outcome::default() }
    }

    fn refused(&mut self, key: &Key, undone: &[Write], _: &Refusal) {
        let pods: Vec<_> = undone.iter().filter(|write| write.key.resource == PODS).cloned().collect();
        self.expectations.undone(key, &pods);
    }
}

/// One pass over a DaemonSet.
struct Pass<'a> {
    set: &'a Value,
    update: &'a Revision,
    /// Those of each node that is there.
    pods: BTreeMap<&'a str, Vec<&'a Value>>,
    /// Those of nodes that are not.
    lost: Vec<&'a Value>,
    min_ready: i64,
    now: Time,
}

impl<'a> Pass<'a> {
    fn new(
        cache: &'a Cache,
        set: &'a Value,
        update: &'a Revision,
        pods: &[&'a Arc<Value>],
        now: Time,
    ) -> Self {
        let mut by_node: BTreeMap<_, Vec<_>> =
            cache.list(&NODES).map(|node| (object::name(node), Vec::new())).collect();
        let mut lost = Vec::new();
        for pod in pods {
            by_node.get_mut(node_of(pod)).unwrap_or(&mut lost).push(&***pod);
        }
        let min_ready = object::int(&set["spec"]["minReadySeconds"]);
        Self { set, update, pods: by_node, lost, min_ready, now }
    }

    fn updated(&self, pod: &Value) -> bool {
        object::label(pod, HASH) == Some(self.update.hash())
    }

    fn available(&self, pod: &Value) -> bool {
        !object::deleting(pod) && pod::available(pod, self.min_ready, self.now)
    }

    /// Creates what nodes miss, deletes what they should not have, and replaces what is outdated while few are missing.
    fn moves(&self) -> Vec<Write> {
        let mut writes = Vec::new();
        let missing = self.pods.iter().filter(|(_, pods)| pods.is_empty());
        writes.extend(missing.map(|(node, _)| Write::create(&PODS, self.pod(node))));
        let ended = self.pods.values().flatten().filter(|pod| pod::finished(pod));
        let surplus = self.pods.values().flat_map(|pods| pods.iter().skip(1));
        let gone = ended.chain(surplus).chain(&self.lost).filter(|pod| !object::deleting(pod));
        writes.extend(gone.map(|pod| Write::delete(&PODS, pod, None)));
        if writes.is_empty() && self.set["spec"]["updateStrategy"]["type"] != "OnDelete" {
            let most =
                object::int_or(&self.set["spec"]["updateStrategy"]["rollingUpdate"]["maxUnavailable"], 1);
            let out = self.pods.values().filter(|pods| !pods.iter().any(|pod| self.available(pod))).count();
            let outdated =
                || self.pods.values().flatten().filter(|pod| !self.updated(pod) && !object::deleting(pod));
            let room = usize::try_from(most).unwrap_or(1).saturating_sub(out);
            // Those that are out anyway cost nothing.
            let (broken, good): (Vec<_>, Vec<_>) = outdated().partition(|pod| !self.available(pod));
            let replaced = broken.into_iter().chain(good.into_iter().take(room));
            writes.extend(replaced.map(|pod| Write::delete(&PODS, pod, None)));
        }
        writes
    }

    fn pod(&self, node: &str) -> Value {
        let mut pod = pod::from_template(&self.update.template(), &DAEMON_SETS, self.set);
        let labels = object::entry(&mut pod["metadata"], "labels");
        labels[HASH] = json!(self.update.hash());
        labels["pod-template-generation"] = json!(object::generation(self.set).to_string());
        let field = json!({ "key": "metadata.name", "operator": "In", "values": [node] });
        object::entry(object::entry(&mut pod, "spec"), "affinity")["nodeAffinity"] = json!({
            "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [{ "matchFields": [field] }] }
        });
        pod
    }

    fn status(&self) -> Value {
        let nodes = |holds: &dyn Fn(&Value) -> bool| {
            let count = self.pods.values().filter(|pods| pods.iter().any(|pod| holds(pod))).count();
            i64::try_from(count).unwrap_or_default()
        };
        let wanted = i64::try_from(self.pods.len()).unwrap_or_default();
        let available = nodes(&|pod| self.available(pod));
        let mut status = json!({
            "observedGeneration": object::generation(self.set),
            "desiredNumberScheduled": wanted,
            "currentNumberScheduled": nodes(&|_| true),
            "numberMisscheduled": self.lost.len(),
            "numberReady": nodes(&pod::ready),
        });
        object::count(&mut status, "updatedNumberScheduled", nodes(&|pod| self.updated(pod)));
        object::count(&mut status, "numberAvailable", available);
        object::count(&mut status, "numberUnavailable", wanted - available);
        status
    }
}

/// The node that a Pod is on, or must go to.
pub(super) fn node_of(pod: &Value) -> &str {
    let bound = object::text(&pod["spec"]["nodeName"]);
    if !bound.is_empty() {
        return bound;
    }
    let required = &pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    object::text(&required["nodeSelectorTerms"][0]["matchFields"][0]["values"][0])
}
