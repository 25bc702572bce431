//! The CronJob controller: Jobs at the times of a schedule.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Value, json};

use super::{
    CRON_JOBS, Cache, Change, Controller, JOBS, Key, Outcome, Propagation, Time, Watched, Write, conditions,
    job, object,
};

mod schedule;

pub(crate) use schedule::Schedule;

/// The CronJob controller. Of the times that it missed, it makes up for the last one.
#[derive(Debug, Default)]
pub struct CronJobs {}

impl Controller for CronJobs {
    fn name(&self) -> &str {
        "cronjob-controller"
    }

    fn watches(&self) -> Watched {
        Watched::These(vec![CRON_JOBS.clone(), JOBS.clone()])
    }

    fn keys(&mut self, _: &Cache, change: &Change) -> Vec<Key> {
        if change.resource == CRON_JOBS {
            return vec![change.key()];
        }
        let job = change.object();
        let owner =
            object::controller(job).filter(|it| change.resource == JOBS && it.kind() == CRON_JOBS.kind);
        owner.map(|owner| CRON_JOBS.key(object::namespace(job), owner.name())).into_iter().collect()
    }

    fn sync(&mut self, cache: &Cache, key: &Key, now: Time) -> Outcome {
        let Some(cron) = cache.at(key) else { return Outcome::default() };
        let jobs: Vec<_> = cache.owned(&JOBS, object::uid(cron)).collect();
        let mut writes = surplus(cron, &jobs);
        let mut status = follow(cron, &jobs);
        let mut again = None;
        if !object::deleting(cron)
            && cron["spec"]["suspend"] != true
            && let Some(schedule) = Schedule::parse(object::text(&cron["spec"]["schedule"]))
        {
            again = schedule.next(now);
            if let Some(due) = due(cron, &schedule, now) {
                start(cron, &jobs, due, &mut writes, &mut status);
            }
        }
        if status != *object_or_empty(&cron["status"]) {
            writes.push(Write::update_status(&CRON_JOBS, object::with_status(cron, status)));
        }
        Outcome { writes, again, ..Outcome::default() }
    }
}

/// An absent status is an empty one.
fn object_or_empty(status: &Value) -> std::borrow::Cow<'_, Value> {
    if status.is_object() { std::borrow::Cow::Borrowed(status) } else { std::borrow::Cow::Owned(json!({})) }
}

/// The last time of the schedule for which no Job has been started.
fn due(cron: &Value, schedule: &Schedule, now: Time) -> Option<Time> {
    let last = object::moment(&cron["status"]["lastScheduleTime"]).unwrap_or_else(|| object::created(cron));
    let due = schedule.last(last, now)?;
    let patience = cron["spec"]["startingDeadlineSeconds"].as_u64();
    patience.is_none_or(|seconds| due.after_seconds(seconds) >= now).then_some(due)
}

/// Starts the Job of a time, as far as those that still run allow it.
fn start(cron: &Value, jobs: &[&Arc<Value>], due: Time, writes: &mut Vec<Write>, status: &mut Value) {
    let running: Vec<_> = jobs.iter().filter(|it| !job::is_finished(it)).collect();
    let name = format!("{}-{}", object::name(cron), due.minutes());
    let made = jobs.iter().any(|job| object::name(job) == name);
    match object::text(&cron["spec"]["concurrencyPolicy"]) {
        "Forbid" if !made && !running.is_empty() => return,
        "Replace" => {
            let others = running.iter().filter(|job| object::name(job) != name);
            writes.extend(others.map(|job| Write::delete(&JOBS, job, Some(Propagation::Background))));
        }
        _ => {}
    }
    if !made {
        writes.push(Write::create(&JOBS, job_of(cron, &name, due)));
    }
    status["lastScheduleTime"] = json!(due.rfc3339());
}

fn job_of(cron: &Value, name: &str, due: Time) -> Value {
    let template = &cron["spec"]["jobTemplate"];
    let mut metadata = json!({
        "name": name,
        "namespace": object::namespace(cron),
        "ownerReferences": object::owned_by(&CRON_JOBS, cron),
    });
    for field in ["labels", "annotations"] {
        if template["metadata"][field].is_object() {
            metadata[field] = template["metadata"][field].clone();
        }
    }
    object::entry(&mut metadata, "annotations")["batch.kubernetes.io/cronjob-scheduled-timestamp"] =
        json!(due.rfc3339());
    json!({ "apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": template["spec"] })
}

/// The status, with the Jobs that run and the last that succeeded.
fn follow(cron: &Value, jobs: &[&Arc<Value>]) -> Value {
    let mut status = object_or_empty(&cron["status"]).into_owned();
    let running = jobs.iter().filter(|it| !job::is_finished(it));
    let active: Vec<_> = running
        .map(|job| {
            json!({
                "apiVersion": "batch/v1", "kind": "Job", "namespace": object::namespace(job),
                "name": object::name(job), "uid": object::uid(job), "resourceVersion": object::version(job),
            })
        })
        .collect();
    // The version at which a Job was first seen stays.
    let held: BTreeMap<_, _> = object::items(&status["active"])
        .iter()
        .map(|it| (object::text(&it["uid"]).to_owned(), it.clone()))
        .collect();
    let active: Vec<_> =
        active.into_iter().map(|it| held.get(object::text(&it["uid"])).cloned().unwrap_or(it)).collect();
    if !active.is_empty() {
        status["active"] = Value::Array(active);
    } else if let Some(fields) = status.as_object_mut() {
        fields.remove("active");
    }
    let succeeded = jobs.iter().filter(|job| conditions::holds(&job["status"], "Complete"));
    let last = succeeded.filter_map(|job| job["status"]["completionTime"].as_str()).max();
    if let Some(last) = last.filter(|last| object::text(&status["lastSuccessfulTime"]) < *last) {
        status["lastSuccessfulTime"] = json!(last);
    }
    status
}

/// Deletions of Jobs that have ended, beyond those that are kept to be looked at.
fn surplus(cron: &Value, jobs: &[&Arc<Value>]) -> Vec<Write> {
    let mut writes = Vec::new();
    for (kind, limit, default) in
        [("Complete", "successfulJobsHistoryLimit", 3), ("Failed", "failedJobsHistoryLimit", 1)]
    {
        let ended = |job: &&&Arc<Value>| conditions::holds(&job["status"], kind) && !object::deleting(job);
        let mut ended: Vec<_> = jobs.iter().filter(ended).collect();
        ended.sort_by_key(|job| (object::moment(&job["status"]["startTime"]), object::name(job)));
        let keep = usize::try_from(object::int_or(&cron["spec"][limit], default)).unwrap_or_default();
        let surplus = ended.len().saturating_sub(keep);
        let surplus = ended.into_iter().take(surplus);
        writes.extend(surplus.map(|job| Write::delete(&JOBS, job, Some(Propagation::Background))));
    }
    writes
}
