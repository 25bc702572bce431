use kausality_api::approval::Entry as _;
use serde_json::{Value, json};

use super::*;
use crate::ledger::fixture::{drift, garden, noon};

fn approving() -> Approving {
    Approving {
        rules: Rules::default(),
        mode: ApprovalMode::Once,
        exact: false,
        fields: Vec::new(),
        expires: None,
        reason: Some("known".into()),
        by: "dave".into(),
        force: false,
        others: Others::default(),
    }
}

/// What is on the parent afterwards, or why it was refused.
fn approve(deed: &Approving, annotations: &Value, changes: &Value) -> Result<(Done, Summary), String> {
    let mut parent = garden(annotations);
    let done = deed.apply(&mut parent, &drift(changes), noon())?;
    Ok((done, parent))
}

fn on(parent: &Summary, key: &str) -> Value {
    parent.annotation(key).map_or(Value::Null, |text| serde_json::from_str(text).unwrap())
}

#[test]
fn an_entry_names_the_child_the_generation_and_who() {
    let (done, parent) = approve(&approving(), &json!({}), &json!({})).unwrap();
    assert_eq!(done, Done::new("approved once"));
    let expected = json!([{"apiVersion": "garden.io/v1", "kind": "Bed", "name": "south-1", "generation": 5,
        "mode": "once", "by": "dave", "reason": "known"}]);
    assert_eq!(on(&parent, APPROVALS), expected);
}

#[test]
fn an_entry_on_a_parent_without_a_namespace_names_that_of_the_child() {
    let mut parent = garden(&json!({}));
    parent.id.namespace.clear();
    approving().apply(&mut parent, &drift(&json!({})), noon()).unwrap();
    assert_eq!(on(&parent, APPROVALS)[0]["namespace"], "park");
}

#[test]
fn what_a_policy_denies_is_approved_exactly_and_by_somebody_else() {
    let denied =
        json!({"spec": {"deniedBy": "ClusterApprovalPolicy/a rules[0]", "request": {"user": "carol"}}});
    let (done, parent) = approve(&approving(), &json!({}), &denied).unwrap();
    assert_eq!(on(&parent, APPROVALS)[0]["diff"], "d1ff");
    assert!(done.notes.iter().any(|note| note.contains("ClusterApprovalPolicy/a rules[0]")), "{done:?}");
    let own = Approving { by: "carol".into(), ..approving() };
    let why = approve(&own, &json!({}), &denied).unwrap_err();
    assert!(why.contains("is approved by somebody else"), "{why}");
}

#[test]
fn an_exact_approval_is_for_this_change() {
    let deed = Approving { exact: true, mode: ApprovalMode::Generation, ..approving() };
    let (_, parent) = approve(&deed, &json!({}), &json!({})).unwrap();
    assert_eq!(on(&parent, APPROVALS)[0]["diff"], "d1ff");
}

#[test]
fn one_that_lasts_is_bound_to_no_generation() {
    let deed = Approving { mode: ApprovalMode::Always, ..approving() };
    let (_, parent) = approve(&deed, &json!({}), &json!({})).unwrap();
    assert_eq!(on(&parent, APPROVALS)[0]["generation"], Value::Null);
}

#[test]
fn the_same_is_not_approved_twice_whoever_does_it() {
    let (_, parent) = approve(&approving(), &json!({}), &json!({})).unwrap();
    let annotations = json!({APPROVALS: parent.annotation(APPROVALS)});
    let again = Approving { by: "erin".into(), reason: None, ..approving() };
    let (done, parent) = approve(&again, &annotations, &json!({})).unwrap();
    assert_eq!(done.what, "is already approved once");
    assert_eq!(on(&parent, APPROVALS).as_array().unwrap().len(), 1);
    let other = Approving { mode: ApprovalMode::Always, ..approving() };
    let (_, parent) = approve(&other, &annotations, &json!({})).unwrap();
    assert_eq!(on(&parent, APPROVALS).as_array().unwrap().len(), 2, "another mode is another approval");
}

#[test]
fn a_rejection_is_told_and_goes_by_force_only() {
    let rejections = json!([{"apiVersion": "*", "kind": "Bed", "name": "*", "reason": "wait", "by": "erin"},
        {"apiVersion": "garden.io/v1", "kind": "Bed", "name": "other", "reason": "no"}]);
    let annotations = json!({REJECTIONS: rejections.to_string()});
    let why = approve(&approving(), &annotations, &json!({})).unwrap_err();
    assert_eq!(why, "it was rejected by erin: wait. That wins over any approval: say --force to remove it");
    let forced = Approving { force: true, ..approving() };
    let (done, parent) = approve(&forced, &annotations, &json!({})).unwrap();
    assert_eq!(done.notes, ["the rejection by erin: wait was removed"]);
    assert_eq!(on(&parent, REJECTIONS)[0]["name"], "other");
    let broken = json!({REJECTIONS: "oops"});
    let why = approve(&forced, &broken, &json!({})).unwrap_err();
    assert!(why.contains("unapprove garden/south -n park --all"), "{why}");
}

#[test]
fn force_reaches_what_is_over() {
    assert_eq!(approving().needs(), Needs::Open);
    assert_eq!(Approving { force: true, ..approving() }.needs(), Needs::Current);
}

#[test]
fn an_approval_that_would_not_hold_is_none() {
    let other = Approving { fields: vec!["spec.soil".into()], ..approving() };
    let why = approve(&other, &json!({}), &json!({})).unwrap_err();
    assert_eq!(why, "the approval would not let it pass: it is for spec.soil only");
    let right = Approving { fields: vec!["spec".into()], ..approving() };
    let (_, parent) = approve(&right, &json!({}), &json!({})).unwrap();
    let entries = Entries::<Approval>::decode(parent.annotation(APPROVALS).unwrap());
    assert_eq!(entries.valid().next().unwrap().1.subject().1, "Bed");
}

#[test]
fn a_list_that_is_none_is_not_written_over() {
    let why = approve(&approving(), &json!({APPROVALS: "{}"}), &json!({})).unwrap_err();
    assert!(why.contains("is no JSON list"), "{why}");
}

#[test]
fn a_parent_without_generations_can_only_approve_always() {
    let mut parent = garden(&json!({}));
    parent.generation = None;
    let why = approving().apply(&mut parent, &drift(&json!({})), noon()).unwrap_err();
    assert!(why.contains("only --mode always"), "{why}");
    let always = Approving { mode: ApprovalMode::Always, ..approving() };
    assert!(always.apply(&mut parent, &drift(&json!({})), noon()).is_ok());
}

#[test]
fn a_freeze_is_told() {
    let frozen = json!({FREEZE: r#"{"user":"erin","message":"storm"}"#});
    let (done, _) = approve(&approving(), &frozen, &json!({})).unwrap();
    assert_eq!(
        done.notes,
        ["Garden park/south is frozen by erin: storm: nothing passes until it is unfrozen"]
    );
}

#[test]
fn a_rule_that_denies_is_told() {
    let denied = |rule: &str| {
        let finding = "denied by ClusterApprovalPolicy/nights rules[0] (not at night)";
        json!({"status": {"state": "Rejected", "explanation": [{"rule": rule, "finding": finding, "decided": true}]}})
    };
    let (done, parent) = approve(&approving(), &json!({}), &denied("policy")).unwrap();
    assert_eq!(
        done.notes,
        [
            "when it was last seen, it was denied by ClusterApprovalPolicy/nights rules[0] (not at night): no approval lets \
          it pass while that rule stands"
        ]
    );
    assert_eq!(on(&parent, APPROVALS)[0]["by"], "dave");
    let (done, _) = approve(&approving(), &json!({}), &denied("rejection")).unwrap();
    assert_eq!(done.notes, [""; 0]);

    // Older entries do not name it, and were perhaps rejected by somebody.
    let older = json!({"status": {"state": "Rejected"}});
    let (done, _) = approve(&approving(), &json!({}), &older).unwrap();
    assert!(done.notes[0].contains("it was denied by a rule of a policy"), "{done:?}");
    let rejections = json!([{"apiVersion": "garden.io/v1", "kind": "Bed", "name": "south-1", "reason": "wait", "by": "erin"}]);
    let forced = Approving { force: true, ..approving() };
    let (done, _) = approve(&forced, &json!({REJECTIONS: rejections.to_string()}), &older).unwrap();
    assert_eq!(done.notes, ["the rejection by erin: wait was removed"]);
}

#[test]
fn a_reason_is_short_and_not_empty() {
    assert_eq!(reason(" because ").unwrap(), "because");
    assert!(reason("  ").is_err());
    assert!(reason(&"x".repeat(MAX_REASON + 1)).is_err());
}

/// Another drift of the bed, or of another.
fn another(name: &str, child: &str, path: &str) -> Entry {
    drift(
        &json!({"metadata": {"name": name}, "spec": {"diff": format!("diff-{name}"), "child": {"name": child},
        "changes": [{"path": path}]}}),
    )
}

#[test]
fn each_of_several_changes_of_a_child_has_an_approval_of_its_own() {
    let entries =
        [drift(&json!({})), another("b", "south-1", "spec.soil"), another("c", "south-2", "spec.soil")];
    let others = Others::of(&entries, entries.to_vec(), false);
    let told = |deed: &Approving| {
        let mut parent = garden(&json!({}));
        let notes: Vec<usize> =
            entries.iter().map(|entry| deed.apply(&mut parent, entry, noon()).unwrap().notes.len()).collect();
        let diffs = on(&parent, APPROVALS).as_array().unwrap().iter().map(|it| it["diff"].clone()).collect();
        (notes, diffs)
    };
    let deed = Approving { others, ..approving() };
    assert_eq!(told(&deed), (vec![1, 1, 0], vec![json!("d1ff"), json!("diff-b"), Value::Null]));
    // One that lasts is for all of them.
    let lasting = Approving { mode: ApprovalMode::Generation, ..deed };
    assert_eq!(told(&lasting), (vec![0, 0, 0], vec![Value::Null, Value::Null]));
    // What is over is not approved, and leaves the other alone.
    let mut over = entries.to_vec();
    over[1].drift.status.state = DriftState::Resolved;
    assert!(!Others::of(&over, over.clone(), false).has_chosen(&over[0]));
    assert!(Others::of(&over, over.clone(), true).has_chosen(&over[0]));
}

#[test]
fn other_drifts_that_an_approval_covers_are_told() {
    let this = drift(&json!({}));
    let mut over = another("e", "south-1", "spec.flowers");
    over.drift.status.state = DriftState::Resolved;
    let mut expired = another("f", "south-1", "spec.flowers");
    expired.drift.spec.parent_intent = "other".into();
    let all = vec![
        this.clone(),
        another("b", "south-1", "spec.soil"),
        another("c", "south-1", "spec.flowers"),
        another("d", "south-2", "spec.flowers"),
        over,
        expired,
    ];
    let others = Others::of(std::slice::from_ref(&this), all, false);
    let notes = |deed: &Approving| deed.apply(&mut garden(&json!({})), &this, noon()).unwrap().notes;
    let deed = Approving { others, ..approving() };
    assert_eq!(
        notes(&deed),
        [
            "the approval covers 2 other open drifts of Bed/south-1, too, and the first of these changes uses it up: \
          --exact binds it to this one only"
        ]
    );
    let fields =
        Approving { fields: vec!["spec.flowers".into()], mode: ApprovalMode::Always, ..deed.clone() };
    assert_eq!(
        notes(&fields),
        ["the approval covers 1 other open drift of Bed/south-1, too: --exact binds it to this one only"]
    );
    assert_eq!(notes(&Approving { exact: true, ..deed }), [""; 0]);
}

#[test]
fn what_has_passed_is_approved_for_the_next_time() {
    let passed = json!({"status": {"state": "Passed"}});
    let told = |deed: &Approving| approve(deed, &json!({}), &passed).unwrap().0.notes;
    assert_eq!(
        told(&approving()),
        ["this change has passed already: the approval lets the next change of Bed/south-1 pass"]
    );
    assert_eq!(
        told(&Approving { exact: true, ..approving() }),
        ["this change has passed already: the approval lets the same change pass if it comes again"]
    );
}

#[test]
fn a_field_has_a_name() {
    assert_eq!(field(" spec.replicas").unwrap(), "spec.replicas");
    assert!(field(" ").is_err());
}
