//! What the tests need: helm, kubectl, our own command, and a control plane.

use std::{
    io::Write as _,
    ops::Deref,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use kausality_testbed::{Binaries, ControlPlane, MASTERS, eventually, find_or_skip};
use serde_json::Value;
use tokio::sync::{Semaphore, SemaphorePermit};

pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// How many control planes run at once: more would only slow each other down.
static SLOTS: Semaphore = Semaphore::const_new(2);

/// A control plane, for as long as it has its slot, and a helm for it.
pub(crate) struct Stage {
    plane: ControlPlane,
    pub(crate) helm: Helm,
    _slot: SemaphorePermit<'static>,
}

impl Deref for Stage {
    type Target = ControlPlane;

    fn deref(&self) -> &ControlPlane {
        &self.plane
    }
}

/// A control plane of one's own; none where there are no binaries for one.
pub(crate) async fn stage() -> Option<Stage> {
    let slot = SLOTS.acquire().await.unwrap();
    let binaries = find_or_skip().await.unwrap()?;
    let helm = Helm::of(&binaries)?;
    let plane = ControlPlane::start(&binaries).await.unwrap();
    Some(Stage { plane, helm, _slot: slot })
}

/// helm, with a home of its own.
pub(crate) struct Helm {
    program: PathBuf,
    home: tempfile::TempDir,
}

impl Helm {
    /// The helm of the tests; none where there are no binaries.
    pub(crate) async fn find() -> Option<Self> {
        Self::of(&find_or_skip().await.unwrap()?)
    }

    fn of(binaries: &Binaries) -> Option<Self> {
        let Some(program) = binaries.helm() else {
            let absence = format!("there is no helm in {}", binaries.folder().display());
            let required =
                std::env::var_os("REQUIRE_CONTROL_PLANE").is_some_and(|set| !set.is_empty() && set != "0");
            assert!(
                !required,
                "{absence}, and REQUIRE_CONTROL_PLANE is set. `make control-plane` provides it"
            );
            // Past the capture of test output: a skipped test is not to be overlooked.
            let mut out = std::io::stderr();
            writeln!(out, "SKIPPED: {absence}").unwrap();
            return None;
        };
        Some(Self { program, home: tempfile::tempdir().unwrap() })
    }

    /// What it prints, and whether it succeeded.
    pub(crate) fn run(&self, arguments: &[&str]) -> (bool, String) {
        let output = Command::new(&self.program)
            .args(arguments)
            .current_dir(root())
            .env("HOME", self.home.path())
            .env_remove("XDG_CACHE_HOME")
            .env_remove("KUBECONFIG")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(text).unwrap())
    }

    #[track_caller]
    pub(crate) fn must(&self, arguments: &[&str]) -> String {
        let (done, text) = self.run(arguments);
        assert!(done, "helm {arguments:?}: {text}");
        text
    }

    /// What it makes of the chart.
    #[track_caller]
    pub(crate) fn template(&self, arguments: &[&str]) -> String {
        let namespace = ["--namespace", "kausality-system"];
        self.must(&[&["template", "kausality", "deploy/chart"], &namespace[..], arguments].concat())
    }
}

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

pub(crate) fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap()
}

/// The objects of a text.
pub(crate) fn objects(text: &str) -> Vec<Value> {
    kausality::manifests::documents("a rendering", text).unwrap()
}

/// A rendering with hooks, as a file: kubectl does not care about hooks.
pub(crate) fn file(plane: &ControlPlane, name: &str, text: &str) -> String {
    let path = plane.folder().join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

/// What kubectl prints, and whether it succeeded.
pub(crate) fn kubectl(plane: &ControlPlane, arguments: &[&str]) -> (bool, String) {
    let output = plane.kubectl("alice", &[MASTERS]).args(arguments).current_dir(root()).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(text).unwrap())
}

#[track_caller]
pub(crate) fn must(plane: &ControlPlane, arguments: &[&str]) -> String {
    let (done, text) = kubectl(plane, arguments);
    assert!(done, "kubectl {arguments:?}: {text}");
    text
}

/// What kubectl finds; null if there is nothing.
pub(crate) fn get(plane: &ControlPlane, arguments: &[&str]) -> Value {
    let mut kubectl = plane.kubectl("watcher", &[MASTERS]);
    let output = kubectl.arg("get").args(arguments).args(["-o", "json"]).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_default()
}

/// What our own command prints, and its exit code.
pub(crate) fn kausality(plane: &ControlPlane, arguments: &[&str]) -> (i32, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_kausality"))
        .args(arguments)
        .env("KUBECONFIG", plane.kubeconfig())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap(), String::from_utf8(text).unwrap())
}

/// Whether an object of a manifest is there.
pub(crate) fn is_there(plane: &ControlPlane, object: &Value) -> bool {
    let word = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let version = word("/apiVersion");
    let group = version.split_once('/').map_or("", |(group, _)| group);
    let kind = if group.is_empty() { word("/kind") } else { format!("{}.{group}", word("/kind")) };
    let namespace = word("/metadata/namespace");
    let mut arguments = vec![kind, word("/metadata/name")];
    if !namespace.is_empty() {
        arguments.extend(["-n".to_owned(), namespace]);
    }
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    !get(plane, &arguments).is_null()
}

/// Waits until none of these is there.
pub(crate) async fn gone(plane: &ControlPlane, objects: &[Value]) {
    eventually(PATIENCE, "everything to be gone", async || {
        let left: Vec<String> = objects
            .iter()
            .filter(|object| is_there(plane, object))
            .map(|object| format!("{} {}", object["kind"], object["metadata"]["name"]))
            .collect();
        if left.is_empty() { Ok(()) } else { Err(left.join(", ")) }
    })
    .await
    .unwrap();
}

/// What the controller would have made: a registration and the role of a policy, owned by its own role.
pub(crate) fn controllers_work(plane: &ControlPlane) -> Vec<Value> {
    let anchor = get(plane, &["clusterrole", "kausality-controller"]);
    let owners = serde_json::json!([{
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "name": "kausality-controller",
        "uid": anchor["metadata"]["uid"],
    }]);
    let service = serde_json::json!({"name": "kausality-webhook", "namespace": "kausality-system"});
    let rules = serde_json::json!([{
        "apiGroups": ["example.com"], "apiVersions": ["v1"], "resources": ["widgets"], "operations": ["UPDATE"],
    }]);
    let configuration = |kind: &str| {
        serde_json::json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
            "metadata": {"name": "kausality", "ownerReferences": owners},
            "webhooks": [{
                "name": "workloads.drift.kausality.io", "sideEffects": "None", "admissionReviewVersions": ["v1"],
                "failurePolicy": "Fail", "clientConfig": {"service": service}, "rules": rules,
            }],
        })
    };
    let role = serde_json::json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {
            "name": "kausality:policy:workloads", "ownerReferences": owners,
            "labels": {"kausality.io/aggregate-to-webhook": "true"},
        },
        "rules": [
            {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get", "list", "watch", "patch"]},
        ],
    });
    vec![configuration("MutatingWebhookConfiguration"), configuration("ValidatingWebhookConfiguration"), role]
}
