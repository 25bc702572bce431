//! What stories need: a webhook process, kubectl, and ways to wait.

use std::{
    ops::{Deref, DerefMut},
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use kausality_api::annotation::Suffix;
use kausality_testbed::{ControlPlane, MASTERS, eventually, start_or_skip};
use serde_json::Value;
use tokio::sync::{Semaphore, SemaphorePermit};

/// How many control planes run at once: more would only slow each other down.
static SLOTS: Semaphore = Semaphore::const_new(3);

/// A control plane, for as long as it has its slot.
pub(crate) struct Stage {
    plane: ControlPlane,
    _slot: SemaphorePermit<'static>,
}

impl Deref for Stage {
    type Target = ControlPlane;

    fn deref(&self) -> &ControlPlane {
        &self.plane
    }
}

impl DerefMut for Stage {
    fn deref_mut(&mut self) -> &mut ControlPlane {
        &mut self.plane
    }
}

/// A control plane of one's own; none where there are no binaries for one.
pub(crate) async fn stage() -> Option<Stage> {
    let slot = SLOTS.acquire().await.unwrap();
    let plane = start_or_skip().await.unwrap()?;
    Some(Stage { plane, _slot: slot })
}

pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A webhook process. Ends when dropped.
pub(crate) struct Webhook(pub(crate) Child);

impl Webhook {
    /// One that acts as the administrator.
    pub(crate) fn spawn(plane: &ControlPlane, log: &str, arguments: &[&str]) -> Self {
        let kubeconfig = plane.kubeconfig();
        Self::spawn_as(plane, log, &[&["--kubeconfig", kubeconfig.to_str().unwrap()], arguments].concat())
    }

    /// One that acts as its arguments say.
    pub(crate) fn spawn_as(plane: &ControlPlane, log: &str, arguments: &[&str]) -> Self {
        Self::spawn_with(plane, log, arguments, &[])
    }

    /// One in an environment of its own.
    pub(crate) fn spawn_with(
        plane: &ControlPlane,
        log: &str,
        arguments: &[&str],
        environment: &[(&str, &str)],
    ) -> Self {
        let log = std::fs::File::create(plane.folder().join(log)).unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_kausality"))
            .args(["webhook", "--default-mode", "enforce", "--quiet-time", "0s"])
            .args(arguments)
            .envs(environment.iter().copied())
            .stderr(Stdio::from(log))
            .spawn()
            .unwrap();
        Self(child)
    }

    /// Another command of ours.
    pub(crate) fn command(plane: &ControlPlane, log: &str, arguments: &[&str]) -> Self {
        Self::command_in(plane.folder(), log, arguments)
    }

    /// The same, with its log in a folder.
    pub(crate) fn command_in(folder: &Path, log: &str, arguments: &[&str]) -> Self {
        let log = std::fs::File::create(folder.join(log)).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_kausality"));
        // As the image has it.
        command.env("MALLOC_TRIM_THRESHOLD_", "131072");
        Self(command.args(arguments).stderr(Stdio::from(log)).spawn().unwrap())
    }

    /// Tells it to stop, as a kubelet does, and waits until it has.
    pub(crate) async fn terminate(&mut self) {
        let id = self.0.id().to_string();
        assert!(Command::new("kill").arg(id).status().unwrap().success());
        let ended = eventually(PATIENCE, "the end of the process", async || self.0.try_wait().unwrap());
        assert!(ended.await.unwrap().success());
    }

    /// One that is registered for workloads.
    pub(crate) async fn start(plane: &ControlPlane) -> Self {
        Self::start_for(
            plane,
            "deployments.apps,replicasets.apps,statefulsets.apps,daemonsets.apps,jobs.batch",
        )
        .await
    }

    /// One that is registered for these resources.
    pub(crate) async fn start_for(plane: &ControlPlane, resources: &str) -> Self {
        let arguments = ["--register", "--bind-address", "127.0.0.1:0", "--resources", resources];
        let webhook = Self::spawn(plane, "webhook.log", &arguments);
        registered(plane).await;
        webhook
    }
}

pub(crate) async fn registered(plane: &ControlPlane) {
    eventually(PATIENCE, "the registration", async || {
        let found = get(plane, &["mutatingwebhookconfiguration", "kausality"]);
        (!found.is_null()).then_some(())
    })
    .await
    .unwrap();
}

impl Drop for Webhook {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What kubectl prints, and whether it succeeded.
pub(crate) fn kubectl(plane: &ControlPlane, user: &str, arguments: &[&str]) -> (bool, String) {
    let output = plane.kubectl(user, &[MASTERS]).args(arguments).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(text).unwrap())
}

#[track_caller]
pub(crate) fn must(plane: &ControlPlane, user: &str, arguments: &[&str]) -> String {
    let (done, text) = kubectl(plane, user, arguments);
    assert!(done, "kubectl {arguments:?} as {user}: {text}");
    text
}

pub(crate) fn get(plane: &ControlPlane, arguments: &[&str]) -> Value {
    let output = plane
        .kubectl("watcher", &[MASTERS])
        .arg("get")
        .args(arguments)
        .args(["-o", "json"])
        .output()
        .unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_default()
}

pub(crate) fn annotation(object: &Value, name: &str) -> String {
    let key = Suffix::of_object(object).key(&format!("kausality.io/{name}"));
    object["metadata"]["annotations"][key].as_str().unwrap_or_default().to_owned()
}

pub(crate) fn users(object: &Value) -> Vec<String> {
    let trace: Value = serde_json::from_str(&annotation(object, "trace")).unwrap_or_default();
    let hops = trace.as_array().cloned().unwrap_or_default();
    hops.iter().map(|hop| hop["user"].as_str().unwrap().to_owned()).collect()
}

pub(crate) fn replica_sets(plane: &ControlPlane) -> Vec<Value> {
    get(plane, &["replicasets"])["items"].as_array().cloned().unwrap_or_default()
}

pub(crate) async fn rolled_out(plane: &ControlPlane, name: &str, generation: i64) {
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

pub(crate) fn apply(plane: &ControlPlane, user: &str, manifest: &Value) {
    let file = plane.folder().join("manifest.json");
    std::fs::write(&file, manifest.to_string()).unwrap();
    must(plane, user, &["apply", "--server-side", "-f", file.to_str().unwrap()]);
}

pub(crate) async fn denial(plane: &ControlPlane, count: usize) {
    eventually(PATIENCE, "a denied correction in the audit log", async || {
        let denied = plane.audit().unwrap().into_iter().filter(|event| {
            event
                .annotations
                .get("drift.kausality.io/resolution")
                .is_some_and(|resolution| resolution == "blocked")
        });
        let denied = denied.count();
        if denied > count { Ok(()) } else { Err(format!("{denied} so far")) }
    })
    .await
    .unwrap();
}

/// What is served at an address without TLS, with its head.
pub(crate) async fn fetch(address: &str, path: &str) -> Option<String> {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = tokio::net::TcpStream::connect(address).await.ok()?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).await.ok()?;
    Some(text)
}

/// Whether a webhook, by its health address, wants to be asked.
pub(crate) async fn is_ready(health: &str) -> bool {
    fetch(health, "/readyz").await.is_some_and(|text| text.starts_with("HTTP/1.1 200"))
}

/// The sum of a metric over all its labels that contain this text.
pub(crate) async fn metric(health: &str, name: &str, labels: &str) -> f64 {
    let text = fetch(health, "/metrics").await.unwrap_or_default();
    let lines = text.lines().filter(|line| line.starts_with(&format!("{name}{{")) && line.contains(labels));
    lines.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok()).sum()
}

/// A kubeconfig like the administrator's, for an API server that is reached at another URL.
pub(crate) fn kubeconfig_at(plane: &ControlPlane, url: &str) -> String {
    let text = std::fs::read_to_string(plane.kubeconfig()).unwrap();
    let mut config: Value = serde_saphyr::from_str(&text).unwrap();
    config["clusters"][0]["cluster"]["server"] = url.into();
    let file = plane.folder().join("elsewhere.kubeconfig");
    std::fs::write(&file, config.to_string()).unwrap();
    file.to_str().unwrap().to_owned()
}
