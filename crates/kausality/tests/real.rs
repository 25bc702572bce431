//! Kausality on a real control plane, with real controllers.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

use std::{
    process::{Child, Command, Stdio},
    time::Duration,
};

use kausality_testbed::{ControlPlane, MASTERS, eventually, start_or_skip};
use serde_json::Value;

const PATIENCE: Duration = Duration::from_secs(60);

/// A webhook that is registered with a control plane. Ends when dropped.
struct Webhook(Child);

impl Webhook {
    async fn start(plane: &ControlPlane) -> Self {
        let log = std::fs::File::create(plane.folder().join("webhook.log")).unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_kausality"))
            .args(["webhook", "--register", "--bind-address", "127.0.0.1:0", "--default-mode", "enforce"])
            .args([
                "--resources",
                "deployments.apps,replicasets.apps,statefulsets.apps,daemonsets.apps,jobs.batch",
            ])
            .arg("--kubeconfig")
            .arg(plane.kubeconfig())
            .stderr(Stdio::from(log))
            .spawn()
            .unwrap();
        let webhook = Self(child);
        eventually(PATIENCE, "the registration", async || {
            let found = get(plane, &["mutatingwebhookconfiguration", "kausality"]);
            (!found.is_null()).then_some(())
        })
        .await
        .unwrap();
        webhook
    }
}

impl Drop for Webhook {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What kubectl prints, and whether it succeeded.
fn kubectl(plane: &ControlPlane, user: &str, arguments: &[&str]) -> (bool, String) {
    let output = plane.kubectl(user, &[MASTERS]).args(arguments).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(text).unwrap())
}

#[track_caller]
fn must(plane: &ControlPlane, user: &str, arguments: &[&str]) -> String {
    let (done, text) = kubectl(plane, user, arguments);
    assert!(done, "kubectl {arguments:?} as {user}: {text}");
    text
}

fn get(plane: &ControlPlane, arguments: &[&str]) -> Value {
    let output = plane
        .kubectl("watcher", &[MASTERS])
        .arg("get")
        .args(arguments)
        .args(["-o", "json"])
        .output()
        .unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_default()
}

fn annotation(object: &Value, name: &str) -> String {
    let key = format!("kausality.io/{name}");
    object["metadata"]["annotations"][key].as_str().unwrap_or_default().to_owned()
}

fn users(object: &Value) -> Vec<String> {
    let trace: Value = serde_json::from_str(&annotation(object, "trace")).unwrap_or_default();
    let hops = trace.as_array().cloned().unwrap_or_default();
    hops.iter().map(|hop| hop["user"].as_str().unwrap().to_owned()).collect()
}

fn replica_sets(plane: &ControlPlane) -> Vec<Value> {
    get(plane, &["replicasets"])["items"].as_array().cloned().unwrap_or_default()
}

async fn rolled_out(plane: &ControlPlane, name: &str, generation: i64) {
    eventually(PATIENCE, "the roll-out", async || {
        let deployment = get(plane, &["deployment", name]);
        let mark = annotation(&deployment, "settled");
        let conditions = deployment["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let done = conditions.iter().any(|condition| condition["reason"] == "NewReplicaSetAvailable");
        let observed = deployment["status"]["observedGeneration"] == generation;
        if done && observed && !mark.is_empty() { Ok(()) } else { Err(format!("{deployment:#}")) }
    })
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rollout_passes_and_a_correction_is_denied_until_it_is_approved() {
    let Some(plane) = start_or_skip().await.unwrap() else { return };
    let _kubelet = plane.play_kubelet().await.unwrap();
    let _webhook = Webhook::start(&plane).await;
    let deployment_controller = "system:serviceaccount:kube-system:deployment-controller";

    must(&plane, "alice", &["create", "deployment", "web", "--image=nginx:1", "--replicas=2"]);
    rolled_out(&plane, "web", 1).await;
    must(&plane, "bob", &["set", "image", "deployment/web", "nginx=nginx:2"]);
    rolled_out(&plane, "web", 2).await;
    let sets = replica_sets(&plane);
    assert_eq!(sets.len(), 2);
    let new = sets.iter().find(|set| set["spec"]["replicas"] == 2).unwrap();
    let name = new["metadata"]["name"].as_str().unwrap();
    assert_eq!(users(new), ["bob", deployment_controller]);

    must(&plane, "carol", &["scale", "replicaset", name, "--replicas=4"]);
    // The controller's correction is denied, and says so on the parent.
    let event = eventually(PATIENCE, "an event on the Deployment", async || {
        let events = get(&plane, &["events"])["items"].as_array().cloned().unwrap_or_default();
        let found = events.into_iter().find(|event| event["reason"] == "DriftDenied");
        found.ok_or("no event yet")
    });
    assert_eq!(event.await.unwrap()["involvedObject"]["name"], "web");
    assert_eq!(get(&plane, &["replicaset", name])["spec"]["replicas"], 4);

    let generation = get(&plane, &["deployment", "web"])["metadata"]["generation"].as_i64().unwrap();
    let approval = format!(
        r#"kausality.io/approvals=[{{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"{name}","generation":{generation}}}]"#
    );
    must(&plane, "dave", &["annotate", "deployment", "web", &approval]);
    eventually(PATIENCE, "the correction", async || {
        let set = get(&plane, &["replicaset", name]);
        if set["spec"]["replicas"] == 2 { Ok(()) } else { Err(format!("{set:#}")) }
    })
    .await
    .unwrap();
    assert_eq!(annotation(&get(&plane, &["deployment", "web"]), "approvals"), "", "it is used up");
    assert_eq!(users(&get(&plane, &["replicaset", name])), ["bob", deployment_controller]);
}

fn user_agent_calls(plane: &ControlPlane, agent: &str) -> Vec<kausality_testbed::AuditEvent> {
    let events = plane.audit().unwrap();
    events.into_iter().filter(|event| event.user_agent.starts_with(agent) && event.verb != "watch").collect()
}

/// No API call on the way of a request that is not drift.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_drift_costs_no_api_call() {
    let Some(plane) = start_or_skip().await.unwrap() else { return };
    let _kubelet = plane.play_kubelet().await.unwrap();
    let _webhook = Webhook::start(&plane).await;
    must(&plane, "alice", &["create", "deployment", "web", "--image=nginx:1", "--replicas=3"]);
    rolled_out(&plane, "web", 1).await;
    let before = user_agent_calls(&plane, "kausality-webhook").len();
    must(&plane, "bob", &["set", "image", "deployment/web", "nginx=nginx:2"]);
    rolled_out(&plane, "web", 2).await;
    must(&plane, "bob", &["delete", "deployment", "web"]);
    eventually(PATIENCE, "the garbage collection", async || {
        let left = replica_sets(&plane).len();
        if left == 0 { Ok(()) } else { Err(format!("{left} ReplicaSets are left")) }
    })
    .await
    .unwrap();
    let calls = user_agent_calls(&plane, "kausality-webhook");
    let since: Vec<String> = calls
        .iter()
        .skip(before)
        .map(|event| format!("{} {} {}", event.verb, event.resource, event.name))
        .collect();
    assert!(since.is_empty(), "{since:?}");
}
