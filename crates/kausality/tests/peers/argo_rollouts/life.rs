//! One life of a canary: created, updated, paused, promoted, deleted.

use std::{
    fmt,
    time::{Duration, Instant},
};

use kausality_api::annotation::{Suffix, TRACE};
use kausality_testbed::{AuditTail, ControlPlane, MASTERS, eventually};
use serde_json::{Value, json};

use super::writes::Writes;
use crate::stage::{PATIENCE, apply, get, must};

/// How long a paused Rollout is observed.
pub(super) const IDLE: Duration = Duration::from_secs(60);

/// The controller is done with a phase when it has written nothing for this long.
const QUIET: Duration = Duration::from_secs(2);

/// With so many writes after a phase was reached, it is looping and will never be done.
const LOOPING: usize = 100;

const NAMESPACE: &str = "shop";

/// What the controller wrote in each phase.
#[derive(Debug)]
pub(super) struct Life(Vec<(&'static str, Writes)>);

impl Life {
    pub(super) fn of(&self, phase: &str) -> &Writes {
        let found = self.0.iter().find(|(name, _)| *name == phase);
        found.map(|(_, writes)| writes).unwrap_or_else(|| panic!("there is no phase {phase}"))
    }
}

impl fmt::Display for Life {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|(phase, writes)| writeln!(f, "  {phase:8} {writes}"))
    }
}

/// Plays it, and fails if a phase is not reached. `traced`: whether Kausality is expected to have seen the Rollout.
pub(super) async fn play(plane: &ControlPlane, traced: bool) -> Life {
    people(plane);
    let mut log = Log::new(plane);

    let file = plane.folder().join("rollout.json");
    std::fs::write(&file, rollout().to_string()).unwrap();
    by("alice", plane, &["create", "-f", file.to_str().unwrap()]);
    reached(plane, "Healthy", |rollout| rollout["status"]["availableReplicas"] == 4).await;
    let found = get_rollout(plane);
    let trace = found["metadata"]["annotations"][Suffix::of_object(&found).key(TRACE)].clone();
    assert_eq!(trace.is_string(), traced, "{trace}");
    log.end("create").await;

    let image = r#"[{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": "shop:2"}]"#;
    by("alice", plane, &["patch", "rollout", "web", "--type=json", "-p", image]);
    reached(plane, "Paused", |rollout| {
        rollout["status"]["updatedReplicas"] == 1 && rollout["status"]["availableReplicas"] == 4
    })
    .await;
    log.end("update").await;

    let begun = Instant::now();
    eventually(PATIENCE, "the end of the idle time", async || (begun.elapsed() >= IDLE).then_some(()))
        .await
        .unwrap();
    log.cut("idle");
    assert_eq!(get_rollout(plane)["status"]["phase"], "Paused");

    // As `kubectl argo rollouts promote` does.
    let promotion = r#"{"status": {"pauseConditions": null}}"#;
    let promote = ["patch", "rollout", "web", "--subresource=status", "--type=merge", "-p", promotion];
    by("bob", plane, &promote);
    reached(plane, "Healthy", |rollout| {
        let status = &rollout["status"];
        status["updatedReplicas"] == 4
            && status["availableReplicas"] == 4
            && status["stableRS"] == status["currentPodHash"]
    })
    .await;
    log.end("promote").await;

    by("alice", plane, &["delete", "rollout", "web", "--wait=false"]);
    eventually(PATIENCE, "everything that the Rollout owned to be gone", async || {
        let left = get(plane, &["rollouts,replicasets,pods", "--namespace", NAMESPACE]);
        if left["items"] == json!([]) { Ok(()) } else { Err(format!("{left:#}")) }
    })
    .await
    .unwrap();
    log.end("delete").await;
    Life(log.life)
}

/// Cuts the audit log into phases.
struct Log {
    tail: AuditTail,
    /// The present phase.
    writes: Writes,
    life: Vec<(&'static str, Writes)>,
}

impl Log {
    fn new(plane: &ControlPlane) -> Self {
        Self { tail: plane.audit_tail().unwrap(), writes: Writes::default(), life: Vec::new() }
    }

    /// Ends a phase once the controller is quiet, or is looping.
    async fn end(&mut self, phase: &'static str) {
        self.read();
        let (before, mut last) = (self.writes.total(), Instant::now());
        eventually(PATIENCE, "a quiet controller", async || {
            if self.read() > 0 {
                last = Instant::now();
            }
            let looping = self.writes.total() - before >= LOOPING;
            (looping || last.elapsed() >= QUIET).then_some(())
        })
        .await
        .unwrap();
        self.cut(phase);
    }

    /// Ends a phase: everything since the end of the previous one belongs to it.
    fn cut(&mut self, phase: &'static str) {
        self.read();
        self.life.push((phase, std::mem::take(&mut self.writes)));
    }

    /// Adds new writes to the present phase, and returns how many there were.
    fn read(&mut self) -> usize {
        let before = self.writes.total();
        self.writes.add(&self.tail.read().unwrap());
        self.writes.total() - before
    }
}

/// A namespace in which alice and bob may manage Rollouts, and nothing else.
fn people(plane: &ControlPlane) {
    must(plane, "admin", &[MASTERS], &["create", "namespace", NAMESPACE]);
    let group = "rbac.authorization.k8s.io";
    let user = |name: &str| json!({"apiGroup": group, "kind": "User", "name": name});
    let metadata = json!({"name": "rollouts", "namespace": NAMESPACE});
    apply(
        plane,
        &json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": metadata,
            "rules": [{"apiGroups": ["argoproj.io"], "resources": ["rollouts", "rollouts/status"],
                "verbs": ["create", "get", "patch", "delete"]}]}),
    );
    apply(
        plane,
        &json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": metadata,
            "roleRef": {"apiGroup": group, "kind": "Role", "name": "rollouts"},
            "subjects": [user("alice"), user("bob")]}),
    );
}

/// A canary that stops after the first of four Pods until somebody promotes it.
fn rollout() -> Value {
    let labels = json!({"app": "web"});
    json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout",
        "metadata": {"name": "web", "namespace": NAMESPACE},
        "spec": {"replicas": 4, "selector": {"matchLabels": labels},
            "strategy": {"canary": {"steps": [
                {"setWeight": 25}, {"pause": {}}, {"setWeight": 50}, {"pause": {"duration": "1s"}},
            ]}},
            "template": {"metadata": {"labels": labels},
                "spec": {"containers": [{"name": "web", "image": "shop:1"}]}}}})
}

#[track_caller]
fn by(user: &str, plane: &ControlPlane, arguments: &[&str]) {
    must(plane, user, &[], &[&["--namespace", NAMESPACE], arguments].concat());
}

fn get_rollout(plane: &ControlPlane) -> Value {
    get(plane, &["rollout", "web", "--namespace", NAMESPACE])
}

/// Waits until the Rollout reports a phase for its present generation, and `more` holds.
async fn reached(plane: &ControlPlane, phase: &str, more: impl Fn(&Value) -> bool) {
    eventually(PATIENCE, format_args!("a Rollout that is {phase}"), async || {
        let rollout = get_rollout(plane);
        // A string, unlike anywhere else.
        let observed = rollout["status"]["observedGeneration"].as_str().and_then(|text| text.parse().ok());
        let up_to_date = observed.is_some() && observed == rollout["metadata"]["generation"].as_i64();
        let there = up_to_date && rollout["status"]["phase"] == phase && more(&rollout);
        if there { Ok(()) } else { Err(format!("{rollout:#}")) }
    })
    .await
    .unwrap();
}
