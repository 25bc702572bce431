//! The Deployment controller: a ReplicaSet for each template, and Pods moved from the old ones to the new one.
//!
//! A sync is one pass of [`Rollout`], which works on copies: what it has decided to write is in `writes`, what it knows
//! stays as the cache showed it. So a second write to an object in one pass carries the version that the first one
//! outdated, and ends in a conflict, exactly as with the real controller.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Value, json};

use super::{
    Action, Cache, Change, Controller, DEPLOYMENTS, Key, Outcome, PODS, REPLICA_SETS, Refusal, Time, Watched,
    Write,
    conditions::{self, Condition},
    object,
};

mod limits;
mod scale;
mod sets;
mod status;

use limits::Limits;
use sets::Set;

/// The condition that tells how far a rollout is.
const PROGRESSING: &str = "Progressing";
/// The annotation with the number of a rollout.
const REVISION: &str = "deployment.kubernetes.io/revision";

/// The Deployment controller.
#[derive(Debug, Default)]
pub struct Deployments {
    /// Why a ReplicaSet could not be created at the last attempt.
    failures: BTreeMap<Key, String>,
}

impl Controller for Deployments {
    fn name(&self) -> &str {
        "deployment-controller"
    }

    fn watches(&self) -> Watched {
        Watched::These(vec![DEPLOYMENTS.clone(), REPLICA_SETS.clone(), PODS.clone()])
    }

    fn keys(&mut self, cache: &Cache, change: &Change) -> Vec<Key> {
        if change.resource == DEPLOYMENTS {
            return vec![change.key()];
        }
        let owner = |it: &Arc<Value>, resource| {
            let owner = object::controller(it)?;
            (owner.kind() == resource).then(|| (object::namespace(it).to_owned(), owner.name().to_owned()))
        };
        let mut keys = Vec::new();
        if change.resource == REPLICA_SETS {
            for it in [&change.before, &change.after].into_iter().flatten() {
                keys.extend(
                    owner(it, "Deployment").map(|(namespace, name)| DEPLOYMENTS.key(&namespace, &name)),
                );
            }
            keys.dedup();
        }
        // Only a Deployment that recreates its Pods waits for the last of them to go.
        if change.resource == PODS
            && let (Some(pod), None) = (&change.before, &change.after)
            && let Some((namespace, name)) = owner(pod, "ReplicaSet")
            && let Some((namespace, name)) =
                cache.get(&REPLICA_SETS, &namespace, &name).and_then(|set| owner(set, "Deployment"))
            && cache.get(&DEPLOYMENTS, &namespace, &name).is_some_and(|it| recreates(it))
        {
            keys.push(DEPLOYMENTS.key(&namespace, &name));
        }
        keys
    }

    fn sync(&mut self, cache: &Cache, key: &Key, now: Time) -> Outcome {
        let failure = self.failures.remove(key);
        let Some(deployment) = cache.at(key) else { return Outcome::default() };
        let mut rollout = Rollout::new(cache, deployment, now);
        rollout.failure = failure;
        rollout.sync();
        Outcome { writes: rollout.writes, again: rollout.again, ..Outcome::default() }
    }

    fn refused(&mut self, key: &Key, undone: &[Write], refusal: &Refusal) {
        let create = undone.first().is_some_and(|write| matches!(write.action, Action::Create(_)));
        // One that is there already is only not yet in the cache.
        if create && *refusal != Refusal::AlreadyExists {
            self.failures.insert(key.clone(), refusal.to_string());
        }
    }
}

/// Whether all old Pods go before the first new one comes.
fn recreates(deployment: &Value) -> bool {
    deployment["spec"]["strategy"]["type"] == "Recreate"
}

/// One pass over a Deployment.
struct Rollout<'a> {
    cache: &'a Cache,
    /// Changed as the pass goes on: its status, and its revision.
    deployment: Value,
    limits: Limits,
    /// The oldest first.
    sets: Vec<Set>,
    now: Time,
    /// Why a ReplicaSet could not be created at the last attempt.
    failure: Option<String>,
    writes: Vec<Write>,
    again: Option<Time>,
}

/// The ReplicaSet of the present template, and all others.
struct Sides {
    new: Option<Set>,
    old: Vec<Set>,
}

impl Sides {
    fn all(&self) -> impl Iterator<Item = &Set> + Clone {
        self.old.iter().chain(&self.new)
    }
}

impl<'a> Rollout<'a> {
    fn new(cache: &'a Cache, deployment: &Value, now: Time) -> Self {
        let mut sets: Vec<_> = cache
            .owned(&REPLICA_SETS, object::uid(deployment))
            .map(|set| Set::new(Arc::clone(set)))
            .collect();
        sets.sort_by(|a, b| (a.created, a.name()).cmp(&(b.created, b.name())));
        let (deployment, limits) = (deployment.clone(), Limits::of(deployment));
        Self { cache, deployment, limits, sets, now, failure: None, writes: Vec::new(), again: None }
    }

    fn sync(&mut self) {
        if object::deleting(&self.deployment) {
            let sides = self.sides(false);
            return self.write_status(&sides);
        }
        self.note_pause();
        if self.deployment["spec"]["paused"] == true {
            return self.scale_only();
        }
        if self.is_scaled() {
            return self.scale_only();
        }
        if recreates(&self.deployment) { self.recreate() } else { self.roll() }
    }

    /// Moves Pods from the old ReplicaSets to the new one, one side at a time.
    fn roll(&mut self) {
        let sides = self.sides(true);
        if self.scale_new(&sides) || self.scale_old(&sides) {
            return self.write_progress(&sides);
        }
        if self.is_complete() {
            self.clean_up(&sides.old);
        }
        self.write_progress(&sides);
    }

    /// Ends all old Pods, and only then starts new ones.
    fn recreate(&mut self) {
        let mut sides = self.sides(false);
        let mut scaled = false;
        for set in sides.old.iter().filter(|set| set.replicas > 0) {
            scaled |= self.scale(set, 0);
        }
        if scaled || self.old_pods_run(&sides) {
            return self.write_progress(&sides);
        }
        if sides.new.is_none() {
            sides = self.sides(true);
        }
        if let Some(new) = &sides.new {
            self.scale(new, self.limits.replicas);
        }
        if self.is_complete() {
            self.clean_up(&sides.old);
        }
        self.write_progress(&sides);
    }

    fn old_pods_run(&self, sides: &Sides) -> bool {
        let runs = |set: &Set| {
            let mut pods = self.cache.owned(&PODS, object::uid(&set.object));
            set.status("replicas") > 0 || pods.any(|pod| !super::pod::finished(pod))
        };
        sides.old.iter().any(runs)
    }

    /// Follows a change of the number of replicas, or whatever a paused Deployment still follows.
    fn scale_only(&mut self) {
        let sides = self.sides(false);
        self.scale_all(&sides);
        if self.deployment["spec"]["paused"] == true {
            self.clean_up(&sides.old);
        }
        self.write_status(&sides);
    }

    /// Deletes the oldest ReplicaSets, beyond those that are kept to return to.
    fn clean_up(&mut self, old: &[Set]) {
        let keep = object::int_or(&self.deployment["spec"]["revisionHistoryLimit"], 10);
        let keep = usize::try_from(keep).unwrap_or_default();
        let mut old: Vec<_> = old.iter().filter(|set| !object::deleting(&set.object)).collect();
        old.sort_by_key(|set| set.revision());
        let surplus = old.len().saturating_sub(keep);
        for set in old.into_iter().take(surplus) {
            let idle = set.replicas == 0 && set.status("replicas") == 0;
            if idle && object::generation(&set.object) <= set.status("observedGeneration") {
                self.writes.push(Write::delete(&REPLICA_SETS, &set.object, None));
            }
        }
    }

    /// Tells in the status that the Deployment was paused or resumed.
    fn note_pause(&mut self) {
        let reason = conditions::reason(&self.deployment["status"], PROGRESSING);
        let (paused, noted) = (self.deployment["spec"]["paused"] == true, reason == "DeploymentPaused");
        if reason == "ProgressDeadlineExceeded" || paused == noted {
            return;
        }
        let (reason, message) = if paused {
            ("DeploymentPaused", "Deployment is paused")
        } else {
            ("DeploymentResumed", "Deployment is resumed")
        };
        let condition =
            Condition { kind: PROGRESSING, status: "Unknown", reason, message: message.to_owned() };
        conditions::set(object::entry(&mut self.deployment, "status"), &condition, self.now);
        self.push_status();
    }

    /// Writes the Deployment's status as it is in this pass.
    fn push_status(&mut self) {
        self.writes.push(Write::update_status(&DEPLOYMENTS, self.deployment.clone()));
    }

    /// The new and the old ReplicaSets. On the way, the new one gets the Deployment's annotations and its revision; if
    /// there is none, it may be created.
    fn sides(&mut self, create: bool) -> Sides {
        let new = self.sets.iter().position(|set| set.has_template_of(&self.deployment));
        let old: Vec<_> = self
            .sets
            .iter()
            .enumerate()
            .filter(|(at, _)| Some(*at) != new)
            .map(|(_, set)| set.clone())
            .collect();
        let revision = old.iter().map(Set::revision).max().unwrap_or_default() + 1;
        let new = match new.and_then(|at| self.sets.get(at)).cloned() {
            Some(new) => Some(self.adjust(new, revision)),
            None if create => Some(self.create(&old, revision)),
            None => None,
        };
        Sides { new, old }
    }

    /// Brings the annotations of the new ReplicaSet up to date, or else the Deployment's revision.
    fn adjust(&mut self, new: Set, revision: i64) -> Set {
        let mut copy = (*new.object).clone();
        let mut changed = sets::copy_annotations(&self.deployment, &mut copy);
        changed |= sets::set_revision(&mut copy, revision);
        let min_ready = object::int(&self.deployment["spec"]["minReadySeconds"]);
        if object::int(&copy["spec"]["minReadySeconds"]) != min_ready {
            copy["spec"]["minReadySeconds"] = json!(min_ready);
            changed = true;
        }
        if changed {
            self.writes.push(Write::update(&REPLICA_SETS, copy));
            return new;
        }
        let mut told = self.take_revision(new.revision());
        if conditions::find(&self.deployment["status"], PROGRESSING).is_none() {
            let message = format!("Found new replica set \"{}\"", new.name());
            told |= self.progress("FoundNewReplicaSet", message);
        }
        if told {
            self.push_status();
        }
        new
    }

    /// Creates the ReplicaSet of the present template.
    fn create(&mut self, old: &[Set], revision: i64) -> Set {
        let running = old.iter().map(|set| set.replicas).sum();
        let replicas = if recreates(&self.deployment) {
            self.limits.replicas
        } else {
            self.limits.new_replicas(0, running)
        };
        // A failure is told before the same attempt fails again.
        if let Some(message) = self.failure.take() {
            let reason = "ReplicaSetCreateError";
            let condition = Condition { kind: PROGRESSING, status: "False", reason, message };
            if conditions::set(object::entry(&mut self.deployment, "status"), &condition, self.now) {
                self.push_status();
            }
        }
        let set = sets::create(&self.deployment, replicas, revision, self.limits);
        self.writes.push(Write::create(&REPLICA_SETS, set.clone()));
        let set = Set::new(Arc::new(set));
        let mut told =
            self.progress("NewReplicaSetCreated", format!("Created new replica set \"{}\"", set.name()));
        told |= self.take_revision(revision);
        if told {
            self.push_status();
        }
        set
    }

    fn progress(&mut self, reason: &str, message: String) -> bool {
        let condition = Condition { kind: PROGRESSING, status: "True", reason, message };
        conditions::set(object::entry(&mut self.deployment, "status"), &condition, self.now)
    }

    fn take_revision(&mut self, revision: i64) -> bool {
        let revision = revision.to_string();
        let changed = object::annotation(&self.deployment, REVISION) != Some(&revision);
        if changed {
            object::annotate(&mut self.deployment, REVISION, revision);
        }
        changed
    }
}
