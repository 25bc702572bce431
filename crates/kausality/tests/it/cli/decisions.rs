//! `kausality approve`, `reject` and `unapprove`.

use serde_json::{Value, json};

use crate::cli::stage::*;

async fn with_drifts() -> Stage {
    let stage = Stage::new().await;
    let south = stage.garden("south", &json!({})).await;
    let north = stage.garden("north", &json!({})).await;
    stage.drift(&Plot::new("aaa1000000000000", &south, "south-1")).await;
    stage.drift(&Plot::new("aaa2000000000000", &south, "south-2")).await;
    stage.drift(&Plot::new("bbb1000000000000", &north, "north-1")).await;
    stage
}

fn names(entries: &Value) -> Vec<&str> {
    entries
        .as_array()
        .map(|all| all.iter().map(|one| one["name"].as_str().unwrap()).collect())
        .unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn one_drift_is_approved() {
    let stage = with_drifts().await;
    stage.golden("approve", &["approve", "aaa1", "-n", "park", "--reason", "in bloom"]);
    let expected = json!([{"apiVersion": "garden.io/v1", "kind": "Bed", "name": "south-1", "generation": 1,
        "mode": "once", "by": "alice", "reason": "in bloom"}]);
    assert_eq!(stage.annotation("south", "approvals").await, expected);
    stage.golden("approve-again", &["approve", "drift/aaa1", "-n", "park"]);
    assert_eq!(stage.annotation("south", "approvals").await, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_says_how_far_it_goes() {
    let stage = with_drifts().await;
    let exact = ["approve", "aaa1", "-n", "park", "--mode", "generation", "--exact", "--expires", "2h"];
    let said = stage.run(&[&exact[..], &["--fields", "spec.flowers,spec.soil"]].concat());
    assert_eq!(said.code, 0, "{said:?}");
    let entry = stage.annotation("south", "approvals").await[0].clone();
    assert_eq!(
        (&entry["diff"], &entry["mode"], &entry["fields"]),
        (&json!("diff-aaa1000000000000"), &json!("generation"), &json!(["spec.flowers", "spec.soil"]))
    );
    let expires: jiff::Timestamp = entry["expires"].as_str().unwrap().parse().unwrap();
    let left = expires.duration_since(jiff::Timestamp::now()).as_secs();
    assert!((7_000..=7_200).contains(&left), "{left}");
    let always =
        stage.run(&["approve", "aaa1", "-n", "park", "--mode=always", "--expires", "2099-01-01T00:00:00Z"]);
    assert_eq!(always.code, 0, "{always:?}");
    let entry = stage.annotation("south", "approvals").await[1].clone();
    assert_eq!((&entry["generation"], &entry["expires"]), (&Value::Null, &json!("2099-01-01T00:00:00Z")));
}

#[tokio::test(flavor = "multi_thread")]
async fn several_need_a_yes_and_one_write_for_each_parent() {
    let stage = with_drifts().await;
    stage.golden("approve-all-unasked", &["approve", "--all", "-n", "park"]);
    assert_eq!(stage.annotation("south", "approvals").await, Value::Null);
    let before = stage.get(&format!("{GARDENS}/south")).await["metadata"]["resourceVersion"].clone();
    stage.golden("approve-all", &["approve", "--all", "-n", "park", "--yes"]);
    assert_eq!(names(&stage.annotation("south", "approvals").await), ["south-1", "south-2"]);
    assert_eq!(names(&stage.annotation("north", "approvals").await), ["north-1"]);
    let garden = stage.get(&format!("{GARDENS}/south")).await;
    let managers = garden["metadata"]["managedFields"].as_array().unwrap();
    assert_ne!(garden["metadata"]["resourceVersion"], before);
    assert!(managers.iter().any(|one| one["manager"] == "kausality"), "{managers:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_of_one_child_are_approved_one_by_one() {
    let stage = with_drifts().await;
    let south = stage.get(&format!("{GARDENS}/south")).await;
    stage.drift(&Plot { path: "spec.soil", ..Plot::new("aaa3000000000000", &south, "south-1") }).await;
    stage.golden("approve-covers-others", &["approve", "aaa1", "-n", "park", "--dry-run"]);
    stage.golden("approve-same-child", &["approve", "--parent", "garden/south", "-n", "park", "--yes"]);
    let entries = stage.annotation("south", "approvals").await;
    let mut diffs: Vec<Value> = entries.as_array().unwrap().iter().map(|one| one["diff"].clone()).collect();
    diffs.sort_by_key(Value::to_string);
    assert_eq!(diffs, [json!("diff-aaa1000000000000"), json!("diff-aaa3000000000000"), Value::Null]);
}

#[tokio::test(flavor = "multi_thread")]
async fn filters_choose() {
    let stage = with_drifts().await;
    let by_parent = stage.run(&["approve", "--parent", "garden/north", "-n", "park"]);
    assert_eq!(by_parent.code, 0, "{by_parent:?}");
    assert_eq!(names(&stage.annotation("north", "approvals").await), ["north-1"]);
    let both = stage.run(&["approve", "--parent", "garden/south", "--child", "bed/south-2", "-n", "park"]);
    assert_eq!(both.code, 0, "{both:?}");
    assert_eq!(names(&stage.annotation("south", "approvals").await), ["south-2"]);
    let by_name = stage.run(&["approve", "garden/south", "-n", "park", "--mode=always", "-y"]);
    assert_eq!(by_name.code, 0, "{by_name:?}");
    assert_eq!(names(&stage.annotation("south", "approvals").await), ["south-2", "south-1", "south-2"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_known_to_come_can_be_approved_ahead() {
    let stage = with_drifts().await;
    let ahead = ["approve", "--parent", "garden/north", "--child", "bed/north-9", "-n", "park"];
    stage.golden("approve-ahead", &ahead);
    let entry = stage.annotation("north", "approvals").await[0].clone();
    assert_eq!(
        (&entry["name"], &entry["generation"], &entry["by"]),
        (&json!("north-9"), &json!(1), &json!("alice"))
    );
    // Who speaks of drifts means one that is there.
    for filter in [&["--actor", "nobody"][..], &["--all"], &["--since", "1h"], &["--state", "passed"]] {
        let said = stage.run(&[&ahead[..], filter].concat());
        assert!(said.code == 1 && said.err.contains("there is no such open drift"), "{said:?}");
    }
    assert_eq!(stage.annotation("north", "approvals").await.as_array().unwrap().len(), 1);
    stage.golden("approve-ahead-exact", &[&ahead[..], &["--exact"]].concat());
    let nowhere = ["approve", "--parent", "garden/west", "--child", "bed/north-9", "-n", "park"];
    stage.golden("approve-ahead-nowhere", &nowhere);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_writes_nothing() {
    let stage = with_drifts().await;
    for how in ["--dry-run", "--dry-run=client", "--dry-run=server"] {
        let said = stage.run(&["approve", "--all", "-n", "park", how]);
        assert_eq!(said.code, 0, "{said:?}");
        let note = if how.ends_with("server") { "(server dry run)" } else { "(dry run)" };
        assert_eq!(said.out.lines().filter(|line| line.ends_with(note)).count(), 3, "{said:?}");
        assert_eq!(stage.annotation("south", "approvals").await, Value::Null);
    }
    let frozen =
        stage.run(&["freeze", "garden/south", "-n", "park", "--reason", "storm", "--dry-run=server"]);
    assert!(frozen.out.ends_with("frozen (server dry run)\n"), "{frozen:?}");
    assert_eq!(stage.annotation("south", "freeze").await, Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejection_wins_until_it_is_taken_back() {
    let stage = with_drifts().await;
    stage.golden("reject", &["reject", "aaa1", "-n", "park", "--reason", "thistles spread"]);
    let expected = json!([{"apiVersion": "garden.io/v1", "kind": "Bed", "name": "south-1", "generation": 1,
        "reason": "thistles spread", "by": "alice"}]);
    assert_eq!(stage.annotation("south", "rejections").await, expected);
    stage.golden("show-rejected", &["show", "aaa1", "-n", "park"]);
    stage.golden("approve-rejected", &["approve", "aaa1", "-n", "park"]);
    assert_eq!(stage.annotation("south", "approvals").await, Value::Null);
    stage.golden("approve-rejected-force", &["approve", "aaa1", "-n", "park", "--force"]);
    assert_eq!(stage.annotation("south", "rejections").await, Value::Null);
    assert_eq!(names(&stage.annotation("south", "approvals").await), ["south-1"]);
    stage.golden("unapprove", &["unapprove", "aaa1", "-n", "park"]);
    assert_eq!(stage.annotation("south", "approvals").await, Value::Null);
    stage.golden("unapprove-again", &["unapprove", "aaa1", "-n", "park"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parent_loses_entries_of_a_child_or_all() {
    let stage = with_drifts().await;
    assert_eq!(stage.run(&["approve", "garden/south", "-n", "park", "-y"]).code, 0);
    stage.golden("unapprove-which", &["unapprove", "garden/south", "-n", "park"]);
    stage.golden("unapprove-child", &["unapprove", "garden/south", "--child", "bed/south-2", "-n", "park"]);
    assert_eq!(names(&stage.annotation("south", "approvals").await), ["south-1"]);
    let broken = json!({"metadata": {"annotations": {"kausality.io/rejections": "oops"}}});
    stage.patch(&format!("{GARDENS}/south"), &broken).await;
    stage.golden("approve-broken", &["approve", "aaa1", "-n", "park", "--force"]);
    let both = ["unapprove", "garden/south", "garden/north", "--all", "-n", "park"];
    stage.golden("unapprove-several-unasked", &both);
    assert_ne!(stage.annotation("south", "approvals").await, Value::Null);
    stage.golden("unapprove-all", &["unapprove", "garden/south", "--all", "-n", "park"]);
    assert_eq!(stage.annotation("south", "rejections").await, Value::Null);
    assert_eq!(stage.annotation("south", "approvals").await, Value::Null);
}

/// A program on a terminal, to which somebody types.
#[cfg(target_os = "linux")]
fn typed(stage: &Stage, arguments: &[&str], typed: &str) -> Option<(i32, String)> {
    use std::{io::Write, process::Stdio};
    let program = stage.command(arguments);
    let words = std::iter::once(program.get_program()).chain(program.get_args());
    let line = words.map(|word| word.to_str().unwrap()).collect::<Vec<_>>().join(" ");
    let mut command = std::process::Command::new("script");
    command.args(["-qec", &line, "/dev/null"]).env("TERM", "xterm").env_remove("NO_COLOR");
    command.envs(program.get_envs().filter_map(|(key, value)| Some((key, value?))));
    let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let Ok(mut child) = spawned else {
        let line = "\n==> SKIPPED: there is no `script`, which gives a terminal to a program.\n";
        std::io::stderr().write_all(line.as_bytes()).unwrap();
        return None;
    };
    child.stdin.as_mut().unwrap().write_all(typed.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    Some((output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap()))
}

#[tokio::test(flavor = "multi_thread")]
#[cfg(target_os = "linux")]
async fn on_a_terminal_a_person_is_asked() {
    let stage = with_drifts().await;
    let Some((code, text)) = typed(&stage, &["approve", "--all", "-n", "park"], "n\n") else { return };
    assert!(
        code == 1 && text.contains("Do it? [y/N]") && text.contains("Nothing was done."),
        "{code} {text}"
    );
    assert_eq!(stage.annotation("south", "approvals").await, Value::Null);
    let (code, text) = typed(&stage, &["approve", "--all", "-n", "park"], "y\n").unwrap();
    assert!(code == 0 && text.contains("drift/aaa2000000000000 approved once"), "{code} {text}");
    assert_eq!(names(&stage.annotation("south", "approvals").await), ["south-1", "south-2"]);
    // Colours are for terminals.
    let (_, text) = typed(&stage, &["drifts", "-n", "park"], "").unwrap();
    assert!(text.contains("\u{1b}[31mBlocked\u{1b}[0m"), "{text:?}");
    assert!(!stage.run(&["drifts", "-n", "park"]).out.contains('\u{1b}'));
}
