//! How a Job ends.

use serde_json::{Value, json};

use super::{
    super::{
        Time,
        conditions::{self, Condition},
        object,
    },
    Tally,
};

/// Why a Job starts no more Pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// Enough Pods have succeeded.
    Reached,
    /// Too many have failed.
    TooManyFailures,
    /// It has run for too long.
    TooLate,
}

impl Ending {
    pub(super) fn of(
        job: &Value,
        succeeded: &Tally,
        failed: &Tally,
        active: usize,
        now: Time,
    ) -> Option<Self> {
        let reached = match completions(job) {
            Some(completions) => succeeded.total() >= completions,
            None => succeeded.total() > 0 && active == 0,
        };
        if failed.total() > object::int_or(&job["spec"]["backoffLimit"], 6) {
            Some(Self::TooManyFailures)
        } else if deadline(job).is_some_and(|deadline| deadline <= now) {
            Some(Self::TooLate)
        } else {
            reached.then_some(Self::Reached)
        }
    }

    /// Tells that it ends, and once all its Pods are counted, that it has ended.
    pub(super) fn tell(self, status: &mut Value, settled: bool, now: Time) {
        let (first, last, reason, message) = match self {
            Self::Reached => (
                "SuccessCriteriaMet",
                "Complete",
                "CompletionsReached",
                "Reached expected number of succeeded pods",
            ),
            Self::TooManyFailures => (
                "FailureTarget",
                "Failed",
                "BackoffLimitExceeded",
                "Job has reached the specified backoff limit",
            ),
            Self::TooLate => (
                "FailureTarget",
                "Failed",
                "DeadlineExceeded",
                "Job was active longer than specified deadline",
            ),
        };
        let condition = |kind| Condition { kind, status: "True", reason, message: message.to_owned() };
        conditions::set_plain(status, &condition(first), now);
        if settled {
            conditions::set_plain(status, &condition(last), now);
            if self == Self::Reached {
                status["completionTime"] = json!(now.rfc3339());
            }
        }
    }
}

/// How many Pods must succeed; none if one of several workers decides.
pub(super) fn completions(job: &Value) -> Option<i64> {
    let spec = &job["spec"];
    let default = if spec["parallelism"].is_null() { Some(1) } else { None };
    spec["completions"].as_i64().or(default)
}

/// When it has run for too long.
pub(super) fn deadline(job: &Value) -> Option<Time> {
    let seconds = u64::try_from(job["spec"]["activeDeadlineSeconds"].as_i64()?).unwrap_or_default();
    Some(object::moment(&job["status"]["startTime"])?.after_seconds(seconds))
}
