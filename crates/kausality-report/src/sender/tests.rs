use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
};

use axum::{Router, body::Body, extract::Request as Incoming, response::IntoResponse, routing::post};
use kausality_api::{
    phase::Phase,
    report::{ChildReference, DriftReportSpec, ParentReference, ReportPhase, RequestContext},
};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::{RootCertStore, ServerConfig, pki_types::pem::PemObject, server::WebPkiClientVerifier};
use tokio::net::TcpListener;

use super::*;
use crate::{
    endpoint::{Entry, check},
    signature::Key,
};

fn report() -> DriftReport {
    DriftReport::new(DriftReportSpec {
        id: "a1b2c3d4e5f67890".to_owned(),
        phase: ReportPhase::Detected,
        parent: ParentReference {
            api_version: "apps/v1".to_owned(),
            kind: "Deployment".to_owned(),
            namespace: "shop".to_owned(),
            name: "web".to_owned(),
            uid: None,
            generation: Some(1),
            observed_generation: Some(1),
            controller_manager: None,
            lifecycle_phase: Phase::Initialized,
        },
        child: ChildReference {
            api_version: "apps/v1".to_owned(),
            kind: "ReplicaSet".to_owned(),
            namespace: "shop".to_owned(),
            name: "web-1".to_owned(),
            uid: None,
            generation: None,
        },
        old_object: None,
        new_object: serde_json::json!({"spec": {"replicas": 1}}),
        request: RequestContext {
            user: "dc".to_owned(),
            groups: Vec::new(),
            uid: "u1".to_owned(),
            field_manager: None,
            operation: "UPDATE".to_owned(),
            dry_run: false,
        },
        denied_by: None,
    })
}

/// Serves what `answer` says on a port of this machine.
async fn serve<R: IntoResponse>(answer: impl AsyncFnSend<R>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router =
        Router::new().route("/hook", post(async move |request: Incoming| answer.call(request).await));
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

/// A handler. (Its future has to be `Send`, which `AsyncFn` cannot say.)
trait AsyncFnSend<R>: Clone + Send + Sync + 'static {
    fn call(self, request: Incoming) -> impl Future<Output = R> + Send;
}

impl<R, F, T> AsyncFnSend<R> for T
where
    T: Fn(Incoming) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = R> + Send,
{
    fn call(self, request: Incoming) -> impl Future<Output = R> + Send {
        self(request)
    }
}

fn entry(address: SocketAddr) -> Entry {
    Entry { name: "e".to_owned(), url: format!("http://{address}/hook"), ..Entry::default() }
}

fn sender(entry: Entry) -> Sender {
    Sender::new(check(vec![entry]).unwrap().remove(0)).unwrap()
}

async fn failure(sender: &Sender) -> Failure {
    sender.send(&report(), Timestamp::now()).await.unwrap_err()
}

fn file(folder: &Path, name: &str, content: &str) -> Option<PathBuf> {
    let path = folder.join(name);
    std::fs::write(&path, content).unwrap();
    Some(path)
}

#[tokio::test]
async fn what_is_sent_is_complete_signed_and_authorized_with_what_is_in_the_files() {
    let folder = tempfile::tempdir().unwrap();
    let secret = "0123456789abcdef";
    let address = serve(async move |request: Incoming| {
        let (parts, body) = request.into_parts();
        let body = axum::body::to_bytes(body, usize::MAX).await.unwrap();
        let header = |name: &str| parts.headers[name].to_str().unwrap().to_owned();
        assert_eq!(header("content-type"), "application/json");
        assert_eq!(serde_json::from_slice::<DriftReport>(&body).unwrap(), report());
        let key = Key::new(secret.as_bytes()).unwrap();
        key.verify(Timestamp::now(), &header(TIMESTAMP), &header(SIGNATURE), &body).unwrap();
        // An endpoint that repeats what it should not.
        format!(r#"{{"acknowledged":false,"error":"you said: {}"}}"#, header("authorization"))
    })
    .await;
    let token_file = file(folder.path(), "token", "first\n");
    let hmac_key_file = file(folder.path(), "hmac", secret);
    let sender = sender(Entry { token_file, hmac_key_file, ..entry(address) });
    let text = failure(&sender).await.text;
    assert_eq!(text, "the endpoint did not take it over: you said: Bearer [token]");
    file(folder.path(), "token", "second");
    let text = failure(&sender).await.text;
    assert_eq!(text, "the endpoint did not take it over: you said: Bearer [token]", "the new token was sent");
    std::fs::remove_file(folder.path().join("token")).unwrap();
    let gone = failure(&sender).await;
    assert!(gone.text.starts_with("tokenFile: cannot read"), "{gone}");
    assert_eq!(gone.about, About::Endpoint);
}

/// A volume as the kubelet keeps it: files lead through `..data`, which is replaced at once.
struct Volume(tempfile::TempDir);

impl Volume {
    fn put(&self, version: &str, files: &[(&str, &str)]) {
        let folder = self.0.path();
        std::fs::create_dir(folder.join(version)).unwrap();
        for (name, content) in files {
            std::fs::write(folder.join(version).join(name), content).unwrap();
            let link = folder.join(name);
            if link.symlink_metadata().is_err() {
                std::os::unix::fs::symlink(Path::new("..data").join(name), link).unwrap();
            }
        }
        std::os::unix::fs::symlink(version, folder.join("..new")).unwrap();
        std::fs::rename(folder.join("..new"), folder.join("..data")).unwrap();
    }

    fn file(&self, name: &str) -> Option<PathBuf> {
        Some(self.0.path().join(name))
    }
}

#[tokio::test]
async fn a_secret_that_is_replaced_in_its_volume_is_used_for_the_next_report() {
    static HEARD: Mutex<Vec<(String, bool, bool)>> = Mutex::new(Vec::new());
    const KEYS: [&str; 2] = ["0123456789abcdef", "fedcba9876543210"];
    let address = serve(async |request: Incoming| {
        let (parts, body) = request.into_parts();
        let body = axum::body::to_bytes(body, usize::MAX).await.unwrap();
        let header = |name: &str| parts.headers[name].to_str().unwrap().to_owned();
        let [old, new] = KEYS.map(|key| {
            let key = Key::new(key.as_bytes()).unwrap();
            key.verify(Timestamp::now(), &header(TIMESTAMP), &header(SIGNATURE), &body).is_ok()
        });
        HEARD.lock().unwrap().push((header("authorization"), old, new));
    })
    .await;
    let volume = Volume(tempfile::tempdir().unwrap());
    volume.put("..1", &[("token", "first"), ("hmac", KEYS[0])]);
    let (token_file, hmac_key_file) = (volume.file("token"), volume.file("hmac"));
    let sender = sender(Entry { token_file, hmac_key_file, ..entry(address) });
    let send = async || sender.send(&report(), Timestamp::now()).await.unwrap();
    send().await;
    volume.put("..2", &[("token", "second"), ("hmac", KEYS[1])]);
    send().await;
    let expected = [("Bearer first".to_owned(), true, false), ("Bearer second".to_owned(), false, true)];
    assert_eq!(*HEARD.lock().unwrap(), expected);
}

#[tokio::test]
async fn answers_are_bounded_and_waited_for_no_longer_than_said() {
    let large = serve(async |_| Body::from(vec![b' '; LARGEST_ANSWER + 1])).await;
    let failed = failure(&sender(entry(large))).await;
    assert!(failed.text.contains("something else (more than 65536 bytes)"), "{failed}");
    let whole = serve(async |_| Body::from(vec![b' '; LARGEST_ANSWER])).await;
    sender(entry(whole)).send(&report(), Timestamp::now()).await.unwrap();

    let silent = serve(async |_| std::future::pending::<()>().await).await;
    let failed = failure(&sender(Entry { timeout: Some("50ms".to_owned()), ..entry(silent) })).await;
    assert_eq!((failed.text.as_str(), failed.about), ("no answer within 50ms", About::Endpoint));

    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let failed = failure(&sender(entry(nobody))).await;
    assert!(failed.text.starts_with("cannot connect: ") && !failed.text.contains("hook"), "{failed}");
    assert_eq!(failed.about, About::Endpoint);

    let busy = serve(async |_| (StatusCode::TOO_MANY_REQUESTS, [(header::RETRY_AFTER, "17")], "")).await;
    assert_eq!(failure(&sender(entry(busy))).await.asked, Some(Duration::from_secs(17)));
}

#[tokio::test]
async fn redirects_are_not_followed() {
    static FOLLOWED: AtomicUsize = AtomicUsize::new(0);
    let elsewhere = serve(async |_| {
        FOLLOWED.fetch_add(1, Ordering::Relaxed);
    })
    .await;
    let to = format!("http://{elsewhere}/hook");
    let address = serve(move |_| {
        let to = to.clone();
        async move { (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, to)], "") }
    })
    .await;
    assert!(failure(&sender(entry(address))).await.text.contains("307"));
    assert_eq!(FOLLOWED.load(Ordering::Relaxed), 0);
}

/// A CA, and what it signs.
struct Authority(Issuer<'static, KeyPair>, String);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self(Issuer::new(params, key), pem)
    }

    fn sign(&self, name: &str) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        (params.signed_by(&key, &self.0).unwrap().pem(), key.serialize_pem())
    }
}

/// Serves TLS to those whom `clients` has signed, with a certificate of `servers`.
async fn serve_tls(servers: &Authority, clients: &Authority) -> SocketAddr {
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(clients.1.as_bytes()).unwrap()).unwrap();
    let verifier =
        WebPkiClientVerifier::builder_with_provider(roots.into(), provider.clone()).build().unwrap();
    let (certificate, key) = servers.sign("localhost");
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier)
        .with_single_cert(
            vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()],
            PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap(),
        )
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let router = Router::new().route("/hook", post(async || ""));
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, router) = (acceptor.clone(), router.clone());
            tokio::spawn(async move {
                let Ok(stream) = acceptor.accept(stream).await else { return };
                let service = hyper_util::service::TowerToHyperService::new(router);
                let io = hyper_util::rt::TokioIo::new(stream);
                _ = hyper::server::conn::http1::Builder::new().serve_connection(io, service).await;
            });
        }
    });
    address
}

#[tokio::test]
async fn both_sides_of_tls_know_each_other_and_certificates_rotate() {
    let folder = tempfile::tempdir().unwrap();
    let (servers, clients, others) = (Authority::new(), Authority::new(), Authority::new());
    let address = serve_tls(&servers, &clients).await;
    let url = format!("https://localhost:{}/hook", address.port());
    let ca_file = file(folder.path(), "ca", &servers.1);
    let anonymous = Entry { name: "e".to_owned(), url, ca_file, ..Entry::default() };
    assert_eq!(failure(&sender(anonymous.clone())).await.about, About::Endpoint, "who is this?");

    let identity = |authority: &Authority| {
        let (certificate, key) = authority.sign("kausality");
        (file(folder.path(), "cert", &certificate), file(folder.path(), "key", &key))
    };
    let (cert_file, key_file) = identity(&others);
    let sender = sender(Entry { cert_file, key_file, ..anonymous });
    failure(&sender).await;
    identity(&clients);
    sender.send(&report(), Timestamp::now()).await.unwrap();
    file(folder.path(), "ca", &others.1);
    let failed = failure(&sender).await;
    assert!(failed.text.contains("invalid peer certificate"), "{failed}");
    file(folder.path(), "ca", "nonsense");
    assert_eq!(failure(&sender).await.text, "caFile: holds no certificate in PEM form");
}

#[test]
fn files_are_looked_at_before_the_first_report() {
    let folder = tempfile::tempdir().unwrap();
    let address = SocketAddr::from(([127, 0, 0, 1], 1));
    let bad = |entry: Entry| Sender::new(check(vec![entry]).unwrap().remove(0)).unwrap_err().to_string();
    let nowhere = Some(PathBuf::from("/nowhere/at/all"));
    let message = bad(Entry { token_file: nowhere, ..entry(address) });
    assert!(message.starts_with("endpoint e: tokenFile: cannot read /nowhere/at/all"), "{message}");
    let hmac_key_file = file(folder.path(), "hmac", "short");
    assert!(bad(Entry { hmac_key_file, ..entry(address) }).contains("hmacKeyFile"));
    let url = "https://localhost/hook".to_owned();
    let message =
        bad(Entry { url, ca_file: file(folder.path(), "ca", "PRIVATE nonsense"), ..entry(address) });
    assert_eq!(message, "endpoint e: caFile: holds no certificate in PEM form");
}
