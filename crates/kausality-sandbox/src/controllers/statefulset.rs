//! The StatefulSet controller: Pods with names of their own, started in order and replaced in reverse.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Value, json};

use super::{
    CONTROLLER_REVISIONS, Cache, Change, Controller, Key, Outcome, PODS, STATEFUL_SETS, Time, Watched, Write,
    object, pod,
    revision::{Revision, Revisions},
};

/// The label of a Pod with the name of its revision.
const REVISION: &str = "controller-revision-hash";

/// The StatefulSet controller.
#[derive(Debug, Default)]
pub struct StatefulSets {}

impl Controller for StatefulSets {
    fn name(&self) -> &str {
        "statefulset-controller"
    }

    fn watches(&self) -> Watched {
        Watched::These(vec![STATEFUL_SETS.clone(), CONTROLLER_REVISIONS.clone(), PODS.clone()])
    }

    fn keys(&mut self, _: &Cache, change: &Change) -> Vec<Key> {
        if change.resource == STATEFUL_SETS {
            return vec![change.key()];
        }
        if change.resource != PODS {
            return Vec::new();
        }
        let objects = [&change.before, &change.after].into_iter().flatten();
        let owners = objects.filter_map(|it| {
            let owner = object::controller(it).filter(|owner| owner.kind() == STATEFUL_SETS.kind)?;
            Some(STATEFUL_SETS.key(object::namespace(it), owner.name()))
        });
        let mut keys: Vec<_> = owners.collect();
        keys.dedup();
        keys
    }

    fn sync(&mut self, cache: &Cache, key: &Key, now: Time) -> Outcome {
        let Some(set) = cache.at(key) else { return Outcome::default() };
        let revisions = Revisions::of(cache, &STATEFUL_SETS, set);
        let pods: Vec<_> = cache.owned(&PODS, object::uid(set)).collect();
        let pass = Pass::new(set, &revisions, &pods, now);
        let mut writes: Vec<_> = revisions.write.iter().cloned().collect();
        let mut status = pass.status();
        if !object::deleting(set) {
            let moves = pass.moves();
            // The real controller counts a Pod that it replaces as gone.
            if moves.replaces_current {
                status["currentReplicas"] = json!((object::int(&status["currentReplicas"]) - 1).max(0));
            }
            writes.extend(moves.writes);
        }
        pass.complete(&mut status);
        drop_zero(&mut status, "currentReplicas");
        if status != set["status"] {
            writes.push(Write::update_status(&STATEFUL_SETS, object::with_status(set, status)));
        }
        let current = object::text(&set["status"]["currentRevision"]);
        writes.extend(revisions.surplus(set, |revision| {
            revision.name() == current || pods.iter().any(|pod| revision_of(pod) == revision.name())
        }));
        let again = pod::next_available(pods.iter().map(|pod| &***pod), pass.min_ready, now);
        Outcome { writes, again, ..Outcome::default() }
    }
}

fn revision_of(pod: &Value) -> &str {
    object::label(pod, REVISION).unwrap_or_default()
}

fn drop_zero(status: &mut Value, counter: &str) {
    if status[counter] == 0
        && let Some(fields) = status.as_object_mut()
    {
        fields.remove(counter);
    }
}

/// One pass over a StatefulSet.
struct Pass<'a> {
    set: &'a Value,
    current: &'a Revision,
    update: &'a Revision,
    /// By ordinal.
    pods: BTreeMap<i64, &'a Value>,
    /// The first ordinal, and the one after the last.
    range: std::ops::Range<i64>,
    min_ready: i64,
    now: Time,
}

/// What is to be done to the Pods.
#[derive(Default)]
struct Moves {
    writes: Vec<Write>,
    /// Whether one of the current revision is deleted, so that one of the next can take its place.
    replaces_current: bool,
}

impl<'a> Pass<'a> {
    fn new(set: &'a Value, revisions: &'a Revisions, pods: &[&'a Arc<Value>], now: Time) -> Self {
        let prefix = format!("{}-", object::name(set));
        let ordinal = |pod: &Value| object::name(pod).strip_prefix(&prefix)?.parse::<i64>().ok();
        let start = object::int(&set["spec"]["ordinals"]["start"]);
        Self {
            set,
            current: revisions.named(object::text(&set["status"]["currentRevision"])),
            update: &revisions.update,
            pods: pods.iter().filter_map(|pod| Some((ordinal(pod)?, &***pod))).collect(),
            range: start..start + object::int_or(&set["spec"]["replicas"], 1).max(0),
            min_ready: object::int(&set["spec"]["minReadySeconds"]),
            now,
        }
    }

    fn available(&self, pod: &Value) -> bool {
        pod::running_and_ready(pod) && pod::available(pod, self.min_ready, self.now)
    }

    /// Whether it may neither be waited for nor count as healthy.
    fn unhealthy(&self, pod: &Value) -> bool {
        !self.available(pod) || object::deleting(pod)
    }

    fn moves(&self) -> Moves {
        let ordered = self.set["spec"]["podManagementPolicy"] != "Parallel";
        let mut moves = Moves::default();
        if self.fill(ordered, &mut moves.writes) || self.condemn(ordered, &mut moves.writes) {
            return moves;
        }
        if self.set["spec"]["updateStrategy"]["type"] != "OnDelete" {
            self.replace(&mut moves);
        }
        moves
    }

    /// Creates what is missing; in order, each after those before it are available. Says whether that is all for this
    /// pass.
    fn fill(&self, ordered: bool, writes: &mut Vec<Write>) -> bool {
        for ordinal in self.range.clone() {
            let waits = match self.pods.get(&ordinal) {
                None => {
                    writes.push(Write::create(&PODS, self.pod(ordinal)));
                    true
                }
                Some(pod) if pod::finished(pod) => {
                    if !object::deleting(pod) {
                        writes.push(Write::delete(&PODS, pod, None));
                    }
                    true
                }
                Some(pod) => self.unhealthy(pod),
            };
            if waits && ordered {
                return true;
            }
        }
        false
    }

    /// Deletes what is too much, the last first; in order, one at a time. Says whether that is all for this pass.
    fn condemn(&self, ordered: bool, writes: &mut Vec<Write>) -> bool {
        let outside = |ordinal: &i64| !self.range.contains(ordinal);
        let condemned: Vec<_> = self.pods.iter().rev().filter(|(ordinal, _)| outside(ordinal)).collect();
        let first_unhealthy =
            condemned.iter().rev().find(|(_, pod)| self.unhealthy(pod)).map(|(ordinal, _)| **ordinal);
        for (ordinal, pod) in &condemned {
            if object::deleting(pod) {
                if ordered {
                    return true;
                }
                continue;
            }
            if ordered && !self.available(pod) && first_unhealthy != Some(**ordinal) {
                return true;
            }
            writes.push(Write::delete(&PODS, pod, None));
            if ordered {
                return true;
            }
        }
        false
    }

    /// Deletes the last Pod of another revision, once all after it are available.
    fn replace(&self, moves: &mut Moves) {
        let partition = object::int(&self.set["spec"]["updateStrategy"]["rollingUpdate"]["partition"]);
        for ordinal in self.range.clone().rev().take_while(|ordinal| ordinal - self.range.start >= partition)
        {
            let Some(pod) = self.pods.get(&ordinal) else { return };
            if revision_of(pod) != self.update.name() && !object::deleting(pod) {
                moves.replaces_current = revision_of(pod) == self.current.name();
                return moves.writes.push(Write::delete(&PODS, pod, None));
            }
            if self.unhealthy(pod) {
                return;
            }
        }
    }

    /// The Pod of an ordinal, of the revision that it should have at this point of an update.
    fn pod(&self, ordinal: i64) -> Value {
        let strategy = &self.set["spec"]["updateStrategy"];
        let rank = ordinal - self.range.start;
        let stays = match strategy["rollingUpdate"]["partition"].as_i64() {
            Some(partition) => rank < partition,
            None => {
                strategy["rollingUpdate"].is_null()
                    && rank < object::int(&self.set["status"]["currentReplicas"])
            }
        };
        let revision = if stays && strategy["type"] != "OnDelete" { self.current } else { self.update };
        let mut pod = pod::from_template(&revision.template(), &STATEFUL_SETS, self.set);
        let name = format!("{}-{ordinal}", object::name(self.set));
        pod["metadata"]["name"] = json!(name);
        let labels = object::entry(&mut pod["metadata"], "labels");
        labels["statefulset.kubernetes.io/pod-name"] = json!(name);
        labels["apps.kubernetes.io/pod-index"] = json!(ordinal.to_string());
        labels[REVISION] = json!(revision.name());
        if pod["spec"].is_object() {
            pod["spec"]["hostname"] = json!(name);
            pod["spec"]["subdomain"] = self.set["spec"]["serviceName"].clone();
        }
        pod
    }

    fn status(&self) -> Value {
        let count = |holds: &dyn Fn(&Value) -> bool| {
            i64::try_from(self.pods.values().filter(|pod| holds(pod)).count()).unwrap_or(i64::MAX)
        };
        let of = |revision: &Revision| {
            let name = revision.name().to_owned();
            count(&move |pod| !object::deleting(pod) && revision_of(pod) == name)
        };
        let mut status = json!({
            "observedGeneration": object::generation(self.set),
            "replicas": self.pods.len(),
            "currentRevision": self.current.name(),
            "updateRevision": self.update.name(),
            "collisionCount": 0,
            "availableReplicas": count(&|pod| self.available(pod)),
        });
        object::count(&mut status, "readyReplicas", count(&pod::running_and_ready));
        object::count(&mut status, "currentReplicas", of(self.current));
        object::count(&mut status, "updatedReplicas", of(self.update));
        status
    }

    /// Once all Pods are of the next revision and ready, it is the current one.
    fn complete(&self, status: &mut Value) {
        let all = |counter: &str| object::int(&status[counter]) == object::int(&status["replicas"]);
        if self.set["spec"]["updateStrategy"]["type"] != "OnDelete"
            && all("updatedReplicas")
            && all("readyReplicas")
        {
            status["currentRevision"] = status["updateRevision"].clone();
            status["currentReplicas"] = json!(object::int(&status["updatedReplicas"]));
        }
    }
}
