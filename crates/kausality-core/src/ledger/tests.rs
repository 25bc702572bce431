use serde_json::json;

use super::*;
use crate::review::Object;

fn parent(approvals: &Value) -> Summary {
    let parent = json!({"apiVersion": "v1", "kind": "A", "spec": {"size": 1}, "metadata": {"name": "a", "namespace": "shop",
        "generation": 5, "annotations": {"kausality.io/approvals": approvals.to_string()}}});
    Summary::of(&Object::parse(&parent.to_string()).unwrap())
}

/// An entry that was last seen at noon.
fn entered(denied_by: Option<&str>) -> Entry {
    let intent = parent(&json!([])).intent.to_string();
    let noon = "2026-01-25T12:00:00Z";
    let entry = json!({
        "apiVersion": "kausality.io/v1alpha1", "kind": "Drift", "metadata": {"name": "d", "namespace": "shop"},
        "spec": {
            "id": "d", "parentIntent": intent, "diff": "d1ff", "deniedBy": denied_by,
            "parent": {"apiVersion": "v1", "kind": "A", "namespace": "shop", "name": "a", "lifecyclePhase": "Initialized"},
            "child": {"apiVersion": "v1", "kind": "B", "namespace": "shop", "name": "b"},
            "request": {"user": "carol", "uid": "1", "operation": "UPDATE"},
            "summary": {"parent": "", "child": "", "actor": "", "change": ""},
        },
        "status": {"state": if denied_by.is_some() { "Denied" } else { "Blocked" }, "count": 1, "firstSeen": noon,
            "lastSeen": noon, "countedAt": noon},
    });
    serde_json::from_value(entry).unwrap()
}

fn over(entry: &Entry, approvals: &Value, now: &str) -> Option<ResolutionReason> {
    let parent = parent(approvals);
    let now = format!("2026-01-{now}Z").parse().unwrap();
    resolution(entry, &ParentNow::Here(&parent), ChildNow::Unknown, now).map(|it| it.reason)
}

#[test]
fn a_change_that_a_policy_denied_is_given_up_after_a_day() {
    let denied = entered(Some("ClusterApprovalPolicy/a rules[0]"));
    assert_eq!(over(&denied, &json!([]), "26T11:59:59"), None);
    assert_eq!(over(&denied, &json!([]), "26T12:00:00"), Some(ResolutionReason::Expired));
    assert_eq!(over(&entered(None), &json!([]), "29T00:00:00"), None, "controllers try again");
}

#[test]
fn it_is_closed_by_an_approval_of_exactly_it_by_somebody_else() {
    let denied = entered(Some("ClusterApprovalPolicy/a rules[0]"));
    let by = |more: Value| {
        let mut entry = json!({"apiVersion": "v1", "kind": "B", "name": "b", "mode": "always"});
        entry.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        over(&denied, &json!([entry]), "25T12:00:01")
    };
    assert_eq!(by(json!({"diff": "d1ff", "by": "dave"})), Some(ResolutionReason::Approved));
    assert_eq!(by(json!({"diff": "d1ff", "by": "carol"})), None);
    assert_eq!(by(json!({"diff": "d1ff"})), None);
    assert_eq!(by(json!({"by": "dave"})), None);
}

/// That somebody has approved it, or asked for something else, says more than what became of the child.
#[test]
fn it_is_superseded_only_while_nothing_else_ends_it() {
    let mut blocked = entered(None);
    let change = json!({"path": "spec.size", "old": "2", "new": "3"});
    blocked.spec.changes = vec![serde_json::from_value(change).unwrap()];
    let child = json!({"apiVersion": "v1", "kind": "B", "spec": {"size": 5}});
    let now = "2026-01-25T12:00:01Z".parse().unwrap();
    let over = |parent: &ParentNow<'_>| {
        resolution(&blocked, parent, ChildNow::Here(&child), now).map(|resolution| resolution.reason)
    };
    assert_eq!(over(&ParentNow::Here(&parent(&json!([])))), Some(ResolutionReason::Superseded));
    let approval = json!([{"apiVersion": "v1", "kind": "B", "name": "b", "mode": "always"}]);
    assert_eq!(over(&ParentNow::Here(&parent(&approval))), Some(ResolutionReason::Approved));
    assert_eq!(over(&ParentNow::Unknown), None, "nothing is closed while the parent cannot be read");
}

/// A drift as somebody would send it who wants to fill etcd: texts of this pattern in everything that has no bound of its own.
fn hostile(pattern: &str) -> (Drift, Decision) {
    let long = |bytes: usize| pattern.repeat(bytes.div_ceil(pattern.len()));
    let reference = json!({"apiVersion": long(9_000), "kind": long(9_000), "namespace": long(9_000),
        "name": long(9_000), "uid": long(9_000), "controllerManager": long(9_000), "lifecyclePhase": "Initialized"});
    let groups: Vec<String> = (0..1_000).map(|_| long(1_000)).collect();
    let report = json!({"apiVersion": "kausality.io/v1alpha1", "kind": "DriftReport", "spec": {
        "id": "d", "phase": "Detected", "parent": reference, "child": reference, "deniedBy": long(9_000),
        "oldObject": {"spec": long(500_000)}, "newObject": {"spec": long(500_000)},
        "request": {"user": long(9_000), "groups": groups, "uid": long(9_000), "fieldManager": long(9_000),
            "operation": "UPDATE"}}});
    let changes = (0..10_000).map(|nth| kausality_fields::Change {
        path: [kausality_fields::Step::Field(format!("{nth:05}{}", long(2_000)))].into_iter().collect(),
        old: Some(Leaf::Value(json!({"field": nth}))),
        new: Some(Leaf::Value(json!({"field": long(10_000)}))),
    });
    let hop = json!({"apiVersion": long(9_000), "kind": long(9_000), "name": long(9_000), "user": long(9_000),
        "timestamp": "2026-01-25T12:00:00Z", "labels": {"ticket": long(9_000), "why": long(9_000)}});
    let trace = serde_json::to_string(&vec![hop; 100]).unwrap();
    let step = |decided| crate::explain::Step {
        rule: crate::explain::Rule::Mode,
        finding: long(100_000),
        evidence: vec![long(1_000); 10],
        decided,
    };
    let drift = Drift {
        report: serde_json::from_value(report).unwrap(),
        diff: kausality_fields::Diff { changes: changes.collect() },
        owners: Vec::new(),
        parent_intent: crate::intent::IntentHash::parse("0000000000000000").unwrap(),
        parent_trace: Some(Trace::decode(&trace).unwrap()),
        snoozed: false,
    };
    let explanation = (0..100).map(|nth| step(nth == 99)).collect();
    (drift, Decision { explanation, ..Decision::allow(crate::class::Class::Update) })
}

#[test]
fn however_much_a_drift_says_its_entry_stays_small() {
    // Plain text, and what takes six times its length in JSON, or twice.
    for pattern in ["x", "\u{1}", "\"", "\\", "ä"] {
        let (drift, decision) = hostile(pattern);
        let mut entry = entry(&drift, &decision, Timestamp::UNIX_EPOCH);
        let approval = json!({"apiVersion": "v1", "kind": "B", "name": "b", "mode": "always",
            "by": pattern.repeat(100_000), "reason": pattern.repeat(100_000)});
        let (resolution, decided) = passed(&serde_json::from_value(approval).unwrap(), Timestamp::UNIX_EPOCH);
        (entry.status.resolution, entry.status.decision) = (Some(resolution), Some(decided));
        let size = serde_json::to_string(&entry).unwrap().len();
        assert!(size <= kausality_api::drift::MAX_ENTRY, "{size} bytes of {pattern:?}");
        assert!(!entry.spec.changes.is_empty(), "something is told of it");
        assert_eq!(entry.spec.changes.len() as u64 + entry.spec.more_changes, 10_000);
        assert_eq!(entry.status.explanation.iter().filter(|step| step.decided).count(), 1, "and why");
        assert_eq!((&entry.spec.old_object, &entry.spec.new_object), (&None, &None));
    }
}

#[test]
fn objects_are_in_an_entry_if_both_fit() {
    let (mut drift, decision) = hostile("x");
    drift.diff.changes.truncate(1);
    let objects = |drift: &Drift| {
        let spec = entry(drift, &decision, Timestamp::UNIX_EPOCH).spec;
        (spec.old_object.is_some(), spec.new_object.is_some())
    };
    drift.report.spec.old_object = Some(json!({"spec": "x".repeat(5_000)}));
    drift.report.spec.new_object = json!({"spec": "x".repeat(5_000)});
    assert_eq!(objects(&drift), (true, true));
    drift.report.spec.new_object = json!({"spec": "x".repeat(30_000)});
    assert_eq!(objects(&drift), (false, false));
}

/// An entry holds part of a long trace: that its parent's controller writes to the parent must still not close it.
#[test]
fn a_trace_that_was_cut_is_still_known() {
    let (mut drift, decision) = hostile("x");
    drift.report.spec.parent = serde_json::from_value(
        json!({"apiVersion": "v1", "kind": "A", "namespace": "shop", "name": "a", "lifecyclePhase": "Initialized"}),
    )
    .unwrap();
    let spec = entry(&drift, &decision, Timestamp::UNIX_EPOCH).spec;
    let traced = |trace: &Trace| {
        let mut parent = parent(&json!([]));
        parent.annotate(TRACE, Some(&trace.encode()));
        parent
    };
    let trace = drift.parent_trace.unwrap();
    assert_ne!(spec.trace.as_ref(), Some(&trace));
    assert!(!parent_changed(&spec, &traced(&trace)));
    let mut other = trace.hops()[0].clone();
    other.user = "somebody else".to_owned();
    assert!(parent_changed(&spec, &traced(&Trace::origin(other))));
}
