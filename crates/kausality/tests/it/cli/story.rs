//! Every command on a real API server.

use kausality_testbed::{MASTERS, start_or_skip};
use serde_json::{Value, json};

use crate::cli::stage::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_real_api_server_takes_every_command() {
    let Some(plane) = start_or_skip().await.unwrap() else { return };
    let stage = Stage::at(plane.client("alice", &[MASTERS]).unwrap(), &plane.kubeconfig()).await;
    let south = stage.garden("south", &json!({})).await;
    stage.drift(&Plot::new("aaa1000000000000", &south, "south-1")).await;
    stage.drift(&Plot::new("aaa2000000000000", &south, "south-2")).await;
    let alice = ["-n", "park", "--as", "alice", "--as-group", MASTERS];
    let ok = |arguments: &[&str]| {
        let said = stage.run(&[arguments, &alice].concat());
        assert_eq!(said.code, 0, "{said:?}");
        said.transcript()
    };
    insta::assert_snapshot!("real-drifts", ok(&["drifts"]));
    insta::assert_snapshot!("real-show", ok(&["show", "aaa1"]));
    ok(&["why", "aaa1"]);
    insta::assert_snapshot!(
        "real-approve",
        ok(&["approve", "--all", "--yes", "--mode", "generation", "--reason", "known"])
    );
    let approvals = stage.annotation("south", "approvals").await;
    let by: Vec<&Value> = approvals.as_array().unwrap().iter().map(|one| &one["by"]).collect();
    assert_eq!(by, ["alice", "alice"]);
    ok(&["approve", "aaa1", "--dry-run=server", "--mode=always"]);
    assert_eq!(stage.annotation("south", "approvals").await, approvals);
    ok(&["reject", "aaa1", "--reason", "no"]);
    assert_eq!(stage.annotation("south", "rejections").await[0]["by"], "alice");
    ok(&["unapprove", "aaa1"]);
    assert_eq!(stage.annotation("south", "rejections").await, Value::Null);
    ok(&["freeze", "garden/south", "--reason", "storm"]);
    ok(&["unfreeze", "garden/south"]);
    ok(&["snooze", "aaa1", "--for", "1h"]);
    ok(&["unsnooze", "garden/south"]);
    for key in ["freeze", "snooze"] {
        assert_eq!(stage.annotation("south", key).await, Value::Null, "{key}");
    }
    insta::assert_snapshot!("real-trace", ok(&["trace", "garden/south", "--children"]));
    let policies = stage.run(&["policies", "--as", "alice", "--as-group", MASTERS]);
    assert_eq!(policies.code, 0, "{policies:?}");

    let bob = stage.run(&["approve", "aaa1", "-n", "park", "--as", "bob"]);
    assert_eq!(bob.code, 1, "{bob:?}");
    assert!(bob.err.contains("you may not list drifts"), "{bob:?}");
    let frozen = stage.run(&["freeze", "garden/south", "-n", "park", "--reason", "x", "--as", "bob"]);
    assert_eq!(frozen.code, 1, "{frozen:?}");
    assert_eq!(stage.annotation("south", "freeze").await, Value::Null);

    // A link of the right name makes it a plugin.
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_kausality"), folder.path().join("kubectl-kausality"))
        .unwrap();
    let kubectl = plane.kubectl("alice", &[MASTERS]).get_program().to_owned();
    let arguments = ["kausality", "drifts", "-n", "park", "-o", "name"];
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
    let mut command = std::process::Command::new(kubectl);
    command
        .args(arguments)
        .env("PATH", path)
        .env("KUBECONFIG", plane.kubeconfig())
        .env("HOME", folder.path());
    let plugin = said(&mut command, &arguments);
    assert_eq!(plugin.out, "drift/aaa1000000000000\ndrift/aaa2000000000000\n", "{plugin:?}");
}
