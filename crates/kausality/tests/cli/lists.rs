//! `kausality drifts`.

use std::{
    io::{BufRead, BufReader},
    process::Stdio,
};

use serde_json::{Value, json};

use crate::stage::*;

/// Drifts of two gardens, of a park, and of two actors.
async fn full() -> Stage {
    let stage = Stage::new().await;
    let south = stage.garden("south", &json!({})).await;
    let north = stage.garden("north", &json!({})).await;
    let park =
        json!({"apiVersion": "garden.io/v1", "kind": "Park", "metadata": {"name": "city"}, "spec": {}});
    let park = stage.post("/apis/garden.io/v1/parks", &park).await;
    let other =
        json!({"apiVersion": "garden.io/v1", "kind": "Garden", "metadata": {"name": "east"}, "spec": {}});
    let east = stage.post("/apis/garden.io/v1/namespaces/other/gardens", &other).await;
    for plot in [
        Plot::new("aaa1000000000000", &south, "south-1"),
        Plot { minutes: 9, ..Plot::new("aaa2000000000000", &south, "south-2") },
        Plot { minutes: 90, user: "carol", ..Plot::new("bbb1000000000000", &north, "north-1") },
        Plot { state: "Resolved", minutes: 200, ..Plot::new("ccc1000000000000", &north, "north-2") },
        Plot {
            state: "Passed",
            minutes: 300,
            path: "spec.soil",
            ..Plot::new("ddd1000000000000", &park, "city-1")
        },
        Plot { state: "Rejected", minutes: 60, ..Plot::new("eee1000000000000", &east, "east-1") },
    ] {
        stage.drift(&plot).await;
    }
    stage
}

#[tokio::test(flavor = "multi_thread")]
async fn drifts_are_listed_as_kubectl_would() {
    let stage = full().await;
    stage.golden("list", &["drifts", "-n", "park"]);
    stage.golden("list-all", &["drifts", "-n", "park", "--all"]);
    stage.golden("list-everywhere", &["drifts", "-A"]);
    stage.golden("list-cluster", &["drifts", "--cluster"]);
    stage.golden("list-wide", &["drifts", "-n", "park", "-o", "wide"]);
    stage.golden("list-name", &["drifts", "-A", "-o", "name"]);
    stage.golden("list-empty", &["drifts"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn filters_leave_what_is_meant() {
    let stage = full().await;
    let names = |arguments: &[&str]| {
        let said = stage.run(&[&["drifts", "-o", "name"], arguments].concat());
        assert_eq!(said.code, 0, "{said:?}");
        let short = |line: &str| line.rsplit('/').next().unwrap()[..4].to_owned();
        said.out.lines().map(short).collect::<Vec<String>>().join(" ")
    };
    for (arguments, expected) in [
        (&["-n", "park"][..], "bbb1 aaa2 aaa1"),
        (&["-n", "park", "aaa1"], "aaa1"),
        (&["-n", "park", "drift/aaa1", "bbb1"], "aaa1 bbb1"),
        // Who names a drift wants to see it, be it over or not.
        (&["-n", "park", "ccc1"], "ccc1"),
        // One without a namespace is found by its id from everywhere.
        (&["-n", "park", "ddd1"], "ddd1"),
        (&["-n", "park", "garden/south"], "aaa2 aaa1"),
        (&["-n", "park", "gardens.garden.io/south"], "aaa2 aaa1"),
        (&["-n", "park", "garden/north"], "bbb1"),
        (&["-n", "park", "garden/north", "--all"], "ccc1 bbb1"),
        (&["-n", "park", "beds/south-1"], "aaa1"),
        (&["-n", "park", "--parent", "garden/south", "--child", "bed/south-2"], "aaa2"),
        (&["-n", "park", "--child", "garden/south"], ""),
        (&["-n", "park", "--actor", "carol"], "bbb1"),
        (&["-n", "park", "--actor", "gardener"], "aaa2 aaa1"),
        (&["-n", "park", "--since", "30m"], "aaa2 aaa1"),
        (&["-n", "park", "--state", "resolved"], "ccc1"),
        (&["-A", "--state", "Passed,rejected"], "ddd1 eee1"),
        (&["-n", "park", "-l", "kausality.io/parent-uid=none"], ""),
        (&["-n", "park", "-l", "kausality.io/parent-uid"], "bbb1 aaa2 aaa1"),
        (&["-n", "park", "deployment/gone"], ""),
    ] {
        assert_eq!(names(arguments), expected, "{arguments:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_line_for_each_cause() {
    let stage = full().await;
    stage.golden("group", &["drifts", "-A", "--all", "--group"]);
    stage.golden("group-wide", &["drifts", "-A", "--all", "--group", "-o", "wide"]);
    let causes = stage.run(&["drifts", "-n", "park", "--group", "-o", "json"]).json();
    assert_eq!((&causes[0]["count"], &causes[0]["user"]), (&json!(2), &json!(GARDENER)));
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_get_the_objects() {
    let stage = full().await;
    let said = stage.run(&["drifts", "-n", "park", "-o", "json"]);
    let list = said.json();
    assert_eq!((&list["kind"], list["items"].as_array().unwrap().len()), (&json!("List"), 3));
    assert_eq!(list["items"][2]["metadata"]["name"], "aaa1000000000000");
    assert_eq!(list["items"][2]["kind"], "Drift");
    assert_eq!(stage.run(&["drifts", "-n", "park", "-o", "yaml"]).yaml(), list);
    let none: Value = stage.run(&["drifts", "-o", "json"]).json();
    assert_eq!(none["items"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn scripts_can_tell_whether_there_are_open_ones() {
    let stage = full().await;
    assert_eq!(stage.run(&["drifts", "-n", "park", "--exit-code"]).code, 3);
    assert_eq!(stage.run(&["drifts", "-n", "default", "--exit-code"]).code, 0);
    assert_eq!(stage.run(&["drifts", "-n", "park", "--state", "resolved", "--exit-code"]).code, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_goes_on() {
    let stage = full().await;
    let mut watch = stage.command(&["drifts", "-n", "park", "-w"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mut next = || lines.next().unwrap().split_whitespace().take(2).collect::<Vec<_>>().join(" ");
    assert_eq!(next(), "NAME STATE");
    for expected in ["bbb1000000000000 Blocked", "aaa2000000000000 Blocked", "aaa1000000000000 Blocked"] {
        assert_eq!(next(), expected);
    }
    let south = stage.get(&format!("{GARDENS}/south")).await;
    // What is over from the start is not shown, and what is new is.
    stage.drift(&Plot { state: "Resolved", ..Plot::new("fff0000000000000", &south, "south-3") }).await;
    stage.drift(&Plot::new("fff1000000000000", &south, "south-3")).await;
    assert_eq!(next(), "fff1000000000000 Blocked");
    let drifts = "/apis/kausality.io/v1alpha1/namespaces/park/drifts";
    let resolved = json!({"status": {"state": "Resolved"}});
    stage.patch(&format!("{drifts}/aaa1000000000000"), &resolved).await;
    assert_eq!(next(), "aaa1000000000000 Resolved");
    stage.call("DELETE", &format!("{drifts}/aaa2000000000000"), &Value::Null).await.unwrap();
    assert_eq!(next(), "aaa2000000000000 Deleted");
    watch.kill().unwrap();
    watch.wait().unwrap();
}
