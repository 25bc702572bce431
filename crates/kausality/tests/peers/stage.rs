//! What suites need: kubectl, and our webhook as a process.

use std::{
    process::{Child, Command, Stdio},
    time::Duration,
};

use kausality_testbed::{ControlPlane, MASTERS, eventually};
use serde_json::Value;

pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// Runs kubectl as a user with the rights that RBAC gives it, or as an administrator if it is in [`MASTERS`].
#[track_caller]
pub(crate) fn must(plane: &ControlPlane, user: &str, groups: &[&str], arguments: &[&str]) -> String {
    let output = plane.kubectl(user, groups).args(arguments).output().unwrap();
    let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert!(output.status.success(), "kubectl {arguments:?} as {user}: {text}");
    text
}

/// What `kubectl get … -o json` prints; null if it fails.
pub(crate) fn get(plane: &ControlPlane, arguments: &[&str]) -> Value {
    let mut kubectl = plane.kubectl("watcher", &[MASTERS]);
    let output = kubectl.arg("get").args(arguments).args(["-o", "json"]).output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_default()
}

/// Applies a manifest as an administrator.
#[track_caller]
pub(crate) fn apply(plane: &ControlPlane, manifest: &Value) {
    let file = plane.folder().join("manifest.json");
    std::fs::write(&file, manifest.to_string()).unwrap();
    must(plane, "admin", &[MASTERS], &["apply", "--server-side", "-f", file.to_str().unwrap()]);
}

/// Shows figures although the test passes.
pub(crate) fn say(text: std::fmt::Arguments<'_>) {
    use std::io::Write as _;
    let mut out = std::io::stderr();
    writeln!(out, "    {text}").unwrap();
}

/// Our webhook. Ends when dropped.
pub(crate) struct Webhook(Child);

impl Webhook {
    /// Starts it in log mode, and waits until the API server knows it.
    pub(crate) async fn start(plane: &ControlPlane, resources: &str) -> Self {
        Self::start_in("log", plane, resources).await
    }

    /// Starts it in a mode, and waits until the API server knows it.
    pub(crate) async fn start_in(mode: &str, plane: &ControlPlane, resources: &str) -> Self {
        let log = std::fs::File::create(plane.folder().join("webhook.log")).unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_kausality"))
            .args(["webhook", "--default-mode", mode, "--register", "--bind-address", "127.0.0.1:0"])
            .args(["--resources", resources, "--kubeconfig"])
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
