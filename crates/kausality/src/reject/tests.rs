use serde_json::{Value, json};

use super::*;
use crate::ledger::fixture::{drift, garden, noon};

fn rejecting() -> Rejecting {
    Rejecting {
        reason: "no".into(),
        expires: None,
        exact: false,
        always: false,
        force: false,
        by: "dave".into(),
    }
}

fn reject(deed: &Rejecting, annotations: &Value) -> Result<(Done, Value), String> {
    let mut parent = garden(annotations);
    let done = deed.apply(&mut parent, &drift(&json!({})), noon())?;
    let text = parent.annotation(REJECTIONS).unwrap();
    Ok((done, serde_json::from_str(text).unwrap()))
}

#[test]
fn a_rejection_holds_for_the_intent_that_it_was_made_at() {
    let (_, list) = reject(&rejecting(), &json!({})).unwrap();
    let expected = json!([{"apiVersion": "garden.io/v1", "kind": "Bed", "name": "south-1", "generation": 5,
        "reason": "no", "by": "dave"}]);
    assert_eq!(list, expected);
    let always = Rejecting { always: true, exact: true, ..rejecting() };
    let (_, list) = reject(&always, &json!({})).unwrap();
    assert_eq!((&list[0]["generation"], &list[0]["diff"]), (&Value::Null, &json!("d1ff")));
}

#[test]
fn the_same_is_not_rejected_twice() {
    let (_, list) = reject(&rejecting(), &json!({})).unwrap();
    let annotations = json!({REJECTIONS: list.to_string()});
    let (done, list) = reject(&Rejecting { by: "erin".into(), ..rejecting() }, &annotations).unwrap();
    assert_eq!((done.what.as_str(), list.as_array().unwrap().len()), ("is rejected already", 1));
}

#[test]
fn an_approval_that_stands_is_told() {
    let approvals = json!([{"apiVersion": "*", "kind": "*", "name": "*", "mode": "always"}]);
    let annotations = json!({"kausality.io/approvals": approvals.to_string()});
    let (done, _) = reject(&rejecting(), &annotations).unwrap();
    assert_eq!(done.notes, ["there is an approval for it: the rejection wins while it holds"]);
}

#[test]
fn what_cannot_be_understood_is_left_alone() {
    assert!(reject(&rejecting(), &json!({REJECTIONS: "oops"})).unwrap_err().contains("is no JSON list"));
}

#[test]
fn force_reaches_what_is_over() {
    assert_eq!(rejecting().needs(), Needs::Open);
    assert_eq!(Rejecting { force: true, ..rejecting() }.needs(), Needs::Current);
}

#[test]
fn an_entry_on_a_parent_without_a_namespace_names_that_of_the_child() {
    let mut parent = garden(&json!({}));
    parent.id.namespace.clear();
    rejecting().apply(&mut parent, &drift(&json!({})), noon()).unwrap();
    let list: Value = serde_json::from_str(parent.annotation(REJECTIONS).unwrap()).unwrap();
    assert_eq!(list[0]["namespace"], "park");
}
