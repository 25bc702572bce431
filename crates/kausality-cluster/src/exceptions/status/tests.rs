#![allow(clippy::unwrap_used, clippy::panic, reason = "tests fail by panicking")]

use kausality_api::exception::{ApprovalPolicy, PolicyKind, PolicyRule};
use serde_json::json;
use std::sync::Arc;

use super::*;
use crate::exceptions::memory::Rules;

fn at(text: &str) -> Timestamp {
    format!("2026-01-24T{text}Z").parse().unwrap()
}

fn held(source: &str, status: ApprovalPolicyStatus) -> Held {
    let policy: ApprovalPolicy = serde_json::from_value(json!({
        "apiVersion": "kausality.io/v1alpha1", "kind": "ClusterApprovalPolicy", "metadata": {"name": "p"},
        "spec": {"rules": [
            {"apiVersion": "v1", "kind": "Pod", "subjects": [{"kind": "User", "name": "a"}], "match": {"cel": source},
                "expiry": "2026-01-24T12:00:00Z"},
            {"apiVersion": "v1", "kind": "Pod", "subjects": [{"kind": "User", "name": "b"}]},
        ]},
    }))
    .unwrap();
    Held {
        kind: PolicyKind::ClusterApprovalPolicy,
        namespace: String::new(),
        name: "p".to_owned(),
        uid: "u".to_owned(),
        resource_version: "1".to_owned(),
        generation: Some(1),
        created: None,
        rules: Arc::new(Rules::of(&policy, &Arc::default())),
        marks: policy.spec.rules.iter().map(PolicyRule::mark).collect(),
        policy: Some(policy),
        status,
    }
}

fn shown(status: &ApprovalPolicyStatus) -> Vec<String> {
    status.conditions.iter().map(|it| format!("{}={} {}", it.kind, it.status, it.reason)).collect()
}

#[test]
fn conditions_say_what_holds_and_are_not_written_again() {
    let status =
        next(&held("true", ApprovalPolicyStatus::default()), &Sightings::default(), &[], at("10:00:00"));
    let status = status.unwrap();
    assert_eq!(
        shown(&status),
        ["Compiled=True Compiled", "KindsServed=True Served", "Expired=False InForce"]
    );
    assert_eq!(next(&held("true", status.clone()), &Sightings::default(), &[], at("11:00:00")), None);

    let status = next(&held("true", status.clone()), &Sightings::default(), &[], at("12:00:00")).unwrap();
    assert_eq!(shown(&status)[2], "Expired=True Expired");
    assert_eq!(status.conditions[2].message, "spec.rules[0] expired at 2026-01-24T12:00:00Z");
    assert_eq!(status.conditions[2].last_transition_time, at("12:00:00"));
    assert_eq!(status.conditions[0].last_transition_time, at("10:00:00"));

    let missing = ["spec.rules[0]: v1 Podd is not served here".to_owned()];
    let status = next(&held("tru", status), &Sightings::default(), &missing, at("12:00:00")).unwrap();
    assert_eq!(shown(&status)[..2], ["Compiled=False Invalid", "KindsServed=False UnknownKind"]);
    assert!(
        status.conditions[0].message.contains("spec.rules[0].match.cel"),
        "{}",
        status.conditions[0].message
    );
}

#[test]
fn matches_are_counted_once() {
    let marks = held("true", ApprovalPolicyStatus::default()).marks;
    let [first, second] = marks.as_slice() else { panic!("{marks:?}") };
    let mut seen = Sightings::default();
    seen.add(second, at("10:00:00"));
    seen.add(second, at("10:00:05"));
    seen.add(first, at("10:00:02"));
    let status = next(&held("true", ApprovalPolicyStatus::default()), &seen, &[], at("10:01:00")).unwrap();
    assert_eq!((status.matches, status.last_matched), (Some(3), Some(at("10:00:05"))));
    assert_eq!(counts(&status), [(0, 1), (1, 2)]);

    // One more came while that was written.
    let written = seen.clone();
    seen.add(second, at("10:02:00"));
    seen.forget(&written);
    let status = next(&held("true", status), &seen, &[], at("10:02:00")).unwrap();
    assert_eq!((status.matches, counts(&status)), (Some(4), vec![(0, 1), (1, 3)]));
    seen.forget(&seen.clone());
    assert!(seen.is_empty());
}

fn counts(status: &ApprovalPolicyStatus) -> Vec<(u64, u64)> {
    status.rules.iter().map(|rule| (rule.rule, rule.matches)).collect()
}

#[test]
fn counts_follow_their_rules() {
    let mut before = held("true", ApprovalPolicyStatus::default());
    let mut seen = Sightings::default();
    seen.add(&before.marks[0], at("10:00:00"));
    for _ in 0..5 {
        seen.add(&before.marks[1], at("10:00:00"));
    }
    before.status = next(&before, &seen, &[], at("10:01:00")).unwrap();
    assert_eq!(counts(&before.status), [(0, 1), (1, 5)]);

    // Another rule comes before both, and what the first is about changes. What was seen before that still counts for its rule.
    let mut after = held("false", before.status.clone());
    after.generation = Some(2);
    after.marks.insert(0, "new".to_owned());
    let mut late = Sightings::default();
    late.add(&before.marks[0], at("10:02:00"));
    late.add(&before.marks[1], at("10:02:00"));
    let status = next(&after, &late, &[], at("10:02:00")).unwrap();
    assert_eq!(counts(&status), [(2, 6)]);
    assert_eq!(status.matches, Some(8));

    // Earlier versions told only the place: that is worth something while the policy stays as it is.
    for rule in &mut before.status.rules {
        rule.mark = None;
    }
    let none = Sightings::default();
    let status = next(&before, &none, &[], at("10:03:00")).unwrap();
    assert_eq!(status.rules.iter().map(|rule| rule.mark.clone().unwrap()).collect::<Vec<_>>(), before.marks);
    before.generation = Some(2);
    assert_eq!(counts(&next(&before, &none, &[], at("10:03:00")).unwrap()), []);
}
