//! Who decides about drifts on parents whose kinds nobody has named to be watched.

use kausality_api::annotation::Suffix;
use kausality_testbed::{AuditEvent, ControlPlane, eventually};
use serde_json::{Value, json};

use crate::real::{
    controller::{Installation, WEBHOOK, configuration, definition, policy, told},
    stage::*,
};

const OPERATOR: &str = "system:serviceaccount:default:operator";

const RBAC: [&str; 2] = ["--approval-authorization", "rbac"];

/// Boxes, and those who may write them and what they own; one of them may `approve`.
async fn furnish(plane: &ControlPlane) {
    apply(plane, "admin", &definition("example.com", "boxes", "Box"));
    must(plane, "admin", &["wait", "--for=condition=Established", "crd/boxes.example.com"]);
    for (role, rules) in [
        (
            "writer",
            json!([
                {"apiGroups": ["example.com"], "resources": ["boxes"], "verbs": ["get", "patch", "delete"]},
                {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "patch", "create"]},
            ]),
        ),
        ("approver", json!([{"apiGroups": ["kausality.io"], "resources": ["drifts"], "verbs": ["approve"]}])),
    ] {
        let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": role}, "rules": rules});
        apply(plane, "admin", &role);
    }
    for (name, role, user) in [
        ("operator-writes", "writer", OPERATOR),
        ("dave-writes", "writer", "dave"),
        ("dave-approves", "approver", "dave"),
    ] {
        must(plane, "admin", &["create", "rolebinding", name, "--clusterrole", role, "--user", user]);
    }
    let parent = json!({"apiVersion": "example.com/v1", "kind": "Box", "spec": {"value": 1},
        "metadata": {"name": "box", "namespace": "default"}});
    apply(plane, "alice", &parent);
}

/// What kubectl says to somebody who annotates the parent.
fn annotate(plane: &ControlPlane, user: &str, annotation: &str, more: &[&str]) -> (bool, String) {
    let arguments = [&["annotate", "box", "box", "--overwrite", annotation], more].concat();
    let output = plane.kubectl(user, &[]).args(arguments).output().unwrap();
    (output.status.success(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
}

/// The first child of its kind tells whose decisions matter.
async fn first_child(plane: &ControlPlane) {
    let uid = get(plane, &["box", "box"])["metadata"]["uid"].clone();
    let child = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"value": "1"},
        "metadata": {"name": "child", "namespace": "default", "ownerReferences": [{
            "apiVersion": "example.com/v1", "kind": "Box", "name": "box", "uid": uid, "controller": true}]}});
    let file = plane.folder().join("child.json");
    std::fs::write(&file, child.to_string()).unwrap();
    eventually(PATIENCE, "a child", async || {
        let create = ["create", "-f", file.to_str().unwrap()];
        let output = plane.kubectl(OPERATOR, &[]).args(create).output().unwrap();
        if output.status.success() { Ok(()) } else { Err(String::from_utf8(output.stderr).unwrap()) }
    })
    .await
    .unwrap();
}

/// The operator cannot approve its own drift, nor change what Kausality knows of it; who may decide does, in their own name.
async fn who_may_decides(plane: &ControlPlane) {
    let approval = r#"kausality.io/approvals=[{"apiVersion":"v1","kind":"ConfigMap","name":"*","mode":"always","by":"alice"}]"#;
    let refusal = r#"verb "approve" on drifts.kausality.io in namespace default"#;
    eventually(PATIENCE, "somebody who is asked", async || {
        let (done, said) = annotate(plane, OPERATOR, approval, &["--dry-run=server"]);
        if !done && said.contains(refusal) { Ok(()) } else { Err(said) }
    })
    .await
    .unwrap();
    let (done, said) = annotate(plane, OPERATOR, approval, &[]);
    assert!(!done && said.contains(refusal), "{said}");
    let forged =
        format!("{}=abcde", Suffix::of_object(&get(plane, &["box", "box"])).key("kausality.io/controllers"));
    let (done, said) = annotate(plane, OPERATOR, &forged, &[]);
    assert!(done, "{said}");
    let (done, said) = annotate(plane, OPERATOR, "example.com/note=mine", &[]);
    assert!(done, "nothing else is looked at: {said}");
    let found = get(plane, &["box", "box"]);
    assert_eq!(found["metadata"]["annotations"], json!({"example.com/note": "mine"}));

    let (done, said) = annotate(plane, "dave", approval, &[]);
    assert!(done, "{said}");
    let approvals = annotation(&get(plane, &["box", "box"]), "approvals");
    assert_eq!(serde_json::from_str::<Value>(&approvals).unwrap()[0]["by"], "dave", "{approvals}");
    let (done, said) = annotate(plane, OPERATOR, "kausality.io/approvals-", &[]);
    assert!(!done && said.contains(refusal), "{said}");

    // What is decided is not washed away with its object, whose children would be cleaned up after.
    let delete = || {
        let arguments = ["delete", "box", "box", "--cascade=orphan", "--wait=false"];
        let output = plane.kubectl(OPERATOR, &[]).args(arguments).output().unwrap();
        (output.status.success(), String::from_utf8(output.stderr).unwrap())
    };
    let rejection =
        r#"kausality.io/rejections=[{"apiVersion":"v1","kind":"ConfigMap","name":"*","reason":"no"}]"#;
    for (order, lifted, reason) in [
        ("kausality.io/freeze=true", "kausality.io/freeze-", "Box default/box is frozen"),
        (rejection, "kausality.io/rejections-", "Box default/box carries rejections"),
    ] {
        let (done, said) = annotate(plane, "dave", order, &[]);
        assert!(done, "{said}");
        let (done, said) = delete();
        assert!(!done && said.contains(reason), "{said}");
        let (done, said) = annotate(plane, "dave", lifted, &[]);
        assert!(done, "{said}");
    }
    let (done, said) = delete();
    assert!(done, "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn beside_what_a_webhook_watches() {
    let Some(plane) = stage().await else { return };
    furnish(&plane).await;
    let arguments = ["--register", "--bind-address", "127.0.0.1:0", "--resources", "configmaps"];
    let _webhook = Webhook::spawn(&plane, "webhook.log", &[&arguments[..], &RBAC].concat());
    registered(&plane).await;
    first_child(&plane).await;
    who_may_decides(&plane).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn beside_what_a_policy_names() {
    let Some(plane) = stage().await else { return };
    let installation = Installation::start_with(&plane, &RBAC).await;
    let _controller = installation.spawn_controller("controller.log", &[]);
    let reviews = ["--verb=create", "--resource=subjectaccessreviews.authorization.k8s.io"];
    must(&plane, "admin", &[&["create", "clusterrole", "reviews"], &reviews[..]].concat());
    must(
        &plane,
        "admin",
        &["create", "clusterrolebinding", "reviews", "--clusterrole", "reviews", "--user", WEBHOOK],
    );
    furnish(&plane).await;
    let resources = json!([{"apiGroups": [""], "resources": ["configmaps"]}]);
    let namespaces = json!({"names": ["default"]});
    let spec = json!({"resources": resources, "namespaces": namespaces, "mode": "enforce"});
    apply(&plane, "alice", &policy("maps", &spec));
    told(&plane, "maps", "Ready", "Configured").await;
    installation.ready().await;

    first_child(&plane).await;
    // Their status passes where nobody answers.
    for (part, resource, failure_policy) in
        [("decisions", "boxes", "Fail"), ("decisions-status", "boxes/status", "Ignore")]
    {
        let entry = eventually(PATIENCE, "an entry for its parents", async || {
            let all = configuration(&plane)["webhooks"].as_array().cloned().unwrap_or_default();
            all.into_iter().find(|one| one["name"] == format!("maps.{part}.kausality.io"))
        });
        let entry = entry.await.unwrap();
        assert_eq!(entry["rules"][0]["resources"], json!([resource]), "{entry:#}");
        assert_eq!(entry["failurePolicy"], failure_policy, "{entry:#}");
    }
    who_may_decides(&plane).await;
}

/// Statuses of built-in kinds store metadata, too: that is reviewed once, and no way around the webhook while it is dead. Whoever
/// reports on an object waits for nobody.
#[tokio::test(flavor = "multi_thread")]
async fn metadata_does_not_pass_by_way_of_the_status() {
    let Some(plane) = stage().await else { return };
    let webhook = Webhook::start_for(&plane, "deployments.apps").await;
    must(&plane, "alice", &["create", "deployment", "web", "--image=nginx:1", "--replicas=0"]);
    must(&plane, "dave", &["annotate", "deployment", "web", "kausality.io/freeze=true"]);
    let patch = |patch: &str| {
        let arguments = ["patch", "deployment", "web", "--subresource=status", "--type=merge", "-p", patch];
        kubectl(&plane, "bob", &arguments)
    };
    let lifts = r#"{"metadata": {"annotations": {"kausality.io/freeze": null}}}"#;
    let adopts = r#"{"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "a",
        "uid": "b", "controller": true}]}}"#;
    let freeze =
        || get(&plane, &["deployment", "web"])["metadata"]["annotations"]["kausality.io/freeze"].clone();
    let asked = async |user: &str| {
        eventually(PATIENCE, "a review in the audit log", async || {
            let is_it = |event: &AuditEvent| event.user == user && event.resource == "deployments";
            let event = plane.audit().unwrap().into_iter().rfind(is_it)?;
            let asked = event.annotations.into_keys().filter(|key| key.ends_with(".kausality.io/decision"));
            Some(asked.collect::<Vec<String>>())
        })
        .await
        .unwrap()
    };
    let (done, said) = patch(lifts);
    assert!(done && freeze() == "true", "{said}");
    assert_eq!(asked("bob").await, ["status-metadata.kausality.io/decision"]);

    drop(webhook);
    for change in [lifts, adopts] {
        let (done, said) = patch(change);
        assert!(!done && said.contains("failed calling webhook \"status-metadata.kausality.io\""), "{said}");
    }
    assert_eq!(freeze(), "true");
    let (done, said) = patch(r#"{"status": {"observedGeneration": 7}}"#);
    assert!(done, "{said}");
}
