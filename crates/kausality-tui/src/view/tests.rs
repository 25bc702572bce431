use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use jiff::{SignedDuration, Timestamp};
use kausality_api::drift::{Drift, cause::DriftKey};
use ratatui::{Terminal, backend::TestBackend};
use serde_json::{Value, json};

use crate::{Action, App, Command, Deed, Input, Link, draw};

/// A drift of a child, seen so many seconds after the first.
fn drift(name: &str, parent: &str, seconds: i64, more: Value) -> Drift {
    let at = Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds);
    let mut drift = json!({
        "apiVersion": "kausality.io/v1alpha1", "kind": "Drift", "metadata": {"name": name, "namespace": "shop"},
        "spec": {
            "id": name, "parentIntent": "0", "diff": "0",
            "parent": {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": parent, "lifecyclePhase": "Initialized"},
            "child": {"apiVersion": "apps/v1", "kind": "ReplicaSet", "namespace": "shop", "name": format!("{parent}-5d4f")},
            "request": {"user": "system:serviceaccount:kube-system:deployment-controller", "uid": "1", "operation": "UPDATE", "fieldManager": "kube-controller-manager"},
            "changes": [
                {"path": "spec.replicas", "old": "5", "new": "3", "oldOwner": "kubectl (scale)", "newOwner": "kube-controller-manager"},
                {"path": "spec.template.metadata.labels.tier", "new": "\"web\""},
            ],
            "trace": [
                {"apiVersion": "apps/v1", "kind": "Deployment", "name": parent, "user": "alice", "timestamp": "1970-01-01T00:00:00Z", "labels": {"ticket": "OPS-7"}},
            ],
            "summary": {"parent": format!("Deployment/{parent}"), "child": format!("ReplicaSet/{parent}-5d4f"),
                "actor": "kube-system:deployment-controller", "change": "spec.replicas: 5 → 3 (+1 more)"},
        },
        "status": {"state": "Blocked", "count": 1, "firstSeen": at, "lastSeen": at, "countedAt": at},
    });
    merge(&mut drift, more);
    serde_json::from_value(drift).unwrap()
}

fn merge(below: &mut Value, above: Value) {
    match (below, above) {
        (Value::Object(below), Value::Object(above)) => {
            above.into_iter().for_each(|(key, value)| merge(below.entry(key).or_insert(Value::Null), value));
        }
        (below, above) => *below = above,
    }
}

fn app(drifts: Vec<Drift>) -> App {
    let mut app = App::new("kind-prod", Timestamp::UNIX_EPOCH + SignedDuration::from_secs(300));
    app.take(Input::Link(Link::Live));
    app.take(Input::Drifts(drifts));
    app
}

/// Three of one cause, one of another that log mode let pass, and one that is over.
fn some() -> Vec<Drift> {
    vec![
        drift("a1", "web", 0, json!({"status": {"count": 7}})),
        drift("a2", "api", 5, json!({"status": {"state": "Rejected"}})),
        drift("a3", "db", 9, json!({})),
        drift(
            "b1",
            "cache",
            60,
            json!({
                "status": {"state": "Passed"},
                "spec": {"request": {"user": "crossplane"}, "summary": {"actor": "crossplane", "change": "create"}},
            }),
        ),
        drift(
            "c1",
            "old",
            10,
            json!({"status": {"state": "Resolved", "resolution": {
            "reason": "Approved", "at": "1970-01-01T00:01:00Z", "by": "dave", "message": "approved (once): more load"}}}),
        ),
    ]
}

fn press(app: &mut App, keys: &str) -> Option<Command> {
    let mut last = None;
    for key in keys.chars() {
        let code = match key {
            '\n' => KeyCode::Enter,
            '\u{1b}' => KeyCode::Esc,
            '↓' => KeyCode::Down,
            '↑' => KeyCode::Up,
            key => KeyCode::Char(key),
        };
        last = app.take(Input::Key(KeyEvent::new(code, KeyModifiers::NONE)));
    }
    last
}

fn screen_of(app: &mut App, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, app)).unwrap();
    let buffer = terminal.backend().buffer();
    let lines = (0..height).map(|y| {
        let line: String = (0..width).map(|x| buffer[(x, y)].symbol()).collect();
        line.trim_end().to_owned()
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn screen(app: &mut App) -> String {
    screen_of(app, 120, 18)
}

fn key(name: &str) -> DriftKey {
    DriftKey { namespace: "shop".to_owned(), name: name.to_owned() }
}

#[test]
fn the_list_is_golden() {
    let mut app = app(some());
    insta::assert_snapshot!("list", screen(&mut app));
    insta::assert_snapshot!("list-narrow", screen_of(&mut app, 60, 10));
    press(&mut app, "R");
    insta::assert_snapshot!("list-with-those-that-are-over", screen(&mut app));
}

#[test]
fn a_drift_is_golden() {
    let mut app = app(some());
    press(&mut app, "↓↓\n");
    insta::assert_snapshot!("detail", screen_of(&mut app, 100, 24));
    press(&mut app, "\u{1b}R");
    press(&mut app, "/old\n↓\n");
    press(&mut app, "\n");
    insta::assert_snapshot!("detail-over", screen_of(&mut app, 100, 24));
}

#[test]
fn what_the_rules_found_and_say_now_is_golden() {
    let explanation = json!([
        {"rule": "actor", "finding": "Controller", "evidence": ["user 1likq is among the recorded controllers"]},
        {"rule": "policy", "finding": "denied by ClusterApprovalPolicy/nights rules[0] (not at night)", "decided": true},
    ]);
    let denied = |count: u64| {
        drift(
            "a1",
            "web",
            0,
            json!({"status": {"state": "Rejected", "count": count, "explanation": explanation}}),
        )
    };
    let mut app = app(vec![denied(1)]);
    let looks = Some(Command::Look(key("a1")));
    assert_eq!(press(&mut app, "\n"), looks);
    assert!(screen_of(&mut app, 100, 40).contains("Being looked at…"));
    let steps =
        |finding: &str| serde_json::from_value(json!([{"rule": "policy", "finding": finding}])).unwrap();
    app.take(Input::Present(key("other"), steps("about another")));
    assert!(!screen_of(&mut app, 100, 40).contains("about another"));
    app.take(Input::Present(key("a1"), steps("there are no rules")));
    insta::assert_snapshot!("detail-explained", screen_of(&mut app, 100, 40));

    // What may have changed is looked at again.
    assert_eq!(app.take(Input::Drifts(vec![denied(1)])), None);
    assert_eq!(app.take(Input::Drifts(vec![denied(2)])), looks);
    let done = || {
        let drifts = vec![key("a1")];
        let deed = Deed { action: Action::ApproveOnce, drifts, text: String::new(), trial: false };
        Input::Done(deed, Ok("approved".to_owned()))
    };
    assert_eq!(app.take(done()), looks);
    press(&mut app, "\u{1b}");
    assert_eq!(app.take(done()), None);
}

#[test]
fn what_is_asked_is_golden() {
    let mut asked = app(some());
    press(&mut asked, "A");
    insta::assert_snapshot!("ask-approval", screen(&mut asked));
    let mut asked = app(some());
    press(&mut asked, "rnot at night");
    insta::assert_snapshot!("ask-reason", screen(&mut asked));
    let mut asked = app(some());
    press(&mut asked, "↓a");
    insta::assert_snapshot!("ask-sure", screen(&mut asked));
    let mut asked = app(Vec::new());
    press(&mut asked, "?");
    insta::assert_snapshot!("help", screen_of(&mut asked, 80, 24));
}

#[test]
fn nothing_and_no_connection_are_golden() {
    let mut nothing = App::new("kind-prod", Timestamp::UNIX_EPOCH);
    insta::assert_snapshot!("connecting", screen_of(&mut nothing, 80, 6));
    nothing.take(Input::Drifts(Vec::new()));
    nothing.take(Input::Link(Link::Broken("connection refused".to_owned())));
    insta::assert_snapshot!("broken", screen_of(&mut nothing, 80, 6));
}

#[test]
fn keys_decide_about_what_is_selected() {
    let act = |action, names: &[&str], text: &str| {
        let drifts = names.iter().map(|name| key(name)).collect();
        Some(Command::Act(Deed { action, drifts, text: text.to_owned(), trial: false }))
    };
    // The last seen comes first: crossplane's only drift, then a cause and its drifts.
    let deciding = |keys: &str| press(&mut app(some()), keys);
    assert_eq!(deciding("a"), act(Action::ApproveOnce, &["b1"], ""));
    assert_eq!(deciding("Ag"), act(Action::ApproveGeneration, &["b1"], ""));
    assert_eq!(deciding("Aa"), act(Action::ApproveAlways, &["b1"], ""));
    assert_eq!(deciding("rnot now\n"), act(Action::Reject, &["b1"], "not now"));
    assert_eq!(deciding("r\n"), None, "a reason must be given");
    assert_eq!(deciding("fstop\n"), act(Action::Freeze, &["b1"], "stop"));
    assert_eq!(deciding("F"), act(Action::Unfreeze, &["b1"], ""));
    assert_eq!(deciding("s2h\n"), act(Action::Snooze, &["b1"], "2h"));
    assert_eq!(deciding("u"), act(Action::Unapprove, &["b1"], ""));
    assert_eq!(deciding("↓↓↓\na"), act(Action::ApproveOnce, &["a2"], ""), "as it is looked at");
    // A cause means all its drifts, if that is meant.
    assert_eq!(deciding("↓a"), None);
    assert_eq!(deciding("↓ay"), act(Action::ApproveOnce, &["a1", "a2", "a3"], ""));
    assert_eq!(deciding("↓an"), None);
    assert_eq!(press(&mut app(Vec::new()), "a"), None);
    assert_eq!(deciding("q"), Some(Command::Quit));
}

/// What `kausality except` shows of a rule.
fn shown() -> Vec<String> {
    let said = [
        "# It would also have matched 1 of 3 other drifts in the ledger:",
        "#   drift/b2",
        "# CAUTION: a rule denies it.",
        "",
    ];
    let policy = (0..20).map(|number| format!("  - rule: {number}"));
    said.into_iter().map(str::to_owned).chain(policy).collect()
}

#[test]
fn an_exception_is_shown_before_it_is_made() {
    let trial =
        Deed { action: Action::Except, drifts: vec![key("b1")], text: "known".to_owned(), trial: true };
    let meant = Some(Command::Act(Deed { trial: false, ..trial.clone() }));
    let trying = || {
        let mut app = app(some());
        assert_eq!(press(&mut app, "eknown\n"), Some(Command::Act(trial.clone())));
        app
    };
    let asked = || {
        let mut app = trying();
        app.take(Input::Tried(trial.clone(), shown()));
        app
    };
    let mut waiting = trying();
    insta::assert_snapshot!("except-waiting", screen(&mut waiting));
    assert_eq!(press(&mut waiting, "y\n"), None, "there is nothing to agree to yet");
    let mut app = asked();
    insta::assert_snapshot!("except-shown", screen(&mut app));
    press(&mut app, "G");
    insta::assert_snapshot!("except-shown-end", screen(&mut app));
    press(&mut app, "k");
    let before = screen(&mut app);
    assert!(before.contains("rule: 18") && !before.contains("rule: 19"), "{before}");
    for (keys, expected) in [
        ("y", meant.clone()),
        ("\n", meant.clone()),
        ("Gy", meant),
        ("\u{1b}", None),
        ("n", None),
        ("x", None),
    ] {
        assert_eq!(press(&mut asked(), keys), expected, "{keys:?}");
    }
    let mut left = asked();
    assert_eq!(press(&mut left, "\u{1b}y"), None);
    let mut left = asked();
    press(&mut left, "\u{1b}");
    assert!(screen(&mut left).contains("Nothing was written."));
}

#[test]
fn nobody_is_asked_about_what_they_have_left() {
    let trial =
        Deed { action: Action::Except, drifts: vec![key("b1")], text: "known".to_owned(), trial: true };
    let mut left = app(some());
    press(&mut left, "eknown\n\u{1b}/y");
    left.take(Input::Tried(trial.clone(), shown()));
    assert_eq!(press(&mut left, "y"), None);
    assert!(screen(&mut left).contains("/yy"), "{}", screen(&mut left));
    let mut failed = app(some());
    press(&mut failed, "eknown\n");
    failed.take(Input::Done(trial, Err("no right".to_owned())));
    let said = screen(&mut failed);
    assert!(said.contains("no right") && !said.contains("found out"), "{said}");
    // A cause is asked about once, too.
    let mut cause = app(some());
    let Some(Command::Act(all)) = press(&mut cause, "↓eknown\n") else { panic!("it is tried") };
    assert_eq!((all.drifts.len(), all.trial), (3, true));
}

#[test]
fn the_selection_stays_where_it_was_when_drifts_come_and_go() {
    let mut app = app(some());
    press(&mut app, "↓↓↓");
    let mut more = some();
    more.insert(0, drift("z9", "new", 299, json!({"spec": {"request": {"user": "zoe"}}})));
    app.take(Input::Drifts(more));
    assert_eq!(app.meant(), [key("a2")]);
    app.take(Input::Drifts(Vec::new()));
    assert_eq!(app.meant(), []);
}

#[test]
fn a_filter_wants_all_its_words() {
    let mut app = app(some());
    press(&mut app, "/deploy RS-NONE");
    assert!(screen(&mut app).contains("No drift matches the filter"));
    press(&mut app, "\u{1b}/replicaset/db\n");
    assert_eq!(app.meant(), [key("a3")]);
}

#[test]
fn a_cause_folds() {
    let mut app = app(some());
    press(&mut app, "↓ ");
    let folded = screen(&mut app);
    assert!(folded.contains('▸') && !folded.contains("Deployment/web"), "{folded}");
    press(&mut app, " ");
    assert!(screen(&mut app).contains("Deployment/web"));
}

#[test]
fn any_size_is_survived() {
    for width in [1, 2, 7, 20, 200] {
        for height in [1, 2, 3, 9, 60] {
            let mut app = app(some());
            for keys in ["", "\n", "\u{1b}?", "\u{1b}A", "\u{1b}rx", "\u{1b}\u{1b}↓a", "\u{1b}ex\n"] {
                if let Some(Command::Act(deed)) = press(&mut app, keys) {
                    app.take(Input::Tried(deed, shown()));
                }
                screen_of(&mut app, width, height);
            }
        }
    }
}

#[test]
fn a_cause_without_common_fields_ends_with_its_children() {
    let changed =
        |name: &str, path: &str| drift(name, "web", 0, json!({"spec": {"changes": [{"path": path}]}}));
    let mut app = app(vec![changed("a1", "spec.a"), changed("a2", "spec.b"), changed("a3", "spec.c")]);
    let screen = screen(&mut app);
    let line = screen.lines().find(|line| line.contains("3 drifts")).unwrap();
    assert!(line.trim_end().ends_with(": 1 ReplicaSet"), "{line}");
}
