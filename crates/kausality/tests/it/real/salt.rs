//! Digests of Secret values, which nobody can compute who does not know the salt.

use std::path::Path;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use kausality_fields::{Redaction, redact};
use kausality_testbed::eventually;
use serde_json::{Value, json};

use crate::real::{controller::*, stage::*};

const DEPLOYMENTS: &str = "system:serviceaccount:kube-system:deployment-controller";

/// Webhooks that start before there is a salt use it as soon as there is one, and others that start later use the same: a drift has
/// one entry.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_digest_is_made_with_the_salt_of_the_installation_and_outlives_webhooks() {
    let Some(plane) = stage().await else { return };
    let _kubelet = plane.play_kubelet().await.unwrap();
    let mut installation = Installation::start(&plane).await;
    assert!(get(&plane, &["secret", "kausality-salt", "-n", "kausality-system"]).is_null());
    let _controller = installation.spawn_controller("controller.log", &[]);
    installation.ready().await;
    let resources = json!([{"apiGroups": ["apps"], "resources": ["deployments", "replicasets"]},
        {"apiGroups": [""], "resources": ["secrets"]}]);
    apply(&plane, "admin", &policy("all", &json!({"resources": resources, "mode": "enforce"})));
    told(&plane, "all", "Ready", "Configured").await;
    must(&plane, "alice", &["create", "deployment", "web", "--image=nginx:1"]);
    rolled_out(&plane, "web", 1).await;
    let uid = get(&plane, &["deployment", "web"])["metadata"]["uid"].clone();
    apply(
        &plane,
        "alice",
        &json!({"apiVersion": "v1", "kind": "Secret", "stringData": {"pin": "0000"},
            "metadata": {"name": "pin", "namespace": "default", "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": uid, "controller": true}]}}),
    );
    for log in ["webhook-0.log", "webhook-1.log"] {
        eventually(PATIENCE, "the salt in all webhooks", async || {
            let text = read(&installation.folder().join(log));
            text.contains("digests of secrets have another salt").then_some(())
        })
        .await
        .unwrap();
    }

    let stored = get(&plane, &["secret", "kausality-salt", "-n", "kausality-system"]);
    let salt = STANDARD.decode(stored["data"]["salt"].as_str().unwrap()).unwrap();
    let public = get(&plane, &["namespace", "kube-system"])["metadata"]["uid"].as_str().unwrap().to_owned();
    let attempt = || {
        let patch = ["patch", "secret", "pin", "--type=merge", "-p", r#"{"stringData": {"pin": "1234"}}"#];
        let (done, said) = kubectl(&plane, DEPLOYMENTS, &patch);
        assert!(!done && said.contains("nobody changed"), "{said}");
    };
    let told = || {
        let entries = get(&plane, &["drifts", "-n", "default"])["items"].clone();
        let [entry] = entries.as_array().unwrap().as_slice() else { panic!("{entries:#}") };
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "data": {"pin": STANDARD.encode("1234")}});
        let digest = |salt: &[u8]| redact(&secret, &Redaction::new(salt))["data"]["pin"].to_string();
        let new = &entry["spec"]["changes"][0]["new"];
        assert_eq!(*new, digest(&salt), "{entry:#}");
        assert_ne!(*new, digest(public.as_bytes()), "{entry:#}");
        entry["metadata"]["name"].clone()
    };
    attempt();
    let before: Value = told();
    for _ in 0..2 {
        installation.replace_webhook().await;
    }
    attempt();
    assert_eq!(told(), before);
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}
