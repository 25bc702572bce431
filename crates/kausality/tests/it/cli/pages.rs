//! `kausality show`, `why`, `trace` and `policies`.

use kausality_api::annotation::{Suffix, TRACE};
use serde_json::{Value, json};

use crate::cli::stage::*;

#[tokio::test(flavor = "multi_thread")]
async fn everything_about_one_drift() {
    let stage = Stage::new().await;
    let approvals = json!([{"apiVersion": "garden.io/v1", "kind": "Bed", "name": "other", "mode": "always"}]);
    let south = stage.garden("south", &json!({"kausality.io/approvals": approvals.to_string()})).await;
    stage.drift(&Plot::new("aaa1000000000000", &south, "south-1")).await;
    stage.golden("show", &["show", "aaa", "-n", "park"]);
    stage.golden("why", &["why", "aaa", "-n", "park"]);
    let shown = stage.run(&["show", "bed/south-1", "-n", "park", "-o", "json"]).json();
    assert_eq!(shown["spec"]["id"], "aaa1000000000000");
    assert_eq!(stage.run(&["show", "garden/south", "-n", "park", "-o", "yaml"]).yaml(), shown);
    let why = stage.run(&["why", "aaa", "-n", "park", "-o", "json"]).json();
    assert_eq!(why["drift"]["spec"]["id"], "aaa1000000000000");
    assert_eq!(stage.run(&["why", "aaa", "-n", "park", "-o", "yaml"]).yaml(), why);
    let decided = why["steps"].as_array().unwrap().iter().find(|step| step["decided"] == true).unwrap();
    assert_eq!((&decided["rule"], &why["verdict"]), (&json!("mode"), &json!("deny: nothing let it pass")));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_can_be_typed_is_what_the_program_is_called() {
    let stage = Stage::new().await;
    let south = stage.garden("south", &json!({})).await;
    stage.drift(&Plot::new("aaa1000000000000", &south, "south-1")).await;
    let folder = tempfile::tempdir().unwrap();
    let plugin = folder.path().join("kubectl-kausality");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_kausality"), &plugin).unwrap();
    let kubeconfig = stage.command(&[]);
    let (_, config) = kubeconfig.get_envs().find(|(key, _)| *key == "KUBECONFIG").unwrap();
    let mut command = std::process::Command::new(&plugin);
    let arguments = ["show", "aaa", "-n", "park"];
    command.args(arguments).env("KUBECONFIG", config.unwrap());
    let said = said(&mut command, &arguments);
    assert!(said.out.contains("kubectl kausality approve aaa1000000000000 -n park"), "{said:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_chain_up_and_the_family_down() {
    let stage = Stage::new().await;
    let seen = jiff::Timestamp::now() - jiff::SignedDuration::from_secs(330);
    let hop = |kind: &str, name: &str, user: &str| {
        json!({"apiVersion": "garden.io/v1", "kind": kind, "name": name, "generation": 1, "user": user,
            "timestamp": seen, "labels": {"ticket": "OPS-7"}})
    };
    let origin = hop("Garden", "south", "alice");
    let south = stage.garden("south", &json!({Suffix::of("garden.io", "Garden", "park", "south").key(TRACE): json!([origin]).to_string()})).await;
    let child = |name: &str, owner: &Value, controller: bool, trace: Value| {
        let owner = json!({"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"], "controller": controller});
        json!({"apiVersion": "garden.io/v1", "kind": "Bed", "metadata": {"name": name, "ownerReferences": [owner],
            "annotations": {Suffix::of("garden.io", "Bed", "park", name).key(TRACE): trace.to_string()}}, "spec": {}})
    };
    let beds = "/apis/garden.io/v1/namespaces/park/beds";
    let mut drifted = hop("Bed", "south-1", GARDENER);
    drifted["drift"] = json!(true);
    let first = stage.post(beds, &child("south-1", &south, true, json!([drifted]))).await;
    let second = hop("Bed", "south-2", GARDENER);
    stage.post(beds, &child("south-2", &south, true, json!([origin, second]))).await;
    stage.post(beds, &child("not-mine", &south, false, json!([]))).await;
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "plan", "ownerReferences": [
        {"apiVersion": "garden.io/v1", "kind": "Bed", "name": "south-1", "uid": first["metadata"]["uid"],
            "controller": true}]}});
    stage.post("/api/v1/namespaces/park/configmaps", &map).await;
    stage.golden("trace", &["trace", "bed/south-2", "-n", "park"]);
    stage.golden("trace-children", &["trace", "garden", "south", "-n", "park", "--children"]);
    let tree = stage.run(&["trace", "garden/south", "-n", "park", "--children", "-o", "json"]).json();
    assert_eq!(tree["trace"][0]["user"], "alice");
    assert_eq!(tree["children"][0]["children"][0]["kind"], "ConfigMap");
    let yaml = stage.run(&["trace", "garden/south", "-n", "park", "--children", "-o", "yaml"]).yaml();
    assert_eq!(yaml, tree);
    stage.golden("trace-none", &["trace", "namespace/park"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn policies_are_listed() {
    let stage = Stage::new().await;
    let empty = stage.run(&["policies"]);
    assert_eq!(
        (empty.code, empty.err.as_str()),
        (
            0,
            "There are no Kausality policies. Without them, only what the webhook was started with is watched.\n"
        )
    );
    let policies = "/apis/kausality.io/v1alpha1/kausalities";
    for (name, mode) in [("gardens", "enforce"), ("all", "log")] {
        let policy = json!({"apiVersion": "kausality.io/v1alpha1", "kind": "Kausality", "metadata": {"name": name},
            "spec": {"mode": mode, "resources": [{"apiGroups": ["garden.io"], "resources": ["*"]}]}});
        stage.post(policies, &policy).await;
    }
    let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True", "reason": "InForce",
        "message": "it is in force", "lastTransitionTime": "2026-01-25T11:00:00Z"}]}});
    stage.patch(&format!("{policies}/gardens/status"), &ready).await;
    let shown = stage.run(&["policies"]);
    // Their age is of seconds.
    let columns: Vec<String> = (shown.out.lines())
        .map(|line| {
            line.split_whitespace().filter(|word| !word.ends_with('s') || word.len() > 3).collect::<Vec<_>>()
        })
        .map(|words| words.join(" "))
        .collect();
    assert_eq!(
        columns,
        [
            "NAME MODE RESOURCES NAMESPACES READY REASON AGE",
            "all log *.garden.io all Unknown",
            "gardens enforce *.garden.io all True InForce"
        ]
    );
    let list = stage.run(&["policies", "gardens", "-o", "json"]).json();
    assert_eq!(list["items"].as_array().unwrap().len(), 1);
    assert_eq!(stage.run(&["policies", "gardens", "-o", "yaml"]).yaml(), list);
    assert_eq!(
        stage.run(&["policies", "-o", "name"]).out,
        "kausality.kausality.io/all\nkausality.kausality.io/gardens\n"
    );
    stage.golden("policies-unknown", &["policies", "meadow"]);
}
