//! `kausality doctor` on a real cluster: bare, half installed, and with a webhook that answers.

use std::process::Command;

use kausality_testbed::{ControlPlane, MASTERS, eventually};
use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use serde_json::{Value, json};

use crate::real::{
    controller::{Installation, policy, told},
    stage::*,
};

/// What the doctor says as JSON, and its exit code.
pub(crate) fn examine(plane: &ControlPlane) -> (i32, Value) {
    let output = Command::new(env!("CARGO_BIN_EXE_kausality"))
        .args(["doctor", "-o", "json", "--as", "alice", "--as-group", MASTERS, "--kubeconfig"])
        .arg(plane.kubeconfig())
        .output()
        .unwrap();
    let said = serde_json::from_slice(&output.stdout);
    let said = said.unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    (output.status.code().unwrap(), said)
}

fn check<'a>(said: &'a Value, name: &str) -> &'a Value {
    let found = said["checks"].as_array().unwrap().iter().find(|check| check["name"] == name);
    found.unwrap_or_else(|| panic!("no check {name} in {said:#}"))
}

#[track_caller]
pub(crate) fn assert_check(said: &Value, name: &str, outcome: &str, words: &str) {
    let check = check(said, name);
    assert_eq!(check["outcome"], outcome, "{check:#}");
    assert!(check.to_string().contains(words), "{words}: {check:#}");
}

/// Where nothing is installed, all that is missing is named.
#[tokio::test(flavor = "multi_thread")]
async fn a_bare_cluster_lacks_everything() {
    let Some(plane) = stage().await else { return };
    let (code, said) = examine(&plane);
    assert_eq!(code, 1, "{said:#}");
    assert_eq!(said["healthy"], false);
    assert_check(&said, "api-server", "ok", "Kubernetes v1.");
    assert_check(&said, "clock", "ok", "agree on the time");
    assert_check(&said, "definitions", "failed", "kausalities.kausality.io is not installed");
    assert_check(&said, "deployments", "failed", "no Deployment kausality-system/kausality-webhook");
    assert_check(&said, "deployments", "failed", "no Deployment kausality-system/kausality-controller");
    assert_check(&said, "lease", "failed", "no Lease kausality-system/kausality-controller");
    assert_check(&said, "policies", "skipped", "not installed as a kind");
    assert_check(&said, "registration", "failed", "no MutatingWebhookConfiguration kausality");
    assert_check(
        &said,
        "certificates",
        "failed",
        "Secret kausality-system/kausality-webhook-tls does not exist",
    );
    assert_check(&said, "answering", "failed", "no Pod is ready behind Service");
    assert_check(&said, "clients", "skipped", "not registered");
    assert_check(&said, "rights", "failed", "kausality-webhook may not get, list, watch namespaces");
    // kube-controller-manager makes these accounts as it starts.
    eventually(PATIENCE, "the service account of the Deployment controller", async || {
        let (_, said) = examine(&plane);
        let found = check(&said, "controllers").clone();
        if found["outcome"] == "ok" { Ok(()) } else { Err(found.to_string()) }
    })
    .await
    .unwrap();

    // Somebody who may do nothing learns that, and that nothing is known to have failed.
    let output = Command::new(env!("CARGO_BIN_EXE_kausality"))
        .args(["doctor", "--as", "nobody", "--kubeconfig"])
        .arg(plane.kubeconfig())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("0 failed, 0 warnings, 10 skipped, 2 ok") && text.contains("forbidden"), "{text}");
}

fn certificate() -> (String, String, String) {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let authority = params.self_signed(&key).unwrap().pem();
    let issuer = Issuer::new(params, key);
    let mut params = CertificateParams::new(["kausality-webhook.kausality-system.svc".to_owned()]).unwrap();
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let key = KeyPair::generate().unwrap();
    (authority, params.signed_by(&key, &issuer).unwrap().pem(), key.serialize_pem())
}

fn encoded(text: &str) -> Value {
    serde_json::to_value(k8s_openapi::ByteString(text.as_bytes().to_vec())).unwrap()
}

fn deployment(name: &str) -> Value {
    let labels = json!({"app": name});
    json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "namespace": "kausality-system"},
        "spec": {"replicas": 2, "selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels},
            "spec": {"serviceAccountName": name, "containers": [{"name": "kausality", "image": "kausality"}]}}}})
}

/// With everything in its place but one right, that right is named; and that nobody answers is found out, too.
#[tokio::test(flavor = "multi_thread")]
async fn a_missing_rule_is_named() {
    let Some(plane) = stage().await else { return };
    let _kubelet = plane.play_kubelet().await.unwrap();
    let crds = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/crds");
    must(&plane, "alice", &["apply", "--server-side", "-f", crds]);
    must(
        &plane,
        "alice",
        &["wait", "--for=condition=Established", "crd/kausalities.kausality.io", "--timeout=60s"],
    );
    must(&plane, "alice", &["create", "namespace", "kausality-system"]);
    for name in ["kausality-webhook", "kausality-controller"] {
        must(&plane, "alice", &["-n", "kausality-system", "create", "serviceaccount", name]);
        apply(&plane, "alice", &deployment(name));
    }
    let (authority, serving, key) = certificate();
    apply(
        &plane,
        "alice",
        &json!({"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls",
        "metadata": {"name": "kausality-webhook-tls", "namespace": "kausality-system"},
        "data": {"tls.crt": encoded(&serving), "tls.key": encoded(&key), "ca.crt": encoded(&authority)}}),
    );
    apply(
        &plane,
        "alice",
        &json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "kausality-controller", "namespace": "kausality-system"},
        "spec": {"holderIdentity": "somebody", "leaseDurationSeconds": 3600,
            "renewTime": format!("{:.6}", jiff::Timestamp::now())}}),
    );
    apply(
        &plane,
        "alice",
        &json!({"apiVersion": "kausality.io/v1alpha1", "kind": "Kausality",
        "metadata": {"name": "settings"},
        "spec": {"resources": [{"apiGroups": [""], "resources": ["configmaps", "unheardofs"]}], "mode": "log"}}),
    );
    let status = json!({"status": {"observedGeneration": 1,
        "conditions": [{"type": "Ready", "status": "False", "reason": "Testing", "message": "not quite",
            "lastTransitionTime": "2026-01-01T00:00:00Z"}]}});
    must(
        &plane,
        "alice",
        &[
            "patch",
            "kausality",
            "settings",
            "--subresource=status",
            "--type=merge",
            "-p",
            &status.to_string(),
        ],
    );
    let client = |path: &str| {
        json!({"caBundle": encoded(&authority),
            "service": {"name": "kausality-webhook", "namespace": "kausality-system", "path": path}})
    };
    apply(
        &plane,
        "alice",
        &json!({"apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration", "metadata": {"name": "kausality"},
        "webhooks": [{"name": "settings.drift.kausality.io", "clientConfig": client("/admit"),
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}],
            "namespaceSelector": {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "NotIn",
                "values": ["kube-system", "kausality-system"]}]},
            "failurePolicy": "Ignore", "sideEffects": "NoneOnDryRun", "admissionReviewVersions": ["v1"]}]}),
    );
    apply(
        &plane,
        "alice",
        &json!({"apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration", "metadata": {"name": "kausality"},
        "webhooks": [{"name": "policies.kausality.io", "clientConfig": client("/validate"),
            "rules": [{"apiGroups": ["kausality.io"], "apiVersions": ["*"], "resources": ["kausalities"], "operations": ["CREATE"]}],
            "failurePolicy": "Ignore", "sideEffects": "None", "admissionReviewVersions": ["v1"]}]}),
    );
    apply(
        &plane,
        "alice",
        &json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "kausality-webhook"}, "rules": [
            {"apiGroups": ["", "kausality.io"], "resources": ["namespaces", "kausalities", "approvalpolicies", "clusterapprovalpolicies"],
                "verbs": ["get", "list", "watch"]},
            {"apiGroups": ["kausality.io"], "resources": ["kausalities/status", "approvalpolicies/status", "clusterapprovalpolicies/status"],
                "verbs": ["patch"]},
            {"apiGroups": ["kausality.io"], "resources": ["drifts", "clusterdrifts"], "verbs": ["create", "get", "list", "watch", "patch"]},
            {"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create", "patch"]},
            {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["kausality-webhook-tls", "kausality-salt"], "verbs": ["get", "list", "watch"]},
            {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}]}),
    );
    must(
        &plane,
        "alice",
        &[
            "create",
            "clusterrolebinding",
            "kausality-webhook",
            "--clusterrole=kausality-webhook",
            "--serviceaccount=kausality-system:kausality-webhook",
        ],
    );

    // Of the controller nothing is missing.
    must(
        &plane,
        "alice",
        &[
            "create",
            "clusterrolebinding",
            "all-to-the-controller",
            "--clusterrole=cluster-admin",
            "--serviceaccount=kausality-system:kausality-controller",
        ],
    );

    let said = eventually(PATIENCE, "replicas and the roles' effect", async || {
        let (code, said) = examine(&plane);
        let settled = check(&said, "deployments")["outcome"] == "ok"
            && check(&said, "rights")["findings"].as_array().is_some_and(|findings| findings.len() == 1);
        if settled { Ok((code, said)) } else { Err(format!("{said:#}")) }
    });
    let (code, said) = said.await.unwrap();
    assert_eq!(code, 1);
    assert_check(&said, "definitions", "ok", "kausalities.kausality.io/v1alpha1 is served");
    assert_check(&said, "lease", "ok", "somebody leads");
    assert_check(&said, "policies", "failed", "policy settings: Ready is False, Testing: not quite");
    assert_check(&said, "registration", "ok", "1 entry");
    assert_check(
        &said,
        "certificates",
        "ok",
        "the certificate for kausality-webhook.kausality-system.svc is trusted",
    );
    assert_check(&said, "rights", "failed", "kausality-webhook may not watch, patch configmaps");
    let todo = check(&said, "rights")["findings"][0]["todo"].as_str().unwrap();
    let rule = r#"{apiGroups: [""], resources: ["configmaps"], verbs: ["watch", "patch"]}"#;
    assert!(todo.contains(rule), "{todo}");
    // There is no Service, and the entry lets requests pass that nobody answers.
    assert_check(
        &said,
        "answering",
        "failed",
        "did a dry run of a ConfigMap in namespace default without the webhook",
    );
    let maps = get(&plane, &["configmaps", "-n", "default"]);
    assert!(!maps.to_string().contains("kausality-doctor"), "{maps:#}");

    // The rule that is named is the rule that is missing.
    let grant = format!(
        "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {{name: more}}\nrules: [{rule}]\n"
    );
    let file = plane.folder().join("grant.yaml");
    std::fs::write(&file, grant).unwrap();
    must(&plane, "alice", &["apply", "-f", file.to_str().unwrap()]);
    must(
        &plane,
        "alice",
        &[
            "create",
            "clusterrolebinding",
            "more",
            "--clusterrole=more",
            "--serviceaccount=kausality-system:kausality-webhook",
        ],
    );
    eventually(PATIENCE, "the right", async || {
        let (_, said) = examine(&plane);
        let rights = check(&said, "rights").clone();
        if rights["outcome"] == "ok" { Ok(()) } else { Err(rights.to_string()) }
    })
    .await
    .unwrap();
}

/// Installed, with a policy, all is well; without the controller's entry for it, it is not.
#[tokio::test(flavor = "multi_thread")]
async fn an_installation_is_healthy() {
    let Some(plane) = stage().await else { return };
    let _kubelet = plane.play_kubelet().await.unwrap();
    let installation = Installation::start(&plane).await;
    let controller = installation.spawn_controller("controller.log", &[]);
    installation.ready().await;
    let spec = json!({"mode": "log", "resources": [{"apiGroups": [""], "resources": ["configmaps"]}]});
    apply(&plane, "alice", &policy("settings", &spec));
    told(&plane, "settings", "Ready", "Configured").await;
    let healthy = eventually(PATIENCE, "health", async || {
        let (code, said) = examine(&plane);
        if code == 0 { Ok(said) } else { Err(format!("{said:#}")) }
    });
    let said = healthy.await.unwrap();
    for name in ["lease", "policies", "registration", "certificates", "answering", "rights", "controllers"] {
        assert_check(&said, name, "ok", "");
    }
    assert_check(&said, "clients", "warning", "takes reviews from anybody who reaches its port");

    // Nobody repairs what is taken away any more.
    drop(controller);
    must(&plane, "alice", &["delete", "clusterrole", "kausality:policy:settings"]);
    must(&plane, "alice", &["delete", "mutatingwebhookconfiguration", "kausality"]);
    let said = eventually(PATIENCE, "the loss of rights", async || {
        let (_, said) = examine(&plane);
        let rights = check(&said, "rights")["outcome"].clone();
        if rights == "failed" { Ok(said) } else { Err(format!("{said:#}")) }
    });
    let said = said.await.unwrap();
    assert_check(&said, "rights", "failed", "kausality-webhook may not get, list, watch, patch configmaps");
    assert_check(&said, "registration", "failed", "no MutatingWebhookConfiguration kausality");
    // Policies are still checked: the webhook answers.
    assert_check(&said, "answering", "ok", "it answered a dry run of a policy that makes no sense");
}

/// A webhook that is there answers, and what was tried is not stored.
#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_that_answers_is_heard() {
    let Some(plane) = stage().await else { return };
    for (resources, kind) in
        [("configmaps", "ConfigMap"), ("deployments.apps", "Deployment"), ("jobs.batch", "Job")]
    {
        let webhook = Webhook::start_for(&plane, resources).await;
        let said = eventually(PATIENCE, "an answer", async || {
            let (_, said) = examine(&plane);
            let answering = check(&said, "answering");
            if answering["outcome"] == "ok" { Ok(said) } else { Err(answering.to_string()) }
        });
        let said = said.await.unwrap();
        assert_check(
            &said,
            "answering",
            "ok",
            &format!("it answered a dry run of a {kind} in namespace default"),
        );
        assert_check(&said, "registration", "ok", "4 entries");
        assert_check(&said, "deployments", "skipped", "has registered itself");
        let stored = get(&plane, &[resources, "-n", "default"]);
        assert!(!stored.to_string().contains("kausality-doctor"), "{stored:#}");

        // Killed, it leaves its registration behind; in enforce mode that one fails closed.
        drop(webhook);
        let (code, said) = examine(&plane);
        assert_eq!(code, 1, "{said:#}");
        assert_check(&said, "answering", "failed", "did not reach the webhook");
        must(&plane, "alice", &["delete", "mutatingwebhookconfiguration", "kausality"]);
    }
}
