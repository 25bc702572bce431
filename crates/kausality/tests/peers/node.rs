//! Kausality on a real node: our image runs in containers, and a Service leads to it.

mod disasters;
mod stage;
mod writers;

use std::path::Path;
use std::time::{Duration, Instant};

use kausality_testbed::{Node, eventually, node_or_skip};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::stage::say;
use stage::{PATIENCE, Stage};
use writers::under_writers;

const IMAGE: &str = "registry.local/kausality:test";
const APP: &str = "registry.local/app:1";
/// How long writes may fail because the webhook is gone: until kubelet has noticed that a process was killed, and kube-proxy
/// knows.
const UNNOTICED: Duration = Duration::from_secs(5);
const SYSTEM: [&str; 2] = ["-n", "kausality-system"];

/// One node at a time: two would only slow each other down.
static NODES: Semaphore = Semaphore::const_new(1);

/// One story, since a node takes a while: installed from our chart with our image, a rollout passes, a drift is denied and
/// approved; then the webhook is replaced, killed and uninstalled while others write. No write fails while it is replaced or
/// uninstalled; when it is killed, some do for a moment.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_chart_serves_a_real_node() {
    let _slot = NODES.acquire().await.unwrap();
    let Some(node) = node_or_skip().await.unwrap() else { return };
    let stage = prepare(node).await;
    install(&stage);
    enforce(&stage);
    a_rollout_passes(&stage).await;
    a_drift_is_denied_and_approved(&stage).await;
    let (code, text) = stage.kausality(&["doctor"]);
    assert_eq!(code, 0, "{text}");

    for name in writers::NAMES {
        stage.apply(&writers::target(name));
    }
    under_writers(&stage, "rolling restart of the webhook", async || restart(&stage)).await.all_passed();
    // The API server does not ask another replica when one is gone, and learns of that a moment later.
    let killed =
        under_writers(&stage, "SIGKILL of one webhook", async || kill_one_webhook(&stage).await).await;
    killed.failed_only_for(&["connection refused", "connection reset by peer", "EOF"], UNNOTICED);
    under_writers(&stage, "helm uninstall", async || uninstall(&stage).await).await.all_passed();
    leaves_nothing(stage.into_node());
}

/// Images, and an app that runs.
async fn prepare(node: Node) -> Stage {
    say(format_args!("the node was ready after {:.1?}", node.startup()));
    let begun = Instant::now();
    node.load(Path::new(env!("CARGO_BIN_EXE_kausality")), IMAGE).await.unwrap();
    node.load(&node.programs().app(), APP).await.unwrap();
    say(format_args!("images were made and loaded in {:.1?}", begun.elapsed()));
    let stage = Stage::of(node);
    stage.apply(&web());
    stage.kubectl(&["rollout", "status", "deployment/web", "--timeout=120s"]);
    stage
}

/// `helm install --wait` ends when all Pods are ready.
fn install(stage: &Stage) {
    let begun = Instant::now();
    let (repository, tag) = IMAGE.split_once(':').unwrap();
    let image = format!("image.repository={repository},image.tag={tag}");
    let chart = stage::root().join("deploy/chart");
    let arguments = ["install", "kausality", chart.to_str().unwrap(), "--create-namespace", "--set", &image];
    stage.helm(&[&arguments[..], &SYSTEM, &["--wait", "--timeout", "180s"]].concat());
    say(format_args!("the chart was installed in {:.1?}", begun.elapsed()));
    let pods = stage.get(&[&["pods"], &SYSTEM[..]].concat());
    let pods = pods["items"].as_array().unwrap();
    assert_eq!(pods.len(), 4, "{pods:#?}");
    for pod in pods {
        assert_eq!(pod["status"]["containerStatuses"][0]["ready"], true, "{pod:#}");
        for process in processes(stage, pod) {
            let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
            assert!(status.contains("Uid:\t65532\t65532\t65532\t65532"), "{status}");
        }
    }
}

fn enforce(stage: &Stage) {
    stage.apply(&json!({
        "apiVersion": "kausality.io/v1alpha1", "kind": "Kausality", "metadata": { "name": "workloads" },
        "spec": { "resources": [{ "apiGroups": ["apps"], "resources": ["*"] }], "mode": "enforce",
            "quietTime": "0s" },
    }));
    stage.kubectl(&["wait", "kausality/workloads", "--for=condition=Ready", "--timeout=60s"]);
    let registration = stage.get(&["mutatingwebhookconfiguration", "kausality"]);
    let webhooks = registration["webhooks"].as_array().unwrap();
    let drift = webhooks.iter().find(|one| one["name"] == "workloads.drift.kausality.io");
    assert_eq!(drift.unwrap()["failurePolicy"], "Fail", "{registration:#}");
}

async fn a_rollout_passes(stage: &Stage) {
    stage.kubectl(&["set", "env", "deployment/web", "TEXT=two"]);
    stage.kubectl(&["rollout", "status", "deployment/web", "--timeout=120s"]);
    let service = stage.get(&["service", "web"]);
    let address = service["spec"]["clusterIP"].as_str().unwrap();
    // For a moment, the Service may still lead to a Pod that is gone.
    eventually(PATIENCE, "the answer of the rollout", async || {
        let answer = stage.fetch(address);
        if answer.contains(": two (user 65532)") { Ok(()) } else { Err(answer) }
    })
    .await
    .unwrap();
}

async fn a_drift_is_denied_and_approved(stage: &Stage) {
    let sets = stage.get(&["replicasets", "-l", "app=web"]);
    let current = sets["items"].as_array().unwrap().iter().find(|set| set["spec"]["replicas"] == 2);
    let name = current.unwrap()["metadata"]["name"].as_str().unwrap().to_owned();
    stage.kubectl(&["scale", "replicaset", &name, "--replicas=1"]);
    let drift = eventually(PATIENCE, "a drift", async || {
        let drifts = stage.get(&["drifts"]);
        let drift = drifts["items"].as_array()?.first()?.clone();
        drift["metadata"]["name"].as_str().map(str::to_owned)
    });
    let drift = drift.await.unwrap();
    let replicas = || stage.get(&["replicaset", &name])["spec"]["replicas"].clone();
    assert_eq!(replicas(), 1, "the controller's revert was not denied");
    let controller = "system:serviceaccount:kube-system:deployment-controller";
    let resolution = "workloads.drift.kausality.io/resolution";
    eventually(PATIENCE, "the denial in the audit log", async || {
        let events = stage.node().audit().unwrap().into_iter().filter(|event| event.user == controller);
        let mut denied =
            events.filter(|event| event.annotations.get(resolution).is_some_and(|one| one == "blocked"));
        denied.next()
    })
    .await
    .unwrap();

    let (code, text) = stage.kausality(&["approve", &drift]);
    assert_eq!(code, 0, "{text}");
    let look = async || (replicas() == 2).then_some(());
    eventually(PATIENCE, "the revert after its approval", look).await.unwrap();
}

fn restart(stage: &Stage) {
    stage.kubectl(&[&["rollout", "restart", "deployment/kausality-webhook"], &SYSTEM[..]].concat());
    let status = ["rollout", "status", "deployment/kausality-webhook", "--timeout=180s"];
    stage.kubectl(&[&status[..], &SYSTEM].concat());
}

async fn kill_one_webhook(stage: &Stage) {
    let selector = "app.kubernetes.io/component=webhook";
    let pods = stage.get(&[&["pods", "-l", selector], &SYSTEM[..]].concat());
    // One that a rollout has replaced may be still on its way out.
    let stays = |pod: &&serde_json::Value| pod["metadata"]["deletionTimestamp"].is_null();
    let pod = pods["items"].as_array().unwrap().iter().find(stays).unwrap();
    let name = pod["metadata"]["name"].as_str().unwrap();
    for process in processes(stage, pod) {
        let process = rustix::process::Pid::from_raw(i32::try_from(process).unwrap()).unwrap();
        rustix::process::kill_process(process, rustix::process::Signal::KILL).unwrap();
    }
    eventually(PATIENCE, "the killed webhook ready again", async || {
        let pod = stage.get(&[&["pod", name], &SYSTEM[..]].concat());
        let status = &pod["status"]["containerStatuses"][0];
        let again = status["restartCount"] == 1 && status["ready"] == true;
        if again { Ok(()) } else { Err(status.to_string()) }
    })
    .await
    .unwrap();
}

/// The processes of the only container of a Pod.
fn processes(stage: &Stage, pod: &Value) -> Vec<u32> {
    let container = pod["status"]["containerStatuses"][0]["containerID"].as_str().unwrap();
    let processes = stage.node().processes_of(container.trim_start_matches("containerd://")).unwrap();
    assert!(!processes.is_empty(), "{container} has no process");
    processes
}

async fn uninstall(stage: &Stage) {
    stage.helm(&[&["uninstall", "kausality", "--wait", "--timeout", "180s"], &SYSTEM[..]].concat());
    eventually(PATIENCE, "the end of the registration", async || {
        stage.get(&["mutatingwebhookconfiguration", "kausality"]).is_null().then_some(())
    })
    .await
    .unwrap();
}

fn leaves_nothing(node: Node) {
    let (folder, group) = (node.folder().to_owned(), node.control_group());
    assert!(!stage::control_groups(&group).is_empty());
    node.stop();
    assert!(!folder.exists());
    assert!(stage::control_groups(&group).is_empty(), "{:?}", stage::control_groups(&group));
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    assert!(!mounts.contains(folder.to_str().unwrap()), "{mounts}");
    assert_eq!(stage::processes_with(&folder), [""; 0]);
}

/// A Deployment and a Service of the app.
fn web() -> Value {
    let labels = json!({ "app": "web" });
    let probe = json!({ "httpGet": { "path": "/healthz", "port": 8080 }, "periodSeconds": 1 });
    let container = json!({
        "name": "app", "image": APP, "env": [{ "name": "TEXT", "value": "one" }], "readinessProbe": probe,
    });
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "web", "namespace": "default" },
        "spec": {
            "replicas": 2,
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": { "terminationGracePeriodSeconds": 2, "containers": [container] },
            },
        },
    });
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": { "name": "web", "namespace": "default" },
        "spec": { "selector": labels, "ports": [{ "port": 80, "targetPort": 8080 }] },
    });
    json!({ "apiVersion": "v1", "kind": "List", "items": [deployment, service] })
}
