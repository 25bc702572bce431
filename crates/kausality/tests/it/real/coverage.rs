//! Whoever decides is told whether anything enforces that.

use std::process::Command;

use kausality_testbed::ControlPlane;
use serde_json::{Value, json};

use crate::real::{controller::*, stage::*};

const USER: &str = "carol";

/// What `kausality` prints.
fn say(plane: &ControlPlane, arguments: &[&str]) -> (String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_kausality"))
        .args(arguments)
        .env("KUBECONFIG", plane.kubeconfig())
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
}

/// A policy covers ReplicaSets, and no Pods: a Deployment is frozen, a Job is not. Those who may not read what is registered, as
/// with the role for approvers, are told the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_freeze_that_nothing_enforces_is_no_freeze() {
    let Some(plane) = stage().await else { return };
    let installation = Installation::start(&plane).await;
    let _controller = installation.spawn_controller("controller.log", &[]);
    installation.ready().await;
    must(&plane, "alice", &["create", "deployment", "web", "--image=nginx:1"]);
    must(&plane, "alice", &["create", "job", "once", "--image=nginx:1"]);
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "annotator"}, "rules": [
            {"apiGroups": ["apps", "batch"], "resources": ["deployments", "jobs"], "verbs": ["get", "patch"]}]});
    apply(&plane, "admin", &role);
    for role in ["annotator", "kausality-approver"] {
        let name = format!("{USER}-{role}");
        must(
            &plane,
            "admin",
            &["create", "clusterrolebinding", &name, "--clusterrole", role, "--user", USER],
        );
    }

    let nobody_asks = "Deployment default/web annotated, but nothing enforces it: the API server does not ask Kausality \
        about anything: no policy is in force, or its controller does not run\n";
    let freeze = |name: &'static str| ["freeze", name, "-n", "default", "--reason", "storm"];
    assert_eq!(say(&plane, &freeze("deployment/web")).0, nobody_asks);
    say(&plane, &["unfreeze", "deployment/web", "-n", "default"]);

    let workloads = json!([{"apiGroups": ["apps"], "resources": ["deployments", "replicasets"]}]);
    apply(&plane, "admin", &policy("workloads", &json!({"resources": workloads, "mode": "enforce"})));
    told(&plane, "workloads", "Ready", "Configured").await;
    for who in ["admin", USER] {
        let identity = if who == USER { &["--as", USER][..] } else { &[] };
        let (out, err) = say(&plane, &[&freeze("deployment/web"), identity].concat());
        assert_eq!((out.as_str(), err.as_str()), ("Deployment default/web frozen\n", ""), "{who}");
        say(&plane, &["unfreeze", "deployment/web", "-n", "default"]);

        let why = "no Kausality policy covers children of Job default/once (see `kausality policies`)";
        let (out, err) = say(&plane, &[&freeze("job/once"), identity].concat());
        assert_eq!(out, format!("Job default/once annotated, but nothing enforces it: {why}\n"), "{who}");
        assert_eq!(err, format!("warning: nothing enforces this: {why}\n"), "{who}");
        let (out, _) = say(&plane, &[&freeze("job/once")[..], &["-o", "json"], identity].concat());
        let document: Value = serde_json::from_str(&out).unwrap();
        assert_eq!(document["objects"][0]["notEnforced"], why, "{who}: {document:#}");
    }
}
