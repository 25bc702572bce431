use serde_json::{Value, json};

use super::*;
use crate::review::Object;

fn spec() -> DriftSpec {
    let spec = json!({
        "id": "0123456789abcdef", "parentIntent": "0", "diff": "d1ff",
        "parent": {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": "web",
            "lifecyclePhase": "Initialized"},
        "child": {"apiVersion": "apps/v1", "kind": "ReplicaSet", "namespace": "shop", "name": "web-1"},
        "request": {"user": "robot", "uid": "u", "operation": "UPDATE"},
        "changes": [{"path": "spec.replicas"}],
        "summary": {"parent": "", "child": "", "actor": "", "change": ""},
    });
    serde_json::from_value(spec).unwrap()
}

fn standing(rejections: &str, approvals: &Value) -> Standing {
    let parent = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {
        "name": "web", "namespace": "shop", "generation": 5,
        "annotations": {"kausality.io/approvals": approvals.to_string(), "kausality.io/rejections": rejections}}});
    let parent = Summary::of(&Object::parse(&parent.to_string()).unwrap());
    Standing::of(&spec(), &parent, "2026-01-25T12:00:00Z".parse().unwrap())
}

fn approval(more: &Value) -> Value {
    let mut entry = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "generation": 5, "mode": "once"});
    for (key, value) in more.as_object().unwrap() {
        entry[key] = value.clone();
    }
    entry
}

#[test]
fn each_entry_holds_or_says_why_not() {
    let approvals = json!([
        approval(&json!({"name": "web-2"})),
        approval(&json!({"generation": 4})),
        approval(&json!({"expires": "2026-01-25T12:00:00Z"})),
        approval(&json!({"diff": "other"})),
        approval(&json!({"fields": ["spec.template"]})),
        approval(&json!({"name": "*"})),
        {"kind": "Oops"},
    ]);
    let standing = standing("[]", &approvals);
    let shown: Vec<String> = (standing.approvals.iter())
        .map(|it| format!("{} {} {}", it.place, it.about_child, it.void.as_deref().unwrap_or("holds")))
        .collect();
    insta::assert_snapshot!(shown.join("\n"), @"
    0 false is for apps/v1 ReplicaSet web-2
    1 true is for generation 4, the parent is at 5
    2 true expired at 2026-01-25T12:00:00Z
    3 true is for the change other, this one is d1ff
    4 true is for spec.template only
    5 true holds
    ");
    assert_eq!(standing.approval().unwrap().name, "*");
    assert_eq!(standing.approval_faults.len(), 1);
}

#[test]
fn rejections_win_and_so_do_those_that_nobody_understands() {
    let approvals = json!([approval(&json!({}))]);
    assert!(standing("[]", &approvals).approval().is_some());
    let rejected = r#"[{"apiVersion":"*","kind":"*","name":"*","reason":"no"}]"#;
    let standing_now = standing(rejected, &approvals);
    assert_eq!(standing_now.rejection().unwrap().reason, "no");
    assert!(standing_now.approval().is_none());
    let broken = standing("no list", &approvals);
    assert!(broken.rejection().is_none() && broken.approval().is_none());
    assert_eq!(broken.rejection_faults.len(), 1);
}
