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
    assert_eq!(decide(&elsewhere).err, format!("warning: {warning}\n"));
    let north = "/apis/garden.io/v1/namespaces/other/gardens/north";
    assert_eq!(stage.annotation_of(north, "freeze").await["message"], "storm", "it is written all the same");
    let document = decide(&[&elsewhere[..], &["-o", "json"]].concat()).json();
    assert_eq!(document["warnings"], json!([warning]));
    assert_eq!(decide(&["unfreeze", "garden/north", "-n", "other"]).err, "", "nobody relies on that");

    // Changes of beds are not looked at. Gardens of gardens might be.
    register(&stage, "gardens").await;
    for arguments in &here[..2] {
        assert_eq!(decide(arguments).err, "", "{arguments:?}");
    }
    for arguments in &here[2..] {
        let said = decide(arguments);
        assert!(said.err.contains("no Kausality policy covers Bed objects in namespace park"), "{said:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_read_what_is_registered_is_not_warned() {
    let stage = Stage::new().await;
    stage.garden("south", &json!({})).await;
    register(&stage, "nothing").await;
    allow(&stage, "carol", "kausality.io", "drifts", &["get", "list", "approve"]).await;
    allow(&stage, "carol", "garden.io", "gardens", &["get", "patch"]).await;
    let freeze = ["approve", "-n", "park", "--parent", "garden/south", "--child", "bed/new"];
    assert!(stage.run(&freeze).err.starts_with("warning: "));
    let said = stage.run(&[&freeze[..], &["--as", "carol"]].concat());
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
