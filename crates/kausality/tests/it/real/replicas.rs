//! Three webhooks behind one address: each goes and comes back, certificates change, and no client notices.

use std::{
    fs,
    path::PathBuf,
    process::Command,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use kausality_testbed::{ControlPlane, MASTERS, eventually};
use kube::{
    api::{Api, DeleteParams, Patch, PatchParams, PostParams},
    core::{ApiResource, DynamicObject, GroupVersionKind},
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
};

use crate::real::stage::*;

const WRITERS: usize = 8;

/// How often each writer writes: a steady load, that lets a machine with two cores do other things too.
const PACE: Duration = Duration::from_millis(100);

/// How often replicas are asked whether they are ready. What becomes of one in between is not known.
const PROBE: Duration = Duration::from_secs(1);

/// How long a request travels to a replica. On loopback it takes so little that one connection would do for all, and one
/// replica would get everything.
const TRAVEL: Duration = Duration::from_millis(20);

/// Where a replica is.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) admission: String,
    pub(crate) health: String,
}

/// The replicas, and the address at which one of them answers.
struct Replicas<'a> {
    plane: &'a ControlPlane,
    certificate: PathBuf,
    key: PathBuf,
    /// Known to the load balancer, too.
    places: Arc<Mutex<Vec<Place>>>,
    running: Vec<Webhook>,
}

impl<'a> Replicas<'a> {
    /// Starts them, with a load balancer before them and a registration that names it.
    async fn start(plane: &'a ControlPlane, host: &str, first: &Pair, trusted: &[&Pair]) -> Self {
        let file = |name: &str| plane.folder().join(name);
        let (certificate, key) = (file("webhook.pem"), file("webhook.key"));
        let mut replicas = Self { plane, certificate, key, places: Arc::default(), running: Vec::new() };
        replicas.serve_with(first);
        for _ in 0..3 {
            let (replica, place) = replicas.spawn().await;
            replicas.running.push(replica);
            replicas.places.lock().unwrap().push(place);
        }
        let bundle: Vec<&str> = trusted.iter().map(|pair| pair.certificate.as_str()).collect();
        fs::write(file("bundle.pem"), bundle.join("")).unwrap();
        let url = format!("https://{host}:{}/admit", balance(replicas.places.clone()).await);
        let bundle = file("bundle.pem");
        let arguments = ["--register", "--url", &url, "--ca-bundle-file", bundle.to_str().unwrap()];
        let arguments = [&["--bind-address", "127.0.0.1:0", "--resources", "configmaps"], &arguments[..]];
        // One that is killed leaves its registration behind.
        let registrar = Webhook::spawn(plane, "registrar.log", &arguments.concat());
        registered(plane).await;
        drop(registrar);
        replicas
    }

    /// Starts one, and waits until it is ready. It is where it was never before, as a Pod is, with a log of its own.
    async fn spawn(&self) -> (Webhook, Place) {
        let arguments = [
            "--bind-address",
            "127.0.0.1:0",
            "--health-address",
            "127.0.0.1:0",
            "--tls-cert-file",
            self.certificate.to_str().unwrap(),
            "--tls-private-key-file",
            self.key.to_str().unwrap(),
            "--resources",
            "configmaps",
        ];
        let log = format!("webhook-{}.log", jiff::Timestamp::now());
        let webhook = Webhook::spawn(self.plane, &log, &arguments);
        let address = async |message: &str| {
            eventually(PATIENCE, message, async || {
                let text = fs::read_to_string(self.plane.folder().join(&log)).unwrap();
                let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
                let mut found = lines.filter(|line| line["fields"]["message"] == message);
                let found = found.next().ok_or(text)?["fields"]["address"].as_str().unwrap().to_owned();
                Ok::<String, String>(found)
            })
            .await
            .unwrap()
        };
        let health = address("serving probes and metrics without TLS").await;
        let place = Place { admission: address("serving admission").await, health };
        let ready = async || is_ready(&place.health).await.then_some(());
        eventually(PATIENCE, "readiness", ready).await.unwrap();
        (webhook, place)
    }

    fn place(&self, number: usize) -> Place {
        self.places.lock().unwrap()[number].clone()
    }

    /// Waits until one of these has decided something since it started.
    async fn at_work(&self, numbers: &[usize]) -> usize {
        eventually(PATIENCE, "a decision of a replica", async || {
            for number in numbers {
                if self.decided(*number).await > 0.0 {
                    return Some(*number);
                }
            }
            None
        })
        .await
        .unwrap()
    }

    /// Ends one as a rolling update does, and starts it again.
    async fn restart(&mut self, number: usize) {
        let process = &mut self.running[number].0;
        assert!(Command::new("kill").arg(process.id().to_string()).status().unwrap().success());
        let ended = eventually(PATIENCE, "the end of the replica", async || process.try_wait().unwrap());
        assert!(ended.await.unwrap().success());
        let (replica, place) = self.spawn().await;
        self.running[number] = replica;
        self.places.lock().unwrap()[number] = place;
    }

    async fn decided(&self, number: usize) -> f64 {
        metric(&self.place(number).health, "kausality_decisions_total", "").await
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
        let url = format!("https://{}", self.place(number).admission);
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
        let made =
            rcgen::generate_simple_self_signed(["127.0.0.1".to_owned(), "0.0.0.0".to_owned()]).unwrap();
        Self {
            certificate: made.cert.pem(),
            der: made.cert.der().to_vec(),
            key: made.signing_key.serialize_pem(),
        }
    }
}

/// Passes each connection to the next replica that is ready, as a Service does: as far as it knows, and without a second
/// try. It stays there until that replica, or the client, closes it.
pub(crate) async fn balance(replicas: Arc<Mutex<Vec<Place>>>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut ready = readiness(replicas).await;
    tokio::spawn(async move {
        for turn in 0.. {
            let (from, _) = listener.accept().await.unwrap();
            let ready = ready.borrow_and_update().clone();
            let Some(replica) = ready.get(turn % ready.len().max(1)).cloned() else { continue };
            tokio::spawn(async move {
                let Ok(to) = TcpStream::connect(&replica.admission).await else { return };
                pass(from, to).await;
            });
        }
    });
    port
}

/// Which replicas are ready, asked for again and again.
async fn readiness(replicas: Arc<Mutex<Vec<Place>>>) -> watch::Receiver<Vec<Place>> {
    let look = async move || {
        let replicas = replicas.lock().unwrap().clone();
        let ready = replicas.iter().map(|replica| is_ready(&replica.health));
        let ready = futures::future::join_all(ready).await;
        let ready = replicas.iter().zip(ready).filter(|(_, ready)| *ready);
        ready.map(|(replica, _)| replica.clone()).collect()
    };
    let (sender, receiver) = watch::channel(look().await);
    tokio::spawn(async move {
        let mut probes = tokio::time::interval(PROBE);
        while !sender.is_closed() {
            probes.tick().await;
            sender.send_replace(look().await);
        }
    });
    receiver
}

/// Passes on what client and replica say, and that one of them has closed.
async fn pass(client: TcpStream, replica: TcpStream) {
    let ((mut requests, mut to_client), (mut answers, mut to_replica)) =
        (client.into_split(), replica.into_split());
    let there = async {
        let mut buffer = vec![0; 16 << 10];
        while let Ok(length) = requests.read(&mut buffer).await
            && length > 0
        {
            tokio::time::sleep(TRAVEL).await;
            if to_replica.write_all(&buffer[..length]).await.is_err() {
                break;
            }
        }
        let _ = to_replica.shutdown().await;
    };
    let back = async {
        let _ = tokio::io::copy(&mut answers, &mut to_client).await;
        let _ = to_client.shutdown().await;
    };
    futures::future::join(there, back).await;
}

/// How many writes each writer makes, however soon it is told to stop: a slow machine makes few in the time of a story.
const AT_LEAST: usize = 36;

/// Creates, changes and deletes ConfigMaps until told to stop. The number of writes, and why some of them failed.
pub(crate) async fn write(plane: &ControlPlane, writer: usize, stop: &AtomicBool) -> (usize, Vec<String>) {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "ConfigMap"));
    let client = plane.client(&format!("writer-{writer}"), &[MASTERS]).unwrap();
    let api: Api<DynamicObject> = Api::namespaced_with(client, "default", &resource);
    let mut pace = tokio::time::interval(PACE);
    let (mut writes, mut failures) = (0, Vec::new());
    while !stop.load(Ordering::Relaxed) || writes < AT_LEAST {
        let name = format!("writer-{writer}-{writes}");
        let object =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "1"}});
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

/// How an API server talks to a webhook, which it makes out by the host in its URL.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Protocol {
    /// To a Service, or to another machine: a pool of connections, of which each has one request at a time.
    Http1,
    /// To loopback: one connection for all requests.
    Http2,
}

impl Protocol {
    fn host(self) -> &'static str {
        match self {
            // Reaches this machine, but is no loopback address.
            Self::Http1 => "0.0.0.0",
            Self::Http2 => "127.0.0.1",
        }
    }
}

/// New certificates and a rolling restart under load: every write is reviewed, and none fails. The figures.
async fn check_replacement(protocol: Protocol) -> Option<String> {
    let plane = stage().await?;
    let (first, second) = (Pair::make(), Pair::make());
    let mut replicas = Replicas::start(&plane, protocol.host(), &first, &[&first, &second]).await;
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
            let replaced = async || replicas.shows(number, &second).await.then_some(());
            eventually(PATIENCE, "the second certificate", replaced).await.unwrap();
            assert!(!replicas.shows(number, &first).await, "replica {number} still shows the first one");
        }
        let mut restarted = Vec::new();
        for number in 0..3 {
            let next = match protocol {
                Protocol::Http1 => replicas.at_work(&[number]).await,
                Protocol::Http2 => replicas.at_work(&[0, 1, 2]).await,
            };
            restarted.push(format!("{next} after {}", replicas.decided(next).await));
            replicas.restart(next).await;
        }
        // Those that had gone before the last one took its requests over.
        replicas.at_work(&[0, 1, 2]).await;
        stop.store(true, Ordering::Relaxed);
        restarted
    };
    let (written, restarted) = futures::future::join(writers, replace).await;

    let writes: usize = written.iter().map(|(writes, _)| writes).sum();
    let failures: Vec<String> = written.into_iter().flat_map(|(_, failures)| failures).collect();
    assert!(failures.is_empty(), "{} of {writes} writes failed: {failures:#?}", failures.len());
    assert!(writes >= 300, "only {writes} writes");
    eventually(PATIENCE, "a review of every write", async || {
        let events = plane.audit().unwrap().into_iter();
        let reviewed = events
            .filter(|event| event.user.starts_with("writer-"))
            .filter(|event| event.annotations.contains_key("drift.kausality.io/decision"))
            .count();
        if reviewed == writes { Ok(()) } else { Err(format!("{reviewed} of {writes}")) }
    })
    .await
    .unwrap();
    Some(format!("{writes} writes; replicas restarted: {restarted:?} decisions"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn replacing_certificates_and_replicas_fails_no_request() {
    println!("{:?}", check_replacement(Protocol::Http1).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn replacing_certificates_and_replicas_fails_no_request_over_http_2() {
    println!("{:?}", check_replacement(Protocol::Http2).await);
}
