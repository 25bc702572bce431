use serde_json::{Value, json};

use super::*;
use crate::ledger::fixture::{drift, garden, noon};

fn approval(name: &str) -> Value {
    json!({"apiVersion": "garden.io/v1", "kind": "Bed", "name": name, "generation": 5, "mode": "once"})
}

fn unapprove(all: bool, approvals: &Value, rejections: &Value) -> (Done, Value, Value) {
    let texts = json!({APPROVALS: approvals.to_string(), REJECTIONS: rejections.to_string()});
    let mut parent = garden(&texts);
    let done = Unapproving { all }.apply(&mut parent, &drift(&json!({})), noon()).unwrap();
    let on =
        |key: &str| parent.annotation(key).map_or(Value::Null, |text| serde_json::from_str(text).unwrap());
    let left = (on(APPROVALS), on(REJECTIONS));
    (done, left.0, left.1)
}

#[test]
fn what_names_the_child_goes_and_what_names_others_stays() {
    let mut stale = approval("south-1");
    stale["generation"] = json!(4);
    let approvals = json!([approval("south-1"), approval("south-2"), approval("*"), stale]);
    let rejections =
        json!([{"apiVersion": "garden.io/v1", "kind": "Bed", "name": "south-1", "reason": "no"}]);
    let (done, approvals_left, rejections_left) = unapprove(false, &approvals, &rejections);
    assert_eq!(done.what, "lost 2 approvals and 1 rejection");
    assert_eq!(done.notes, ["1 entry about other children too, by *, left in place: say --all to remove"]);
    assert_eq!(approvals_left, json!([approval("south-2"), approval("*")]));
    assert_eq!(rejections_left, Value::Null);
    let (done, approvals_left, _) = unapprove(true, &approvals, &rejections);
    assert_eq!((done.what.as_str(), done.notes.len()), ("lost 3 approvals and 1 rejection", 0));
    assert_eq!(approvals_left, json!([approval("south-2")]));
}

#[test]
fn where_there_is_nothing_nothing_is_written() {
    let (done, approvals, _) = unapprove(false, &json!([approval("south-2")]), &json!([]));
    assert_eq!(done.what, "has neither approvals nor rejections");
    assert_eq!(approvals, json!([approval("south-2")]));
}

#[test]
fn everything_of_a_parent_goes_whatever_it_is() {
    let mut parent = garden(&json!({APPROVALS: "oops", REJECTIONS: json!([{}, {}]).to_string()}));
    assert_eq!(clear(&mut parent), 3);
    assert_eq!((parent.annotation(APPROVALS), parent.annotation(REJECTIONS)), (None, None));
}

#[test]
fn entries_about_one_child_of_a_parent_go() {
    let mut other_group = approval("south-1");
    other_group["apiVersion"] = json!("hotel.io/v1");
    let approvals = json!([approval("south-1"), approval("south-2"), other_group]);
    let child = |group: Option<&str>| NamedObject {
        kind: "Bed".into(),
        group: group.map(str::to_owned),
        name: "south-1".into(),
    };
    let mut parent = garden(&json!({APPROVALS: approvals.to_string()}));
    assert_eq!(take_back(&mut parent, Some(&child(Some("garden.io"))), None), 1);
    assert_eq!(take_back(&mut parent, Some(&child(None)), None), 1);
    assert_eq!(take_back(&mut parent, Some(&child(None)), None), 0);
    assert_eq!(parent.annotation(APPROVALS).unwrap(), json!([approval("south-2")]).to_string());
}

#[test]
fn entries_that_are_bound_to_other_namespaces_stay() {
    let mut bound = approval("south-1");
    bound["namespace"] = json!("park");
    let mut other = bound.clone();
    other["namespace"] = json!("yard");
    let mut parent = garden(&json!({APPROVALS: json!([bound, other, approval("south-1")]).to_string()}));
    let child = NamedObject { kind: "Bed".into(), group: None, name: "south-1".into() };
    assert_eq!(take_back(&mut parent, Some(&child), Some("park")), 2, "and what is bound to none");
    assert_eq!(parent.annotation(APPROVALS).unwrap(), json!([other]).to_string());
}
