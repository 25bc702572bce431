//! What the webhook reads from the API server: late, lost without a word, or never there.

use std::{
    process::{Child, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use kausality_testbed::{AuditEvent, ControlPlane, MASTERS, eventually, free_port};
use kube::{
    api::{Api, Patch, PatchParams},
    core::{ApiResource, DynamicObject, GroupVersionKind},
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
};

use crate::real::{
    ledger::{define, drifts},
    stage::*,
};

/// Passes connections on, and lets some of them hang: open, and without a word, as a firewall does that has forgotten
/// them.
struct Line {
    port: u16,
    /// How often all connections were cut: those that were there before hang for ever.
    cuts: watch::Sender<u64>,
    lists: watch::Sender<Lists>,
}

/// What becomes of requests that list ReplicaSets, where requests can be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Lists {
    /// They wait.
    held: bool,
    /// So many have waited.
    waiting: usize,
    /// Of those that wait, these many get lost.
    lost: usize,
}

impl Line {
    async fn to(target: String) -> Arc<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let line = Arc::new(Self { port, cuts: watch::Sender::new(0), lists: watch::Sender::default() });
        let passing = line.clone();
        tokio::spawn(async move {
            loop {
                let (mut from, _) = listener.accept().await.unwrap();
                let (line, target) = (passing.clone(), target.clone());
                let mut cuts = line.cuts.subscribe();
                tokio::spawn(async move {
                    let Ok(mut to) = TcpStream::connect(&target).await else { return };
                    tokio::select! {
                        () = line.pass(&mut from, &mut to) => {}
                        // Both ends stay open.
                        _ = cuts.changed() => std::future::pending().await,
                    }
                });
            }
        });
        line
    }

    async fn pass(&self, client: &mut TcpStream, server: &mut TcpStream) {
        let ((mut requests, mut to_client), (mut answers, mut to_server)) = (client.split(), server.split());
        let there = async {
            let mut buffer = vec![0; 16 << 10];
            while let Ok(length) = requests.read(&mut buffer).await
                && length > 0
            {
                if lists_replica_sets(&buffer[..length]) {
                    self.wait().await;
                }
                if to_server.write_all(&buffer[..length]).await.is_err() {
                    break;
                }
            }
            let _ = to_server.shutdown().await;
        };
        let back = async {
            let _ = tokio::io::copy(&mut answers, &mut to_client).await;
            let _ = to_client.shutdown().await;
        };
        futures::future::join(there, back).await;
    }

    async fn wait(&self) {
        let mut lists = self.lists.subscribe();
        if !lists.borrow().held {
            return;
        }
        let mut place = 0;
        self.lists.send_modify(|lists| {
            lists.waiting += 1;
            place = lists.waiting;
        });
        let lost = lists.wait_for(|lists| !lists.held).await.unwrap().lost;
        if place <= lost {
            std::future::pending().await
        }
    }

    /// Lets lists wait from now on.
    fn hold(&self) {
        self.lists.send_modify(|lists| lists.held = true);
    }

    /// Lets lists pass, also those that wait.
    fn release(&self) {
        self.lists.send_modify(|lists| lists.held = false);
    }

    /// Lets lists pass, but not those that wait.
    fn lose(&self) {
        self.lists.send_modify(|lists| (lists.held, lists.lost) = (false, lists.waiting));
    }

    async fn list_waits(&self) {
        let waits = async || (self.lists.borrow().waiting > 0).then_some(());
        eventually(PATIENCE, "a list that waits", waits).await.unwrap();
    }

    /// Lets the connections that are there hang. Others can be made.
    fn cut(&self) {
        self.cuts.send_modify(|count| *count += 1);
    }
}

fn lists_replica_sets(request: &[u8]) -> bool {
    let line = request.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    line.starts_with("GET /apis/apps/v1/replicasets?") && !line.contains("watch=")
}

/// The API server without TLS, for whoever must read what is asked. Ends when dropped.
struct Proxy {
    process: Child,
    address: String,
}

impl Proxy {
    async fn start(plane: &ControlPlane) -> Self {
        let port = free_port().unwrap().to_string();
        let mut kubectl = plane.kubectl("kausality", &[MASTERS]);
        let process = kubectl.args(["proxy", "--port", &port]).stdout(Stdio::null()).spawn().unwrap();
        let proxy = Self { process, address: format!("127.0.0.1:{port}") };
        let serves = async || fetch(&proxy.address, "/readyz").await.map(drop);
        eventually(PATIENCE, "kubectl proxy", serves).await.unwrap();
        proxy
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A webhook whose list of ReplicaSets waits, and its health address.
async fn webhook_that_waits(plane: &ControlPlane, line: &Line) -> (Webhook, String) {
    line.hold();
    let own = kubeconfig_at(plane, &format!("http://127.0.0.1:{}", line.port));
    let health = format!("127.0.0.1:{}", free_port().unwrap());
    let arguments = ["--kubeconfig", &own, "--bind-address", "127.0.0.1:0", "--health-address", &health];
    let arguments = [&arguments[..], &["--resources", "deployments.apps,replicasets.apps"]].concat();
    let webhook = Webhook::spawn_as(plane, "webhook.log", &arguments);
    line.list_waits().await;
    // Everything else is there.
    let synced = async || (metric(&health, "kausality_watch_synced", "Deployment").await > 0.0).then_some(());
    eventually(PATIENCE, "the Deployments", synced).await.unwrap();
    (webhook, health)
}

/// Not ready while one list is late, and ready once it has come.
#[tokio::test(flavor = "multi_thread")]
async fn it_is_ready_when_everything_has_been_read() {
    let Some(plane) = stage().await else { return };
    let proxy = Proxy::start(&plane).await;
    let line = Line::to(proxy.address.clone()).await;
    let (_webhook, health) = webhook_that_waits(&plane, &line).await;
    assert_eq!(metric(&health, "kausality_watch_synced", "ReplicaSet").await, 0.0);
    let answer = fetch(&health, "/readyz").await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("caches are not synced yet"), "{answer}");
    assert!(
        fetch(&health, "/healthz").await.unwrap().starts_with("HTTP/1.1 200"),
        "nobody should restart it"
    );

    line.release();
    eventually(PATIENCE, "readiness", async || is_ready(&health).await.then_some(())).await.unwrap();
    assert_eq!(metric(&health, "kausality_watch_synced", "ReplicaSet").await, 1.0);
}

/// A list that is never answered is asked for again.
#[tokio::test(flavor = "multi_thread")]
async fn a_list_that_gets_lost_is_asked_for_again() {
    let Some(plane) = stage().await else { return };
    let proxy = Proxy::start(&plane).await;
    let line = Line::to(proxy.address.clone()).await;
    let (_webhook, health) = webhook_that_waits(&plane, &line).await;
    line.lose();
    let begun = Instant::now();
    eventually(PATIENCE, "readiness", async || is_ready(&health).await.then_some(())).await.unwrap();
    println!("ready {:.1} s after a list got lost", begun.elapsed().as_secs_f64());
    let log = std::fs::read_to_string(plane.folder().join("webhook.log")).unwrap();
    assert!(log.contains("no list within"), "{log}");
}

/// A webhook that is registered for Deployments and ReplicaSets, and that reaches the API server by a line.
struct Remote {
    _webhook: Webhook,
    line: Arc<Line>,
    health: String,
}

impl Remote {
    /// With a Deployment that has rolled out.
    async fn start(plane: &ControlPlane) -> Self {
        let line = Line::to(plane.url().trim_start_matches("https://").to_owned()).await;
        let own = kubeconfig_at(plane, &format!("https://127.0.0.1:{}", line.port));
        let health = format!("127.0.0.1:{}", free_port().unwrap());
        let arguments = ["--register", "--kubeconfig", &own, "--bind-address", "127.0.0.1:0"];
        let resources = ["--health-address", &health, "--resources", "deployments.apps,replicasets.apps"];
        let webhook = Webhook::spawn_as(plane, "webhook.log", &[&arguments[..], &resources].concat());
        registered(plane).await;
        must(plane, "alice", &["create", "deployment", "web", "--image=nginx:1", "--replicas=2"]);
        rolled_out(plane, "web", 1).await;
        let remote = Self { _webhook: webhook, line, health };
        let seen = async || (remote.known("ReplicaSet").await == 1.0).then_some(());
        eventually(PATIENCE, "one ReplicaSet", seen).await.unwrap();
        remote
    }

    /// How many objects of a kind are known.
    async fn known(&self, kind: &str) -> f64 {
        metric(&self.health, "kausality_watch_objects", &format!("{kind:?}")).await
    }

    /// Since when the watch of a kind has been silent.
    async fn silence(&self, kind: &str) -> f64 {
        metric(&self.health, "kausality_watch_silence_seconds", &format!("{kind:?}")).await
    }
}

const DEPLOYMENT_CONTROLLER: &str = "system:serviceaccount:kube-system:deployment-controller";

/// What the webhook refused to the Deployment controller, with this code.
fn refused(plane: &ControlPlane, code: u16) -> Vec<String> {
    let events = plane.audit().unwrap().into_iter();
    let events = events.filter(|event| event.code == code && event.user == DEPLOYMENT_CONTROLLER);
    events.map(|event| event.response.unwrap_or_default()["message"].to_string()).collect()
}

/// Watches that have died without a word: until that is noticed nothing legitimate is denied, and then everything that
/// has happened meanwhile is known.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn watches_notice_that_they_are_dead() {
    let Some(plane) = stage().await else { return };
    let _kubelet = plane.play_kubelet().await.unwrap();
    let remote = Remote::start(&plane).await;

    remote.line.cut();
    let cut = Instant::now();
    must(&plane, "bob", &["set", "image", "deployment/web", "nginx=nginx:2"]);
    rolled_out(&plane, "web", 2).await;
    println!("rolled out {:.1} s after the cut", cut.elapsed().as_secs_f64());
    assert_eq!(remote.known("ReplicaSet").await, 1.0, "the watch is dead");
    let sets = replica_sets(&plane);
    let current = sets.iter().find(|set| set["spec"]["replicas"] == 2).unwrap();
    assert_eq!(users(current), ["bob", DEPLOYMENT_CONTROLLER]);
    assert_eq!(refused(&plane, 403), [""; 0]);

    eventually(Duration::from_secs(45), "watches that work", async || {
        let sets = remote.known("ReplicaSet").await;
        let silent = [remote.silence("Deployment").await, remote.silence("ReplicaSet").await];
        let works = sets == 2.0 && silent.iter().all(|silence| *silence < 20.0);
        if works { Ok(()) } else { Err(format!("{sets} ReplicaSets are known, silence {silent:?}")) }
    })
    .await
    .unwrap();
    println!("watches work {:.1} s after the cut", cut.elapsed().as_secs_f64());
    assert!(cut.elapsed() < Duration::from_secs(45), "{:?}", cut.elapsed());
    let outage = async || {
        let seconds = metric(&remote.health, "kausality_watch_outage_seconds", "").await;
        if seconds == 0.0 { Ok(()) } else { Err(seconds.to_string()) }
    };
    eventually(PATIENCE, "no outage", outage).await.unwrap();

    let name = current["metadata"]["name"].as_str().unwrap();
    must(&plane, "carol", &["scale", "replicaset", name, "--replicas=3"]);
    denial(&plane, 0).await;
    assert_eq!(get(&plane, &["replicaset", name])["spec"]["replicas"], 3);
    must(&plane, "bob", &["set", "image", "deployment/web", "nginx=nginx:3"]);
    rolled_out(&plane, "web", 3).await;
}

/// In log mode nobody waits until a drift is confirmed. What a dead watch took for one is put right, and not entered.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_is_told_of_as_drift_by_mistake_is_put_right() {
    let Some(plane) = stage().await else { return };
    let _kubelet = plane.play_kubelet().await.unwrap();
    define(&plane).await;
    must(&plane, "alice", &["annotate", "namespace", "default", "kausality.io/mode=log"]);
    let remote = Remote::start(&plane).await;

    remote.line.cut();
    must(&plane, "bob", &["set", "image", "deployment/web", "nginx=nginx:2"]);
    rolled_out(&plane, "web", 2).await;
    let told = eventually(PATIENCE, "a change that is told of as drift", async || {
        let events = plane.audit().unwrap();
        let told = |event: &&AuditEvent| {
            event.annotations.get("drift.kausality.io/drift").is_some_and(|drift| drift == "true")
        };
        let told = events.iter().filter(told).map(|event| event.name.clone()).next();
        told.ok_or("none: the test shows nothing")
    });
    let told = told.await.unwrap();
    eventually(Duration::from_secs(45), "the right traces", async || {
        let sets = replica_sets(&plane);
        let wrong = sets.iter().find(|set| users(set) != ["bob", DEPLOYMENT_CONTROLLER]);
        wrong.map_or(Ok(()), |wrong| Err(format!("{told}: {:?} on {wrong:#}", users(wrong))))
    })
    .await
    .unwrap();
    assert_eq!(drifts(&plane), Vec::<Value>::new());
}

/// Connections that were kept for later have died too: no read on the way of a legitimate change is lost in one.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn dead_connections_are_not_used_again() {
    let Some(plane) = stage().await else { return };
    let _kubelet = plane.play_kubelet().await.unwrap();
    let remote = Remote::start(&plane).await;
    // Many drifts at once make the webhook read a lot at once.
    let sets = replica_sets(&plane);
    let name = sets[0]["metadata"]["name"].as_str().unwrap();
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("apps", "v1", "ReplicaSet"));
    let client = plane.client(DEPLOYMENT_CONTROLLER, &[MASTERS]).unwrap();
    let api: Api<DynamicObject> = Api::namespaced_with(client, "default", &resource);
    let (parameters, patch) = (PatchParams::default(), Patch::Merge(json!({"spec": {"replicas": 7}})));
    let drifts = (0..12).map(|_| api.patch(name, &parameters, &patch));
    let drifts = futures::future::join_all(drifts).await;
    assert!(drifts.iter().all(Result::is_err), "all are denied");

    remote.line.cut();
    must(&plane, "bob", &["set", "image", "deployment/web", "nginx=nginx:2"]);
    rolled_out(&plane, "web", 2).await;
    assert_eq!(refused(&plane, 500), [""; 0]);
    assert_eq!(refused(&plane, 403).len(), drifts.len(), "and none of the roll-out");
}
