//! Leaders and certificates come and go, and nobody notices.

use std::{
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use kausality_testbed::{ControlPlane, eventually, free_port};
use serde_json::{Value, json};

use crate::real::{
    controller::{Installation, policy, told},
    replicas::write,
    stage::*,
};

fn config_maps(mode: &str) -> Value {
    json!({"resources": [{"apiGroups": [""], "resources": ["configmaps"]}], "mode": mode})
}

/// What the Secret says about its certificates.
fn state(plane: &ControlPlane) -> Value {
    let secret = get(plane, &["secret", "kausality-webhook-tls", "-n", "kausality-system"]);
    let text = secret["metadata"]["annotations"]["kausality.io/certificates"].as_str().unwrap_or_default();
    serde_json::from_str(text).unwrap_or_default()
}

/// Whether what API servers trust now is what every replica shows now.
async fn is_trusted(plane: &ControlPlane, installation: &Installation) -> Result<(), String> {
    use base64::{Engine as _, prelude::BASE64_STANDARD};
    let found = get(plane, &["mutatingwebhookconfiguration", "kausality"]);
    let bundle = found["webhooks"][0]["clientConfig"]["caBundle"].as_str().ok_or("no configuration")?;
    let bundle = String::from_utf8(BASE64_STANDARD.decode(bundle).unwrap()).unwrap();
    let blocks = bundle.split_inclusive("-----END CERTIFICATE-----").filter(|block| block.contains("BEGIN"));
    let der = blocks.map(|block| {
        let text: String = block.lines().filter(|line| !line.starts_with("-----")).collect();
        BASE64_STANDARD.decode(text).unwrap()
    });
    let roots: Vec<Vec<u8>> = der.collect();
    for place in installation.places() {
        let port = place.admission.rsplit_once(':').unwrap().1;
        let mut config = kube::Config::new(format!("https://0.0.0.0:{port}").parse().unwrap());
        config.root_cert = Some(roots.clone());
        let client = kube::Client::try_from(config).unwrap();
        let request = http::Request::get("/healthz").body(Vec::new()).unwrap();
        client.request_text(request).await.map_err(|error| format!("{error:?}"))?;
    }
    Ok(())
}

/// CA and certificate are replaced, twice, and then lost, under load: every replica always shows what the registration
/// trusts, and no write fails although all would without an answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn replacing_the_ca_fails_no_request() {
    let Some(plane) = stage().await else { return };
    let installation = Installation::start(&plane).await;
    let lifetimes = ["--ca-lifetime", "45s", "--certificate-lifetime", "20s", "--ca-settling", "3s"];
    let _controller = installation.spawn_controller("controller.log", &lifetimes);
    installation.ready().await;
    apply(&plane, "alice", &policy("config", &config_maps("enforce")));
    told(&plane, "config", "Ready", "Configured").await;
    let first = state(&plane)["authority"].clone();

    let stop = AtomicBool::new(false);
    let writers = futures::future::join_all((0..3).map(|writer| write(&plane, writer, &stop)));
    let mut looks = 0;
    let mut faults = Vec::new();
    let watcher = async {
        let begun = Instant::now();
        let (mut prepared, mut retired, mut authorities) = (false, false, vec![first.clone()]);
        let mut lost = false;
        while authorities.len() < 4 || !prepared || !retired || !state(&plane)["serving"].is_object() {
            assert!(begun.elapsed() < Duration::from_secs(240), "no rotation: {authorities:?}");
            if authorities.len() == 3 && !lost {
                must(
                    &plane,
                    "mallory",
                    &["delete", "secret", "kausality-webhook-tls", "-n", "kausality-system"],
                );
                lost = true;
            }
            let state = state(&plane);
            prepared |= state["next"].is_object();
            retired |= authorities.len() > 1 && state["retiredUntil"].is_null();
            if state["authority"].is_object() && authorities.last() != Some(&state["authority"]) {
                authorities.push(state["authority"].clone());
            }
            if let Err(fault) = is_trusted(&plane, &installation).await {
                faults.push(fault);
            }
            looks += 1;
        }
        stop.store(true, Ordering::Relaxed);
        begun.elapsed()
    };
    let (written, took) = futures::future::join(writers, watcher).await;
    let writes: usize = written.iter().map(|(writes, _)| writes).sum();
    let failures: Vec<String> = written.into_iter().flat_map(|(_, failures)| failures).collect();
    println!("{writes} writes and {looks} handshakes with each replica in {took:?}");
    assert!(failures.is_empty(), "{} of {writes} writes failed: {failures:#?}", failures.len());
    assert!(faults.is_empty(), "{} of {looks} handshakes failed: {faults:#?}", faults.len());
    let found = get(&plane, &["mutatingwebhookconfiguration", "kausality"]);
    assert_eq!(found["webhooks"][0]["failurePolicy"], "Fail");
    assert!(writes > 100, "{writes}");
}

/// Who leads, by the Lease: the id of the process.
async fn leader(plane: &ControlPlane, but: Option<u32>) -> u32 {
    eventually(PATIENCE, format!("a leader other than {but:?}"), async || {
        let lease = get(plane, &["lease", "kausality-controller", "-n", "kausality-system"]);
        let holder = lease["spec"]["holderIdentity"].as_str()?.to_owned();
        let id: u32 = holder.rsplit('_').nth(1)?.parse().ok()?;
        (Some(id) != but).then_some(id)
    })
    .await
    .unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_leader_that_dies_is_replaced() {
    let Some(plane) = stage().await else { return };
    let installation = Installation::start(&plane).await;
    let healths: Vec<String> = (0..3).map(|_| format!("127.0.0.1:{}", free_port().unwrap())).collect();
    let spawn = |(number, health): (usize, &String)| {
        installation.spawn_controller(&format!("controller-{number}.log"), &["--health-address", health])
    };
    let mut controllers: Vec<Webhook> = healths.iter().enumerate().map(spawn).collect();
    installation.ready().await;
    let first = leader(&plane, None).await;
    apply(&plane, "alice", &policy("first", &config_maps("log")));
    told(&plane, "first", "Ready", "Configured").await;
    let mut leading = 0;
    for health in &healths {
        assert!(is_ready(health).await, "one that waits is ready, too");
        let metrics = fetch(health, "/metrics").await.unwrap();
        leading += usize::from(metrics.contains("\nkausality_controller_leading 1\n"));
    }
    assert_eq!(leading, 1);

    // Killed: another waits until the lease is over.
    let mut end = |id: u32, signal: &str| {
        assert!(Command::new("kill").args([signal, &id.to_string()]).status().unwrap().success());
        let place = controllers.iter().position(|controller| controller.0.id() == id).unwrap();
        let mut controller = controllers.remove(place);
        controller.0.wait().unwrap();
        Instant::now()
    };
    let ended = end(first, "-KILL");
    let second = leader(&plane, Some(first)).await;
    let took = ended.elapsed();
    println!("a leader that was killed is replaced after {took:?}");
    assert!(took > Duration::from_secs(10), "nobody may lead while the first might: {took:?}");
    apply(&plane, "alice", &policy("second", &config_maps("log")));
    told(&plane, "second", "Ready", "Configured").await;

    // Told to stop: it gives the lease back.
    let ended = end(second, "-TERM");
    leader(&plane, Some(second)).await;
    let took = ended.elapsed();
    println!("a leader that stops is replaced after {took:?}");
    assert!(took < Duration::from_secs(8), "{took:?}");
    apply(&plane, "alice", &policy("third", &config_maps("log")));
    told(&plane, "third", "Ready", "Configured").await;
}

/// The leader is killed, and the registration edited, emptied and deleted, under load: no write fails, and the registration is
/// always as it should be again.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_is_done_to_the_registration_fails_no_request() {
    let Some(plane) = stage().await else { return };
    let installation = Installation::start(&plane).await;
    let spawn = |number: usize| installation.spawn_controller(&format!("controller-{number}.log"), &[]);
    let mut controllers: Vec<Webhook> = (0..2).map(spawn).collect();
    installation.ready().await;
    apply(&plane, "alice", &policy("config", &config_maps("enforce")));
    told(&plane, "config", "Ready", "Configured").await;
    let configuration = || get(&plane, &["mutatingwebhookconfiguration", "kausality"])["webhooks"].clone();
    let right = configuration();
    assert_eq!(right[0]["failurePolicy"], "Fail");

    let stop = AtomicBool::new(false);
    let writers = futures::future::join_all((0..3).map(|writer| write(&plane, writer, &stop)));
    let story = async {
        let first = leader(&plane, None).await;
        let place = controllers.iter().position(|controller| controller.0.id() == first).unwrap();
        let mut killed = controllers.remove(place);
        killed.0.kill().unwrap();
        killed.0.wait().unwrap();
        let edit = r#"[{"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Ignore"},
            {"op": "replace", "path": "/webhooks/0/rules", "value": []}]"#;
        for arguments in [
            &["patch", "mutatingwebhookconfiguration", "kausality", "--type", "json", "--patch", edit][..],
            &[
                "patch",
                "mutatingwebhookconfiguration",
                "kausality",
                "--type",
                "merge",
                "--patch",
                r#"{"webhooks": []}"#,
            ],
            &["delete", "mutatingwebhookconfiguration", "kausality"],
        ] {
            must(&plane, "mallory", arguments);
            let begun = Instant::now();
            eventually(PATIENCE, "the registration as it was", async || {
                let found = configuration();
                if found == right { Ok(()) } else { Err(format!("{found:#}")) }
            })
            .await
            .unwrap();
            println!("{}: repaired after {:?}", arguments.join(" "), begun.elapsed());
        }
        stop.store(true, Ordering::Relaxed);
    };
    let (written, ()) = futures::future::join(writers, story).await;
    let writes: usize = written.iter().map(|(writes, _)| writes).sum();
    let failures: Vec<String> = written.into_iter().flat_map(|(_, failures)| failures).collect();
    println!("{writes} writes");
    assert!(failures.is_empty(), "{} of {writes} writes failed: {failures:#?}", failures.len());
    assert!(writes > 100, "{writes}");
}

/// Somebody else's certificates: nothing is registered before there is a CA to trust, and what is written is used.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn certificates_of_others_are_used() {
    let Some(plane) = stage().await else { return };
    let installation = Installation::start(&plane).await;
    let _controller = installation.spawn_controller("controller.log", &["--certificates", "external"]);
    apply(&plane, "alice", &policy("config", &config_maps("enforce")));
    let message = told(&plane, "config", "Ready", "NoCertificate").await;
    assert!(message.contains("kausality-system/kausality-webhook-tls"), "{message}");
    assert!(get(&plane, &["mutatingwebhookconfiguration", "kausality"]).is_null());

    let made = rcgen::generate_simple_self_signed(["0.0.0.0".to_owned()]).unwrap();
    let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    apply(
        &plane,
        "cert-manager",
        &json!({"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
            "metadata": {"name": "kausality-webhook-tls", "namespace": "kausality-system"},
            "stringData": {"tls.crt": certificate, "tls.key": key, "ca.crt": certificate}}),
    );
    told(&plane, "config", "Ready", "Configured").await;
    installation.ready().await;
    is_trusted(&plane, &installation).await.unwrap();
    // Whoever sends requests to replicas learns a moment later that they are ready.
    eventually(PATIENCE, "a write that is reviewed", async || {
        let (done, said) = kubectl(&plane, "alice", &["create", "configmap", "reviewed"]);
        if done { Ok(()) } else { Err(said) }
    })
    .await
    .unwrap();
    assert_eq!(users(&get(&plane, &["configmap", "reviewed"])), ["alice"]);
}
