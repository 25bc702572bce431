//! Faults of what makes Pods: how many, and how they are replaced.

use serde_json::{Value, json};

use crate::controllers::Schedule;
use crate::kinds::Definition;
use crate::metadata;
use crate::status::Cause;

const NOT_NEGATIVE: &str = "must be greater than or equal to 0";

/// Faults of a Deployment, ReplicaSet, StatefulSet or DaemonSet, except for its selector and its template.
pub(super) fn faults(definition: &Definition, spec: &Value) -> Vec<Cause> {
    let mut causes = not_negative(spec, &["replicas", "minReadySeconds"]);
    // Of a StatefulSet it is not looked at.
    if definition.kind != "StatefulSet" {
        causes.extend(not_negative(spec, &["revisionHistoryLimit"]));
    }
    causes.extend(strategy(definition, spec));
    let policy = spec["template"]["spec"]["restartPolicy"].as_str().unwrap_or("Always");
    if policy != "Always" {
        let at = "spec.template.spec.restartPolicy";
        causes.push(Cause::unsupported(at, &json!(policy), &["Always".to_owned()]));
    }
    if definition.kind == "Deployment" {
        let deadline = &spec["progressDeadlineSeconds"];
        let ready = spec["minReadySeconds"].as_i64().unwrap_or(0);
        if deadline.as_i64().is_some_and(|deadline| deadline <= ready) {
            let why = "must be greater than minReadySeconds";
            causes.push(Cause::invalid("spec.progressDeadlineSeconds", deadline, why));
        }
    }
    causes
}

/// Faults of the spec of a Job.
pub(super) fn job(spec: &Value) -> Vec<Cause> {
    let counts =
        ["parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished"];
    let mut causes = not_negative(spec, &counts);
    causes.extend(restart_policy(spec, "spec"));
    causes
}

/// Faults of a CronJob, except for its template.
pub(super) fn cron_job(object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let spec = &object["spec"];
    // A time is added to it for the names of Jobs.
    if metadata::name(object).len() > 52 {
        let why = "must be no more than 52 characters";
        causes.push(Cause::invalid("metadata.name", &object["metadata"]["name"], why));
    }
    let schedule = spec["schedule"].as_str().unwrap_or_default();
    if schedule.is_empty() {
        causes.push(Cause::required("spec.schedule", ""));
    } else if !Schedule::is_one(schedule) {
        let why = format!("it is no schedule: {schedule}");
        causes.push(Cause::invalid("spec.schedule", &spec["schedule"], &why));
    }
    let policies = ["Allow", "Forbid", "Replace"];
    if !policies.iter().any(|policy| spec["concurrencyPolicy"] == *policy) {
        let known = policies.map(str::to_owned);
        causes.push(Cause::unsupported("spec.concurrencyPolicy", &spec["concurrencyPolicy"], &known));
    }
    let counts = ["startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"];
    causes.extend(not_negative(spec, &counts));
    causes.extend(restart_policy(&spec["jobTemplate"]["spec"], "spec.jobTemplate.spec"));
    causes
}

/// Jobs end, and their Pods with them.
fn restart_policy(job: &Value, path: &str) -> Option<Cause> {
    let at = format!("{path}.template.spec.restartPolicy");
    let policy = &job["template"]["spec"]["restartPolicy"];
    match policy.as_str().unwrap_or("Always") {
        "OnFailure" | "Never" => None,
        "Always" => Some(Cause::required(at, "valid values: \"OnFailure\", \"Never\"")),
        _ => Some(Cause::unsupported(at, policy, &["OnFailure", "Never"].map(str::to_owned))),
    }
}

fn not_negative(spec: &Value, keys: &[&str]) -> Vec<Cause> {
    let negative = keys.iter().filter(|key| spec[**key].as_i64().is_some_and(|number| number < 0));
    negative.map(|key| Cause::invalid(format!("spec.{key}"), &spec[*key], NOT_NEGATIVE)).collect()
}

/// A strategy is known, has no settings of another, and gets somewhere.
fn strategy(definition: &Definition, spec: &Value) -> Vec<Cause> {
    let (field, kinds) = match definition.kind.as_str() {
        "Deployment" => ("strategy", ["Recreate", "RollingUpdate"]),
        "DaemonSet" | "StatefulSet" => ("updateStrategy", ["RollingUpdate", "OnDelete"]),
        _ => return Vec::new(),
    };
    let (strategy, at) = (&spec[field], format!("spec.{field}"));
    let rolling = strategy.get("rollingUpdate");
    let rolling_at = format!("{at}.rollingUpdate");
    match (definition.kind.as_str(), strategy["type"].as_str().unwrap_or_default(), rolling) {
        ("Deployment", "Recreate", Some(_)) => {
            let why = "may not be specified when strategy `type` is 'Recreate'";
            vec![Cause::forbidden(rolling_at, why)]
        }
        ("StatefulSet", "OnDelete", Some(rolling)) => {
            let why = "only allowed for updateStrategy 'RollingUpdate'";
            vec![Cause::invalid(rolling_at, rolling, why)]
        }
        (kind @ ("Deployment" | "DaemonSet"), "RollingUpdate", Some(rolling)) => {
            pace(kind == "Deployment", rolling, &rolling_at)
        }
        ("StatefulSet", "", _) => Vec::new(),
        (_, known, _) if kinds.contains(&known) => Vec::new(),
        // A StatefulSet says only that it is wrong.
        ("StatefulSet", ..) => vec![Cause::invalid(at, strategy, "must be 'RollingUpdate' or 'OnDelete'")],
        _ => vec![Cause::unsupported(at, strategy, &kinds.map(str::to_owned))],
    }
}

/// How many Pods may be too many or too few in between.
fn pace(both: bool, rolling: &Value, at: &str) -> Vec<Cause> {
    let mut causes = Vec::new();
    let (less, more) = (&rolling["maxUnavailable"], &rolling["maxSurge"]);
    let (less_at, more_at) = (format!("{at}.maxUnavailable"), format!("{at}.maxSurge"));
    for (value, at) in [(less, &less_at), (more, &more_at)] {
        let percent = value.as_str().map(percent);
        if percent == Some(None) {
            let why = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', \
                regex used for validation is '[0-9]+%')";
            causes.push(Cause::invalid(at, value, why));
        } else if value.as_i64().is_some_and(|number| number < 0) {
            causes.push(Cause::invalid(at, value, NOT_NEGATIVE));
        } else if (at == &less_at || !both) && percent.flatten().is_some_and(|percent| percent > 100) {
            causes.push(Cause::invalid(at, value, "must not be greater than 100%"));
        }
    }
    let number = |value: &Value| value.as_i64().or_else(|| percent(value.as_str()?)).unwrap_or(0);
    match (number(less) != 0, number(more) != 0) {
        (false, false) if both => {
            causes.push(Cause::invalid(less_at, less, "may not be 0 when `maxSurge` is 0"));
        }
        (false, false) => causes.push(Cause::required(less_at, "cannot be 0 when maxSurge is 0")),
        (true, true) if !both => {
            let why = "may not be set when maxUnavailable is non-zero";
            causes.push(Cause::invalid(more_at, more, why));
        }
        _ => {}
    }
    causes
}

fn percent(text: &str) -> Option<i64> {
    let digits = text.strip_suffix('%')?;
    digits.chars().all(|digit| digit.is_ascii_digit()).then(|| digits.parse().ok()).flatten()
}
