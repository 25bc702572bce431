//! Who may decide.

use serde_json::{Value, json};

use crate::cli::stage::*;

/// Lets somebody do something in the park.
pub(crate) async fn allow(stage: &Stage, user: &str, group: &str, resources: &str, verbs: &[&str]) {
    let rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/park";
    let name = format!("{user}-{resources}");
    let role = json!({"metadata": {"name": name},
        "rules": [{"apiGroups": [group], "resources": [resources], "verbs": verbs}]});
    stage.post(&format!("{rbac}/roles"), &role).await;
    let binding = json!({"metadata": {"name": name},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}});
    stage.post(&format!("{rbac}/rolebindings"), &binding).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_approve_is_told_which_rule_is_missing() {
    let stage = Stage::new().await;
    let south = stage.garden("south", &json!({})).await;
    stage.drift(&Plot::new("aaa1000000000000", &south, "south-1")).await;
    // Bob may even write to gardens: that is not enough.
    allow(&stage, "bob", "kausality.io", "drifts", &["get", "list"]).await;
    allow(&stage, "bob", "garden.io", "gardens", &["get", "patch"]).await;
    for (name, arguments) in [
        ("forbidden-approve", &["approve", "aaa1"][..]),
        ("forbidden-reject", &["reject", "aaa1", "--reason", "no"]),
        ("forbidden-unapprove", &["unapprove", "aaa1"]),
        ("forbidden-unapprove-parent", &["unapprove", "garden/south", "--all"]),
        ("forbidden-freeze", &["freeze", "garden/south", "--reason", "storm"]),
        ("forbidden-unfreeze", &["unfreeze", "garden/south"]),
        ("forbidden-snooze", &["snooze", "garden/south", "--for", "2h"]),
        ("forbidden-unsnooze", &["unsnooze", "garden/south"]),
        ("forbidden-ahead", &["approve", "--parent", "garden/south", "--child", "bed/new"]),
    ] {
        let said = stage.golden(name, &[arguments, &["-n", "park", "--as", "bob"]].concat());
        assert_eq!(said.code, 1, "{said:?}");
        assert!(said.err.contains(r#"resources: ["drifts"], verbs: ["approve"]"#), "{said:?}");
    }
    for key in ["approvals", "rejections", "freeze", "snooze"] {
        assert_eq!(stage.annotation("south", key).await, Value::Null, "{key}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_approve_does_so_in_their_own_name_if_they_may_write() {
    let stage = Stage::new().await;
    let south = stage.garden("south", &json!({})).await;
    stage.drift(&Plot::new("aaa1000000000000", &south, "south-1")).await;
    allow(&stage, "carol", "kausality.io", "drifts", &["get", "list", "approve"]).await;
    let arguments = ["approve", "aaa1", "-n", "park", "--as", "carol"];
    stage.golden("approver-who-cannot-read", &arguments);
    allow(&stage, "carol", "garden.io", "gardens", &["get"]).await;
    stage.golden("approver-who-cannot-write", &arguments);
    assert_eq!(stage.annotation("south", "approvals").await, Value::Null);
    let patch =
        json!({"rules": [{"apiGroups": ["garden.io"], "resources": ["gardens"], "verbs": ["get", "patch"]}]});
    let role = "/apis/rbac.authorization.k8s.io/v1/namespaces/park/roles/carol-gardens";
    stage.patch(role, &patch).await;
    let said = stage.run(&arguments);
    assert_eq!(said.code, 0, "{said:?}");
    assert_eq!(stage.annotation("south", "approvals").await[0]["by"], "carol");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_right_in_one_namespace_is_none_in_another() {
    let stage = Stage::new().await;
    let east =
        json!({"apiVersion": "garden.io/v1", "kind": "Garden", "metadata": {"name": "east"}, "spec": {}});
    let gardens = "/apis/garden.io/v1/namespaces/other/gardens";
    let east = stage.post(gardens, &east).await;
    stage.drift(&Plot::new("eee1000000000000", &east, "east-1")).await;
    let south = stage.garden("south", &json!({})).await;
    stage.drift(&Plot::new("aaa1000000000000", &south, "south-1")).await;
    allow(&stage, "carol", "kausality.io", "drifts", &["approve"]).await;
    allow(&stage, "carol", "garden.io", "gardens", &["get", "patch"]).await;
    let everywhere = json!({"metadata": {"name": "see"}, "rules": [
        {"apiGroups": ["kausality.io"], "resources": ["drifts", "clusterdrifts"], "verbs": ["list"]}]});
    stage.post("/apis/rbac.authorization.k8s.io/v1/clusterroles", &everywhere).await;
    let binding = json!({"metadata": {"name": "see"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "carol"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "see"}});
    stage.post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", &binding).await;
    let said = stage.run(&["approve", "--all", "-A", "--yes", "--as", "carol"]);
    assert_eq!(said.code, 1, "{said:?}");
    assert!(said.err.contains("may not decide about drifts in namespace other"), "{said:?}");
    assert_eq!(stage.annotation("south", "approvals").await, Value::Null, "nothing is written at all");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parent_without_a_namespace_needs_the_right_everywhere() {
    let stage = Stage::new().await;
    let park =
        json!({"apiVersion": "garden.io/v1", "kind": "Park", "metadata": {"name": "city"}, "spec": {}});
    let park = stage.post("/apis/garden.io/v1/parks", &park).await;
    stage.drift(&Plot::new("ddd1000000000000", &park, "city-1")).await;
    allow(&stage, "carol", "kausality.io", "drifts", &["get", "list", "approve"]).await;
    let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    let see = json!({"metadata": {"name": "see"}, "rules": [
        {"apiGroups": ["kausality.io"], "resources": ["clusterdrifts"], "verbs": ["list"]}]});
    stage.post(roles, &see).await;
    let binding = json!({"metadata": {"name": "see"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "carol"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "see"}});
    stage.post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", &binding).await;
    stage.golden("forbidden-cluster", &["approve", "ddd1", "--cluster", "--as", "carol"]);
    let said = stage.run(&["approve", "ddd1", "--cluster"]);
    assert_eq!(
        said.out, "clusterdrift/ddd1000000000000 approved once: Bed/city-1 of Park/city\n",
        "{said:?}"
    );
}
