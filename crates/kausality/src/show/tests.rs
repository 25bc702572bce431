use serde_json::{Value, json};

use super::*;
use crate::ledger::fixture::{drift, garden, noon, parent};

fn shown(changes: &Value, parent: ParentView) -> String {
    let mut out = Vec::new();
    let finding = "no rule is about such a change".to_owned();
    let policy = DriftStep { rule: "policy".to_owned(), finding, ..DriftStep::default() };
    let present = Present { parent, policy };
    let context = Context { program: "kausality", namespace: "default" };
    let mut plain = anstream::StripStream::new(&mut out);
    page(&mut plain, &drift(changes).drift, &present, &context, noon()).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn everything_about_an_open_drift() {
    let approvals = json!([{"apiVersion": "garden.io/v1", "kind": "Bed", "name": "south-1", "generation": 5,
        "mode": "once", "by": "dave"}]);
    let annotations = json!({"kausality.io/approvals": approvals.to_string(),
        "kausality.io/freeze": r#"{"user":"erin","message":"storm"}"#,
        "kausality.io/snooze": "2026-01-25T13:00:00Z"});
    let view = ParentView::Same(garden(&annotations).into());
    let changes = json!({
        "spec": {"moreChanges": 2},
        "status": {"deliveries": [
            {"endpoint": "slack", "detected": "2026-01-25T11:00:05Z", "error": "gone\u{1b}[2J"},
            {"endpoint": "log"}]},
    });
    insta::assert_snapshot!("open", shown(&changes, view));
}

#[test]
fn what_is_over_offers_nothing_to_do() {
    let resolved = json!({"status": {"state": "Resolved", "count": 1,
        "decision": {"action": "approve", "mode": "once", "by": "dave", "at": "2026-01-25T11:30:00Z", "reason": "ok"},
        "resolution": {"reason": "Approved", "at": "2026-01-25T11:31:00Z", "by": "dave", "message": "approved (once)"}}});
    insta::assert_snapshot!("resolved", shown(&resolved, ParentView::Gone));
}

#[test]
fn a_drift_that_has_expired_is_called_so() {
    let other = parent(&json!({}), &json!({"flowers": "tulips"}));
    let text = shown(&json!({}), ParentView::Changed(other.into()));
    assert!(text.contains("parent    its intent has changed since: the drift is over"), "{text}");
    assert!(!text.contains("What you can do"), "{text}");
}

#[test]
fn whole_objects_and_those_without_a_namespace() {
    let changes = json!({"kind": "ClusterDrift", "metadata": {"namespace": null},
        "spec": {"request": {"operation": "DELETE"}, "changes": null, "trace": null,
            "child": {"namespace": null}, "parent": {"namespace": null, "apiVersion": "v1"},
            "summary": {"change": "delete"}}});
    let text = shown(&changes, ParentView::Unreadable("forbidden".into()));
    assert!(text.contains("DELETE of Bed south-1 (garden.io/v1, generation 2)"), "{text}");
    assert!(text.contains("\nWhat changed\n  delete\n"), "{text}");
    assert!(text.contains("kausality approve e675380dcb6f9bf1 --cluster"), "{text}");
    assert!(text.contains("kausality freeze garden/south --reason"), "{text}");
    assert!(text.contains("parent    it cannot be read: forbidden"), "{text}");
}

/// What the engine saw, with the rule that denied.
fn denied() -> Value {
    json!({"status": {"state": "Rejected", "explanation": [
        {"rule": "actor", "finding": "Controller", "evidence": ["the child's only updater is 1likq\u{1b}[2J"]},
        {"rule": "policy", "finding": "denied by ClusterApprovalPolicy/nights rules[0] (not at night)", "decided": true},
    ]}})
}

#[test]
fn what_the_engine_saw_is_told_and_nothing_is_made_up() {
    let view = || ParentView::Same(garden(&json!({})).into());
    let text = shown(&denied(), view());
    insta::assert_snapshot!("denied", text);
    assert!(!text.contains("writes the status of"), "{text}");
    // Older entries know no more than that.
    let older = shown(&json!({"status": {"state": "Rejected"}}), view());
    assert!(older.contains("  policy    a rule denied it, as rules do in every mode ◀ decided\n"), "{older}");
    let rejected = json!({"status": {"state": "Rejected", "decision": {"action": "reject", "at": "2026-01-25T11:30:00Z"}}});
    let rejected = shown(&rejected, view());
    assert!(
        rejected.contains("  rejection somebody rejected it, which denies in every mode ◀ decided\n"),
        "{rejected}"
    );
    assert!(rejected.contains("kausality approve"), "{rejected}");
}

#[test]
fn what_has_passed_is_decided_for_the_next_time() {
    let text = shown(&json!({"status": {"state": "Passed"}}), ParentView::Same(garden(&json!({})).into()));
    let (_, commands) = text.split_once("What you can do\n").unwrap();
    insta::assert_snapshot!("passed", commands);
}

#[test]
fn what_a_policy_denies_to_others_is_no_drift_and_can_be_approved() {
    let changes = json!({
        "spec": {"deniedBy": "ClusterApprovalPolicy/beds rules[0] (ask first)", "request": {"user": "carol"}},
        "status": {"state": "Denied", "explanation": [
            {"rule": "actor", "finding": "Other"},
            {"rule": "cause", "finding": "Origin"},
            {"rule": "policy", "finding": "denied by ClusterApprovalPolicy/beds rules[0] (ask first)", "decided": true},
            {"rule": "approval", "finding": "none on the parent"},
        ]},
    });
    insta::assert_snapshot!("denied-by-policy", shown(&changes, ParentView::Same(garden(&json!({})).into())));
}
