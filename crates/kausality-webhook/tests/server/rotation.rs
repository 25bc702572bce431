//! Certificates that change on disk while requests come in.

use std::{fs, path::Path};

use kausality_webhook::Certificates;
use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use rustls::pki_types::{CertificateDer, pem::PemObject};
use tokio::{sync::watch, time::timeout};

use crate::{
    client::{BOTH, PATIENCE, request},
    log,
    stub::{eventually, fetch, review, start_with},
};

struct Pair {
    certificate: String,
    key: String,
}

impl Pair {
    fn make() -> Self {
        Self::made(|_| {})
    }

    fn made(adjust: impl FnOnce(&mut CertificateParams)) -> Self {
        let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
        adjust(&mut params);
        let key = KeyPair::generate().unwrap();
        Self { certificate: params.self_signed(&key).unwrap().pem(), key: key.serialize_pem() }
    }

    /// As the kubelet does it: the files are never there by half.
    fn put(&self, dir: &Path) {
        for (name, text) in [("tls.crt", &self.certificate), ("tls.key", &self.key)] {
            fs::write(dir.join("new"), text).unwrap();
            fs::rename(dir.join("new"), dir.join(name)).unwrap();
        }
    }

    fn der(&self) -> Vec<u8> {
        CertificateDer::from_pem_slice(self.certificate.as_bytes()).unwrap().to_vec()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_certificate_is_shown_without_a_restart_or_a_lost_request() {
    let dir = tempfile::tempdir().unwrap();
    let (old, new) = (Pair::make(), Pair::make());
    old.put(dir.path());
    let certificates =
        Certificates::from_files(dir.path().join("tls.crt"), dir.path().join("tls.key")).unwrap();
    let server = start_with(certificates, &[&old.certificate, &new.certificate], |_| {}).await;

    // Connections that stay open through it all, and one request that is under way.
    let answered = watch::Sender::new(0_u64);
    let stop = watch::Sender::new(false);
    let mut workers = Vec::new();
    for protocol in BOTH {
        let mut connection = server.client.connect(protocol).await.unwrap();
        assert_eq!(connection.certificate, old.der());
        let (answered, stop) = (answered.clone(), stop.subscribe());
        workers.push(tokio::spawn(async move {
            while !*stop.borrow() {
                let answer = connection.send(request("POST", "/admit", review("a"))).await.unwrap();
                assert_eq!(answer.status, 200);
                answered.send_modify(|answered| *answered += 1);
            }
        }));
    }
    let client = server.client.clone();
    let under_way = tokio::spawn(async move { client.post(BOTH[0], review("stuck")).await });
    server.wait_for_stuck(1).await;

    new.put(dir.path());
    eventually("handshakes show the new certificate", async || {
        server.client.connect(BOTH[1]).await.unwrap().certificate == new.der()
    })
    .await;

    let before = *answered.borrow();
    let mut more = answered.subscribe();
    timeout(PATIENCE, more.wait_for(|answered| *answered > before + 20)).await.unwrap().unwrap();
    stop.send_replace(true);
    for worker in workers {
        worker.await.unwrap();
    }
    server.stub.release.add_permits(1);
    assert_eq!(under_way.await.unwrap().status, 200);
}

#[tokio::test]
async fn no_certificate_is_no_start() {
    let dir = tempfile::tempdir().unwrap();
    let paths = (dir.path().join("tls.crt"), dir.path().join("tls.key"));
    let error = Certificates::from_files(&paths.0, &paths.1).unwrap_err();
    assert!(error.to_string().starts_with("cannot read "), "{error}");

    Pair::make().put(dir.path());
    fs::write(&paths.1, Pair::make().key).unwrap();
    let error = Certificates::from_files(&paths.0, &paths.1).unwrap_err();
    assert!(error.to_string().starts_with("the certificate and its key cannot be used"), "{error}");
}

/// Nobody can connect to ask, so probes without TLS tell, and so does the log: once, until something changes.
#[tokio::test]
async fn a_certificate_that_is_not_valid_is_not_ready_and_logged() {
    let dir = tempfile::tempdir().unwrap();
    let good = Pair::make();
    for (bad, reason) in [
        (
            Pair::made(|params| params.not_after = date_time_ymd(2020, 1, 1)),
            "expired at 2020-01-01T00:00:00Z",
        ),
        (Pair::made(|params| params.not_before = date_time_ymd(2999, 1, 1)), "not valid before 2999-01-01"),
    ] {
        bad.put(dir.path());
        let paths = (dir.path().join("tls.crt"), dir.path().join("tls.key"));
        let certificates = Certificates::from_files(&paths.0, &paths.1).unwrap();
        let health = |config: &mut kausality_webhook::Config| {
            config.health_address = Some(([127, 0, 0, 1], 0).into());
        };
        let server = start_with(certificates, &[&good.certificate], health).await;
        let answer = fetch(server.health.unwrap(), "/readyz").await;
        assert!(answer.starts_with("HTTP/1.1 503") && answer.contains(reason), "{answer}");
        assert!(answer.contains("tls.crt"), "it says where it is from: {answer}");
        let logged = || {
            let all = log::of_this_thread();
            all.lines().filter(|line| line.contains(reason) && line.contains("ERROR")).count()
        };
        eventually("a line in the log", async || logged() > 0).await;
        assert_eq!(logged(), 1, "{}", log::of_this_thread());

        good.put(dir.path());
        eventually("ready again", async || {
            fetch(server.health.unwrap(), "/readyz").await.starts_with("HTTP/1.1 200")
        })
        .await;
        assert_eq!(server.client.get("/readyz").await.text(), "ok\n");
    }
}

/// Who registered the webhook under another name may know better, so it stays ready.
#[tokio::test]
async fn a_certificate_for_another_name_is_logged_and_a_warning() {
    let dir = tempfile::tempdir().unwrap();
    let pair = Pair::make();
    pair.put(dir.path());
    let certificates =
        Certificates::from_files(dir.path().join("tls.crt"), dir.path().join("tls.key")).unwrap();
    let name = |config: &mut kausality_webhook::Config| {
        config.serving_names = vec!["kausality-webhook.kausality-system.svc".to_owned()];
    };
    let server = start_with(certificates, &[&pair.certificate], name).await;
    let answer = server.client.get("/readyz").await;
    assert_eq!(answer.status, 200);
    let said = "is not for kausality-webhook.kausality-system.svc; issue one with that";
    assert!(answer.text().starts_with("ok\nwarning: ") && answer.text().contains(said), "{}", answer.text());
    let logged = || {
        let all = log::of_this_thread();
        all.lines().filter(|line| line.contains(said) && line.contains("ERROR")).count()
    };
    eventually("a line in the log", async || logged() > 0).await;
    assert_eq!(logged(), 1, "{}", log::of_this_thread());
}
