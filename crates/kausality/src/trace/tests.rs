use serde_json::json;

use super::*;

fn node(name: &str, trace: &str, children: Vec<Node>) -> Node {
    let key = Suffix::of("garden.io", "Bed", "park", name).key(TRACE);
    let metadata = json!({"name": name, "namespace": "park", "uid": name, "annotations": {key: trace}});
    let metadata: ObjectMeta = serde_json::from_value(metadata).unwrap();
    Node { children: Some(children), ..Node::new("garden.io/v1", "Bed", &metadata) }
}

#[test]
fn the_chain_and_what_follows_from_it() {
    let origin = json!({"apiVersion": "garden.io/v1", "kind": "Garden", "name": "south", "generation": 5,
        "user": "alice", "timestamp": "2026-01-25T11:00:00Z", "labels": {"ticket": "OPS-7", "note": "a\nb"}});
    let passed = json!({"apiVersion": "garden.io/v1", "kind": "Bed", "name": "south-1",
        "user": "gardener", "timestamp": "2026-01-25T11:59:00Z",
        "approval": {"mode": "once", "by": "dave", "reason": "known"}});
    let drifted = json!({"apiVersion": "garden.io/v1", "kind": "Bed", "name": "south-1-a", "generation": 2,
        "user": "gardener", "timestamp": "2026-01-25T11:59:00Z", "drift": true});
    let leaf = node("leaf", "[]", Vec::new());
    let children =
        vec![node("drifted", &json!([drifted]).to_string(), vec![leaf]), node("broken", "oops", Vec::new())];
    let tree = node("south-1", &json!([origin, passed]).to_string(), children);
    let mut out = Vec::new();
    let now = "2026-01-25T12:00:00Z".parse().unwrap();
    print(&mut anstream::StripStream::new(&mut out), &tree, now).unwrap();
    insta::assert_snapshot!("tree", String::from_utf8(out).unwrap());
}

#[test]
fn nothing_is_said_about_what_nobody_asked_for() {
    let mut alone = node("south-1", "[]", Vec::new());
    let shown = |node: &Node| {
        let mut out = Vec::new();
        print(&mut anstream::StripStream::new(&mut out), node, Timestamp::UNIX_EPOCH).unwrap();
        String::from_utf8(out).unwrap()
    };
    assert!(shown(&alone).contains("no trace: Kausality has not seen it change\n\nIt controls nothing."));
    alone.children = None;
    assert!(!shown(&alone).contains("controls"));
}
