//! Another mutating webhook that comes after ours: the API server then asks ours again.

use std::time::Instant;

use kausality_core::{Decision, class::Class};
use kausality_testbed::{ControlPlane, MASTERS, eventually, free_port};
use kausality_webhook::{Admission, BadReview, Bytes, Certificates, Config, Metrics, Reply, Server, Subject};
use kube::{
    api::{Api, Patch, PatchParams, PostParams},
    core::{ApiResource, DynamicObject, GroupVersionKind},
};
use serde_json::{Value, json};

use crate::real::{
    clients::{post, update_of},
    stage::*,
    stories::{EKS_CONTROLLER, report_ready, settled_cluster},
};

/// Changes every object that it sees.
struct Stamp;

impl Admission for Stamp {
    async fn decide(&self, review: Bytes, _until: Instant) -> Result<Reply, BadReview> {
        let review: Value = serde_json::from_slice(&review).unwrap();
        let uid = review["request"]["uid"].as_str().unwrap().to_owned();
        let mut decision = Decision::allow(Class::Ignored);
        decision.patch.annotations.insert("example.com/stamp".to_owned(), Some(uid.clone()));
        Ok(Reply { subject: Subject { uid, ..Subject::default() }, decision })
    }

    fn is_ready(&self) -> bool {
        true
    }
}

/// A webhook for ConfigMaps whose configuration comes after ours in the order of names.
async fn stamp(plane: &ControlPlane) {
    let certificates = Certificates::self_signed(&[], &[[127, 0, 0, 1].into()]).unwrap();
    let bundle = certificates.ca_pem().unwrap().to_owned();
    let config = Config::new(([127, 0, 0, 1], 0).into(), certificates);
    let server = Server::new(config, Stamp, Metrics::default()).listen().await.unwrap();
    let url = format!("https://{}/admit", server.address());
    tokio::spawn(server.run(std::future::pending()));
    let bundle = serde_json::to_value(k8s_openapi::ByteString(bundle.into_bytes())).unwrap();
    apply(
        plane,
        "admin",
        &json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
            "metadata": {"name": "stamp"},
            "webhooks": [{"name": "stamp.example.com", "clientConfig": {"url": url, "caBundle": bundle},
                "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"],
                    "operations": ["CREATE", "UPDATE"]}],
                "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}},
                "sideEffects": "None", "admissionReviewVersions": ["v1"]}]}),
    );
}

/// A `once` approval lets one mutation pass, although it is reviewed twice.
#[tokio::test(flavor = "multi_thread")]
async fn an_approval_for_once_survives_that_the_api_server_asks_again() {
    let Some(plane) = stage().await else { return };
    let cluster = settled_cluster(&plane).await;
    let _webhook = Webhook::start_for(&plane, "configmaps,eksclusters.example.com").await;
    report_ready(&plane).await;
    stamp(&plane).await;

    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "ConfigMap"));
    let client = plane.client(EKS_CONTROLLER, &[MASTERS]).unwrap();
    let api: Api<DynamicObject> = Api::namespaced_with(client, "default", &resource);
    let child: DynamicObject = serde_json::from_value(json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "child", "ownerReferences": [{"apiVersion": "example.com/v1", "kind": "EKSCluster",
            "name": "prod", "uid": cluster["metadata"]["uid"], "controller": true}]},
        "data": {"unasked": "for"}}))
    .unwrap();
    let approve = || {
        let approval =
            r#"kausality.io/approvals=[{"apiVersion":"v1","kind":"ConfigMap","name":"*","generation":1}]"#;
        must(&plane, "dave", &["annotate", "eksclusters", "prod", approval]);
    };
    let (post, merge) = (PostParams::default(), PatchParams::default());
    let create = || api.create(&post, &child);
    let change = |to: &str| {
        let patch = Patch::Merge(json!({"data": {"unasked": to}}));
        let (api, merge) = (&api, &merge);
        async move { api.patch("child", merge, &patch).await }
    };

    let denied = |error: kube::Error| assert!(error.to_string().contains("kausality: drift "), "{error}");
    denied(create().await.unwrap_err());
    approve();
    create().await.unwrap();
    denied(change("again").await.unwrap_err());
    approve();
    change("again").await.unwrap();
    denied(change("once more").await.unwrap_err());

    let asked_again = plane.audit().unwrap().into_iter().filter(|event| {
        event.resource == "configmaps"
            && event.name == "child"
            && event.code < 300
            && event.annotations.keys().any(|key| key.contains("/round_1_"))
    });
    assert_eq!(asked_again.count(), 2, "both that passed were reviewed twice");
}

/// An approval for `once` lets one creation pass where the API server makes up the name, too: whoever copies the trace of what
/// was created is nobody that the API server asks about again.
#[tokio::test(flavor = "multi_thread")]
async fn a_copied_trace_creates_nothing_twice() {
    let Some(plane) = stage().await else { return };
    let cluster = settled_cluster(&plane).await;
    let _webhook = Webhook::start_for(&plane, "configmaps,eksclusters.example.com").await;
    report_ready(&plane).await;

    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "ConfigMap"));
    let client = plane.client(EKS_CONTROLLER, &[MASTERS]).unwrap();
    let api: Api<DynamicObject> = Api::namespaced_with(client, "default", &resource);
    let owner = json!({"apiVersion": "example.com/v1", "kind": "EKSCluster", "name": "prod",
        "uid": cluster["metadata"]["uid"], "controller": true});
    let create = |name: Value, annotations: Value| {
        let mut metadata = name;
        metadata["ownerReferences"] = json!([owner]);
        metadata["labels"] = json!({"app": "child"});
        metadata["annotations"] = annotations;
        let child =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "b"}});
        let api = &api;
        async move { api.create(&PostParams::default(), &serde_json::from_value(child).unwrap()).await }
    };
    let approve = || {
        let approval =
            r#"kausality.io/approvals=[{"apiVersion":"v1","kind":"ConfigMap","name":"*","generation":1}]"#;
        must(&plane, "dave", &["annotate", "eksclusters", "prod", approval]);
    };
    let denied = |created: Result<DynamicObject, kube::Error>, why: &str| match created {
        Err(error) => assert!(error.to_string().contains("kausality: drift "), "{why}: {error}"),
        Ok(created) => panic!("{why}: {:?} was created", created.metadata.name),
    };
    let (generated, named) = (json!({"generateName": "child-"}), json!({"name": "child"}));
    for (name, why, change) in [
        (&generated, "it is there", None),
        (&generated, "it has another label", Some(&["label", "--overwrite", "app=other"][..])),
        (
            &generated,
            "somebody has edited it",
            Some(&["patch", "--type=merge", r#"-p={"data":{"a":"c"}}"#][..]),
        ),
        (&generated, "it is gone", Some(&["delete"][..])),
        (&named, "one with its name is gone", Some(&["delete"][..])),
    ] {
        approve();
        let created = create(name.clone(), json!({})).await.unwrap();
        let made = created.metadata.name.unwrap();
        if let Some([verb, rest @ ..]) = change {
            must(&plane, "alice", &[&[*verb, "configmap", &made], rest].concat());
        }
        let annotations = created.metadata.annotations.unwrap();
        assert!(annotations.keys().any(|key| key.starts_with("kausality.io/trace.")), "{annotations:?}");
        denied(create(name.clone(), json!(annotations)).await, why);
    }

    stamp(&plane).await;
    approve();
    create(generated.clone(), json!({})).await.unwrap();
    denied(create(generated.clone(), json!({})).await, "once");
    let asked_again = plane.audit().unwrap().into_iter().filter(|event| {
        let is_created = event.resource == "configmaps" && event.verb == "create" && event.code < 300;
        is_created && event.annotations.keys().any(|key| key.contains("/round_1_"))
    });
    assert_eq!(asked_again.count(), 1, "the one that passed was reviewed twice");
}

/// Whoever is killed after an approval was used up, and before the answer, takes it along to no grave: the change is tried
/// again, and any replica lets it pass, once.
#[tokio::test(flavor = "multi_thread")]
async fn an_approval_for_once_survives_the_replica_that_used_it_up() {
    let Some(plane) = stage().await else { return };
    let cluster = settled_cluster(&plane).await;
    let resources = ["--resources", "configmaps,eksclusters.example.com"];
    let _survivor = Webhook::start_for(&plane, resources[1]).await;
    apply(
        &plane,
        EKS_CONTROLLER,
        &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "child", "namespace": "default",
            "ownerReferences": [{"apiVersion": "example.com/v1", "kind": "EKSCluster", "name": "prod",
                "uid": cluster["metadata"]["uid"], "controller": true}]}, "data": {"size": "1"}}),
    );
    report_ready(&plane).await;
    let [address, health] = [(); 2].map(|()| format!("127.0.0.1:{}", free_port().unwrap()));
    let arguments = [&["--bind-address", &address, "--health-address", &health], &resources[..]].concat();
    let killed = Webhook::spawn(&plane, "killed.log", &arguments);
    eventually(PATIENCE, "the other replica", async || is_ready(&health).await.then_some(())).await.unwrap();
    let approved = || {
        get(&plane, &["ekscluster", "prod"])["metadata"]["annotations"]["kausality.io/approvals"].is_string()
    };
    let approval =
        r#"kausality.io/approvals=[{"apiVersion":"v1","kind":"ConfigMap","name":"*","generation":1}]"#;
    must(&plane, "dave", &["annotate", "ekscluster", "prod", approval]);

    // As the API server asks it; nobody hears the answer.
    let old = get(&plane, &["configmap", "child", "--show-managed-fields"]);
    let mut new = old.clone();
    new["data"]["size"] = "2".into();
    let answer =
        post(&address, update_of(EKS_CONTROLLER, "configmaps", "", &old, &new).to_string()).await.unwrap();
    assert_eq!(answer["response"]["allowed"], true, "{answer}");
    drop(killed);
    assert!(!approved(), "it is used up");

    let resize = |to: &str| {
        let patch = format!(r#"{{"data":{{"size":"{to}"}}}}"#);
        kubectl(&plane, EKS_CONTROLLER, &["patch", "configmap", "child", "--type=merge", "-p", &patch])
    };
    let (done, said) = resize("3");
    assert!(!done && said.contains("kausality: drift "), "another change: {said}");
    // The object is another by now, and still not changed.
    must(&plane, "alice", &["label", "configmap", "child", "touched=yes"]);
    let (done, said) = resize("2");
    assert!(done, "{said}");
    must(&plane, "alice", &["patch", "configmap", "child", "--type=merge", r#"-p={"data":{"size":"1"}}"#]);
    let (done, said) = resize("2");
    assert!(!done && said.contains("kausality: drift "), "once: {said}");
}
