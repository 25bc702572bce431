//! The control plane is real, and does what the crate says.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Result, anyhow};
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod};
use kausality_testbed::{AuditEvent, Component, ControlPlane, MASTERS, eventually, start_or_skip};
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

const LONG: Duration = Duration::from_secs(120);

async fn create<K>(api: &Api<K>, object: Value)
where
    K: Clone + std::fmt::Debug + Serialize + DeserializeOwned,
{
    api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
}

fn template(restart: &str) -> Value {
    json!({
        "metadata": { "labels": { "app": "web" } },
        "spec": { "restartPolicy": restart, "containers": [{ "name": "web", "image": "web:1" }] },
    })
}

fn deployment() -> Value {
    let selector = json!({ "matchLabels": { "app": "web" } });
    json!({
        "metadata": { "name": "web" },
        "spec": { "replicas": 2, "selector": selector, "template": template("Always") },
    })
}

/// Whether a rollout is at its end. `observedGeneration` says so at its beginning.
fn complete(deployment: &Deployment) -> Result<()> {
    let status = deployment.status.clone().unwrap_or_default();
    let conditions = status.conditions.iter().flatten();
    let done = conditions.clone().any(|condition| {
        condition.type_ == "Progressing" && condition.reason.as_deref() == Some("NewReplicaSetAvailable")
    });
    let available = status.available_replicas == Some(2) && status.updated_replicas == Some(2);
    (done && available).then_some(()).ok_or_else(|| anyhow!("{}", json!(status)))
}

/// The first event of the audit log that will do, as soon as it is there.
async fn audited(plane: &ControlPlane, what: &str, wanted: impl Fn(&AuditEvent) -> bool) -> AuditEvent {
    let look = async || plane.audit().unwrap().into_iter().find(|event| wanted(event));
    eventually(LONG, format_args!("{what} in the audit log"), look).await.unwrap()
}

#[tokio::test]
async fn what_alice_deploys_runs_and_is_audited() {
    let Some(plane) = start_or_skip().await.unwrap() else { return };
    eprintln!("the control plane was ready after {:?}", plane.startup());
    let _kubelet = plane.play_kubelet().await.unwrap();
    let alice = plane.client("alice", &[MASTERS]).unwrap();
    create(&Api::<Namespace>::all(alice.clone()), json!({ "metadata": { "name": "team" } })).await;

    let deployments: Api<Deployment> = Api::namespaced(alice.clone(), "team");
    create(&deployments, deployment()).await;
    let look = async || complete(&deployments.get("web").await?);
    eventually(LONG, "the end of the rollout", look).await.unwrap();

    let creates = |event: &AuditEvent| event.verb == "create" && event.resource == "deployments";
    let created = audited(&plane, "alice's create", creates).await;
    assert_eq!((&*created.user, created.code), ("alice", 201));
    assert_eq!((&*created.namespace, &*created.name), ("team", "web"));
    assert_eq!((&*created.group, &*created.user_agent), ("apps", "kausality-testbed"));
    assert!(created.groups.contains(&"system:authenticated".to_owned()), "{:?}", created.groups);
    assert_eq!(created.request.unwrap()["spec"]["replicas"], 2);
    assert!(created.response.unwrap()["metadata"]["managedFields"].is_array());
    let controller = "system:serviceaccount:kube-system:replicaset-controller";
    let pod = audited(&plane, "a Pod", |event| event.user == controller && event.resource == "pods").await;
    assert!(pod.name.starts_with("web-"), "{pod:?}");
    let reads = |event: &AuditEvent| event.user == "alice" && event.verb == "get" && event.response.is_none();
    audited(&plane, "alice's read without its body", reads).await;

    let output = plane.kubectl("alice", &[MASTERS]).args(["get", "deployment", "web", "-n", "team"]).output();
    let output = output.unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("2/2"), "{output:?}");
    let kubectl = |event: &AuditEvent| event.user_agent.starts_with("kubectl/");
    assert_eq!(audited(&plane, "kubectl", kubectl).await.user, "alice");

    let refused = plane.client("mallory", &[]).unwrap();
    let refused = Api::<Pod>::namespaced(refused, "team").list(&ListParams::default()).await.unwrap_err();
    assert!(refused.to_string().contains("mallory"), "{refused}");
    let refused = audited(&plane, "mallory's list", |event| event.user == "mallory").await;
    assert_eq!((&*refused.verb, refused.code), ("list", 403));
}

#[tokio::test]
async fn the_kubelet_completes_pods_and_deletions_until_it_is_stopped() {
    let Some(plane) = start_or_skip().await.unwrap() else { return };
    let kubelet = plane.play_kubelet().await.unwrap();
    let admin = plane.admin().unwrap();

    let jobs: Api<Job> = Api::namespaced(admin.clone(), "default");
    let spec = json!({ "template": template("Never") });
    create(&jobs, json!({ "metadata": { "name": "once" }, "spec": spec })).await;
    let look = async || {
        let status = jobs.get("once").await?.status.unwrap_or_default();
        let conditions = status.conditions.iter().flatten();
        let complete = conditions.clone().any(|one| one.type_ == "Complete" && one.status == "True");
        complete.then_some(()).ok_or_else(|| anyhow!("{}", json!(status)))
    };
    eventually(LONG, "the end of the Job", look).await.unwrap();

    let daemons: Api<DaemonSet> = Api::namespaced(admin.clone(), "default");
    let spec = json!({ "selector": { "matchLabels": { "app": "web" } }, "template": template("Always") });
    create(&daemons, json!({ "metadata": { "name": "each" }, "spec": spec })).await;
    let look = async || {
        let status = daemons.get("each").await?.status.unwrap_or_default();
        (status.number_ready == 1).then_some(()).ok_or_else(|| anyhow!("{}", json!(status)))
    };
    eventually(LONG, "the DaemonSet ready on the one node", look).await.unwrap();

    let pods: Api<Pod> = Api::namespaced(admin, "default");
    let pod = |name| json!({ "metadata": { "name": name }, "spec": template("Always")["spec"] });
    create(&pods, pod("web")).await;
    let look = async || {
        let status = pods.get("web").await?.status.unwrap_or_default();
        let running = status.phase.as_deref() == Some("Running");
        running.then_some(()).ok_or_else(|| anyhow!("{}", json!(status)))
    };
    eventually(LONG, "the Pod running", look).await.unwrap();
    pods.delete("web", &DeleteParams::default()).await.unwrap();
    let look = async || pods.get_opt("web").await.unwrap().map_or(Ok(()), |pod| Err(json!(pod.metadata)));
    eventually(LONG, "the end of the Pod", look).await.unwrap();
    let is_kubelet = |event: &AuditEvent| event.user == "system:node:testbed";
    let deletes = |event: &AuditEvent| event.verb == "delete" && is_kubelet(event);
    let ended = audited(&plane, "the kubelet's delete", deletes).await;
    assert_eq!((&*ended.name, ended.code), ("web", 200));

    kubelet.stop().await;
    let watch =
        |event: &AuditEvent| event.verb == "watch" && event.stage == "ResponseComplete" && is_kubelet(event);
    audited(&plane, "the end of the kubelet's watch", watch).await;
    let _again = plane.play_kubelet().await.unwrap();
    create(&pods, pod("late")).await;
    // Blocks the only thread of this test, but not the kubelet.
    let wait = ["wait", "pod/late", "--for=condition=Ready", "--timeout=60s"];
    let output = plane.kubectl("alice", &[MASTERS]).args(wait).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[tokio::test]
async fn two_at_once_are_strangers_and_leave_nothing() {
    let (one, other) = tokio::join!(start_or_skip(), start_or_skip());
    let (Some(one), Some(other)) = (one.unwrap(), other.unwrap()) else { return };
    eprintln!("two control planes at once were ready after {:?} and {:?}", one.startup(), other.startup());
    let names = async |plane: &ControlPlane| -> BTreeSet<String> {
        let namespaces: Api<Namespace> = Api::all(plane.admin().unwrap());
        let list = namespaces.list(&ListParams::default()).await.unwrap();
        list.items.into_iter().filter_map(|namespace| namespace.metadata.name).collect()
    };
    create(&Api::<Namespace>::all(one.admin().unwrap()), json!({ "metadata": { "name": "mine" } })).await;
    assert!(names(&one).await.contains("mine"));
    assert!(!names(&other).await.contains("mine"));

    let components = [Component::Etcd, Component::ApiServer, Component::ControllerManager];
    for plane in [one, other] {
        let folder = plane.folder().to_owned();
        let pids = components.map(|component| plane.pid(component));
        assert!(pids.iter().all(|pid| exists(*pid)), "{pids:?}");
        plane.stop();
        assert!(!pids.iter().any(|pid| exists(*pid)), "{pids:?}");
        assert!(!folder.exists());
    }
}

#[tokio::test]
async fn an_api_server_serves_again_after_a_pause_and_a_restart() {
    let Some(mut plane) = start_or_skip().await.unwrap() else { return };
    let maps: Api<ConfigMap> = Api::namespaced(plane.admin().unwrap(), "default");
    create(&maps, json!({ "metadata": { "name": "kept" } })).await;

    plane.pause(Component::ApiServer).unwrap();
    let blocked = tokio::time::timeout(Duration::from_millis(300), maps.get("kept")).await;
    assert!(blocked.is_err(), "a paused API server answered: {blocked:?}");
    plane.resume(Component::ApiServer).unwrap();
    maps.get("kept").await.unwrap();

    let before = plane.pid(Component::ApiServer);
    plane.restart(Component::ApiServer).await.unwrap();
    assert_ne!(plane.pid(Component::ApiServer), before);
    // The client may still hold a connection to the process that was killed.
    eventually(LONG, "an answer after the restart", async || maps.get("kept").await).await.unwrap();
    // What was audited before is still there.
    audited(&plane, "the create before the restart", |event| event.verb == "create" && event.name == "kept")
        .await;
}

fn exists(pid: u32) -> bool {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::test_kill_process(pid).is_ok()
}
