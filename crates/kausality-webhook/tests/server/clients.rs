//! Who may post reviews, over real TLS.

use std::fs;

use kausality_webhook::{Clients, Config};
use rcgen::{BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use tempfile::TempDir;

use crate::{
    client::{Answer, BOTH, Client, Protocol, request},
    stub::{Running, eventually, review, start},
};

const REVIEWS: [&str; 5] = ["/", "/admit", "/decisions", "/inputs", "/validate"];

struct Ca {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Ca {
    fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        Self { pem: params.self_signed(&key).unwrap().pem(), issuer: Issuer::new(params, key) }
    }

    /// A client that shows a certificate of this CA.
    fn known(&self, client: &Client, name: &str) -> Client {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().unwrap();
        let made = params.signed_by(&key, &self.issuer).unwrap();
        client.with_certificate(made.pem(), key.serialize_pem())
    }
}

struct Guarded {
    server: Running,
    dir: TempDir,
    ca: Ca,
}

/// A server that asks for a certificate of a CA, or a token, or both.
async fn guarded(adjust: impl FnOnce(&mut Config, &TempDir)) -> Guarded {
    let (dir, ca) = (tempfile::tempdir().unwrap(), Ca::new());
    fs::write(dir.path().join("ca.crt"), &ca.pem).unwrap();
    fs::write(dir.path().join("token"), "s3cret\n").unwrap();
    let server = start(|config| adjust(config, &dir)).await;
    Guarded { server, dir, ca }
}

fn by_certificate(names: &[&str]) -> impl FnOnce(&mut Config, &TempDir) {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    move |config, dir| {
        config.clients = Clients::default().with_authority(dir.path().join("ca.crt"), &names).unwrap();
    }
}

fn by_token(config: &mut Config, dir: &TempDir) {
    config.clients = Clients::default().with_token(dir.path().join("token")).unwrap();
}

async fn post(client: &Client, protocol: Protocol, path: &str, token: Option<&str>) -> Answer {
    let mut request = request("POST", path, review("a"));
    if let Some(token) = token {
        request.headers_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
    }
    client.send(protocol, request).await
}

async fn refused(server: &Running, reason: &str) -> f64 {
    let name = format!("kausality_clients_refused_total{{reason=\"{reason}\"}}");
    server.metric(&name).await.unwrap_or_default()
}

#[tokio::test]
async fn who_shows_no_certificate_posts_no_reviews_but_reads_probes() {
    let Guarded { server, ca, dir: _dir } = guarded(by_certificate(&[])).await;
    let known = ca.known(&server.client, "kube-apiserver");
    for protocol in BOTH {
        for path in REVIEWS {
            let answer = post(&server.client, protocol, path, None).await;
            assert_eq!(answer.status, 401, "{path}: {}", answer.text());
            assert!(answer.text().starts_with("kausality: reviews are taken from the API server alone"));
            let answer = post(&known, protocol, path, None).await;
            assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        }
    }
    for path in ["/healthz", "/readyz", "/metrics"] {
        assert_eq!(server.client.get(path).await.status, 200, "{path}");
    }
    assert_eq!(refused(&server, "none").await, 10.0);
    let counted = r#"controller_runtime_webhook_requests_total{webhook="/admit",code="401"}"#;
    assert_eq!(server.metric(counted).await, Some(8.0), "/validate is no decision");
}

/// A stranger's certificate breaks no handshake: the answer says what is wrong with it, and probes are still answered.
#[tokio::test]
async fn a_certificate_of_somebody_else_is_refused_in_words() {
    let Guarded { server, dir: _dir, .. } = guarded(by_certificate(&[])).await;
    let stranger = Ca::new().known(&server.client, "stranger");
    for protocol in BOTH {
        let answer = post(&stranger, protocol, "/admit", None).await;
        assert_eq!(answer.status, 401);
        let said = answer.text();
        assert!(said.contains(r#"the client certificate "CN=stranger" is not accepted: "#), "{said}");
    }
    assert_eq!(stranger.get("/readyz").await.status, 200);
    assert_eq!(refused(&server, "certificate").await, 2.0);
}

#[tokio::test]
async fn a_certificate_for_another_name_is_forbidden() {
    let Guarded { server, ca, dir: _dir } = guarded(by_certificate(&["kube-apiserver"])).await;
    let (named, other) = (ca.known(&server.client, "kube-apiserver"), ca.known(&server.client, "kubelet"));
    assert_eq!(post(&named, Protocol::Http2, "/admit", None).await.status, 200);
    let answer = post(&other, Protocol::Http2, "/admit", None).await;
    assert_eq!(answer.status, 403);
    assert!(answer.text().contains(r#""CN=kubelet" is valid, but none of its names"#), "{}", answer.text());
    assert_eq!(refused(&server, "name").await, 1.0);
}

#[tokio::test]
async fn a_token_does_too_and_is_read_again() {
    let Guarded { server, dir, .. } = guarded(by_token).await;
    for protocol in BOTH {
        for path in REVIEWS {
            assert_eq!(post(&server.client, protocol, path, Some("s3cret")).await.status, 200, "{path}");
            let answer = post(&server.client, protocol, path, None).await;
            assert_eq!((answer.status, answer.header("www-authenticate")), (401, "Bearer"), "{path}");
            assert_eq!(post(&server.client, protocol, path, Some("s3cre")).await.status, 401, "{path}");
        }
    }
    assert_eq!((refused(&server, "none").await, refused(&server, "token").await), (10.0, 10.0));
    fs::write(dir.path().join("token"), "another").unwrap();
    eventually("another token", async || {
        post(&server.client, Protocol::Http1, "/admit", Some("another")).await.status == 200
    })
    .await;
    assert_eq!(post(&server.client, Protocol::Http1, "/admit", Some("s3cret")).await.status, 401);
}

#[tokio::test]
async fn another_ca_is_taken_without_a_restart() {
    let Guarded { server, ca, dir } = guarded(by_certificate(&[])).await;
    let next = Ca::new();
    let (old, new) = (ca.known(&server.client, "a"), next.known(&server.client, "b"));
    let mut open = old.connect(Protocol::Http1).await.unwrap();
    assert_eq!(open.send(request("POST", "/admit", review("a"))).await.unwrap().status, 200);
    fs::write(dir.path().join("ca.crt"), &next.pem).unwrap();
    eventually("the next CA", async || post(&new, Protocol::Http1, "/admit", None).await.status == 200).await;
    assert_eq!(post(&old, Protocol::Http1, "/admit", None).await.status, 401);
    let answer = open.send(request("POST", "/admit", review("a"))).await.unwrap();
    assert_eq!(answer.status, 401, "on a connection that was open");
}

/// Who is refused while it still writes hears why, and takes no memory.
#[tokio::test]
async fn a_large_review_of_a_stranger_is_refused_unread() {
    let Guarded { server, dir: _dir, .. } = guarded(|config, dir| {
        by_token(config, dir);
        config.body_budget = 1;
    })
    .await;
    for protocol in BOTH {
        let large = review("a") + &" ".repeat(4 << 20);
        let answer = server.client.post(protocol, large).await;
        assert_eq!(answer.status, 401, "{}", answer.text());
    }
}
