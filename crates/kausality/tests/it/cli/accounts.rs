//! What commands that act tell programs.

use serde_json::json;

use crate::cli::stage::*;

async fn with_drifts() -> Stage {
    let stage = Stage::new().await;
    let south = stage.garden("south", &json!({})).await;
    let north = stage.garden("north", &json!({})).await;
    stage.drift(&Plot::new("aaa1000000000000", &south, "south-1")).await;
    stage.drift(&Plot { minutes: 4, ..Plot::new("aaa2000000000000", &south, "south-2") }).await;
    stage.drift(&Plot { minutes: 3, ..Plot::new("bbb1000000000000", &north, "north-1") }).await;
    stage.drift(&Plot { state: "Resolved", ..Plot::new("ccc1000000000000", &north, "north-2") }).await;
    stage
}

/// What was said, with what differs from run to run taken out.
fn transcript(said: &Said) -> String {
    let version = |line: &str| match line.split_once("\"resourceVersion\": \"") {
        Some((before, _)) => format!("{before}\"resourceVersion\": \"<version>\",\n"),
        None => format!("{line}\n"),
    };
    said.transcript().lines().map(version).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_are_told_what_was_written_about_which_drifts_and_by_whom() {
    let stage = with_drifts().await;
    for (name, code, arguments) in [
        ("approve", 0, &["approve", "--all", "--yes", "--reason", "in bloom"][..]),
        ("approve-again", 0, &["approve", "aaa1"]),
        ("approve-refused", 1, &["approve", "aaa1", "ccc1", "--mode=always", "--yes"]),
        ("approve-ahead", 0, &["approve", "--parent", "garden/north", "--child", "bed/north-9"]),
        ("reject", 0, &["reject", "bbb1", "--reason", "thistles spread", "--dry-run=server"]),
        ("unapprove", 0, &["unapprove", "aaa1"]),
        ("unapprove-parent", 0, &["unapprove", "garden/south", "--all", "--dry-run"]),
        ("freeze", 0, &["freeze", "garden/south", "--reason", "storm"]),
        ("unfreeze", 0, &["unfreeze", "aaa1"]),
        ("snooze", 0, &["snooze", "garden/north", "--until", "2099-01-01T00:00:00Z"]),
        ("unsnooze", 0, &["unsnooze", "garden/north"]),
    ] {
        let said = stage.run(&[arguments, &["-n", "park", "-o", "json"]].concat());
        assert_eq!(said.code, code, "{said:?}");
        insta::assert_snapshot!(format!("account-{name}"), transcript(&said));
    }
    // What is told is what is there.
    let said = stage.run(&["freeze", "garden/south", "-n", "park", "--reason", "storm", "-o", "json"]).json();
    let object = stage.get(&format!("{GARDENS}/south")).await;
    let (told, metadata) = (&said["objects"][0], &object["metadata"]);
    assert_eq!(told["annotations"]["kausality.io/freeze"], metadata["annotations"]["kausality.io/freeze"]);
    assert_eq!((&told["uid"], &told["resourceVersion"]), (&metadata["uid"], &metadata["resourceVersion"]));
}

#[tokio::test(flavor = "multi_thread")]
async fn yaml_says_the_same_and_names_are_as_kubectls() {
    let stage = with_drifts().await;
    let dry = ["approve", "--all", "-n", "park", "--dry-run"];
    let json = stage.run(&[&dry[..], &["-o", "json"]].concat()).json();
    assert_eq!(json["dryRun"], "client");
    assert_eq!(stage.run(&[&dry[..], &["-o", "yaml"]].concat()).yaml(), json);
    let names = |arguments: &[&str]| {
        let said = stage.run(&[arguments, &["-n", "park", "-o", "name"]].concat());
        assert_eq!(said.code, 0, "{said:?}");
        said.out
    };
    assert_eq!(names(&["approve", "aaa1"]), "drift/aaa1000000000000\n");
    assert_eq!(names(&["unapprove", "aaa1"]), "drift/aaa1000000000000\n");
    assert_eq!(names(&["reject", "aaa2", "--reason", "no"]), "drift/aaa2000000000000\n");
    for command in
        [&["freeze", "aaa1", "--reason", "x"][..], &["unfreeze", "aaa1"], &["snooze", "aaa1", "--for", "1h"]]
    {
        assert_eq!(names(command), "garden.garden.io/south\n");
    }
    assert_eq!(names(&["unsnooze", "garden/south"]), "garden.garden.io/south\n");
    assert_eq!(names(&["unapprove", "garden/south", "--all"]), "garden.garden.io/south\n");
}

/// Who may not list drifts is not told which ones a freeze is about, and it is done all the same.
#[tokio::test(flavor = "multi_thread")]
async fn drifts_that_may_not_be_listed_are_left_out() {
    let stage = with_drifts().await;
    let rules = json!({"metadata": {"name": "freezer"}, "rules": [
        {"apiGroups": ["kausality.io"], "resources": ["drifts"], "verbs": ["approve"]},
        {"apiGroups": ["garden.io"], "resources": ["gardens"], "verbs": ["get", "patch"]}]});
    stage.post("/apis/rbac.authorization.k8s.io/v1/clusterroles", &rules).await;
    let binding = json!({"metadata": {"name": "freezer"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "frida"}],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "freezer"}});
    stage.post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", &binding).await;
    let said =
        stage.run(&["freeze", "garden/south", "-n", "park", "--reason", "x", "-o", "json", "--as", "frida"]);
    assert_eq!(said.code, 0, "{said:?}");
    assert!(said.err.contains("the drifts of Garden park/south are not known"), "{said:?}");
    assert_eq!(said.json()["objects"][0].get("drifts"), None);
    assert_eq!(stage.annotation("south", "freeze").await["user"], "frida");
}
