//! `kausality drifts`.

use std::{
    io::{BufRead, BufReader},
    process::{Child, Stdio},
    sync::mpsc,
};

use kausality_sandbox::Sandbox;
use serde_json::{Value, json};

use crate::cli::{line::Line, stage::*};

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
async fn labels_are_those_of_the_child() {
    let stage = full().await;
    let south = stage.get(&format!("{GARDENS}/south")).await;
    let mut drift = Plot::new("fff1000000000000", &south, "south-3").drift();
    let labels = json!({"app": "web", "tier": "front"});
    drift.spec.new_object = Some(json!({"metadata": {"name": "south-3", "labels": labels}}));
    stage.post(DRIFTS, &serde_json::to_value(drift).unwrap()).await;
    let found = stage.run(&["drifts", "-n", "park", "-l", "app=web,tier!=db", "-o", "name"]);
    assert_eq!(found.out, "drift/fff1000000000000\n", "{found:?}");
    let watch = Watching::start(&mut stage.command(&["drifts", "-n", "park", "-w", "-l", "app=web"]));
    assert_eq!([watch.next(), watch.next()], ["NAME STATE", "fff1000000000000 Blocked"]);
    let approved = stage.run(&["approve", "-l", "app=web", "-n", "park"]);
    assert!(
        approved.code == 0 && approved.out.contains("drift/fff1000000000000 approved once"),
        "{approved:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn filters_that_leave_nothing_say_so() {
    let stage = full().await;
    let told = |arguments: &[&str]| stage.run(&[&["drifts", "-n", "park"], arguments].concat()).err;
    assert_eq!(told(&["--actor", "nobody"]), "No open drifts in namespace park match. 3 others are open.\n");
    assert_eq!(
        told(&["-l", "app=web", "--group"]),
        "No open drifts in namespace park match. 3 others are open.\n"
    );
    assert_eq!(told(&["deployment/gone"]), "No open drifts in namespace park match. 3 others are open.\n");
    assert_eq!(
        told(&["--all", "--actor", "nobody"]),
        "No drifts in namespace park match. There are 4 others.\n"
    );
    let none = stage.run(&["drifts", "-n", "default", "--actor", "nobody"]);
    assert_eq!(none.err, "No open drifts in namespace default.\n");
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

/// A list that goes on. It ends with the test.
struct Watching {
    program: Child,
    lines: mpsc::Receiver<String>,
}

impl Watching {
    fn start(command: &mut std::process::Command) -> Self {
        let mut program = command.stdout(Stdio::piped()).spawn().unwrap();
        let (line, lines) = mpsc::channel();
        let out = BufReader::new(program.stdout.take().unwrap());
        std::thread::spawn(move || out.lines().map_while(Result::ok).try_for_each(|text| line.send(text)));
        Self { program, lines }
    }

    /// The first two words of the next line.
    fn next(&self) -> String {
        let text = self.lines.recv_timeout(PATIENCE).expect("a line more");
        text.split_whitespace().take(2).collect::<Vec<_>>().join(" ")
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

const DRIFTS: &str = "/apis/kausality.io/v1alpha1/namespaces/park/drifts";

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_goes_on() {
    let stage = full().await;
    let watch = Watching::start(&mut stage.command(&["drifts", "-n", "park", "-w"]));
    assert_eq!(watch.next(), "NAME STATE");
    for expected in ["bbb1000000000000 Blocked", "aaa2000000000000 Blocked", "aaa1000000000000 Blocked"] {
        assert_eq!(watch.next(), expected);
    }
    let south = stage.get(&format!("{GARDENS}/south")).await;
    // What is over from the start is not shown, and what is new is.
    stage.drift(&Plot { state: "Resolved", ..Plot::new("fff0000000000000", &south, "south-3") }).await;
    stage.drift(&Plot::new("fff1000000000000", &south, "south-3")).await;
    assert_eq!(watch.next(), "fff1000000000000 Blocked");
    let resolved = json!({"status": {"state": "Resolved"}});
    stage.patch(&format!("{DRIFTS}/aaa1000000000000"), &resolved).await;
    assert_eq!(watch.next(), "aaa1000000000000 Resolved");
    stage.call("DELETE", &format!("{DRIFTS}/aaa2000000000000"), &Value::Null).await.unwrap();
    assert_eq!(watch.next(), "aaa2000000000000 Deleted");
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_that_watch_are_told_what_is_gone() {
    let stage = full().await;
    let watch = Watching::start(&mut stage.command(&["drifts", "-n", "park", "-w", "-o", "json"]));
    let next = || serde_json::from_str::<Value>(&watch.lines.recv_timeout(PATIENCE).unwrap()).unwrap();
    for id in ["bbb1000000000000", "aaa2000000000000", "aaa1000000000000"] {
        let drift = next();
        assert_eq!(
            (&drift["metadata"]["name"], drift["metadata"].get("deletionTimestamp")),
            (&json!(id), None)
        );
    }
    stage.call("DELETE", &format!("{DRIFTS}/aaa2000000000000"), &Value::Null).await.unwrap();
    let gone = next();
    assert_eq!(gone["metadata"]["name"], "aaa2000000000000");
    assert!(gone["metadata"]["deletionTimestamp"].is_string(), "{gone}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_tells_what_went_while_the_connection_was_lost() {
    let sandbox = Sandbox::builder().rbac(true).seed(7).build();
    let stage = Stage::on(&sandbox).await;
    let south = stage.garden("south", &json!({})).await;
    for (id, child) in [("aaa1000000000000", "south-1"), ("aaa2000000000000", "south-2")] {
        stage.drift(&Plot::new(id, &south, child)).await;
    }
    let line = Line::to(stage.address()).await;
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    std::fs::write(&kubeconfig, stage.kubeconfig_at(&line.address.to_string())).unwrap();
    let mut command = stage.command(&["drifts", "-n", "park", "-w"]);
    let watch = Watching::start(command.env("KUBECONFIG", &kubeconfig));
    assert_eq!(watch.next(), "NAME STATE");
    assert_eq!([watch.next(), watch.next()], ["aaa1000000000000 Blocked", "aaa2000000000000 Blocked"]);
    // The one before it is told by a watch that goes on; then nobody remembers what happened, and all is listed anew.
    stage.drift(&Plot::new("aaa3000000000000", &south, "south-3")).await;
    assert_eq!(watch.next(), "aaa3000000000000 Blocked");
    for (id, forgotten) in [("aaa1000000000000", false), ("aaa2000000000000", true)] {
        line.cut();
        stage.call("DELETE", &format!("{DRIFTS}/{id}"), &Value::Null).await.unwrap();
        if forgotten {
            sandbox.compact();
        }
        line.mend();
        assert_eq!(watch.next(), format!("{id} Deleted"));
    }
}
