//! The ledger under strain, and who may decide about what is in it.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use kausality_testbed::{AuditEvent, ControlPlane, MASTERS, eventually};
use kube::{
    Api,
    api::{Patch, PatchParams},
    core::{ApiResource, DynamicObject, GroupVersionKind},
};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::real::stage::*;

const CONTROLLER: &str = "system:serviceaccount:kube-system:deployment-controller";

/// How long the hot loop lasts; `KAUSALITY_HOT_SECONDS` for longer.
const HOT: u64 = 6;

/// How many writes are under way at any time in the hot loop.
const AT_ONCE: usize = 32;

/// Defines Kausality's own kinds.
pub(crate) async fn define(plane: &ControlPlane) {
    must(
        plane,
        "admin",
        &["apply", "--server-side", "-f", &format!("{}/../../deploy/crds", env!("CARGO_MANIFEST_DIR"))],
    );
    eventually(PATIENCE, "the kinds", async || {
        let (done, text) = kubectl(plane, "admin", &["get", "drifts,clusterdrifts,kausalities", "-A"]);
        if done { Ok(()) } else { Err(text) }
    })
    .await
    .unwrap();
}

/// A Deployment that has settled, and the name of its ReplicaSet.
async fn settled(plane: &ControlPlane) -> String {
    must(plane, "alice", &["create", "deployment", "web", "--image=nginx:1", "--replicas=2"]);
    rolled_out(plane, "web", 1).await;
    replica_sets(plane)[0]["metadata"]["name"].as_str().unwrap().to_owned()
}

pub(crate) fn drifts(plane: &ControlPlane) -> Vec<Value> {
    get(plane, &["drifts"])["items"].as_array().cloned().unwrap_or_default()
}

/// A controller in a hot loop: one entry, hardly any write to it, and no more reads than the API server answers one after
/// the other.
#[tokio::test(flavor = "multi_thread")]
async fn a_hot_loop_is_one_entry() {
    let Some(plane) = stage().await else { return };
    let _kubelet = plane.play_kubelet().await.unwrap();
    define(&plane).await;
    let _webhook = Webhook::start(&plane).await;
    let name = settled(&plane).await;
    let seconds =
        std::env::var("KAUSALITY_HOT_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(HOT);

    let client = plane.client(CONTROLLER, &[MASTERS]).unwrap();
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("apps", "v1", "ReplicaSet"));
    let sets: Api<DynamicObject> = Api::namespaced_with(client, "default", &kind);
    let patch = json!({"spec": {"minReadySeconds": 7}});
    let (until, denied) = (Instant::now() + Duration::from_secs(seconds), AtomicUsize::new(0));
    let insist = async || {
        while Instant::now() < until {
            match sets.patch(&name, &PatchParams::default(), &Patch::Merge(&patch)).await {
                Err(kube::Error::Api(status)) if status.code == 403 => denied.fetch_add(1, Ordering::Relaxed),
                other => panic!("{other:?}"),
            };
        }
    };
    futures::future::join_all((0..AT_ONCE).map(|_| insist())).await;

    let denied = denied.into_inner();
    let entries = drifts(&plane);
    assert_eq!(entries.len(), 1, "{entries:#?}");
    let audit = plane.audit().unwrap();
    let of = |resource: &str, verbs: &[&str]| {
        let is = |event: &&AuditEvent| event.resource == resource && verbs.contains(&event.verb.as_str());
        audit.iter().filter(is).count()
    };
    let writes = of("drifts", &["create", "patch", "update"]);
    let reads = audit
        .iter()
        .filter(|event| event.user_agent.starts_with("kausality-webhook") && event.verb == "get")
        .filter(|event| matches!(event.resource.as_str(), "deployments" | "namespaces"))
        .count();
    let minutes = usize::try_from(seconds.div_ceil(60)).unwrap();
    println!(
        "{denied} denied in {seconds} s: {writes} writes to the entry, {reads} reads of the parent and its namespace"
    );
    assert!(denied > 2 * AT_ONCE, "only {denied} were denied");
    assert!(writes <= 3 * minutes, "{writes} writes to the entry in {seconds} s");
    assert!(reads < denied, "{reads} reads for {denied} denials");

    // What was counted in memory comes to be known.
    let counted = entries[0]["status"]["count"].as_u64().unwrap();
    if seconds > 35 {
        assert!(counted > 1, "{counted} of {denied}");
    }
}

/// A person writes what a controller was denied, and more: the drift is over, and says how often it was.
#[tokio::test(flavor = "multi_thread")]
async fn a_drift_whose_child_has_moved_on_is_superseded_and_keeps_its_count() {
    let Some(plane) = stage().await else { return };
    let _kubelet = plane.play_kubelet().await.unwrap();
    define(&plane).await;
    let _webhook = Webhook::start(&plane).await;
    let name = settled(&plane).await;
    let client = plane.client(CONTROLLER, &[MASTERS]).unwrap();
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("apps", "v1", "ReplicaSet"));
    let sets: Api<DynamicObject> = Api::namespaced_with(client, "default", &kind);
    let patch = json!({"spec": {"minReadySeconds": 7}});
    for _ in 0..7 {
        match sets.patch(&name, &PatchParams::default(), &Patch::Merge(&patch)).await {
            Err(kube::Error::Api(status)) if status.code == 403 => {}
            other => panic!("{other:?}"),
        }
    }
    let [entry] = drifts(&plane).try_into().unwrap();
    let id = entry["metadata"]["name"].as_str().unwrap().to_owned();
    assert_eq!(entry["status"]["state"], "Blocked");
    assert_eq!(entry["spec"]["newObject"]["spec"]["minReadySeconds"], 7);
    // The objects are in the entry once, and not field by field in its managed fields, too.
    let managed =
        get(&plane, &["drift", &id, "--show-managed-fields"])["metadata"]["managedFields"].to_string();
    assert!(managed.contains("f:newObject") && !managed.contains("f:selector"), "{managed}");

    must(&plane, "alice", &["patch", "rs", &name, "--type=merge", "-p", r#"{"spec":{"minReadySeconds":9}}"#]);
    // The leader looks every 30 s, and meets the count that is written then: it closes the entry at its next look.
    let over = eventually(2 * PATIENCE, "the end", async || {
        let entry = get(&plane, &["drift", &id]);
        let is_over = entry["status"]["state"] == "Resolved" && entry["status"]["count"] == 7;
        if is_over { Ok(entry) } else { Err(entry["status"].to_string()) }
    })
    .await
    .unwrap();
    let resolution = &over["status"]["resolution"];
    assert_eq!(resolution["reason"], "Superseded");
    let message = "spec.minReadySeconds of the child has changed since: neither absent nor 7";
    assert_eq!(resolution["message"], message);
    // Undoing that is another drift, which is open: the child is as it was when it was tried.
    let open: Vec<Value> =
        drifts(&plane).into_iter().filter(|it| it["status"]["state"] != "Resolved").collect();
    assert!(open.iter().all(|it| it["spec"]["changes"][0]["old"] == "9"), "{open:#?}");
}

/// With `--approval-authorization rbac`, deciding takes a right of its own, and what is decided is signed.
#[tokio::test(flavor = "multi_thread")]
async fn who_may_decide_is_for_roles_to_say() {
    let Some(plane) = stage().await else { return };
    let _kubelet = plane.play_kubelet().await.unwrap();
    define(&plane).await;
    let arguments =
        ["--register", "--bind-address", "127.0.0.1:0", "--resources", "deployments.apps,replicasets.apps"];
    let _webhook = Webhook::spawn(
        &plane,
        "webhook.log",
        &[&arguments[..], &["--approval-authorization", "rbac"]].concat(),
    );
    registered(&plane).await;
    settled(&plane).await;
    for (role, rule) in [
        ("writer", json!({"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get", "patch"]})),
        ("approver", json!({"apiGroups": ["kausality.io"], "resources": ["drifts"], "verbs": ["approve"]})),
    ] {
        let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": role}, "rules": [rule]});
        apply(&plane, "admin", &role);
    }
    let bind = |name: &str, role: &str, user: &str| {
        let arguments = ["create", "rolebinding", name, "--clusterrole", role, "--user", user];
        must(&plane, "admin", &arguments);
    };
    bind("mallory-writes", "writer", "mallory");
    bind("dave-writes", "writer", "dave");
    bind("dave-approves", "approver", "dave");

    let approval =
        r#"kausality.io/approvals=[{"apiVersion":"*","kind":"*","name":"*","mode":"always","by":"alice"}]"#;
    let annotate = |user: &str| {
        let output =
            plane.kubectl(user, &[]).args(["annotate", "deployment", "web", approval]).output().unwrap();
        (output.status.success(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
    };
    let (done, said) = eventually(PATIENCE, "the roles", async || {
        let (done, said) = annotate("mallory");
        if said.contains("kausality") { Ok((done, said)) } else { Err(said) }
    })
    .await
    .unwrap();
    assert!(
        !done && said.contains(r#"verb "approve" on drifts.kausality.io in namespace default"#),
        "{said}"
    );
    assert_eq!(annotation(&get(&plane, &["deployment", "web"]), "approvals"), "");

    let (done, said) = annotate("dave");
    assert!(done, "{said}");
    let approvals = annotation(&get(&plane, &["deployment", "web"]), "approvals");
    assert_eq!(serde_json::from_str::<Value>(&approvals).unwrap()[0]["by"], "dave", "{approvals}");
}
