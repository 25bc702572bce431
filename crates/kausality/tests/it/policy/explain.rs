//! `kausality policy explain`.

use serde_json::json;

use crate::policy::*;

#[test]
fn rules_are_explained() {
    let said = kausality(&["policy", "explain", "policies/kubernetes.yaml"]);
    assert_eq!(said.code, 0, "{}", said.err);
    insta::assert_snapshot!("explain-kubernetes", said.out);
    let said = kausality(&["policy", "explain", "policies/kubernetes.yaml", "-o", "json"]);
    let rules = &said.json()["policies"][0]["rules"];
    assert_eq!(rules[1]["what"], "CREATE of Pod (v1)");
    assert_eq!(rules[1].get("review"), None);
    let said = kausality(&["policy", "explain", "policies/tests/kubernetes.yaml"]);
    assert_eq!((said.code, said.out.as_str()), (2, ""));
    assert!(said.err.contains("holds no ApprovalPolicy or ClusterApprovalPolicy"), "{}", said.err);
}

#[test]
fn rules_are_held_against_a_request() {
    let folder = folder(GROWS);
    // A Pod that a ReplicaSet makes although nobody changed that.
    let review = format!("{}:79", fixture("drift-after-rollout.jsonl"));
    let arguments = ["policy", "explain", "policies/kubernetes.yaml", "--review", &review];
    let parent = folder.path().join("parent.yaml");
    let parent = parent.to_str().unwrap();
    let said = kausality(&arguments);
    assert_eq!(said.code, 0, "{}", said.err);
    insta::assert_snapshot!("explain-review", said.out);

    for (replicas, decision) in [(3, "allow"), (0, "none")] {
        let object = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "s"}, "spec": {"replicas": replicas}});
        std::fs::write(parent, object.to_string()).unwrap();
        let said = kausality(&[&arguments[..], &["--parent", parent, "-o", "json"]].concat());
        let said = said.json();
        assert_eq!(said["decision"], decision);
        let rules = &said["policies"][0]["rules"];
        assert_eq!(rules[1]["review"]["matches"], decision == "allow");
        assert_eq!(rules[0]["review"], json!({"matches": false, "why": "is not about CREATE"}));
    }

    // Labels of a namespace, and what is no drift.
    let policy = folder.path().join("policy.yaml");
    let deletion = folder.path().join("deletion.json");
    let old = json!({"apiVersion": "example.com/v1alpha1", "kind": "NodePool", "metadata": {"name": "p", "namespace": "d"}});
    let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "1", "operation": "DELETE", "kind": {"kind": "NodePool"}, "resource": {"resource": "nodepools"},
        "userInfo": {"username": "ian", "groups": ["interns"]}, "oldObject": old}});
    std::fs::write(&deletion, serde_json::to_string_pretty(&review).unwrap()).unwrap();
    let arguments = [
        "policy",
        "explain",
        policy.to_str().unwrap(),
        "--review",
        deletion.to_str().unwrap(),
        "--cause",
        "origin",
        "-o",
        "json",
    ];
    for (label, decision) in [("env=prod", "deny"), ("env=dev", "none")] {
        let said = kausality(&[&arguments[..], &["--namespace-label", label]].concat());
        assert_eq!(said.json()["decision"], decision, "{label}");
    }
    assert_eq!(kausality(&["policy", "explain", policy.to_str().unwrap(), "--parent", parent]).code, 2);
}
