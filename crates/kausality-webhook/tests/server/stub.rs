//! An admission without a cluster, and a server on it.

use std::{
    net::SocketAddr,
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use kausality_core::{
    Facts, Review, Settings,
    decision::{Denial, Verdict},
};
use kausality_webhook::{Admission, BadReview, Bytes, Certificates, Config, Metrics, Reply, Server, Subject};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::{Semaphore, oneshot, watch},
    task::JoinHandle,
    time::timeout,
};

use crate::{
    client::{Client, PATIENCE},
    log,
};

/// Decides with the core, on no facts; the name of the object asks for something else.
pub(crate) struct Stub {
    pub(crate) ready: AtomicBool,
    /// `stuck` objects that have come in.
    pub(crate) stuck: watch::Sender<usize>,
    /// Permits for `stuck` objects to go on.
    pub(crate) release: Semaphore,
    /// Whether `busy` objects, which keep their threads, may go on.
    pub(crate) done: (Mutex<bool>, Condvar),
}

impl Default for Stub {
    fn default() -> Self {
        Self {
            ready: true.into(),
            stuck: watch::Sender::new(0),
            release: Semaphore::new(0),
            done: Default::default(),
        }
    }
}

impl Admission for Stub {
    async fn decide(&self, bytes: Bytes, _until: Instant) -> Result<Reply, BadReview> {
        let review = Review::parse(&bytes)?;
        let settings = Settings::default();
        let facts = Facts::new("2026-01-24T10:30:00Z".parse().unwrap(), &settings);
        let mut decision = kausality_core::decide(&review, &facts);
        match &*review.request.name {
            "panic" => panic!("quoting hunter2"),
            "stuck" => {
                self.stuck.send_modify(|stuck| *stuck += 1);
                self.release.acquire().await.unwrap().forget();
            }
            "busy" => {
                self.stuck.send_modify(|stuck| *stuck += 1);
                let (done, told) = &self.done;
                drop(told.wait_while(done.lock().unwrap(), |done| !*done).unwrap());
            }
            "denied" => {
                let message = "kausality: no".to_owned();
                decision.verdict = Verdict::Deny(Denial { code: 403, reason: "Forbidden", message });
            }
            _ => {}
        }
        Ok(Reply { subject: Subject::from(&review.request), decision })
    }

    fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Relaxed)
    }
}

/// A review of a ConfigMap that is created. Its data is something that nobody may see.
pub(crate) fn review(name: &str) -> String {
    format!(
        r#"{{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{{"uid":"uid-of-{name}",
        "kind":{{"group":"","version":"v1","kind":"ConfigMap"}},"operation":"CREATE",
        "resource":{{"group":"","version":"v1","resource":"configmaps"}},"namespace":"shop","name":"{name}",
        "userInfo":{{"username":"alice"}},"object":{{"apiVersion":"v1","kind":"ConfigMap",
        "metadata":{{"name":"{name}","namespace":"shop"}},"data":{{"password":"hunter2"}}}}}}}}"#
    )
}

/// The same, of so many bytes.
pub(crate) fn large(name: &str, bytes: usize) -> String {
    let review = review(name);
    let padding = " ".repeat(bytes - review.len());
    review + &padding
}

/// A server that runs.
pub(crate) struct Running {
    pub(crate) stub: Arc<Stub>,
    pub(crate) client: Client,
    pub(crate) health: Option<SocketAddr>,
    shutdown: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

/// Starts a server with a self-signed certificate.
pub(crate) async fn start(adjust: impl FnOnce(&mut Config)) -> Running {
    let certificates = Certificates::self_signed(&["localhost".to_owned()], &[]).unwrap();
    let ca = certificates.ca_pem().unwrap().to_owned();
    start_with(certificates, &[&ca], adjust).await
}

pub(crate) async fn start_with(
    certificates: Certificates,
    roots: &[&str],
    adjust: impl FnOnce(&mut Config),
) -> Running {
    log::install();
    let mut config = Config::new(([127, 0, 0, 1], 0).into(), certificates);
    adjust(&mut config);
    let stub = Arc::new(Stub::default());
    let listening = Server::new(config, Arc::clone(&stub), Metrics::default()).listen().await.unwrap();
    let client = Client::new(listening.address(), roots);
    let health = listening.health_address();
    let (shutdown, signal) = oneshot::channel();
    let task = tokio::spawn(listening.run(async { _ = signal.await }));
    Running { stub, client, health, shutdown: Some(shutdown), task }
}

impl Running {
    pub(crate) fn shut_down(&mut self) {
        self.shutdown.take().unwrap().send(()).unwrap();
    }

    /// Waits until the server has ended on its own.
    pub(crate) async fn ended(self) {
        timeout(PATIENCE, self.task).await.expect("the server does not end").unwrap();
    }

    /// Waits until so many `stuck` requests are under way.
    pub(crate) async fn wait_for_stuck(&self, number: usize) {
        let mut stuck = self.stub.stuck.subscribe();
        timeout(PATIENCE, stuck.wait_for(|stuck| *stuck >= number)).await.expect("not stuck").unwrap();
    }

    /// The value of a metric, with its labels as they are written.
    pub(crate) async fn metric(&self, name: &str) -> Option<f64> {
        let answer = self.client.get("/metrics").await;
        let line = answer
            .text()
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))
            .map(str::to_owned);
        line.map(|value| value.parse().unwrap())
    }
}

/// Asks again until the answer is the right one.
pub(crate) async fn eventually<F: Future<Output = bool>>(what: &str, mut is_so: impl FnMut() -> F) {
    let all = async {
        while !is_so().await {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, all).await.unwrap_or_else(|_| panic!("{what}: not within {PATIENCE:?}"));
}

/// What is served at an address without TLS, with its head.
pub(crate) async fn fetch(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    text
}
