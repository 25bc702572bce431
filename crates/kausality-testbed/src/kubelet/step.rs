//! What happens next to a Pod. No I/O.

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

/// The next thing to do for a Pod. Each one changes the Pod so that another one, or none, is next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Give it to the node.
    Bind,
    /// Say that it is running and ready.
    Run,
    /// Say that it came to its end, and well.
    Succeed,
    /// End its deletion, for which the API server waits until the containers have stopped.
    Finish,
}

pub(super) fn next(pod: &Pod) -> Option<Step> {
    let metadata = &pod.metadata;
    if metadata.deletion_timestamp.is_some() {
        // 0 is what `Finish` set: only finalizers hold it back.
        return (metadata.deletion_grace_period_seconds != Some(0)).then_some(Step::Finish);
    }
    let spec = pod.spec.as_ref()?;
    if spec.node_name.as_deref().unwrap_or_default().is_empty() {
        return Some(Step::Bind);
    }
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    match phase.unwrap_or("Pending") {
        "Pending" => Some(Step::Run),
        "Running" if !restarts(pod) => Some(Step::Succeed),
        _ => None,
    }
}

/// The status of a Pod whose containers run and are ready.
pub(super) fn running(pod: &Pod, now: &Time, address: &str) -> Value {
    let state = json!({ "running": { "startedAt": now } });
    json!({
        "phase": "Running",
        "startTime": now,
        "podIP": address,
        "podIPs": [{ "ip": address }],
        "conditions": conditions("True", now),
        "containerStatuses": containers(pod, true, &state),
    })
}

/// The status of a Pod whose containers ended with exit code 0.
pub(super) fn succeeded(pod: &Pod, now: &Time) -> Value {
    let state = json!({ "terminated": { "exitCode": 0, "reason": "Completed", "finishedAt": now } });
    json!({
        "phase": "Succeeded",
        "conditions": conditions("False", now),
        "containerStatuses": containers(pod, false, &state),
    })
}

/// Whether containers that end are started again, for ever.
fn restarts(pod: &Pod) -> bool {
    let policy = pod.spec.as_ref().and_then(|spec| spec.restart_policy.as_deref());
    policy.unwrap_or("Always") == "Always"
}

fn conditions(ready: &str, now: &Time) -> Value {
    [("Initialized", "True"), ("ContainersReady", ready), ("Ready", ready)]
        .into_iter()
        .map(|(kind, status)| json!({ "type": kind, "status": status, "lastTransitionTime": now }))
        .collect()
}

/// `state` takes the place of any other state: `null` removes a key in a patch.
fn containers(pod: &Pod, ready: bool, state: &Value) -> Value {
    let (running, terminated) = (&state["running"], &state["terminated"]);
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    containers
        .map(|container| {
            let image = container.image.as_deref().unwrap_or_default();
            json!({
                "name": container.name,
                "image": image,
                "imageID": image,
                "ready": ready,
                "started": ready,
                "restartCount": 0,
                "state": { "running": running, "terminated": terminated, "waiting": null },
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(metadata: Value, spec: Value, phase: Option<&str>) -> Pod {
        let mut spec = spec;
        spec["containers"] = json!([{ "name": "main", "image": "web:1" }]);
        let pod = json!({ "metadata": metadata, "spec": spec, "status": { "phase": phase } });
        serde_json::from_value(pod).unwrap()
    }

    fn now() -> Time {
        serde_json::from_value(json!("2026-01-02T03:04:05Z")).unwrap()
    }

    #[test]
    fn a_pod_of_a_deployment_is_bound_and_runs() {
        let check = |spec, phase| next(&pod(json!({}), spec, phase));
        assert_eq!(check(json!({}), None), Some(Step::Bind));
        assert_eq!(check(json!({ "nodeName": "" }), Some("Pending")), Some(Step::Bind));
        assert_eq!(check(json!({ "nodeName": "n" }), None), Some(Step::Run));
        assert_eq!(check(json!({ "nodeName": "n" }), Some("Pending")), Some(Step::Run));
        assert_eq!(check(json!({ "nodeName": "n", "restartPolicy": "Always" }), Some("Running")), None);
    }

    #[test]
    fn a_pod_of_a_job_runs_and_then_succeeds() {
        for policy in ["Never", "OnFailure"] {
            let check =
                |phase| next(&pod(json!({}), json!({ "nodeName": "n", "restartPolicy": policy }), phase));
            assert_eq!(check(Some("Pending")), Some(Step::Run));
            assert_eq!(check(Some("Running")), Some(Step::Succeed));
            assert_eq!(check(Some("Succeeded")), None);
            assert_eq!(check(Some("Failed")), None);
        }
    }

    #[test]
    fn a_deletion_is_finished_once_whatever_the_phase() {
        for phase in [None, Some("Pending"), Some("Running"), Some("Succeeded")] {
            let deleted = |grace: i64| json!({ "deletionTimestamp": "2026-01-02T03:04:05Z", "deletionGracePeriodSeconds": grace });
            assert_eq!(next(&pod(deleted(30), json!({ "nodeName": "n" }), phase)), Some(Step::Finish));
            assert_eq!(next(&pod(deleted(0), json!({ "nodeName": "n" }), phase)), None);
        }
    }

    #[test]
    fn each_status_leads_to_its_phase_and_readiness() {
        let pod = pod(json!({}), json!({}), None);
        for (status, phase, ready) in [
            (running(&pod, &now(), "10.244.0.1"), "Running", "True"),
            (succeeded(&pod, &now()), "Succeeded", "False"),
        ] {
            assert_eq!(status["phase"], phase);
            let conditions = status["conditions"].as_array().unwrap();
            let found = conditions.iter().find(|condition| condition["type"] == "Ready").unwrap();
            assert_eq!(found["status"], ready);
            assert_eq!(status["containerStatuses"][0]["name"], "main");
        }
    }

    #[test]
    fn a_container_has_one_state() {
        let pod = pod(json!({}), json!({}), None);
        let state = |status: Value| status["containerStatuses"][0]["state"].clone();
        let (running, ended) = (state(running(&pod, &now(), "")), state(succeeded(&pod, &now())));
        assert!(running["running"].is_object() && running["terminated"].is_null(), "{running}");
        assert!(ended["terminated"].is_object() && ended["running"].is_null(), "{ended}");
    }
}
