//! An API server that shows who it is, and somebody who only says so.

use std::path::Path;

use kausality_api::identity::UserHash;
use kausality_testbed::{Component, eventually, free_port};
use kube::Client;
use rcgen::{BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use serde_json::{Value, json};

use crate::real::{
    doctor::{assert_check, examine},
    ledger::{define, drifts},
    stage::*,
    stories::{EKS_CONTROLLER, report_ready, settled_cluster},
};

/// A review that no API server has sent: an invented user, who says to have made an object.
fn forged() -> String {
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "forged", "operation": "CREATE", "namespace": "default", "name": "forged",
        "kind": {"group": "", "version": "v1", "kind": "ConfigMap"},
        "resource": {"group": "", "version": "v1", "resource": "configmaps"},
        "userInfo": {"username": "system:serviceaccount:kube-system:invented"},
        "object": {"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "forged", "namespace": "default"}, "data": {"a": "b"}}}})
    .to_string()
}

/// What somebody is told who reaches the port, and has no credentials.
pub(crate) async fn post(address: &str, review: String) -> Result<Value, (u16, String)> {
    let mut config = kube::Config::new(format!("https://{address}").parse().unwrap());
    config.accept_invalid_certs = true;
    let request = http::Request::post("/admit").header("content-type", "application/json");
    let request = request.body(review.into_bytes()).unwrap();
    match Client::try_from(config).unwrap().request::<Value>(request).await {
        Ok(answer) => Ok(answer),
        Err(kube::Error::Api(status)) => Err((status.code, status.message.clone())),
        Err(error) => panic!("{error}"),
    }
}

/// A CA, and a certificate of it for a client, with its key.
fn identity(name: &str) -> [String; 3] {
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate().unwrap();
    let ca = authority.self_signed(&key).unwrap().pem();
    let issuer = Issuer::new(authority, key);
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let key = KeyPair::generate().unwrap();
    [ca, params.signed_by(&key, &issuer).unwrap().pem(), key.serialize_pem()]
}

/// Files by which an API server shows a certificate at one address, a token at another, and nothing elsewhere. The flag for them.
fn configure(folder: &Path, by_certificate: &str, by_token: &str) -> String {
    let write = |name: &str, text: &str| {
        std::fs::write(folder.join(name), text).unwrap();
        folder.join(name).to_str().unwrap().to_owned()
    };
    let [ca, certificate, key] = identity("kube-apiserver");
    write("client-ca.crt", &ca);
    write("client-token", "s3cret\n");
    let users = json!([
        {"name": by_certificate, "user": {"client-certificate": write("client.crt", &certificate),
            "client-key": write("client.key", &key)}},
        {"name": by_token, "user": {"token": "s3cret"}}]);
    let kubeconfig = json!({"apiVersion": "v1", "kind": "Config", "users": users});
    let kubeconfig = write("webhooks.kubeconfig", &kubeconfig.to_string());
    let plugin = |name: &str| {
        json!({"name": name, "configuration": {"apiVersion": "apiserver.config.k8s.io/v1",
            "kind": "WebhookAdmissionConfiguration", "kubeConfigFile": kubeconfig}})
    };
    let plugins = [plugin("MutatingAdmissionWebhook"), plugin("ValidatingAdmissionWebhook")];
    let admission = json!({"apiVersion": "apiserver.config.k8s.io/v1", "kind": "AdmissionConfiguration",
        "plugins": plugins});
    format!("--admission-control-config-file={}", write("admission.json", &admission.to_string()))
}

/// Reviews of the API server pass, by certificate and by token, and one that anybody has written does not.
#[tokio::test(flavor = "multi_thread")]
async fn nobody_but_the_api_server_posts_reviews() {
    let Some(mut plane) = stage().await else { return };
    let address = || format!("127.0.0.1:{}", free_port().unwrap());
    let (by_certificate, by_token, by_nothing) = (address(), address(), address());
    let flag = configure(plane.folder(), &by_certificate, &by_token);
    plane.restart_with(Component::ApiServer, &[&flag]).await.unwrap();
    let file = |name: &str| plane.folder().join(name).to_str().unwrap().to_owned();
    let (ca, token) = (file("client-ca.crt"), file("client-token"));

    // Without it, a forged review is believed: the webhook answers as to the API server.
    {
        let open = address();
        let _webhook = Webhook::spawn(
            &plane,
            "open.log",
            &["--register", "--bind-address", &open, "--resources", "configmaps"],
        );
        registered(&plane).await;
        let answer = post(&open, forged()).await.unwrap();
        assert_eq!(answer["response"]["allowed"], true);
        let patch = &answer["response"]["patch"];
        assert!(patch.is_string(), "the invented user is in a trace: {answer}");
        must(&plane, "alice", &["delete", "mutatingwebhookconfiguration", "kausality"]);
    }

    let certified = ["--client-ca", ca.as_str(), "--client-names", "kube-apiserver,other"];
    let tokened = ["--client-token-file", token.as_str()];
    for (name, address, flags) in [("cert", &by_certificate, &certified[..]), ("token", &by_token, &tokened)]
    {
        let arguments = ["--register", "--bind-address", address, "--resources", "configmaps"];
        let _webhook = Webhook::spawn(&plane, &format!("{name}.log"), &[&arguments, flags].concat());
        registered(&plane).await;

        must(&plane, "alice", &["create", "configmap", name]);
        assert_eq!(users(&get(&plane, &["configmap", name])), ["alice"], "the API server is answered");
        let (code, said) = post(address, forged()).await.unwrap_err();
        assert_eq!(code, 401, "{said}");
        assert!(said.contains("reviews are taken from the API server alone"), "{said}");
        let (_, said) = examine(&plane);
        assert_check(&said, "clients", "ok", "reviews of anybody but the API server are refused");
        assert_check(&said, "answering", "ok", "it answered");
        must(&plane, "alice", &["delete", "mutatingwebhookconfiguration", "kausality"]);
    }

    // An API server that shows nothing is refused too, and says so to whoever writes.
    let arguments = ["--register", "--bind-address", &by_nothing, "--resources", "configmaps"];
    let _webhook = Webhook::spawn(&plane, "nothing.log", &[&arguments[..], &certified].concat());
    registered(&plane).await;
    let (done, said) = kubectl(&plane, "alice", &["create", "configmap", "nothing"]);
    let words = "the server has asked for the client to provide credentials";
    assert!(!done && said.contains("failed calling webhook") && said.contains(words), "{said}");
}

/// A review of an update, as an API server would send it, or somebody else.
pub(crate) fn update_of(user: &str, plural: &str, part: &str, old: &Value, new: &Value) -> Value {
    let (group, version) = old["apiVersion"].as_str().unwrap().split_once('/').unwrap_or(("", "v1"));
    let metadata = &old["metadata"];
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "made-up", "operation": "UPDATE", "namespace": "default", "name": metadata["name"], "subResource": part,
        "kind": {"group": group, "version": version, "kind": old["kind"]},
        "resource": {"group": group, "version": version, "resource": plural},
        "userInfo": {"username": user}, "oldObject": old, "object": new}})
}

/// Where any Pod can post reviews, forged ones have no effect in the cluster, and real ones have all of theirs.
#[tokio::test(flavor = "multi_thread")]
async fn forged_reviews_have_no_effect() {
    let Some(plane) = stage().await else { return };
    define(&plane).await;
    let cluster = settled_cluster(&plane).await;
    apply(
        &plane,
        EKS_CONTROLLER,
        &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "child", "namespace": "default",
            "ownerReferences": [{"apiVersion": "example.com/v1", "kind": "EKSCluster", "name": "prod",
                "uid": cluster["metadata"]["uid"], "controller": true}]}, "data": {"size": "1"}}),
    );
    let [address, health] = [(); 2].map(|()| format!("127.0.0.1:{}", free_port().unwrap()));
    let resources = "configmaps,eksclusters.example.com";
    let arguments =
        ["--register", "--bind-address", &address, "--health-address", &health, "--resources", resources];
    let _webhook = Webhook::spawn(&plane, "forged.log", &arguments);
    registered(&plane).await;
    report_ready(&plane).await;
    let resize = |to: &str| {
        let patch = format!(r#"{{"data":{{"size":"{to}"}}}}"#);
        kubectl(&plane, EKS_CONTROLLER, &["patch", "configmap", "child", "--type=merge", "-p", &patch])
    };
    let with_fields = |kind: &str, name: &str| get(&plane, &[kind, name, "--show-managed-fields"]);

    // Invented users say that they write the status of the parent, just now and as its controller does.
    let parent = with_fields("ekscluster", "prod");
    let now = jiff::Timestamp::from_second(jiff::Timestamp::now().as_second()).unwrap();
    for nth in 0..5 {
        let mut sent = parent.clone();
        sent["status"]["phase"] = format!("Phase{nth}").into();
        for entry in sent["metadata"]["managedFields"].as_array_mut().unwrap() {
            if entry["subresource"] == "status" {
                entry["time"] = now.to_string().into();
                entry["fieldsV1"]["f:status"]["f:phase"] = json!({});
            }
        }
        let user = format!("system:serviceaccount:infra:invented-{nth}");
        let answer = post(&address, update_of(&user, "eksclusters", "status", &parent, &sent).to_string())
            .await
            .unwrap();
        assert_eq!(answer["response"]["allowed"], true);
    }
    let (done, said) = resize("2");
    assert!(!done && said.contains("kausality: drift "), "its controller is still known: {said}");
    let entries = drifts(&plane);
    assert_eq!(entries.len(), 1, "what is real is entered: {entries:#?}");

    // Others say that the controller changes children: some that never were, and one at versions that it never had.
    let child = with_fields("configmap", "child");
    let approval =
        r#"kausality.io/approvals=[{"apiVersion":"v1","kind":"ConfigMap","name":"*","generation":1}]"#;
    let approved =
        || get(&plane, &["ekscluster", "prod"])["metadata"]["annotations"]["kausality.io/approvals"].clone();
    for approve in [false, true] {
        if approve {
            must(&plane, "dave", &["annotate", "ekscluster", "prod", approval]);
        }
        for nth in 0..10 {
            let mut old = child.clone();
            match nth {
                0..5 => old["metadata"]["name"] = format!("invented-{nth}").into(),
                5..8 => old["metadata"]["uid"] = format!("invented-{nth}").into(),
                8 => old["metadata"]["resourceVersion"] = "987654321".into(),
                _ => old["metadata"]["resourceVersion"] = "".into(),
            }
            let mut new = old.clone();
            new["data"]["size"] = format!("forged-{nth}").into();
            post(&address, update_of(EKS_CONTROLLER, "configmaps", "", &old, &new).to_string())
                .await
                .unwrap();
        }
        assert!(approve != approved().is_null(), "the approval is still there");
    }
    let entered: Vec<Value> = drifts(&plane).iter().map(|entry| entry["metadata"]["name"].clone()).collect();
    assert_eq!(entered, [entries[0]["metadata"]["name"].clone()]);
    assert!(fetch(&health, "/metrics").await.unwrap().contains("kausality_reviews_disproved_total 20"));

    // The approval is for what really happens.
    let (done, said) = resize("2");
    assert!(done, "{said}");
    assert!(approved().is_null());
    assert!(!resize("3").0, "once");

    // Whoever really reports is recorded; those that were invented never are.
    let status = r#"{"status":{"phase":"Fine"}}"#;
    let patch = ["patch", "eksclusters", "prod", "--subresource=status", "--type=merge", "-p", status];
    let second = "system:serviceaccount:infra:second";
    must(&plane, second, &[&patch[..], &["--field-manager=second"]].concat());
    let expected = [EKS_CONTROLLER, second].map(|user| UserHash::of(user, "").to_string()).join(",");
    eventually(PATIENCE, "the second controller on record", async || {
        let known = annotation(&get(&plane, &["ekscluster", "prod"]), "controllers");
        if known.contains(&UserHash::of(second, "").to_string()) { Ok(known) } else { Err(known) }
    })
    .await
    .map(|known| assert_eq!(known, expected))
    .unwrap();

    // Nor have they any where nobody waits until a drift is confirmed.
    must(&plane, "dave", &["annotate", "namespace", "default", "kausality.io/mode=log"]);
    eventually(PATIENCE, "a drift that passes, and is entered", async || {
        let (done, said) = resize("4");
        let entries = drifts(&plane);
        let passed = entries.iter().any(|entry| entry["status"]["state"] == "Passed");
        if done && passed { Ok(()) } else { Err(format!("{said}: {entries:#?}")) }
    })
    .await
    .unwrap();
    let entered = drifts(&plane).len();
    for nth in 0..5 {
        let mut old = child.clone();
        old["metadata"]["uid"] = format!("invented-{nth}").into();
        let mut new = old.clone();
        new["data"]["size"] = format!("forged-{nth}").into();
        let review = update_of(EKS_CONTROLLER, "configmaps", "", &old, &new).to_string();
        let answer = post(&address, review).await.unwrap();
        assert_eq!(answer["response"]["allowed"], true, "{answer}");
    }
    eventually(PATIENCE, "what is found out afterwards", async || {
        let metrics = fetch(&health, "/metrics").await.unwrap_or_default();
        metrics.contains("kausality_reviews_disproved_total 25").then_some(())
    })
    .await
    .unwrap();
    assert_eq!(drifts(&plane).len(), entered);
}
