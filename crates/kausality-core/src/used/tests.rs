use kausality_api::annotation::{APPROVALS, CONTROLLERS, PHASE, SETTLED, Suffix};
use serde_json::{Value, json};

use super::*;
use crate::{
    Decision, Facts, Parent, Review, Settings, decide, decision::Effect, gate::Resolution, review::Object,
};

const CONTROLLER: &str = "system:serviceaccount:infra:clusters";

fn at(second: u8) -> Timestamp {
    format!("2026-01-01T00:00:{second:02}Z").parse().unwrap()
}

/// A parent that is done, and the approvals on it.
fn parent(approvals: usize) -> Summary {
    let mut parent = json!({"apiVersion": "example.com/v1", "kind": "Cluster", "spec": {"size": 1, "selector": {"app": "a"}},
        "metadata": {"name": "prod", "namespace": "infra", "uid": "p", "resourceVersion": "100", "generation": 3}});
    let object = parent.to_string();
    let intent = Object::parse(&object).unwrap().intent.hash();
    let user = kausality_api::identity::UserHash::of(CONTROLLER, "");
    let approval = json!({"apiVersion": "*", "kind": "*", "name": "*", "generation": 3, "by": "dora"});
    let suffix = Suffix::of_object(&parent);
    parent["metadata"]["annotations"] = json!({
        suffix.key(CONTROLLERS): user.to_string(),
        suffix.key(PHASE): "initialized",
        suffix.key(SETTLED): format!("{intent}@2025-01-01T00:00:00Z"),
        APPROVALS: json!(vec![approval; approvals]).to_string()});
    Summary::of(&Object::parse(&parent.to_string()).unwrap())
}

/// A child at a version, with a trace.
fn child(version: u8, size: u8, trace: &str) -> Value {
    let mut child = json!({"apiVersion": "v1", "kind": "Pool", "spec": {"size": size},
        "metadata": {"name": "a", "namespace": "infra", "uid": "c", "resourceVersion": version.to_string(),
            "ownerReferences": [{"apiVersion": "example.com/v1", "kind": "Cluster", "name": "prod", "uid": "p",
                "controller": true}]}});
    if !trace.is_empty() {
        child["metadata"]["annotations"] = json!({Suffix::of_object(&child).key(TRACE): trace});
    }
    child
}

fn review(operation: &str, user: &str, old: Option<Value>, new: Option<Value>) -> String {
    let request = json!({"uid": "r", "operation": operation, "name": "a", "namespace": "infra",
        "kind": {"version": "v1", "kind": "Pool"}, "resource": {"version": "v1", "resource": "pools"},
        "userInfo": {"username": user}, "oldObject": old, "object": new});
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}).to_string()
}

fn update(version: u8, from: u8, to: u8, trace: &str) -> String {
    review("UPDATE", CONTROLLER, Some(child(version, from, trace)), Some(child(version, to, trace)))
}

/// A replica that knows the parent as it is stored decides, and uses up what it decides by.
fn ask(parent: &mut Summary, review: &str, now: Timestamp) -> Decision {
    let settings = Settings { default_mode: kausality_api::mode::Mode::Enforce, ..Settings::default() };
    let review = Review::parse(review.as_bytes()).unwrap();
    let found = parent.clone();
    let facts = Facts {
        parent: Parent::Found { summary: &found, resource: "clusters" },
        ..Facts::new(now, &settings)
    };
    let decision = decide(&review, &facts);
    for effect in &decision.effects {
        if let Effect::ConsumeOnce { annotations, .. } = effect {
            annotations.iter().for_each(|(key, value)| parent.annotate(key, value.as_deref()));
        }
    }
    decision
}

#[track_caller]
fn assert_asked(parent: &mut Summary, review: &str, second: u8, expected: &str) {
    let decision = ask(parent, review, at(second));
    assert_eq!(decision.resolution.as_str(), expected, "{:?}", decision.explanation);
    let again = matches!(decision.resolution, Resolution::Excepted(_));
    assert!(!again || decision.effects.is_empty(), "nothing more is used up");
}

#[test]
fn an_approval_is_given_back_to_the_same_change_from_where_it_started() {
    let mut known = parent(1);
    assert_asked(&mut known, &update(7, 1, 2, "t"), 0, "approved");
    // Whoever was to answer was killed, and another replica is asked.
    assert_asked(&mut known, &update(7, 1, 2, "t"), 1, "approved");
    // Storage met a conflict: the object is another, but not yet changed.
    assert_asked(&mut known, &update(8, 1, 2, "t"), 1, "approved");
    for (review, why) in [
        (update(7, 1, 3, "t"), "another change"),
        (update(8, 1, 2, "o"), "somebody has changed it, and back"),
        (update(8, 2, 2, "t"), "it has happened"),
        (review("UPDATE", "mallory", Some(child(7, 1, "t")), Some(child(7, 2, "t"))), "somebody else"),
        (review("CREATE", CONTROLLER, None, Some(child(7, 2, "t"))), "a creation"),
    ] {
        let decision = ask(&mut known, &review, at(1));
        assert!(!matches!(decision.resolution, Resolution::Excepted(_)), "{why}");
    }
    assert_asked(&mut known, &update(7, 1, 2, "t"), 40, "blocked");
}

#[test]
fn without_a_trace_the_version_must_be_the_same() {
    let mut known = parent(1);
    assert_asked(&mut known, &update(7, 1, 2, ""), 0, "approved");
    assert_asked(&mut known, &update(7, 1, 2, ""), 1, "approved");
    assert_asked(&mut known, &update(8, 1, 2, ""), 1, "blocked");
}

/// What leaves the intent as it is leaves neither trace nor generation by which it could be told from what comes after it.
#[test]
fn a_label_is_given_one_approval_for_one_change() {
    let mut known = parent(1);
    let relabel = |version: u8, from: &str, to: &str| {
        let labelled = |label: &str| {
            let mut child = child(version, 1, "t");
            child["metadata"]["labels"] = json!({"app": label});
            child
        };
        review("UPDATE", CONTROLLER, Some(labelled(from)), Some(labelled(to)))
    };
    assert_asked(&mut known, &relabel(7, "x", "y"), 0, "approved");
    assert_asked(&mut known, &relabel(7, "x", "y"), 1, "approved");
    for (version, from, to) in [(8, "x", "y"), (8, "y", "z"), (7, "x", "z")] {
        assert_asked(&mut known, &relabel(version, from, to), 1, "blocked");
    }
}

#[test]
fn a_deletion_may_be_tried_again() {
    let mut known = parent(1);
    let deletion = |version| review("DELETE", CONTROLLER, Some(child(version, 1, "t")), None);
    assert_asked(&mut known, &deletion(7), 0, "approved");
    assert_asked(&mut known, &deletion(7), 5, "approved");
    let mut other = child(7, 1, "t");
    other["metadata"]["uid"] = json!("another");
    assert_asked(&mut known, &review("DELETE", CONTROLLER, Some(other), None), 5, "blocked");
}

#[test]
fn who_tries_again_uses_up_no_second_approval() {
    let mut known = parent(2);
    assert_asked(&mut known, &update(7, 1, 2, "t"), 0, "approved");
    assert_asked(&mut known, &update(7, 1, 2, "t"), 1, "approved");
    assert!(known.annotation(APPROVALS).is_some(), "one is left");
    assert_asked(&mut known, &update(8, 2, 3, "u"), 1, "approved");
    assert_eq!(known.annotation(APPROVALS), None);
    assert_eq!(read(&known).len(), 2);
}

#[test]
fn what_is_over_goes_with_the_next_use() {
    let mut known = parent(2);
    assert_asked(&mut known, &update(7, 1, 2, "t"), 0, "approved");
    assert_asked(&mut known, &update(8, 2, 3, "u"), 40, "approved");
    assert_eq!(read(&known).len(), 1);
    known.annotate(USED, Some("no list"));
    assert_asked(&mut known, &update(8, 2, 3, "u"), 40, "blocked");
}
