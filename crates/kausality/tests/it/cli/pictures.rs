//! The pictures of the documentation are what is on the screen.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use jiff::{SignedDuration, Timestamp};
use kausality_api::drift::Drift;
use kausality_tui::{App, Command, Input, Link, draw};
use ratatui::{Terminal, backend::TestBackend, buffer::Buffer};
use serde_json::{Value, json};

use crate::cli::{
    stage::*,
    svg::{screen, svg},
};

/// With this variable pictures are drawn anew.
const DRAW: &str = "KAUSALITY_DRAW";

/// A picture must be what is on the screen.
fn golden(name: &str, screen: &Buffer, title: &str) {
    let file = root().join("docs/images").join(name).with_extension("svg");
    let picture = svg(screen, title);
    if std::env::var_os(DRAW).is_some() {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, &picture).unwrap();
    }
    let drawn = std::fs::read_to_string(&file).unwrap_or_default();
    // Both in full would be hard to read.
    let other = drawn.lines().zip(picture.lines()).find(|(drawn, picture)| drawn != picture);
    assert!(
        drawn == picture,
        "docs/images/{name}.svg shows something else than the screen: {other:?}. If that is meant, draw it anew with \
         {DRAW}=1, and look at it"
    );
}

/// Somebody has changed what an operator wants, and it goes to work on what runs in production.
fn drifts(now: Timestamp) -> Vec<Drift> {
    let parents = [("EKSCluster", "prod", "eks"), ("Database", "orders", "db")];
    let drift = |(id, minutes): (&str, i64),
                 parent: usize,
                 child: &str,
                 state: &str,
                 changes: Value,
                 more: Value| {
        let (parent_kind, parent, operator) = parents[parent];
        let (kind, name) = child.split_once('/').unwrap();
        let seen = |minutes: i64| {
            let seen = now - SignedDuration::from_secs(60 * minutes + 30);
            Timestamp::from_second(seen.as_second()).unwrap()
        };
        let hop = |kind: &str, name: &str, user: &str| {
            json!({"apiVersion": "infra.io/v1", "kind": kind, "name": name, "generation": 4, "user": user,
                "timestamp": seen(190), "labels": {"ticket": "INFRA-7"}})
        };
        let changes: Vec<Value> = changes
            .as_array()
            .unwrap()
            .iter()
            .map(|change| {
                json!({"path": change[0], "old": change[1], "new": change[2], "oldOwner": change[3],
                "newOwner": format!("{operator}-operator")})
            })
            .collect();
        let change = match changes.first() {
            Some(first) => {
                let text = |key: &str| first[key].as_str().unwrap();
                let more =
                    if changes.len() > 1 { format!(" (+{} more)", changes.len() - 1) } else { String::new() };
                format!("{}: {} → {}{more}", text("path"), text("old"), text("new"))
            }
            None => "delete".to_owned(),
        };
        let spec = json!({
            "id": id, "parentIntent": "0", "diff": "0",
            "parent": {"apiVersion": "infra.io/v1", "kind": parent_kind, "namespace": "prod", "name": parent,
                "uid": parent, "lifecyclePhase": "Initialized"},
            "child": {"apiVersion": "infra.io/v1", "kind": kind, "namespace": "prod", "name": name},
            "request": {"user": format!("system:serviceaccount:infra:{operator}-operator"), "uid": "r",
                "operation": if changes.is_empty() { "DELETE" } else { "UPDATE" },
                "fieldManager": format!("{operator}-operator")},
            "changes": changes,
            "trace": [hop("Platform", "acme", "alice@example.com"),
                hop(parent_kind, parent, "system:serviceaccount:infra:platform-operator")],
            "summary": {"parent": format!("{parent_kind}/{parent}"), "child": child,
                "actor": format!("infra:{operator}-operator"), "change": change},
        });
        let mut status = json!({"state": state, "count": 1, "firstSeen": seen(minutes), "lastSeen": seen(minutes),
        "countedAt": seen(minutes), "explanation": [
            {"rule": "actor", "finding": "Controller",
                "evidence": ["user 0p3xk is the only one among the recorded controllers"]},
            {"rule": "settled", "finding": "yes: seen in steady state at this intent"},
            {"rule": "cause", "finding": "Drift"},
            {"rule": "approval", "finding": "none on the parent"},
            {"rule": "policy", "finding": "none lets it pass",
                "evidence": ["ClusterApprovalPolicy/sizes rules[0] (may grow): match.cel does not hold"]},
            {"rule": "mode", "finding": "enforce (from policy production)", "decided": true},
        ]});
        for (key, value) in more.as_object().unwrap() {
            status[key] = value.clone();
        }
        Drift::new(serde_json::from_value(spec).unwrap(), serde_json::from_value(status).unwrap())
    };
    let nodes = |before: &str| {
        json!([
            ["spec.nodes", before, "3", "kubectl-scale"],
            ["spec.instanceType", "\"m7i.2xlarge\"", "\"t3.small\"", "eks-operator"]
        ])
    };
    let no =
        json!({"decision": {"action": "reject", "by": "dave", "at": now, "reason": "not in production"}});
    vec![
        drift(("0b52c27cf2f0a9e4", 8), 0, "NodePool/pool-1", "Blocked", nodes("48"), json!({"count": 7})),
        drift(("3f9a1c77d0be4a52", 8), 0, "NodePool/pool-2", "Blocked", nodes("24"), json!({"count": 7})),
        drift(("9d41e0b86c2f7713", 7), 0, "NodePool/gpu", "Rejected", json!([]), no),
        drift(
            ("e675380dcb6f9bf1", 25),
            1,
            "Instance/orders-1",
            "Passed",
            json!([["spec.size", "\"db.large\"", "\"db.small\"", "db-operator"]]),
            json!({}),
        ),
    ]
}

/// The same screen in every run: its clock stands still.
fn screen_after(keys: &[KeyCode], size: (u16, u16)) -> Buffer {
    let now: Timestamp = "2026-11-16T09:30:00Z".parse().unwrap();
    let mut app = App::new("in namespace prod", now);
    app.take(Input::Link(Link::Live));
    app.take(Input::Drifts(drifts(now)));
    for key in keys {
        let looks = app.take(Input::Key(KeyEvent::new(*key, KeyModifiers::NONE)));
        if let Some(Command::Look(key)) = looks {
            let steps = json!([
                {"rule": "freeze", "finding": "the parent is not frozen"},
                {"rule": "approval", "finding": "none on the parent"},
                {"rule": "policy", "finding": "no rule decides",
                    "evidence": ["ClusterApprovalPolicy/sizes rules[0] (may grow) does not match: match.cel does not hold"]},
            ]);
            app.take(Input::Present(key, serde_json::from_value(steps).unwrap()));
        }
    }
    let mut terminal = Terminal::new(TestBackend::new(size.0, size.1)).unwrap();
    terminal.draw(|frame| draw(frame, &mut app)).unwrap();
    terminal.backend().buffer().clone()
}

#[test]
fn the_list_is_as_drawn() {
    golden("tui-list", &screen_after(&[KeyCode::Down], (116, 10)), "kausality tui -n prod");
}

#[test]
fn a_drift_is_as_drawn() {
    let keys = [KeyCode::Down, KeyCode::Enter];
    golden("tui-detail", &screen_after(&keys, (100, 36)), "kausality tui -n prod");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_table_is_as_drawn() {
    let stage = Stage::new().await;
    stage.post("/api/v1/namespaces", &json!({"metadata": {"name": "prod"}})).await;
    for drift in drifts(Timestamp::now()) {
        let drift = serde_json::to_value(drift).unwrap();
        stage.post("/apis/kausality.io/v1alpha1/namespaces/prod/drifts", &drift).await;
    }
    let mut command = stage.command(&["drifts", "-n", "prod"]);
    let said = said(command.env("CLICOLOR_FORCE", "1").env_remove("NO_COLOR"), &["drifts", "-n", "prod"]);
    assert_eq!(said.code, 0, "{said:?}");
    let printed = format!("\u{1b}[2m$\u{1b}[0m kausality drifts -n prod\n{}", said.out);
    golden("drifts", &screen(&printed), "kausality drifts");
}
