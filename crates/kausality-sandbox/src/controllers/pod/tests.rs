use serde_json::json;

use super::*;
use crate::controllers::REPLICA_SETS;

fn pod(name: &str, phase: &str, ready_since: Option<&str>, created: &str) -> Value {
    let status = if ready_since.is_some() { "True" } else { "False" };
    let ready = json!({ "type": "Ready", "status": status, "lastTransitionTime": ready_since });
    json!({
        "metadata": { "name": name, "creationTimestamp": created },
        "status": { "phase": phase, "conditions": [ready] }
    })
}

#[test]
fn pods_that_are_less_far_and_younger_go_first() {
    let (early, late) = ("2026-11-15T08:00:00Z", "2026-11-15T09:00:00Z");
    let mut costly = pod("costly", "Running", Some(late), late);
    costly["metadata"]["annotations"] = json!({ "controller.kubernetes.io/pod-deletion-cost": "5" });
    let pods = [
        pod("old", "Running", Some(early), early),
        pod("ready-late", "Running", Some(late), early),
        pod("b-young", "Running", Some(early), late),
        pod("a-young", "Running", Some(early), late),
        costly,
        pod("unready", "Running", None, early),
        pod("pending", "Pending", None, early),
    ];
    let order: Vec<_> = in_deletion_order(pods.iter().collect()).into_iter().map(object::name).collect();
    assert_eq!(order, ["pending", "unready", "ready-late", "a-young", "b-young", "old", "costly"]);
}

#[test]
fn a_pod_is_available_some_time_after_it_is_ready() {
    let pod = pod("a", "Running", Some("2026-11-15T08:00:00Z"), "2026-11-15T08:00:00Z");
    let at = |text| Time::parse(text).unwrap();
    assert!(available(&pod, 0, Time(0)), "without a wait, the clock does not matter");
    assert!(!available(&pod, 10, at("2026-11-15T08:00:09Z")));
    assert!(available(&pod, 10, at("2026-11-15T08:00:10Z")));
    let next = next_available([&pod].into_iter(), 10, at("2026-11-15T08:00:03Z"));
    assert_eq!(next, Some(at("2026-11-15T08:00:10Z")));
    assert_eq!(next_available([&pod].into_iter(), 10, at("2026-11-15T08:00:10Z")), None);
}

#[test]
fn a_pod_has_all_that_its_template_has() {
    let template = json!({
        "metadata": { "labels": { "app": "web" }, "annotations": { "a": "b" } }, "spec": { "containers": [] }
    });
    let owner = json!({ "metadata": { "name": "web-1", "namespace": "default", "uid": "u" } });
    let pod = from_template(&template, &REPLICA_SETS, &owner);
    let reference = json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "uid": "u", "controller": true,
        "blockOwnerDeletion": true
    });
    let metadata = json!({
        "generateName": "web-1-", "namespace": "default", "labels": { "app": "web" }, "annotations": { "a": "b" },
        "ownerReferences": [reference]
    });
    assert_eq!(pod["metadata"], metadata);
    assert_eq!(pod["spec"], template["spec"]);
}
