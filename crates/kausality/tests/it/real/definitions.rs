//! The CustomResourceDefinitions that ship, on a real API server.

use std::path::{Path, PathBuf};

use kausality_testbed::eventually;
use serde_json::{Value, json};

use crate::real::stage::*;

fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// A policy with this in its spec.
fn policy(change: &Value) -> String {
    let mut policy = json!({
        "apiVersion": "kausality.io/v1alpha1", "kind": "Kausality", "metadata": {"name": "p"},
        "spec": {"resources": [{"apiGroups": ["apps"], "resources": ["deployments"]}], "mode": "log"},
    });
    if let (Some(spec), Some(change)) = (policy["spec"].as_object_mut(), change.as_object()) {
        spec.extend(change.clone());
    }
    policy.to_string()
}

/// A policy that makes no sense is refused, with the field that is wrong; one that does is taken as it is.
#[tokio::test(flavor = "multi_thread")]
async fn policies_are_checked_where_they_are_written() {
    let Some(plane) = stage().await else { return };
    let crds = file("deploy/crds");
    must(&plane, "alice", &["apply", "--server-side", "-f", crds.to_str().unwrap()]);
    eventually(PATIENCE, "the definition", async || {
        let found = get(&plane, &["crd", "kausalities.kausality.io"]);
        let all = found["status"]["conditions"].as_array()?;
        let holds = |kind: &str| all.iter().any(|one| one["type"] == kind && one["status"] == "True");
        (holds("Established") && !holds("NonStructuralSchema")).then_some(())
    })
    .await
    .unwrap();

    let apply = |text: &str| {
        let path = plane.folder().join("policy.json");
        std::fs::write(&path, text).unwrap();
        kubectl(
            &plane,
            "alice",
            &["apply", "--validate=strict", "--server-side", "-f", path.to_str().unwrap()],
        )
    };
    for (change, field) in [
        (json!({"mode": "warn"}), "spec.mode"),
        (json!({"mode": null}), "spec.mode"),
        (json!({"modes": "log"}), "spec.modes"),
        (json!({"resources": []}), "spec.resources"),
        (
            json!({"resources": [{"apiGroups": ["apps"], "resources": ["Deployment"]}]}),
            "spec.resources[0].resources[0]",
        ),
        (json!({"resources": [{"apiGroups": ["*"], "resources": ["*"]}]}), "spec.resources[0].apiGroups"),
        (json!({"resources": [{"apiGroups": ["apps"], "resources": []}]}), "spec.resources[0].resources"),
        (json!({"resources": [{"resources": ["*"]}]}), "spec.resources[0].apiGroups"),
        (json!({"overrides": [{"resources": ["jobs"]}]}), "spec.overrides[0].mode"),
        (json!({"settle": "never"}), "spec.settle"),
        (json!({"failurePolicy": "fail"}), "spec.failurePolicy"),
        (
            json!({"objectSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}),
            "spec.objectSelector.matchExpressions[0]",
        ),
        (json!({"namespaces": {"names": "default"}}), "spec.namespaces.names"),
        (json!({"namespaces": {"names": ["Bad Name!"]}}), "spec.namespaces.names[0]"),
        (json!({"namespaces": {"excluded": ["Kube-*"]}}), "spec.namespaces.excluded[0]"),
        (json!({"overrides": [{"namespaces": ["-"], "mode": "log"}]}), "spec.overrides[0].namespaces[0]"),
        (json!({"objectSelector": {"matchLabels": {"team": "a b"}}}), "spec.objectSelector.matchLabels.team"),
        (
            json!({"namespaces": {"selector": {"matchExpressions": [{"key": "a b", "operator": "Exists"}]}}}),
            "spec.namespaces.selector.matchExpressions[0].key",
        ),
    ] {
        let (accepted, said) = apply(&policy(&change));
        assert!(!accepted && said.contains(field), "{change}: {field} is not named in\n{said}");
    }

    let long = policy(&json!({})).replace(r#""name":"p""#, &format!(r#""name":"{}""#, "p".repeat(201)));
    let (accepted, said) = apply(&long);
    assert!(!accepted && said.contains("at most 200 characters"), "{said}");

    let full = std::fs::read_to_string(file("crates/kausality-api/src/policy/full.json")).unwrap();
    let example = std::fs::read_to_string(file("docs/examples/policy.yaml")).unwrap();
    for text in [full.as_str(), &example, &policy(&json!({"failurePolicy": "Fail", "settle": "steady"}))] {
        let (accepted, said) = apply(text);
        assert!(accepted, "{text}\n{said}");
    }
    let table = must(&plane, "alice", &["get", "kausalities"]);
    assert!(table.lines().next().unwrap().starts_with("NAME"), "{table}");
    assert!(table.contains("MODE") && table.contains("READY") && table.contains("infrastructure"), "{table}");
}
