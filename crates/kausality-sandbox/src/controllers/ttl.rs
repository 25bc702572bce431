//! The TTL controller: Jobs that have ended go after the time they were given.

use serde_json::Value;

use super::{
    Cache, Change, Controller, JOBS, Key, Outcome, Propagation, Time, Watched, Write, conditions, job, object,
};

/// The controller that deletes Jobs some time after they have ended (`ttlSecondsAfterFinished`).
#[derive(Debug, Default)]
pub struct FinishedJobs {}

impl Controller for FinishedJobs {
    fn name(&self) -> &str {
        "ttl-after-finished-controller"
    }

    fn watches(&self) -> Watched {
        Watched::These(vec![JOBS.clone()])
    }

    fn keys(&mut self, _: &Cache, change: &Change) -> Vec<Key> {
        let ended = change.after.as_ref().filter(|it| change.resource == JOBS && expiry(it).is_some());
        ended.map(|job| JOBS.key_of(job)).into_iter().collect()
    }

    fn sync(&mut self, cache: &Cache, key: &Key, now: Time) -> Outcome {
        let Some((job, expiry)) = cache.at(key).and_then(|job| Some((job, expiry(job)?))) else {
            return Outcome::default();
        };
        if expiry > now {
            return Outcome { again: Some(expiry), ..Outcome::default() };
        }
        Outcome::writes(vec![Write::delete(&JOBS, job, Some(Propagation::Foreground))])
    }
}

/// When a Job that has ended goes, unless it is going.
fn expiry(job: &Value) -> Option<Time> {
    let seconds = u64::try_from(job["spec"]["ttlSecondsAfterFinished"].as_i64()?).unwrap_or_default();
    if !job::is_finished(job) || object::deleting(job) {
        return None;
    }
    let ended = ["Complete", "Failed"].into_iter().find_map(|kind| conditions::find(&job["status"], kind))?;
    Some(object::moment(&ended["lastTransitionTime"])?.after_seconds(seconds))
}
