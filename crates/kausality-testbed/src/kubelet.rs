//! A kubelet that runs nothing, and says that it did.
//!
//! There is one Node, and every Pod is bound to it, for three reasons: a Pod that is bound to no Node is deleted at
//! once, without the grace period and the second deletion that admission sees in a cluster; a Pod that is bound to a
//! Node which does not exist is collected as an orphan; and a DaemonSet wants a Node. Bindings are made as
//! `system:kube-scheduler`, all else as `system:node:testbed`.
//!
//! [`step`] knows what happens next to a Pod; this module does it.

mod step;

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result};
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::runtime::controller::{Action, Controller};
use kube::runtime::watcher;
use kube::{Client, ResourceExt as _};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

use crate::plane::ControlPlane;
use step::Step;

const NODE: &str = "testbed";
const USER: &str = "system:node:testbed";
const GROUPS: &[&str] = &["system:nodes"];
const ROLE: &str = "testbed:kubelet";

/// How long to wait after a call that failed: a webhook may be starting.
const RETRY: Duration = Duration::from_millis(200);

/// A kubelet at work, until this value is dropped.
///
/// It has a thread of its own: a test may block, as it does when it runs `kubectl wait`, and Pods go on.
#[derive(Debug)]
#[must_use = "the kubelet stops when this is dropped"]
pub struct Kubelet {
    task: JoinHandle<()>,
    /// Taken when dropped.
    runtime: Option<Runtime>,
}

impl Kubelet {
    pub(crate) async fn start(plane: &ControlPlane) -> Result<Self> {
        permit(plane.admin()?).await.context("giving the kubelet its rights")?;
        register(plane.client(USER, GROUPS)?).await.context("registering the node")?;
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.context("making the thread of the kubelet")?;
        let task = runtime.spawn(work(Arc::new(Hands::new(plane, &runtime)?)));
        Ok(Self { task, runtime: Some(runtime) })
    }

    /// Lets go of all Pods. They stay as they are, until another kubelet is played.
    pub async fn stop(mut self) {
        self.task.abort();
        // It ends as cancelled, which is what was asked for.
        let _ = (&mut self.task).await;
    }
}

impl Drop for Kubelet {
    fn drop(&mut self) {
        // A runtime that is merely dropped waits for its threads, which tokio forbids in an async test.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// What the kubelet acts with.
struct Hands {
    node: Client,
    scheduler: Client,
    log: File,
    addresses: AtomicU16,
}

impl Hands {
    fn new(plane: &ControlPlane, runtime: &Runtime) -> Result<Self> {
        // A client works on the runtime that it was made in.
        let _within = runtime.enter();
        let log = OpenOptions::new().create(true).append(true).open(plane.kubelet_log());
        Ok(Self {
            node: plane.client(USER, GROUPS)?,
            scheduler: plane.client("system:kube-scheduler", &[])?,
            log: log.context("opening the log of the kubelet")?,
            addresses: AtomicU16::new(1),
        })
    }

    /// Writes into the log of the kubelet.
    fn note(&self, error: &dyn std::fmt::Display) {
        // A log that cannot be written is no reason to stop the Pods.
        let _ = writeln!(&self.log, "{} {error}", Timestamp::now());
    }

    fn address(&self) -> String {
        let [high, low] = self.addresses.fetch_add(1, Ordering::Relaxed).to_be_bytes();
        format!("10.244.{high}.{low}")
    }
}

async fn work(hands: Arc<Hands>) {
    let pods: Api<Pod> = Api::all(hands.node.clone());
    let steps = Controller::new(pods, watcher::Config::default()).run(
        reconcile,
        |_, error, hands| retry(error, &hands),
        Arc::clone(&hands),
    );
    steps
        .for_each(|outcome| {
            // Also has failed watches, which `retry` does not see.
            if let Err(error) = outcome {
                hands.note(&error);
            }
            std::future::ready(())
        })
        .await;
}

async fn reconcile(pod: Arc<Pod>, hands: Arc<Hands>) -> Result<Action, kube::Error> {
    let Some(step) = step::next(&pod) else { return Ok(Action::await_change()) };
    match take(step, &pod, &hands).await {
        // It is gone, and so is the work.
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(Action::await_change()),
        outcome => outcome.map(|()| Action::await_change()),
    }
}

async fn take(step: Step, pod: &Pod, hands: &Hands) -> Result<(), kube::Error> {
    let (name, namespace) = (pod.name_any(), pod.namespace().unwrap_or_default());
    let pods: Api<Pod> = Api::namespaced(hands.node.clone(), &namespace);
    let uid = pod.uid();
    match step {
        Step::Bind => {
            let pods: Api<Pod> = Api::namespaced(hands.scheduler.clone(), &namespace);
            let binding = json!({
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": { "name": name, "namespace": namespace, "uid": uid },
                "target": { "apiVersion": "v1", "kind": "Node", "name": NODE },
            });
            pods.create_subresource::<_, Value>("binding", &name, &PostParams::default(), &binding).await?;
        }
        Step::Run | Step::Succeed => {
            let now = Time(Timestamp::now());
            let status = if step == Step::Run {
                step::running(pod, &now, &hands.address())
            } else {
                step::succeeded(pod, &now)
            };
            // With the UID, so that it cannot hit a namesake.
            let patch = Patch::Strategic(json!({ "metadata": { "uid": uid }, "status": status }));
            pods.patch_status(&name, &PatchParams::default(), &patch).await?;
        }
        Step::Finish => {
            let preconditions = Some(Preconditions { uid, resource_version: None });
            let now =
                DeleteParams { grace_period_seconds: Some(0), preconditions, ..DeleteParams::default() };
            pods.delete(&name, &now).await?;
        }
    }
    Ok(())
}

fn retry(error: &kube::Error, hands: &Hands) -> Action {
    hands.note(error);
    Action::requeue(RETRY)
}

/// Gives the kubelet the rights that it needs here. The bootstrap role `system:node` has more, and changes between versions.
async fn permit(client: Client) -> Result<()> {
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": { "name": ROLE },
        "rules": [
            { "apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch", "delete"] },
            { "apiGroups": [""], "resources": ["nodes"], "verbs": ["create"] },
            { "apiGroups": [""], "resources": ["pods/status", "nodes/status"], "verbs": ["patch"] },
        ],
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": { "name": ROLE },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": ROLE },
        "subjects": [{ "apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": USER }],
    });
    ensure(Api::<ClusterRole>::all(client.clone()), role).await?;
    ensure(Api::<ClusterRoleBinding>::all(client), binding).await
}

/// Makes a Node that is ready.
async fn register(client: Client) -> Result<()> {
    let nodes: Api<Node> = Api::all(client);
    let node = json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": NODE } });
    ensure(nodes.clone(), node).await?;
    let now = Time(Timestamp::now());
    let room = json!({ "cpu": "1000", "memory": "1Ti", "pods": "10000" });
    let ready = json!({
        "type": "Ready", "status": "True", "reason": "Played", "lastHeartbeatTime": now, "lastTransitionTime": now,
    });
    let status = json!({ "status": { "conditions": [ready], "capacity": room, "allocatable": room } });
    nodes.patch_status(NODE, &PatchParams::default(), &Patch::Strategic(status)).await?;
    Ok(())
}

/// Creates an object, if it is not there.
async fn ensure<K>(api: Api<K>, object: Value) -> Result<()>
where
    K: Clone + std::fmt::Debug + DeserializeOwned + Serialize,
{
    match api.create(&PostParams::default(), &serde_json::from_value(object)?).await {
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        outcome => outcome.map(drop).map_err(Into::into),
    }
}
