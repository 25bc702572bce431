//! `kausality tui`, by somebody who sits before it.

use kausality::embedded::{Embedded, Setup};
use kausality_api::{mode::Mode, policy::QuietTime};
use kausality_sandbox::Sandbox;
use kausality_testbed::eventually;
use serde_json::{Value, json};

use crate::cli::{
    effect::drifted,
    exceptions::{POLICIES, grown},
    line::Line,
    stage::*,
    terminal::{Terminal, ageless},
};

/// A park with drifts, a line to it that can be cut, and a terminal.
struct Desk {
    stage: Stage,
    sandbox: Sandbox,
    line: Line,
    terminal: Terminal,
    _folder: tempfile::TempDir,
}

const DRIFTS: &str = "/apis/kausality.io/v1alpha1/namespaces/park/drifts";

impl Desk {
    /// Nothing, where there can be no terminal.
    async fn new() -> Option<Self> {
        let sandbox = Sandbox::builder().rbac(true).seed(7).build();
        let stage = Stage::on(&sandbox).await;
        let line = Line::to(stage.address()).await;
        let folder = tempfile::tempdir().unwrap();
        let kubeconfig = folder.path().join("kubeconfig");
        std::fs::write(&kubeconfig, stage.kubeconfig_at(&line.address.to_string())).unwrap();
        let terminal = Terminal::open(&kubeconfig)?;
        Some(Self { stage, sandbox, line, terminal, _folder: folder })
    }

    /// Three drifts: two of one cause, and one of another.
    async fn furnish(&self) {
        let south = self.stage.garden("south", &json!({})).await;
        let north = self.stage.garden("north", &json!({})).await;
        for plot in [
            Plot { minutes: 15, ..Plot::new("aaa1000000000000", &south, "south-1") },
            Plot { minutes: 19, ..Plot::new("aaa2000000000000", &south, "south-2") },
            Plot { minutes: 90, user: "carol", ..Plot::new("bbb1000000000000", &north, "north-1") },
        ] {
            self.stage.drift(&plot).await;
        }
    }

    async fn start(&self, arguments: &str) {
        self.terminal.runs(&format!("kausality tui {arguments}")).await;
    }
}

/// A screen must be as it was.
fn golden(name: &str, screen: &str) {
    insta::assert_snapshot!(name, ageless(screen));
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_is_seen_and_one_key_decides() {
    let Some(desk) = Desk::new().await else { return };
    desk.furnish().await;
    let terminal = &desk.terminal;
    desk.start("-n park").await;
    let list = terminal.shows(&["live", "south-1", "south-2", "north-1"]).await;
    golden("tui-list", &list);

    terminal.presses("Down");
    terminal.presses("Enter");
    golden("tui-detail", &terminal.shows(&["Changes", "Who last asked", "policy"]).await);
    terminal.presses("Escape");
    terminal.shows(&["STATE"]).await;
    terminal.types("?");
    golden("tui-help", &terminal.shows(&["this page"]).await);
    terminal.presses("Escape");
    terminal.shows(&["STATE"]).await;

    terminal.types("/bed/north");
    let typing = terminal.until("a filter", |screen| screen.contains("/bed/north▏")).await;
    assert!(!typing.contains("south-1"), "{typing}");
    terminal.presses("Enter");
    golden("tui-filter", &terminal.until("the filter", |screen| !screen.contains('▏')).await);
    terminal.presses("Escape");
    terminal.shows(&["south-1", "north-1"]).await;

    terminal.resize(64, 9);
    // The line of keys does not fit, and says so once it is drawn for this width.
    let is_drawn = |screen: &str| screen.lines().last().is_some_and(|line| line.trim_end().ends_with('…'));
    golden("tui-resized", &terminal.until("a smaller screen", is_drawn).await);
    terminal.resize(110, 30);
    terminal.shows(&["q quit", "north-1", "R all"]).await;

    terminal.types("g");
    terminal.presses("Down");
    terminal.types("a");
    golden("tui-approved", &terminal.shows(&["approved once"]).await);
    let approvals = desk.stage.annotation("south", "approvals").await;
    let entry =
        |approval: &Value| (approval["name"].clone(), approval["mode"].clone(), approval["by"].clone());
    let entries: Vec<_> = approvals.as_array().unwrap().iter().map(entry).collect();
    assert_eq!(entries, [(json!("south-2"), json!("once"), json!("alice"))]);

    terminal.types("r");
    terminal.shows(&["Why?"]).await;
    terminal.types("not at night");
    golden("tui-reason", &terminal.shows(&["> not at night"]).await);
    terminal.presses("Enter");
    terminal.shows(&["drift/aaa2000000000000 rejected"]).await;
    assert_eq!(desk.stage.annotation("south", "rejections").await[0]["reason"], "not at night");
    terminal.types("q");
    terminal.shell().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_happened_while_the_connection_was_lost_is_seen_when_it_is_back() {
    let Some(desk) = Desk::new().await else { return };
    desk.furnish().await;
    let terminal = &desk.terminal;
    desk.start("-n park").await;
    terminal.shows(&["live", "south-1", "north-1"]).await;
    desk.line.cut();
    let lost = terminal.shows(&["not connected: "]).await;
    // What is known is still there. How a connection breaks is told by whoever looks first.
    let (before, why) = lost.split_once("not connected: ").unwrap();
    let (why, after) = why.split_once('\n').unwrap();
    assert!(!why.is_empty());
    golden("tui-lost", &format!("{before}not connected: <why>\n{after}"));
    // A decision fails, and says so.
    terminal.types("Aa");
    terminal.types("y");
    let failed = terminal.shows(&["error: the API server does not say who you are: "]).await;
    assert!(!failed.contains("client error"), "layers of a connection tell nobody anything: {failed}");
    assert_eq!(desk.stage.annotation("south", "approvals").await, Value::Null);

    let south = desk.stage.get(&format!("{GARDENS}/south")).await;
    desk.stage.call("DELETE", &format!("{DRIFTS}/bbb1000000000000"), &Value::Null).await.unwrap();
    desk.stage.drift(&Plot { minutes: 12, ..Plot::new("aaa3000000000000", &south, "south-3") }).await;
    desk.line.mend();
    let back = terminal.shows(&["live", "south-3"]).await;
    assert!(!back.contains("north-1") && !back.contains("not connected"), "{back}");
    // Nobody remembers what happened meanwhile: the list is read again.
    desk.line.cut();
    terminal.shows(&["not connected: "]).await;
    desk.stage.call("DELETE", &format!("{DRIFTS}/aaa1000000000000"), &Value::Null).await.unwrap();
    desk.sandbox.compact();
    desk.line.mend();
    let back = terminal.shows(&["live", "2 open"]).await;
    assert!(!back.contains("south-1"), "{back}");
    // And where nothing happened, it is told that the connection is there.
    desk.line.cut();
    terminal.shows(&["not connected: "]).await;
    desk.line.mend();
    terminal.shows(&["live", "2 open"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_died_without_a_word_is_noticed() {
    let Some(desk) = Desk::new().await else { return };
    desk.furnish().await;
    let terminal = &desk.terminal;
    desk.start("-n park").await;
    terminal.shows(&["live", "south-1", "north-1"]).await;
    desk.line.silence();
    terminal.shows(&["not connected: the watch has died without a word", "south-1"]).await;
    desk.stage.call("DELETE", &format!("{DRIFTS}/bbb1000000000000"), &Value::Null).await.unwrap();
    desk.line.mend();
    let back = terminal.shows(&["live", "2 open"]).await;
    assert!(!back.contains("north-1"), "{back}");
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_quits_has_their_terminal_back() {
    let Some(desk) = Desk::new().await else { return };
    desk.furnish().await;
    let terminal = &desk.terminal;
    terminal.runs("echo before; stty -a > ~/before.txt").await;
    terminal.until("an answer", |screen| screen.contains("\nbefore\n")).await;
    for (arguments, quit) in [("-n park --mouse", "q"), ("-n park", "C-c")] {
        desk.start(arguments).await;
        terminal.shows(&["live", "south-1"]).await;
        assert_eq!(terminal.property("#{alternate_on}"), "1");
        terminal.presses(quit);
        let shell = terminal.shell().await;
        assert!(shell.contains("\nbefore\n"), "what was there is there again: {shell}");
        assert_eq!(terminal.property("#{alternate_on} #{cursor_flag} #{mouse_any_flag}"), "0 1 0");
    }
    terminal.runs("stty -a | diff ~/before.txt - && echo the same $((40+2))").await;
    terminal.shows(&["the same 42"]).await;
}

/// A drift that a controller is kept from is seen, approved with one key, and over.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_lets_a_controller_go_on() {
    let setup = Setup { default_mode: Mode::Enforce, quiet_time: QuietTime::NONE, ..Setup::default() };
    let embedded = Embedded::set_up(setup).await.unwrap();
    let (stage, set, _) = drifted(&embedded).await;
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    std::fs::write(&kubeconfig, stage.kubeconfig_at(&stage.address().to_string())).unwrap();
    let Some(terminal) = Terminal::open(&kubeconfig) else { return };
    terminal.runs("kausality tui -n park").await;
    terminal.shows(&["live", "1 open, 1 blocked", "spec.replicas: 5 → 3"]).await;
    terminal.types("a");
    terminal.shows(&["approved once", "0 open"]).await;
    eventually(PATIENCE, "the correction", async || {
        let set = stage.get(&format!("/apis/apps/v1/namespaces/park/replicasets/{set}")).await;
        (set["spec"]["replicas"] == 3).then_some(())
    })
    .await
    .unwrap();
}

/// A policy is seen before it is there, with what else it would let pass.
#[tokio::test(flavor = "multi_thread")]
async fn an_exception_is_seen_before_it_is_written() {
    let Some(desk) = Desk::new().await else { return };
    let south = desk.stage.garden("south", &json!({})).await;
    let newest = Plot { minutes: 3, user: "dora", ..Plot::new("aaa1000000000000", &south, "south-1") };
    let before = Plot { id: "aaa2000000000000", minutes: 90, ..newest.clone() };
    grown(&desk.stage, &newest, "thistles").await;
    grown(&desk.stage, &before, "nettles").await;
    let terminal = &desk.terminal;
    // Not all of it fits.
    terminal.resize(110, 20);
    desk.start("-n park").await;
    terminal.shows(&["live", "2 open"]).await;
    let policies = async || desk.stage.get(POLICIES).await["items"].as_array().unwrap().len();
    let ask = async || {
        terminal.types("e");
        terminal.shows(&["Why?"]).await;
        terminal.types("in bloom");
        terminal.presses("Enter");
        terminal.shows(&["y writes it"]).await
    };
    let first = ask().await;
    assert!(!first.contains("reason: in bloom"), "{first}");
    golden("tui-except", &first);
    terminal.presses("End");
    golden("tui-except-end", &terminal.shows(&["reason: in bloom"]).await);
    assert_eq!(policies().await, 0);
    terminal.presses("Escape");
    let left = terminal.shows(&["Nothing was written."]).await;
    assert!(!left.contains("y writes it"), "{left}");
    assert_eq!(policies().await, 0);

    ask().await;
    assert_eq!(policies().await, 0);
    terminal.types("y");
    terminal.shows(&["approvalpolicy.kausality.io/exceptions created, with 1 rule"]).await;
    let policy = desk.stage.get(&format!("{POLICIES}/exceptions")).await;
    let rule = &policy["spec"]["rules"][0];
    assert_eq!(
        (&rule["name"], &rule["match"]["fields"], &rule["reason"], &rule["subjects"][0]["name"]),
        (&json!("south-1"), &json!(["spec.flowers"]), &json!("in bloom"), &json!("dora"))
    );
    // What is there already needs no second look.
    terminal.types("e");
    terminal.shows(&["Why?"]).await;
    terminal.types("again");
    terminal.presses("Enter");
    terminal.shows(&["exceptions has such a rule already"]).await;
}

/// What has no namespace can be decided about as well.
#[tokio::test(flavor = "multi_thread")]
async fn keys_reach_parents_without_a_namespace() {
    let Some(desk) = Desk::new().await else { return };
    let city =
        json!({"apiVersion": "garden.io/v1", "kind": "Park", "metadata": {"name": "city"}, "spec": {}});
    let city = desk.stage.post("/apis/garden.io/v1/parks", &city).await;
    desk.stage.drift(&Plot::new("ddd1000000000000", &city, "city-1")).await;
    let terminal = &desk.terminal;
    desk.start("-A").await;
    terminal.shows(&["live", "Bed/city-1"]).await;
    let annotation = async |key: &str| desk.stage.annotation_of("/apis/garden.io/v1/parks/city", key).await;
    for (key, asked, typed, said, written) in [
        ("f", "Why?", "storm", "Park city frozen", "freeze"),
        ("s", "For how long?", "2h", "Park city snoozed until", "snooze"),
    ] {
        terminal.types(key);
        terminal.shows(&[asked]).await;
        terminal.types(typed);
        terminal.presses("Enter");
        terminal.shows(&[said]).await;
        assert_eq!(annotation(written).await["user"], "alice");
    }
    terminal.types("F");
    terminal.shows(&["Park city unfrozen"]).await;
    assert_eq!(annotation("freeze").await, Value::Null);
    terminal.types("a");
    terminal.shows(&["clusterdrift/ddd1000000000000 approved once"]).await;
    assert_eq!(annotation("approvals").await[0]["name"], "city-1");
}
