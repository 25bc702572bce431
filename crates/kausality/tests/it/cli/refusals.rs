//! What is not done, and what is said then.

use serde_json::{Value, json};

use crate::cli::stage::*;

#[tokio::test(flavor = "multi_thread")]
async fn names_must_mean_something_and_not_too_much() {
    let stage = Stage::new().await;
    let south = stage.garden("south", &json!({})).await;
    stage.drift(&Plot::new("aaa1000000000000", &south, "south-1")).await;
    stage.drift(&Plot::new("aaa2000000000000", &south, "south-2")).await;
    for (name, arguments) in [
        ("unknown-id", &["show", "fff", "-n", "park"][..]),
        ("unknown-id-everywhere", &["approve", "fff", "-A"]),
        ("unknown-object", &["show", "bed/none", "-n", "park"]),
        ("unknown-kind", &["show", "flower/rose", "-n", "park"]),
        ("ambiguous-id", &["approve", "aaa", "-n", "park"]),
        ("ambiguous-object", &["show", "garden/south", "-n", "park"]),
        ("no-id", &["show", "a b", "-n", "park"]),
        ("unknown-parent", &["freeze", "garden/west", "-n", "park", "--reason", "storm"]),
        ("unknown-parent-kind", &["freeze", "flower/rose", "-n", "park", "--reason", "storm"]),
        ("approve-unknown-object", &["approve", "bed/none", "-n", "park"]),
        ("filters-without-drift", &["approve", "--actor", "nobody", "-n", "park"]),
        ("filters-against-name", &["approve", "garden/south", "--actor", "nobody", "-n", "park"]),
        ("selector-broken", &["drifts", "-n", "park", "-l", "a=b=c"]),
        ("context-unknown", &["drifts", "-n", "park", "--context", "zz"]),
    ] {
        let said = stage.golden(name, arguments);
        assert_eq!(said.code, 1, "{said:?}");
    }
    assert_eq!(stage.annotation("south", "approvals").await, Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_misuse_exits_with_2() {
    let stage = Stage::new().await;
    for arguments in [
        &["approve"][..],
        &["approve", "aaa", "--mode", "twice"],
        &["approve", "aaa", "--expires", "yesterday"],
        &["approve", "aaa", "--expires", "2020-01-01T00:00:00Z"],
        &["approve", "aaa", "--reason", " "],
        &["approve", "aaa", "--fields", ""],
        &["approve", "aaa", "--fields", "spec.a,"],
        &["approve", "--parent", "south"],
        &["reject", "aaa"],
        &["freeze", "garden/south"],
        &["snooze", "garden/south"],
        &["snooze", "garden/south", "--for", "2h", "--until", "2099-01-01T00:00:00Z"],
        &["snooze", "garden/south", "--for", "2099-01-01T00:00:00Z"],
        &["drifts", "-n", "park", "-A"],
        &["drifts", "--since", "long"],
        &["drifts", "--state", "Odd"],
        &["drifts", "-w", "--group"],
        &["show"],
        &["trace"],
        &["completions", "tcsh"],
    ] {
        let said = stage.run(arguments);
        assert_eq!(said.code, 2, "{said:?}");
        assert!(said.err.contains("Usage") || said.err.contains("invalid value"), "{said:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recording_needs_a_line_and_a_drift_a_name() {
    let stage = Stage::new().await;
    for (name, arguments, code) in [
        ("why-of-a-file", &["why", "Cargo.toml"][..], 2),
        ("why-of-several", &["why", "aaa1", "aaa2"], 2),
        ("why-of-nothing", &["why", "aaa1"], 1),
    ] {
        assert_eq!(stage.golden(name, arguments).code, code, "{arguments:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drift_that_is_not_any_more_what_it_was_is_not_decided() {
    let stage = Stage::new().await;
    let south = stage.garden("south", &json!({})).await;
    stage.drift(&Plot { state: "Resolved", ..Plot::new("aaa1000000000000", &south, "south-1") }).await;
    stage.golden("approve-resolved", &["approve", "aaa1", "-n", "park"]);
    stage.golden("reject-resolved", &["reject", "aaa1", "-n", "park", "--reason", "no"]);
    assert_eq!(stage.run(&["approve", "aaa1", "-n", "park", "--force"]).code, 0);

    let north = stage.garden("north", &json!({})).await;
    stage.drift(&Plot::new("bbb1000000000000", &north, "north-1")).await;
    stage.patch(&format!("{GARDENS}/north"), &json!({"spec": {"flowers": "tulips"}})).await;
    stage.golden("approve-expired", &["approve", "bbb1", "-n", "park", "--force"]);
    stage.golden("show-expired", &["show", "bbb1", "-n", "park"]);

    stage.call("DELETE", &format!("{GARDENS}/north"), &Value::Null).await.unwrap();
    stage.golden("approve-gone", &["approve", "bbb1", "-n", "park"]);
    stage.garden("north", &json!({})).await;
    stage.golden("approve-other-uid", &["approve", "bbb1", "-n", "park"]);
    assert_eq!(stage.annotation("north", "approvals").await, Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_can_be_done_is_done_and_the_rest_told() {
    let stage = Stage::new().await;
    let south = stage.garden("south", &json!({})).await;
    stage.drift(&Plot { state: "Resolved", ..Plot::new("aaa1000000000000", &south, "south-1") }).await;
    stage.drift(&Plot::new("aaa2000000000000", &south, "south-2")).await;
    stage.golden("approve-one-of-two", &["approve", "aaa1", "aaa2", "-n", "park"]);
    assert_eq!(stage.annotation("south", "approvals").await[0]["name"], "south-2");
}

#[tokio::test(flavor = "multi_thread")]
async fn words_of_others_do_not_reach_the_terminal_as_they_are() {
    let stage = Stage::new().await;
    let evil = json!([{"apiVersion": "garden.io/v1", "kind": "Bed", "name": "south-1", "by": "eve\u{1b}[2J",
        "reason": "red\u{1b}[31m\nerror: fake"}]);
    let south = stage.garden("south", &json!({"kausality.io/rejections": evil.to_string()})).await;
    stage.drift(&Plot { user: "eve\u{1b}[2J", ..Plot::new("aaa1000000000000", &south, "south-1") }).await;
    for arguments in [
        &["drifts", "-n", "park", "-o", "wide"][..],
        &["drifts", "-n", "park", "--group"],
        &["show", "aaa", "-n", "park"],
        &["why", "aaa", "-n", "park"],
        &["approve", "aaa", "-n", "park"],
        &["drifts", "-n", "park", "-o", "json"],
    ] {
        let said = stage.run(arguments);
        let text = format!("{}{}", said.out, said.err);
        assert!(text.contains("eve"), "{said:?}");
        assert!(!text.contains('\u{1b}') && !text.contains("\nerror: fake"), "{said:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ledger_that_is_not_there_or_not_readable_says_what_to_do() {
    let stage = Stage::new().await;
    stage.golden("not-listed", &["drifts", "-n", "park", "--as", "bob"]);
    stage.golden("not-listed-everywhere", &["drifts", "-A", "--as", "bob"]);
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    for name in ["drifts", "kausalities"] {
        let path = format!("{definitions}/{name}.kausality.io");
        stage.call("DELETE", &path, &Value::Null).await.unwrap();
    }
    stage.golden("not-installed", &["drifts", "-n", "park"]);
    stage.golden("no-policies", &["policies"]);
}
