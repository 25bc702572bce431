//! A run with built-in workloads is decided live as its recording is.

use std::time::{Duration, Instant};

use kausality_testbed::{ControlPlane, eventually};
use serde_json::{Value, json};

use crate::real::{agreement, stage::*};

/// Long enough to keep what a controller does next to what was asked for, short enough for a test.
const QUIET: Duration = Duration::from_secs(1);

const RESOURCES: &str =
    "deployments.apps,replicasets.apps,statefulsets.apps,daemonsets.apps,jobs.batch,pods,configmaps";

#[tokio::test(flavor = "multi_thread")]
async fn agree_on_built_in_workloads() {
    let Some(plane) = stage().await else { return };
    let _kubelet = plane.play_kubelet().await.unwrap();
    let quiet = format!("{}s", QUIET.as_secs());
    let settings = ["--default-mode", "log", "--quiet-time", &quiet];
    let kubeconfig = plane.kubeconfig();
    let place = ["--register", "--bind-address", "127.0.0.1:0", "--resources", RESOURCES];
    let identity = ["--kubeconfig", kubeconfig.to_str().unwrap()];
    let arguments = [&["webhook"][..], &settings, &place, &identity].concat();
    let _webhook = Webhook::command(&plane, "webhook.log", &arguments);
    registered(&plane).await;
    let reviewed = async || {
        let probe = ["create", "configmap", "probe", "--dry-run=server", "-o", "json"];
        let answer = must(&plane, "probe", &probe);
        if answer.contains("kausality.io/trace") { Ok(()) } else { Err(answer) }
    };
    eventually(PATIENCE, "an answer of the webhook", reviewed).await.unwrap();

    // What people ask for.
    must(&plane, "alice", &["create", "deployment", "web", "--image=web:1", "--replicas=3"]);
    apply(&plane, "alice", &workload("StatefulSet", "store", json!({"serviceName": "store", "replicas": 2})));
    apply(&plane, "alice", &workload("DaemonSet", "agent", json!({})));
    must(&plane, "alice", &["create", "job", "once", "--image=job:1"]);
    are_done(&plane).await;
    must(&plane, "bob", &["set", "image", "deployment/web", "*=web:2"]);
    must(&plane, "bob", &["scale", "statefulset/store", "--replicas=3"]);
    must(&plane, "carol", &["label", "deployment/web", "team=shop"]);
    are_done(&plane).await;
    is_quiet(&plane).await;

    // What nobody asked for: controllers undo what a person did to a child.
    let newest = replica_sets(&plane).into_iter().find(|set| set["spec"]["replicas"] == 3).unwrap();
    let newest = format!("replicaset/{}", newest["metadata"]["name"].as_str().unwrap());
    must(&plane, "dave", &["scale", &newest, "--replicas=1"]);
    is_drift(&plane, 1).await;
    are_done(&plane).await;
    is_quiet(&plane).await;
    must(&plane, "dave", &["delete", "pod", "store-0", "--wait=false"]);
    is_drift(&plane, 2).await;
    are_done(&plane).await;

    must(&plane, "erin", &["delete", "deployment/web", "daemonset/agent", "--wait=false"]);
    must(&plane, "erin", &["delete", "statefulset/store", "--cascade=foreground", "--wait=false"]);
    eventually(PATIENCE, "the end of what was deleted", async || {
        let left = get(&plane, &["deployments,replicasets,statefulsets,daemonsets"]);
        if left["items"] == json!([]) { Ok(()) } else { Err(format!("{left:#}")) }
    })
    .await
    .unwrap();
    agreement::check(&plane, &["--quiet-time", &quiet]);
}

/// A workload of a Pod per replica.
fn workload(kind: &str, name: &str, more: Value) -> Value {
    let labels = json!({"app": name});
    let mut manifest = json!({
        "apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "it", "image": "it:1"}]},
            },
        },
    });
    for (field, value) in more.as_object().unwrap() {
        manifest["spec"][field] = value.clone();
    }
    manifest
}

/// Waits until all workloads say that they are done, for their present generation.
async fn are_done(plane: &ControlPlane) {
    eventually(PATIENCE, "workloads that are done", async || {
        let all = get(plane, &["deployments,statefulsets,daemonsets"]);
        let busy = all["items"].as_array().into_iter().flatten().find(|object| !is_done(object));
        if let Some(busy) = busy { Err(format!("{busy:#}")) } else { Ok(()) }
    })
    .await
    .unwrap();
}

fn is_done(object: &Value) -> bool {
    let (spec, status) = (&object["spec"], &object["status"]);
    let (wanted, counts) = match object["kind"].as_str() {
        Some("DaemonSet") => {
            (&status["desiredNumberScheduled"], ["updatedNumberScheduled", "numberAvailable", "numberReady"])
        }
        _ => (&spec["replicas"], ["updatedReplicas", "availableReplicas", "replicas"]),
    };
    status["observedGeneration"] == object["metadata"]["generation"]
        && counts.iter().all(|count| status[*count] == *wanted)
}

/// Waits until Kausality has noted so many drifts.
async fn is_drift(plane: &ControlPlane, count: usize) {
    eventually(PATIENCE, "drift in the audit log", async || {
        let events = plane.audit().unwrap();
        let is_drift = |key: &&String| *key == "true";
        let drifts = events.iter().filter_map(|event| event.annotations.get("drift.kausality.io/drift"));
        let drifts = drifts.filter(is_drift).count();
        if drifts >= count { Ok(()) } else { Err(format!("{drifts} so far")) }
    })
    .await
    .unwrap();
}

/// Waits until nobody has written for longer than the quiet time, so that all is settled.
async fn is_quiet(plane: &ControlPlane) {
    let mut tail = plane.audit_tail().unwrap();
    let mut last = Instant::now();
    eventually(PATIENCE, "a pause", async || {
        let writes = ["create", "update", "patch", "delete"];
        let is_write = |event: &&kausality_testbed::AuditEvent| {
            writes.contains(&&*event.verb) && !["leases", "events"].contains(&&*event.resource)
        };
        if tail.read().unwrap().iter().any(|event| is_write(&event)) {
            last = Instant::now();
        }
        (last.elapsed() >= QUIET + Duration::from_millis(500)).then_some(())
    })
    .await
    .unwrap();
}
