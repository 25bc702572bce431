//! Kausality is never the outage: with Pods, apps and batch enforced, and `failurePolicy: Fail`, the cluster comes back by itself
//! whatever is lost, and nothing that a node needs is refused meanwhile.

use std::path::Path;
use std::time::{Duration, Instant};

use k8s_openapi::jiff::{Timestamp, Unit};
use kausality_testbed::{AuditEvent, Outage, eventually, node_or_skip};
use serde_json::{Value, json};

use super::stage::{PATIENCE, Stage};
use super::writers::{self, Writes, under_writers};
use super::{APP, NODES, SYSTEM, install, prepare, say, web};

/// An image whose program ends at once.
const BROKEN: &str = "registry.local/kausality:broken";

/// A namespace of somebody's network plugin.
const EDGE: &str = "edge";

/// Where no write may fail, whoever makes it and whatever is lost.
const EXCLUDED: [&str; 4] = ["edge", "kausality-system", "kube-node-lease", "kube-system"];

const REGISTRATION: [&str; 2] = ["mutatingwebhookconfiguration", "kausality"];

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_cluster_comes_back_by_itself() {
    let _slot = NODES.acquire().await.unwrap();
    let Some(node) = node_or_skip().await.unwrap() else { return };
    let stage = prepare(node).await;
    stage.node().load(Path::new("/bin/false"), BROKEN).await.unwrap();
    install(&stage);
    enforce(&stage);
    stage.apply(&json!({ "apiVersion": "v1", "kind": "Namespace",
        "metadata": { "name": EDGE, "labels": { "kausality.io/exclude": "" } } }));
    for name in writers::NAMES {
        stage.apply(&writers::target(name));
    }
    all_are_ready(&stage, None).await;

    let mut table = Table::default();
    table.add("power loss of the node", lose_the_node(&stage).await);
    table.add("all webhooks deleted by force", delete_all_webhooks(&stage).await);
    table.add("an image that does not start", upgrade_to_a_broken_image(&stage).await);
    table.add("cold start of everything, with that image", start_cold(&stage).await);
    table.add("helm rollback", roll_back(&stage).await);
    table.add("cold start of everything", start_cold(&stage).await);
    table.add("namespace deleted", delete_the_namespace(&stage).await);
    install(&stage);
    enforce(&stage);
    table.add("namespace deleted while no controller runs", delete_the_namespace_unseen(&stage).await);
    table.show();
    nothing_of_the_nodes_is_refused(&stage);
    // Helm made it again with the same names, and nothing of the first one was left to be in its way.
    install(&stage);
    enforce(&stage);
}

/// Everything that a Pod is made by has to wait for the webhook.
fn enforce(stage: &Stage) {
    stage.apply(&json!({
        "apiVersion": "kausality.io/v1alpha1", "kind": "Kausality", "metadata": { "name": "workloads" },
        "spec": { "mode": "enforce", "resources": [
            { "apiGroups": [""], "resources": ["pods"] }, { "apiGroups": ["apps", "batch"], "resources": ["*"] },
        ] },
    }));
    stage.kubectl(&["wait", "kausality/workloads", "--for=condition=Ready", "--timeout=60s"]);
    let registration = stage.get(&REGISTRATION);
    let drift = entry(&registration, "workloads.drift.kausality.io");
    assert_eq!(drift["failurePolicy"], "Fail", "{registration:#}");
}

/// A Pod is about to go, and one of its own is written for the kubelet: neither waits for anybody.
async fn lose_the_node(stage: &Stage) -> Disaster {
    let doomed = stage.get(&["pods", "-l", "app=web"])["items"][0]["metadata"]["name"].clone();
    let mut back = None;
    let writes = under_writers(stage, "power loss of the node", async || {
        let lost = Timestamp::now();
        stage.kubectl(&["delete", "pod", doomed.as_str().unwrap(), "--wait=false"]);
        stage.node().lose_power(Outage::Node).await.unwrap();
        for namespace in [EDGE, "kube-system"] {
            stage.apply(&plugin(namespace));
        }
        let manifest = stage.node().static_pods().join("static.json");
        std::fs::write(manifest, static_pod().to_string()).unwrap();
        let begun = Instant::now();
        stage.node().restore_power().await.unwrap();
        all_are_ready(stage, Some(lost)).await;
        is_ready(stage, "default", "static-node-1").await;
        back = Some(begun.elapsed());
    });
    let writes = writes.await;
    writes.some_failed();
    assert!(stage.get(&["pod", doomed.as_str().unwrap()]).is_null(), "{doomed} was never deleted");
    Disaster { writes, back: back.unwrap() }
}

async fn delete_all_webhooks(stage: &Stage) -> Disaster {
    let mut back = None;
    let writes = under_writers(stage, "all webhooks deleted by force", async || {
        let selector = ["-l", "app.kubernetes.io/component=webhook"];
        let force = ["--force", "--grace-period=0", "--wait=false"];
        let begun = Instant::now();
        stage.kubectl(&[&["delete", "pods"], &selector[..], &force, &SYSTEM].concat());
        all_are_ready(stage, None).await;
        back = Some(begun.elapsed());
    });
    Disaster { writes: writes.await, back: back.unwrap() }
}

/// The old replicas go on.
async fn upgrade_to_a_broken_image(stage: &Stage) -> Disaster {
    let begun = Instant::now();
    let writes = under_writers(stage, "an image that does not start", async || {
        let (_, tag) = BROKEN.split_once(':').unwrap();
        let chart = super::stage::root().join("deploy/chart");
        let upgrade =
            ["upgrade", "kausality", chart.to_str().unwrap(), "--reuse-values", "--no-hooks", "--set"];
        stage.helm(&[&upgrade[..], &[&format!("image.tag={tag}")], &SYSTEM].concat());
        for component in ["webhook", "controller"] {
            eventually(PATIENCE, format_args!("a {component} that does not start"), async || {
                let selector = format!("app.kubernetes.io/component={component}");
                let pods = stage.get(&[&["pods", "-l", &selector], &SYSTEM[..]].concat());
                let restarts = |pod: &Value| pod["status"]["containerStatuses"][0]["restartCount"].as_u64();
                pods["items"]
                    .as_array()?
                    .iter()
                    .any(|pod| is_broken(pod) && restarts(pod) > Some(0))
                    .then_some(())
            })
            .await
            .unwrap();
        }
    })
    .await;
    writes.all_passed();
    Disaster { writes, back: begun.elapsed() }
}

async fn roll_back(stage: &Stage) -> Disaster {
    let mut back = None;
    let writes = under_writers(stage, "helm rollback", async || {
        let begun = Instant::now();
        stage.helm(&[&["rollback", "kausality", "--wait", "--timeout", "120s"], &SYSTEM[..]].concat());
        all_are_ready(stage, None).await;
        back = Some(begun.elapsed());
    })
    .await;
    writes.all_passed();
    let pods = stage.get(&[&["pods"], &SYSTEM[..]].concat());
    assert!(!pods["items"].as_array().unwrap().iter().any(is_broken), "{pods:#}");
    // Helm leaves alone what the controller wrote.
    let anchor = stage.get(&["clusterrole", "kausality-controller"]);
    assert_eq!(anchor["metadata"]["ownerReferences"][0]["kind"], "Namespace", "{anchor:#}");
    Disaster { writes, back: back.unwrap() }
}

async fn start_cold(stage: &Stage) -> Disaster {
    let mut back = None;
    let writes = under_writers(stage, "cold start of everything", async || {
        let lost = Timestamp::now();
        stage.node().lose_power(Outage::Everything).await.unwrap();
        let begun = Instant::now();
        stage.node().restore_power().await.unwrap();
        say(format_args!("control plane and node were back after {:.1?}", begun.elapsed()));
        all_are_ready(stage, Some(lost)).await;
        is_ready(stage, "default", "static-node-1").await;
        back = Some(begun.elapsed());
    });
    let writes = writes.await;
    writes.some_failed();
    Disaster { writes, back: back.unwrap() }
}

/// A controller sees it, and takes the registration away before the webhook is gone.
async fn delete_the_namespace(stage: &Stage) -> Disaster {
    let mut back = None;
    let writes = under_writers(stage, "namespace deleted", async || {
        let begun = Instant::now();
        stage.kubectl(&["delete", "namespace", SYSTEM[1], "--wait=false"]);
        is_gone(stage, &REGISTRATION).await;
        back = Some(begun.elapsed());
        everything_is_gone(stage).await;
    })
    .await;
    Disaster { writes, back: back.unwrap() }
}

/// Nobody sees it, and no webhook answers any more, until Kubernetes' garbage collector is done.
async fn delete_the_namespace_unseen(stage: &Stage) -> Disaster {
    stage.kubectl(&[&["scale", "deployment/kausality-controller", "--replicas=0"], &SYSTEM[..]].concat());
    eventually(PATIENCE, "the end of all controllers", async || {
        let selector = "app.kubernetes.io/component=controller";
        let pods = stage.get(&[&["pods", "-l", selector], &SYSTEM[..]].concat());
        pods["items"].as_array()?.is_empty().then_some(())
    })
    .await
    .unwrap();
    let mut back = None;
    let writes = under_writers(stage, "namespace deleted while no controller runs", async || {
        let begun = Instant::now();
        stage.kubectl(&["delete", "namespace", SYSTEM[1], "--wait=false"]);
        everything_is_gone(stage).await;
        back = Some(begun.elapsed());
    })
    .await;
    writes.some_failed();
    Disaster { writes, back: back.unwrap() }
}

/// What would keep writes waiting, and what a new installation could trip over.
async fn everything_is_gone(stage: &Stage) {
    let anchor = ["clusterrole", "kausality-controller"];
    let policies = ["validatingwebhookconfiguration", "kausality"];
    for what in [["namespace", SYSTEM[1]], anchor, REGISTRATION, policies] {
        is_gone(stage, &what).await;
    }
}

async fn is_gone(stage: &Stage, what: &[&str]) {
    let look = async || stage.get(what).is_null().then_some(());
    eventually(PATIENCE, format_args!("the end of {what:?}"), look).await.unwrap();
}

/// All containers run that should, and were started after a loss.
async fn all_are_ready(stage: &Stage, lost: Option<Timestamp>) {
    let lost = lost.map(|lost| lost.round(Unit::Second).unwrap());
    eventually(PATIENCE, "all Pods to be ready", async || {
        for namespace in ["default", SYSTEM[1], EDGE, "kube-system"] {
            let deployments = stage.get(&["deployments", "-n", namespace]);
            for deployment in deployments["items"].as_array().ok_or("no answer")? {
                let (wanted, status) = (&deployment["spec"]["replicas"], &deployment["status"]);
                if *wanted != 0 && status["availableReplicas"] != *wanted {
                    return Err(format!("{}: {status}", deployment["metadata"]["name"]));
                }
            }
            let pods = stage.get(&["pods", "-n", namespace]);
            let pods = pods["items"].as_array().ok_or("no answer")?;
            for pod in pods.iter().filter(|pod| !is_broken(pod)) {
                let container = &pod["status"]["containerStatuses"][0];
                let started = container["state"]["running"]["startedAt"].as_str();
                let started = started.and_then(|started| started.parse::<Timestamp>().ok());
                let goes = !pod["metadata"]["deletionTimestamp"].is_null();
                if goes || container["ready"] != true || lost.is_some_and(|lost| started < Some(lost)) {
                    return Err(format!("{}: {container}", pod["metadata"]["name"]));
                }
            }
        }
        Ok(())
    })
    .await
    .unwrap();
    let address = stage.get(&["service", "web"])["spec"]["clusterIP"].as_str().unwrap().to_owned();
    eventually(PATIENCE, "an answer through the Service", async || {
        let answer = stage.fetch(&address);
        if answer.contains("(user 65532)") { Ok(()) } else { Err(answer) }
    })
    .await
    .unwrap();
}

async fn is_ready(stage: &Stage, namespace: &str, pod: &str) {
    eventually(PATIENCE, format_args!("Pod {pod} to be ready"), async || {
        let pod = stage.get(&["pod", pod, "-n", namespace]);
        let status = &pod["status"]["containerStatuses"][0];
        if status["ready"] == true { Ok(()) } else { Err(status.to_string()) }
    })
    .await
    .unwrap();
}

fn is_broken(pod: &Value) -> bool {
    pod["spec"]["containers"][0]["image"] == BROKEN
}

/// The audit log of all that has happened.
fn nothing_of_the_nodes_is_refused(stage: &Stage) {
    let events = stage.node().audit().unwrap();
    let refused: Vec<&AuditEvent> = events.iter().filter(|event| is_refused(event)).collect();
    let show = |event: &&AuditEvent| {
        let AuditEvent { user, verb, resource, subresource, namespace, name, code, response, .. } = event;
        format!("{user}: {verb} {resource}/{subresource} {namespace}/{name}: {code} {response:?}")
    };
    say(format_args!(
        "of {} calls, {} were refused by a webhook or for want of one",
        events.len(),
        refused.len()
    ));
    assert!(!refused.is_empty(), "nothing has been lost");
    let of_nodes = |event: &&&AuditEvent| {
        event.user.starts_with("system:node:") || event.groups.iter().any(|group| group == "system:nodes")
    };
    let is_excluded = |event: &&&AuditEvent| EXCLUDED.contains(&&*event.namespace);
    let of_status = |event: &&&AuditEvent| event.subresource == "status";
    for (what, found) in [
        ("writes of kubelets", refused.iter().filter(of_nodes).map(show).collect::<Vec<_>>()),
        ("writes in excluded namespaces", refused.iter().filter(is_excluded).map(show).collect()),
        ("writes of a status", refused.iter().filter(of_status).map(show).collect()),
    ] {
        assert!(found.is_empty(), "{what} were refused: {found:#?}");
    }
    // They wrote something that the webhook would have been asked about.
    for (verb, what) in [("create", "a mirror of a static Pod"), ("delete", "the end of a deletion")] {
        let is_it = |event: &&AuditEvent| event.verb == verb && event.resource == "pods" && event.code < 300;
        let found = events.iter().filter(is_it).any(|event| event.user == "system:node:node-1");
        assert!(found, "no kubelet has written {what}");
    }
}

/// A webhook has denied a write, or could not be asked.
fn is_refused(event: &AuditEvent) -> bool {
    let message =
        event.response.as_ref().and_then(|response| response["message"].as_str()).unwrap_or_default();
    event.code >= 400
        && ["failed calling webhook", "admission webhook"].iter().any(|why| message.contains(why))
}

fn entry<'a>(registration: &'a Value, name: &str) -> &'a Value {
    let webhooks = registration["webhooks"].as_array().unwrap();
    webhooks.iter().find(|one| one["name"] == name).unwrap()
}

/// What a namespace of network plugins has in it.
fn plugin(namespace: &str) -> Value {
    let mut plugin = web()["items"][0].clone();
    plugin["metadata"] = json!({ "name": "plugin", "namespace": namespace });
    plugin["spec"]["replicas"] = 1.into();
    plugin
}

fn static_pod() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "static", "namespace": "default" },
        "spec": { "terminationGracePeriodSeconds": 2, "containers": [{ "name": "app", "image": APP }] },
    })
}

/// What became of writes, and how long it took until all was well.
struct Disaster {
    writes: Writes,
    back: Duration,
}

#[derive(Default)]
struct Table(Vec<(&'static str, Disaster)>);

impl Table {
    fn add(&mut self, what: &'static str, disaster: Disaster) {
        self.0.push((what, disaster));
    }

    fn show(&self) {
        say(format_args!(
            "{:44} {:>14} {:>16} {:>16}",
            "", "writes failed", "the last after", "all well after"
        ));
        for (what, Disaster { writes, back }) in &self.0 {
            let failed = format!("{} of {}", writes.failed(), writes.all());
            let last = writes.last_failure().map_or_else(|| "-".to_owned(), |last| format!("{last:.1?}"));
            say(format_args!("{what:44} {failed:>14} {last:>16} {:>16}", format!("{back:.1?}")));
        }
    }
}
