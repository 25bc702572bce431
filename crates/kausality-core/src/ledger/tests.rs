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
    resolution(entry, &ParentNow::Here(&parent), false, now).map(|it| it.reason)
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
