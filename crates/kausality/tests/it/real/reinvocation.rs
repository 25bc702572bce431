//! Another mutating webhook that comes after ours: the API server then asks ours again.

use std::time::Instant;

use kausality_core::{Decision, class::Class};
use kausality_testbed::{ControlPlane, MASTERS};
use kausality_webhook::{Admission, BadReview, Bytes, Certificates, Config, Metrics, Reply, Server, Subject};
use kube::{
    api::{Api, Patch, PatchParams, PostParams},
    core::{ApiResource, DynamicObject, GroupVersionKind},
};
use serde_json::{Value, json};

use crate::real::{
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
