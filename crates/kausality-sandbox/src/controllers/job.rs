//! The Job controller: Pods until enough of them have succeeded.
//!
//! Pods carry a finalizer until they have been counted. The uid of an ended Pod goes into the status first, then its
//! finalizer goes, then its uid becomes a number: so none is ever counted twice or missed, whatever happens between.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde_json::{Value, json};

use super::{
    Cache, Change, Controller, JOBS, Key, Outcome, PODS, Refusal, Time, Watched, Write,
    conditions::{self, Condition},
    expectations::Expectations,
    object, pod,
};

mod ending;

use ending::Ending;

/// The finalizer of Pods that have not been counted.
const TRACKING: &str = "batch.kubernetes.io/job-tracking";

/// The Job controller.
#[derive(Debug, Default)]
pub struct Jobs {
    expectations: Expectations,
    /// The uids of Jobs that are gone, or that nobody has seen, and whose Pods may still wait to be counted.
    gone: BTreeMap<Key, BTreeSet<String>>,
}

impl Controller for Jobs {
    fn name(&self) -> &str {
        "job-controller"
    }

    fn watches(&self) -> Watched {
        Watched::These(vec![JOBS.clone(), PODS.clone()])
    }

    fn keys(&mut self, cache: &Cache, change: &Change) -> Vec<Key> {
        if change.resource == PODS {
            let keys = self.expectations.observe(&JOBS, cache, change);
            let owner = change.after.as_deref().filter(|pod| tracked(pod)).and_then(object::controller);
            if let (Some(owner), Some(key)) = (owner, keys.last())
                && cache.at(key).is_none_or(|job| object::uid(job) != owner.uid())
            {
                self.gone.entry(key.clone()).or_default().insert(owner.uid().to_owned());
            }
            return keys;
        }
        if change.resource != JOBS {
            return Vec::new();
        }
        let key = change.key();
        if change.after.is_none() {
            self.expectations.forget(&key);
            self.gone.entry(key.clone()).or_default().insert(object::uid(change.object()).to_owned());
        }
        vec![key]
    }

    fn sync(&mut self, cache: &Cache, key: &Key, now: Time) -> Outcome {
        let job = cache.at(key);
        let mut writes = self.orphans(cache, key);
        let Some(job) = job else {
            self.expectations.forget(key);
            return Outcome::writes(writes);
        };
        let pods: Vec<_> = cache.owned(&PODS, object::uid(job)).collect();
        if is_finished(job) {
            let tracked = pods.iter().filter(|pod| tracked(pod));
            writes.extend(tracked.map(|pod| Write::remove_finalizer(&PODS, pod, TRACKING)));
            return Outcome::writes(writes);
        }
        let pass = Pass::new(job, &pods, now);
        let mut active = pass.active.len();
        if self.expectations.satisfied(key, now) {
            let moves = pass.moves();
            self.expectations.expect(key, &moves.writes, now);
            active = moves.active;
            writes.extend(moves.writes);
        } else {
            active = active.max(usize::try_from(object::int(&job["status"]["active"])).unwrap_or_default());
        }
        writes.extend(pass.releases());
        let status = pass.status(active);
        if status != job["status"] {
            writes.push(Write::update_status(&JOBS, object::with_status(job, status)));
        }
        Outcome { writes, again: pass.deadline().filter(|at| *at > now), ..Outcome::default() }
    }

    fn refused(&mut self, key: &Key, undone: &[Write], _: &Refusal) {
        self.expectations.undone(key, undone);
    }
}

impl Jobs {
    /// Takes the finalizer off Pods whose Job is gone, so that they can go too.
    fn orphans(&mut self, cache: &Cache, key: &Key) -> Vec<Write> {
        let Some(uids) = self.gone.get_mut(key) else { return Vec::new() };
        let mut writes = Vec::new();
        uids.retain(|uid| {
            if cache.find(uid).is_some() {
                return false;
            }
            let before = writes.len();
            let pods = cache.owned(&PODS, uid).filter(|pod| tracked(pod));
            writes.extend(pods.map(|pod| Write::remove_finalizer(&PODS, pod, TRACKING)));
            writes.len() > before
        });
        if uids.is_empty() {
            self.gone.remove(key);
        }
        writes
    }
}

/// Whether a Job has ended, well or badly.
pub(super) fn is_finished(job: &Value) -> bool {
    conditions::holds(&job["status"], "Complete") || conditions::holds(&job["status"], "Failed")
}

fn tracked(pod: &Value) -> bool {
    object::finalizers(pod).any(|it| it == TRACKING)
}

/// One pass over a Job that has not ended.
struct Pass<'a> {
    job: &'a Value,
    now: Time,
    active: Vec<&'a Value>,
    terminating: i64,
    ready: i64,
    /// Ended Pods that are in the status, and must lose their finalizer.
    release: Vec<&'a Value>,
    succeeded: Tally,
    failed: Tally,
    ending: Option<Ending>,
}

/// How many Pods have ended in one way.
#[derive(Default)]
struct Tally {
    /// Those that lost their finalizer.
    counted: i64,
    /// The uids of those that did not.
    uncounted: BTreeSet<String>,
}

impl Tally {
    fn of(status: &Value, field: &str) -> Self {
        let uncounted = object::items(&status["uncountedTerminatedPods"][field]).iter();
        let uncounted = uncounted.map(|uid| object::text(uid).to_owned()).collect();
        Self { counted: object::int(&status[field]), uncounted }
    }

    /// Counts those that are no longer tracked.
    fn settle(&mut self, tracked: &BTreeSet<&str>) {
        let before = self.uncounted.len();
        self.uncounted.retain(|uid| tracked.contains(uid.as_str()));
        self.counted += i64::try_from(before - self.uncounted.len()).unwrap_or_default();
    }

    fn total(&self) -> i64 {
        self.counted + i64::try_from(self.uncounted.len()).unwrap_or_default()
    }
}

/// What is to be done to the Pods, and how many are active after it.
struct Moves {
    writes: Vec<Write>,
    active: usize,
}

impl<'a> Pass<'a> {
    fn new(job: &'a Value, pods: &[&'a Arc<Value>], now: Time) -> Self {
        let status = &job["status"];
        let (mut succeeded, mut failed) = (Tally::of(status, "succeeded"), Tally::of(status, "failed"));
        let mut release = Vec::new();
        let tracked_pods = || pods.iter().map(|pod| &***pod).filter(|pod| tracked(pod));
        let uids: BTreeSet<_> = tracked_pods().map(object::uid).collect();
        succeeded.settle(&uids);
        failed.settle(&uids);
        for pod in tracked_pods() {
            let uid = object::uid(pod);
            if succeeded.uncounted.contains(uid) || failed.uncounted.contains(uid) {
                release.push(pod);
            } else if pod::succeeded(pod) {
                succeeded.uncounted.insert(uid.to_owned());
            } else if object::deleting(pod) && job["spec"]["suspend"] == true {
                release.push(pod);
            } else if pod::failed(pod) || object::deleting(pod) {
                failed.uncounted.insert(uid.to_owned());
            }
        }
        let all = || pods.iter().map(|pod| &***pod);
        let active: Vec<_> = all().filter(|pod| pod::active(pod)).collect();
        let ready = active.iter().filter(|pod| pod::ready(pod)).count();
        let terminating = all().filter(|pod| object::deleting(pod) && !pod::finished(pod)).count();
        let ending = Ending::of(job, &succeeded, &failed, active.len(), now);
        Self {
            job,
            now,
            ready: i64::try_from(ready).unwrap_or_default(),
            terminating: i64::try_from(terminating).unwrap_or_default(),
            active,
            release,
            succeeded,
            failed,
            ending,
        }
    }

    fn suspended(&self) -> bool {
        self.job["spec"]["suspend"] == true
    }

    /// When it has run for too long.
    fn deadline(&self) -> Option<Time> {
        ending::deadline(self.job)
    }

    /// How many Pods there should be.
    fn wanted(&self) -> usize {
        let parallelism = object::int_or(&self.job["spec"]["parallelism"], 1);
        let wanted = match ending::completions(self.job) {
            _ if self.ending.is_some() || self.suspended() || object::deleting(self.job) => 0,
            Some(completions) => parallelism.min(completions - self.succeeded.total()),
            None if self.succeeded.total() > 0 => return self.active.len(),
            None => parallelism,
        };
        usize::try_from(wanted).unwrap_or_default()
    }

    fn moves(&self) -> Moves {
        let (active, wanted) = (self.active.len(), self.wanted());
        if object::deleting(self.job) {
            return Moves { writes: Vec::new(), active };
        }
        let pod = || Write::create(&PODS, self.pod());
        let surplus =
            pod::in_deletion_order(self.active.clone()).into_iter().take(active.saturating_sub(wanted));
        let created = (active..wanted).map(|_| pod());
        let deleted = surplus.map(|pod| Write::delete(&PODS, pod, None));
        Moves { writes: deleted.chain(created).collect(), active: wanted }
    }

    fn pod(&self) -> Value {
        let mut pod = pod::from_template(&self.job["spec"]["template"], &JOBS, self.job);
        let (name, uid) = (object::name(self.job), object::uid(self.job));
        let labels = object::entry(&mut pod["metadata"], "labels");
        for (key, value) in [("job-name", name), ("controller-uid", uid)] {
            labels[key] = json!(value);
            labels[format!("batch.kubernetes.io/{key}")] = json!(value);
        }
        match pod["metadata"]["finalizers"].as_array_mut() {
            Some(finalizers) => finalizers.push(json!(TRACKING)),
            None => pod["metadata"]["finalizers"] = json!([TRACKING]),
        }
        pod
    }

    fn releases(&self) -> impl Iterator<Item = Write> {
        self.release.iter().map(|pod| Write::remove_finalizer(&PODS, pod, TRACKING))
    }

    fn status(&self, active: usize) -> Value {
        let held = &self.job["status"];
        let mut uncounted = json!({});
        for (field, tally) in [("succeeded", &self.succeeded), ("failed", &self.failed)] {
            if !tally.uncounted.is_empty() {
                uncounted[field] = json!(tally.uncounted);
            }
        }
        let mut status = json!({
            "ready": self.ready, "terminating": self.terminating, "uncountedTerminatedPods": uncounted
        });
        object::count(&mut status, "active", i64::try_from(active).unwrap_or_default());
        object::count(&mut status, "succeeded", self.succeeded.counted);
        object::count(&mut status, "failed", self.failed.counted);
        for field in ["startTime", "conditions"] {
            if !held[field].is_null() {
                status[field] = held[field].clone();
            }
        }
        self.tell_suspension(&mut status);
        if let Some(ending) = &self.ending {
            let settled = active == 0
                && self.terminating == 0
                && self.succeeded.uncounted.is_empty()
                && self.failed.uncounted.is_empty();
            ending.tell(&mut status, settled, self.now);
        }
        status
    }

    fn tell_suspension(&self, status: &mut Value) {
        let told = conditions::holds(status, "Suspended");
        let (state, reason, message) = match (self.suspended(), told) {
            (true, false) => ("True", "JobSuspended", "Job suspended"),
            (false, true) => ("False", "JobResumed", "Job resumed"),
            _ => ("", "", ""),
        };
        if !state.is_empty() {
            let condition =
                Condition { kind: "Suspended", status: state, reason, message: message.to_owned() };
            conditions::set_plain(status, &condition, self.now);
        }
        if self.suspended() {
            if let Some(fields) = status.as_object_mut() {
                fields.remove("startTime");
            }
        } else if status["startTime"].is_null() {
            status["startTime"] = json!(self.now.rfc3339());
        }
    }
}
