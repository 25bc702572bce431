//! Three webhooks behind one address: each goes and comes back, certificates change, and no client notices.

use std::{
    fs,
    path::PathBuf,
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use kausality_testbed::{ControlPlane, MASTERS, eventually, free_port};
use kube::{
    api::{Api, DeleteParams, Patch, PatchParams, PostParams},
    core::{ApiResource, DynamicObject, GroupVersionKind},
};
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};

use crate::stage::*;

const WRITERS: usize = 8;

/// How often each writer writes: a steady load, that lets a machine with two cores do other things too.
const PACE: Duration = Duration::from_millis(100);

/// Where a replica is.
#[derive(Clone)]
struct Place {
    admission: String,
    health: String,
}

/// The replicas, and the address at which one of them answers.
struct Replicas<'a> {
    plane: &'a ControlPlane,
    certificate: PathBuf,
    key: PathBuf,
    places: Vec<Place>,
    running: Vec<Webhook>,
}

impl<'a> Replicas<'a> {
    /// Starts them, with a load balancer before them and a registration that names it.
    async fn start(plane: &'a ControlPlane, first: &Pair, trusted: &[&Pair]) -> Self {
        let address = || format!("127.0.0.1:{}", free_port().unwrap());
        let places: Vec<_> = (0..3).map(|_| Place { admission: address(), health: address() }).collect();
        let file = |name: &str| plane.folder().join(name);
        let (certificate, key) = (file("webhook.pem"), file("webhook.key"));
        let mut replicas = Self { plane, certificate, key, places, running: Vec::new() };
        replicas.serve_with(first);
        for number in 0..replicas.places.len() {
            let replica = replicas.spawn(number);
            replicas.running.push(replica);
            replicas.ready(number).await;
        }
        let bundle: Vec<&str> = trusted.iter().map(|pair| pair.certificate.as_str()).collect();
        fs::write(file("bundle.pem"), bundle.join("")).unwrap();
        let url = format!("https://127.0.0.1:{}/admit", balance(replicas.places.clone()).await);
        let bundle = file("bundle.pem");
        let arguments = ["--register", "--url", &url, "--ca-bundle-file", bundle.to_str().unwrap()];
        let arguments = [&["--bind-address", "127.0.0.1:0", "--resources", "configmaps"], &arguments[..]];
        // One that is killed leaves its registration behind.
        let registrar = Webhook::spawn(plane, "registrar.log", &arguments.concat());
        registered(plane).await;
        drop(registrar);
        replicas
    }

    fn spawn(&self, number: usize) -> Webhook {
        let Place { admission, health } = &self.places[number];
        let arguments = [
            "--bind-address",
            admission,
            "--health-address",
            health,
            "--tls-cert-file",
            self.certificate.to_str().unwrap(),
            "--tls-private-key-file",
            self.key.to_str().unwrap(),
            "--shutdown-delay",
            "3",
            "--resources",
            "configmaps",
        ];
        Webhook::spawn(self.plane, &format!("webhook-{number}.log"), &arguments)
    }

    async fn ready(&self, number: usize) {
        let Place { health, .. } = &self.places[number];
        eventually(PATIENCE, "readiness", async || is_ready(health).await.then_some(())).await.unwrap();
    }

    /// Ends one as a rolling update does, and starts it again. Tells how much it had decided.
    async fn restart(&mut self, number: usize) -> f64 {
        let decided = eventually(PATIENCE, "a decision of the replica", async || {
            let decided = self.decided(number).await;
            (decided > 0.0).then_some(decided)
        });
        let decided = decided.await.unwrap();
        let process = &mut self.running[number].0;
        assert!(Command::new("kill").arg(process.id().to_string()).status().unwrap().success());
        let ended = eventually(PATIENCE, "the end of the replica", async || process.try_wait().unwrap());
        assert!(ended.await.unwrap().success());
        fs::rename(
            self.plane.folder().join(format!("webhook-{number}.log")),
            self.plane.folder().join(format!("webhook-{number}.before.log")),
        )
        .unwrap();
        self.running[number] = self.spawn(number);
        self.ready(number).await;
        decided
    }

    async fn decided(&self, number: usize) -> f64 {
        metric(&self.places[number].health, "kausality_decisions_total", "").await
    }

    /// Puts a certificate into the place of the one that is there, in no other way than a mounted Secret does: each
    /// file at once, but one after the other.
    fn serve_with(&self, pair: &Pair) {
        for (file, text) in [(&self.certificate, &pair.certificate), (&self.key, &pair.key)] {
            let new = file.with_extension("new");
            fs::write(&new, text).unwrap();
            fs::rename(new, file).unwrap();
        }
    }

    /// Whether a replica shows this certificate to whoever connects.
    async fn shows(&self, number: usize, pair: &Pair) -> bool {
        let url = format!("https://{}", self.places[number].admission);
        let mut config = kube::Config::new(url.parse().unwrap());
        config.root_cert = Some(vec![pair.der.clone()]);
        let client = kube::Client::try_from(config).unwrap();
        let request = http::Request::get("/healthz").body(Vec::new()).unwrap();
        client.request_text(request).await.is_ok()
    }
}

/// A certificate that vouches for itself, and its key.
struct Pair {
    certificate: String,
    der: Vec<u8>,
    key: String,
}

impl Pair {
    fn make() -> Self {
        let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        Self {
            certificate: made.cert.pem(),
            der: made.cert.der().to_vec(),
            key: made.signing_key.serialize_pem(),
        }
    }
}

/// Passes each connection to the next replica that is ready, as a Service does. It stays there until that replica, or
/// the client, closes it.
async fn balance(replicas: Vec<Place>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        for turn in 0.. {
            let (mut from, _) = listener.accept().await.unwrap();
            let mut candidates = replicas.clone();
            candidates.rotate_left(turn % replicas.len());
            tokio::spawn(async move {
                for Place { admission, health } in &candidates {
                    if is_ready(health).await
                        && let Ok(mut to) = TcpStream::connect(admission).await
                    {
                        let _ = tokio::io::copy_bidirectional(&mut from, &mut to).await;
                        return;
                    }
                }
            });
        }
    });
    port
}

/// Creates, changes and deletes ConfigMaps until told to stop. The number of writes, and why some of them failed.
async fn write(plane: &ControlPlane, writer: usize, stop: &AtomicBool) -> (usize, Vec<String>) {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "ConfigMap"));
    let client = plane.client(&format!("writer-{writer}"), &[MASTERS]).unwrap();
    let api: Api<DynamicObject> = Api::namespaced_with(client, "default", &resource);
    let mut pace = tokio::time::interval(PACE);
    let (mut writes, mut failures) = (0, Vec::new());
    while !stop.load(Ordering::Relaxed) {
        let name = format!("writer-{writer}-{writes}");
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "1"}});
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        pace.tick().await;
        let created = api.create(&PostParams::default(), &object).await.map(drop);
        pace.tick().await;
        let patch = Patch::Merge(json!({"data": {"a": "2"}}));
        let patched = api.patch(&name, &PatchParams::default(), &patch).await.map(drop);
        pace.tick().await;
        let deleted = api.delete(&name, &DeleteParams::default()).await.map(drop);
        writes += 3;
        let outcomes = [created, patched, deleted].into_iter();
        failures.extend(outcomes.filter_map(|outcome| outcome.err().map(|error| error.to_string())));
    }
    (writes, failures)
}

/// New certificates and a rolling restart under load: every write is reviewed, and none fails.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn certificates_and_replicas_are_replaced_without_a_failed_request() {
    let Some(plane) = stage().await else { return };
    let (first, second) = (Pair::make(), Pair::make());
    let mut replicas = Replicas::start(&plane, &first, &[&first, &second]).await;
    let registration = get(&plane, &["mutatingwebhookconfiguration", "kausality"]);
    assert_eq!(registration["webhooks"][0]["failurePolicy"], "Fail");

    let stop = AtomicBool::new(false);
    let writers = futures::future::join_all((0..WRITERS).map(|writer| write(&plane, writer, &stop)));
    let replace = async {
        for number in 0..3 {
            assert!(replicas.shows(number, &first).await, "replica {number} shows the first certificate");
        }
        replicas.serve_with(&second);
        for number in 0..3 {
            eventually(PATIENCE, "the second certificate", async || {
                replicas.shows(number, &second).await.then_some(())
            })
            .await
            .unwrap();
            assert!(!replicas.shows(number, &first).await, "replica {number} still shows the first certificate");
        }
        let mut decided = Vec::new();
        for number in 0..3 {
            decided.push(replicas.restart(number).await);
        }
        // Connections that the last one lost went to the others.
        for number in 0..2 {
            let restarted = async || (replicas.decided(number).await > 0.0).then_some(());
            eventually(PATIENCE, "a decision of a replica that was restarted", restarted).await.unwrap();
        }
        stop.store(true, Ordering::Relaxed);
        decided
    };
    let (written, decided) = futures::future::join(writers, replace).await;

    let writes: usize = written.iter().map(|(writes, _)| writes).sum();
    let failures: Vec<String> = written.into_iter().flat_map(|(_, failures)| failures).collect();
    println!("{writes} writes, decided before their restarts: {decided:?}");
    assert!(failures.is_empty(), "{} of {writes} writes failed: {failures:#?}", failures.len());
    assert!(writes >= 300, "only {writes} writes");
    eventually(PATIENCE, "a review of every write", async || {
        let events = plane.audit().unwrap().into_iter();
        let writes_seen = events.filter(|event| event.user.starts_with("writer-"));
        let reviewed = writes_seen.filter(|event| event.annotations.contains_key("drift.kausality.io/decision"));
        let reviewed = reviewed.count();
        if reviewed == writes { Ok(()) } else { Err(format!("{reviewed} of {writes}")) }
    })
    .await
    .unwrap();
}
