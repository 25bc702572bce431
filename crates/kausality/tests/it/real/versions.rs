//! Kinds that are served in several versions: one object has one intent, whichever version it is named or written in.

use kausality_testbed::{ControlPlane, eventually};
use serde_json::{Value, json};

use crate::real::stage::*;

const OPERATOR: &str = "system:serviceaccount:infra:widget-operator";

/// The kind Widget: its group prefers v1, and serves v1beta1 beside.
fn definition(serves_v1beta1: bool) -> Value {
    let version = |name: &str, served: bool| {
        json!({"name": name, "served": served, "storage": name == "v1", "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}})
    };
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets", "singular": "widget"},
            "versions": [version("v1", true), version("v1beta1", serves_v1beta1)]}})
}

/// An object whose owner, a Widget, is named in the version that is not preferred.
fn child(api_version: &str, kind: &str, name: &str, owner: &Value) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": "default",
        "ownerReferences": [{"apiVersion": "example.com/v1beta1", "kind": "Widget", "name": "top",
            "uid": owner["metadata"]["uid"], "controller": true}]}})
}

/// Why a change is denied. It must be, and as drift.
#[track_caller]
fn denied(plane: &ControlPlane, arguments: &[&str]) -> Result<(), String> {
    let (done, text) = kubectl(plane, OPERATOR, arguments);
    let drift = text.contains("(Forbidden)") || text.contains("denied the request");
    let drift = drift && text.contains("although nobody changed Widget default/top");
    if !done && drift { Ok(()) } else { Err(format!("kubectl {arguments:?}: {text}")) }
}

/// Owner references and status writes in a version that is not preferred, and that is not served any more later on.
#[tokio::test(flavor = "multi_thread")]
async fn a_version_that_is_not_preferred_names_the_same_object() {
    let Some(plane) = stage().await else { return };
    apply(&plane, "admin", &definition(true));
    let established = ["wait", "--for=condition=Established", "crd/widgets.example.com", "--timeout=30s"];
    must(&plane, "admin", &established);
    let arguments = ["--register", "--bind-address", "127.0.0.1:0", "--resources"];
    let arguments = [&arguments[..], &["configmaps,widgets.example.com"]].concat();
    let webhook = Webhook::spawn(&plane, "webhook.log", &arguments);
    registered(&plane).await;

    // Made through v1beta1, by a person; filled by its controller.
    let top = json!({"apiVersion": "example.com/v1beta1", "kind": "Widget",
        "metadata": {"name": "top", "namespace": "default"}, "spec": {"size": 1}});
    eventually(PATIENCE, "a Widget", async || {
        let file = plane.folder().join("top.json");
        std::fs::write(&file, top.to_string()).unwrap();
        let (done, text) = kubectl(&plane, "alice", &["apply", "-f", file.to_str().unwrap()]);
        if done { Ok(()) } else { Err(text) }
    })
    .await
    .unwrap();
    let top = get(&plane, &["widgets.v1.example.com", "top"]);
    assert_eq!(users(&top), ["alice"]);
    apply(&plane, OPERATOR, &child("v1", "ConfigMap", "settings", &top));
    apply(&plane, OPERATOR, &child("example.com/v1beta1", "Widget", "part", &top));
    let made = get(&plane, &["widgets.v1.example.com", "part"]);
    assert_eq!(users(&made), ["alice", OPERATOR]);

    // Settled through v1beta1: the mark speaks of the one intent, and holds for children in any version.
    let status = r#"{"status":{"observedGeneration":1,"conditions":[{"type":"Ready","status":"True"}]}}"#;
    let report =
        ["patch", "widgets.v1beta1.example.com", "top", "--subresource=status", "--type=merge", "-p", status];
    must(&plane, OPERATOR, &report);
    let settings = ["patch", "configmap", "settings", "-p", r#"{"data":{"un":"asked"}}"#];
    denied(&plane, &settings).unwrap();
    let part = |version: &str, size: usize| -> Vec<String> {
        let (resource, patch) =
            (format!("widgets.{version}.example.com"), format!(r#"{{"spec":{{"size":{size}}}}}"#));
        ["patch", &resource, "part", "--type=merge", "-p", &patch].map(ToOwned::to_owned).to_vec()
    };
    let change = |version: &str, size: usize| {
        let words = part(version, size);
        denied(&plane, &words.iter().map(String::as_str).collect::<Vec<_>>())
    };
    change("v1beta1", 7).unwrap();
    change("v1", 7).unwrap();
    eventually(PATIENCE, "the mark", async || {
        let top = get(&plane, &["widgets.v1.example.com", "top"]);
        if annotation(&top, "settled").is_empty() { Err(format!("{top:#}")) } else { Ok(()) }
    })
    .await
    .unwrap();
    denied(&plane, &settings).unwrap();
    change("v1beta1", 7).unwrap();

    // A person's change through v1beta1 is one of the same object: its controller may follow it, and settles again.
    let grow =
        ["patch", "widgets.v1beta1.example.com", "top", "--type=merge", "-p", r#"{"spec":{"size":2}}"#];
    must(&plane, "bob", &grow);
    must(&plane, OPERATOR, &["patch", "configmap", "settings", "-p", r#"{"data":{"size":"2"}}"#]);
    assert_eq!(users(&get(&plane, &["configmap", "settings"])), ["bob", OPERATOR]);
    let status = status.replace("\"observedGeneration\":1", "\"observedGeneration\":2");
    let report = [
        "patch",
        "widgets.v1beta1.example.com",
        "top",
        "--subresource=status",
        "--type=merge",
        "-p",
        &status,
    ];
    must(&plane, OPERATOR, &report);
    denied(&plane, &settings).unwrap();

    // Not served any more: the reference still names the object that is there.
    apply(&plane, "admin", &definition(false));
    eventually(PATIENCE, "the end of v1beta1", async || {
        let (done, text) = kubectl(&plane, "watcher", &["get", "--raw", "/apis/example.com/v1beta1/widgets"]);
        if done { Err(text) } else { Ok(()) }
    })
    .await
    .unwrap();
    eventually(PATIENCE, "drift", async || denied(&plane, &settings)).await.unwrap();
    eventually(PATIENCE, "drift", async || change("v1", 7)).await.unwrap();
    // The same for a webhook that has never seen that version, once it answers.
    drop(webhook);
    let _webhook = Webhook::spawn(&plane, "another.log", &arguments);
    eventually(PATIENCE, "drift", async || denied(&plane, &settings)).await.unwrap();
    eventually(PATIENCE, "drift", async || change("v1", 7)).await.unwrap();
    // Never was it taken for the cleanup of what has no owner any more.
    let drifts =
        plane.audit().unwrap().into_iter().filter(|event| event.user == OPERATOR && event.code < 300);
    let causes: Vec<_> = drifts
        .filter(|event| event.verb == "patch" && event.subresource.is_empty())
        .filter_map(|event| {
            let of = |webhook| event.annotations.get(&format!("{webhook}.kausality.io/cause")).cloned();
            ["drift", "drift-plain"].into_iter().find_map(of)
        })
        .collect();
    assert_eq!(causes, ["Initialization", "Initialization", "Expected"], "what passed");
}
