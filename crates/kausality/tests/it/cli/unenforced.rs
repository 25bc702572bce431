//! Decisions that nothing enforces: they are written, and whoever makes them is told.

use serde_json::{Value, json};

use crate::cli::{rights::allow, stage::*};

const CONFIGURATIONS: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";

/// Registers a webhook that is never asked, for a resource of gardens in the park.
async fn register(stage: &Stage, resource: &str) {
    let configuration = json!({"metadata": {"name": "kausality"}, "webhooks": [{
        "name": "gardens.drift.kausality.io", "clientConfig": {"url": "https://127.0.0.1:1/mutate"},
        "rules": [{"apiGroups": ["garden.io"], "apiVersions": ["v1"], "resources": [resource],
            "operations": ["CREATE", "UPDATE", "DELETE"], "scope": "*"}],
        "matchConditions": [{"name": "never", "expression": "false"}],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "park"}},
        "failurePolicy": "Ignore", "sideEffects": "None", "admissionReviewVersions": ["v1"], "timeoutSeconds": 1,
    }]});
    _ = stage.call("DELETE", &format!("{CONFIGURATIONS}/kausality"), &Value::Null).await;
    stage.post(CONFIGURATIONS, &configuration).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_that_nothing_enforces_is_made_with_a_warning() {
    let stage = Stage::new().await;
    let south = stage.garden("south", &json!({})).await;
    let mut north = south.clone();
    north["metadata"] = json!({"name": "north", "namespace": "other"});
    stage.post("/apis/garden.io/v1/namespaces/other/gardens", &north).await;
    stage.drift(&Plot::new("aaa1000000000000", &south, "south-1")).await;
    let decide = |arguments: &[&str]| {
        let said = stage.run(&[arguments, &["--yes"]].concat());
        assert_eq!(said.code, 0, "{said:?}");
        said
    };
    let here = [
        &["freeze", "garden/south", "-n", "park", "--reason", "storm"][..],
        &["snooze", "garden/south", "-n", "park", "--for", "2h"],
        &["approve", "aaa1", "-n", "park", "--mode", "always"],
        &["reject", "aaa1", "-n", "park", "--reason", "no"],
        &["approve", "-n", "park", "--parent", "garden/south", "--child", "bed/new"],
    ];
    let elsewhere = ["freeze", "garden/north", "-n", "other", "--reason", "storm"];

    register(&stage, "beds").await;
    for arguments in here {
        assert_eq!(decide(&[arguments, &["--dry-run=client"]].concat()).err, "", "{arguments:?}");
    }
    let warning = "nothing enforces this: no Kausality policy covers children of Garden other/north (see `kausality policies`)";
    let said = decide(&elsewhere);
    assert_eq!(said.err, format!("warning: {warning}\n"));
    let told = warning.replace("nothing enforces this", "annotated, but nothing enforces it");
    assert_eq!(said.out, format!("Garden other/north {told}\n"), "it is not frozen");
    let north = "/apis/garden.io/v1/namespaces/other/gardens/north";
    assert_eq!(stage.annotation_of(north, "freeze").await["message"], "storm", "it is written all the same");
    let document = decide(&[&elsewhere[..], &["-o", "json"]].concat()).json();
    assert_eq!(document["warnings"], json!([warning]));
    assert_eq!(document["objects"][0]["result"], "annotated, but nothing enforces it");
    assert_eq!(
        document["objects"][0]["notEnforced"],
        warning.strip_prefix("nothing enforces this: ").unwrap()
    );
    assert_eq!(decide(&["unfreeze", "garden/north", "-n", "other"]).err, "", "nobody relies on that");

    // Changes of beds are not looked at. Gardens of gardens might be.
    register(&stage, "gardens").await;
    for arguments in &here[..2] {
        assert_eq!(decide(arguments).err, "", "{arguments:?}");
    }
    for arguments in &here[2..] {
        let said = decide(arguments);
        assert!(said.err.contains("no Kausality policy covers Bed objects in namespace park"), "{said:?}");
        let told =
            " annotated, but nothing enforces it: no Kausality policy covers Bed objects in namespace park";
        assert!(said.out.contains(told), "{said:?}");
    }
}

/// A policy for a resource of gardens, in these namespaces.
fn policy(resource: &str, namespaces: &[&str]) -> Value {
    json!({"apiVersion": "kausality.io/v1alpha1", "kind": "Kausality", "metadata": {"name": resource},
        "spec": {"resources": [{"apiGroups": ["garden.io"], "resources": [resource]}],
            "namespaces": {"names": namespaces}, "mode": "log"}})
}

const POLICIES: &str = "/apis/kausality.io/v1alpha1/kausalities";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

/// Most people who decide may not read what is registered. Policies say most of it.
#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_read_what_is_registered_is_told_by_the_policies() {
    let stage = Stage::new().await;
    stage.garden("south", &json!({})).await;
    register(&stage, "nothing").await;
    allow(&stage, "carol", "kausality.io", "drifts", &["get", "list", "approve"]).await;
    allow(&stage, "carol", "garden.io", "gardens", &["get", "patch"]).await;
    let approve = ["approve", "-n", "park", "--parent", "garden/south", "--child", "bed/new"];
    assert!(stage.run(&approve).err.starts_with("warning: nothing enforces this: "));
    let as_carol = || {
        let said = stage.run(&[&approve[..], &["--as", "carol"]].concat());
        assert_eq!(said.code, 0, "{said:?}");
        said
    };
    let unclear = "warning: cannot tell whether anything enforces this: ";
    let said = as_carol();
    assert!(said.err.starts_with(unclear) && said.err.contains("nor list Kausality policies"), "{said:?}");
    let role = json!({"metadata": {"name": "carol"}, "rules": [
        {"apiGroups": ["kausality.io"], "resources": ["kausalities"], "verbs": ["list"]}]});
    stage.post(&format!("{RBAC}/clusterroles"), &role).await;
    let binding = json!({"metadata": {"name": "carol"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "carol"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "carol"}});
    stage.post(&format!("{RBAC}/clusterrolebindings"), &binding).await;
    let said = as_carol();
    assert!(
        said.err.starts_with(unclear) && said.err.contains("there are no Kausality policies"),
        "{said:?}"
    );
    stage.post(POLICIES, &policy("gardens", &["park"])).await;
    stage.post(POLICIES, &policy("beds", &["other"])).await;
    let said = as_carol();
    assert!(
        said.err.starts_with("warning: nothing enforces this: no Kausality policy covers Bed"),
        "{said:?}"
    );
    stage.call("DELETE", &format!("{POLICIES}/beds"), &Value::Null).await.unwrap();
    stage.post(POLICIES, &policy("beds", &["park"])).await;
    assert_eq!(as_carol().err, "");
}

/// The children of a custom resource may be of any kind. Policies know which kinds they have met as parents.
#[tokio::test(flavor = "multi_thread")]
async fn of_parents_that_no_policy_has_met_it_cannot_be_told() {
    let stage = Stage::new().await;
    stage.garden("south", &json!({})).await;
    register(&stage, "beds").await;
    stage.post(POLICIES, &policy("beds", &["park"])).await;
    let freeze = ["freeze", "garden/south", "-n", "park", "--reason", "storm"];
    let unclear = "warning: cannot tell whether anything enforces this: no change of children of Garden park/south has been \
        reviewed so far\n";
    assert_eq!(stage.run(&freeze).err, unclear);
    let mut met = policy("beds", &["park"]);
    met["status"] = json!({"parents": [{"apiGroup": "garden.io", "kind": "Garden", "resource": "gardens"}]});
    let status = format!("{POLICIES}/beds/status");
    let found = stage.call("GET", &format!("{POLICIES}/beds"), &Value::Null).await.unwrap();
    met["metadata"] = found["metadata"].clone();
    stage.call("PUT", &status, &met).await.unwrap();
    let said = stage.run(&freeze);
    assert_eq!((said.code, said.err.as_str()), (0, ""), "{said:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn where_kausality_is_not_installed_that_is_said() {
    let stage = Stage::new().await;
    stage.garden("south", &json!({})).await;
    let definition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/kausalities.kausality.io";
    stage.call("DELETE", definition, &Value::Null).await.unwrap();
    let freeze = ["freeze", "garden/south", "-n", "park", "--reason", "storm"];
    kausality_testbed::eventually(PATIENCE, "a warning", async || {
        let said = stage.run(&freeze);
        let warned =
            said.err == "warning: nothing enforces this: Kausality is not installed in this cluster\n";
        if warned && said.code == 0 { Ok(()) } else { Err(said.transcript()) }
    })
    .await
    .unwrap();
}
