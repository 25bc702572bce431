#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use kausality_api::exception::{ApprovalPolicy, PolicyKind};
use kausality_core::exceptions::compile;
use serde_json::json;

use super::*;

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
        compiled: compile(&policy),
        policy: Some(policy),
        denying: None,
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
    let mut seen = Sightings::default();
    seen.add(1, at("10:00:00"));
    seen.add(1, at("10:00:05"));
    seen.add(0, at("10:00:02"));
    let status = next(&held("true", ApprovalPolicyStatus::default()), &seen, &[], at("10:01:00")).unwrap();
    assert_eq!((status.matches, status.last_matched), (Some(3), Some(at("10:00:05"))));
    let of = |status: &ApprovalPolicyStatus| {
        status.rules.iter().map(|rule| (rule.rule, rule.matches)).collect::<Vec<_>>()
    };
    assert_eq!(of(&status), [(0, 1), (1, 2)]);

    // One more came while that was written.
    let written = seen.clone();
    seen.add(1, at("10:02:00"));
    seen.forget(&written);
    let status = next(&held("true", status), &seen, &[], at("10:02:00")).unwrap();
    assert_eq!((status.matches, of(&status)), (Some(4), vec![(0, 1), (1, 3)]));
    seen.forget(&seen.clone());
    assert!(seen.is_empty());
}
