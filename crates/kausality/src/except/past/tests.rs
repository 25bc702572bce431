#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use kausality_api::{
    approval::ApprovalMode,
    exception::{ApprovalPolicy, PolicyRule},
};
use kausality_core::exceptions::compile;

use serde_json::json;

use super::{super::rules::Wish, *};
use crate::ledger::fixture::{drift, noon};

fn bed(name: &str, old: &str, new: &str) -> Value {
    let object = |flowers: &str| {
        json!({"apiVersion": "garden.io/v1", "kind": "Bed", "metadata": {"name": name, "namespace": "park"},
            "spec": {"flowers": flowers}})
    };
    json!({"metadata": {"name": format!("{name}-{new}")}, "spec": {
        "child": {"name": name}, "oldObject": object(old), "newObject": object(new),
        "summary": {"child": format!("Bed/{name}")}}})
}

fn wish() -> Wish<'static> {
    Wish {
        any_name: false,
        any_field: false,
        cel: None,
        mode: ApprovalMode::Always,
        expires: None,
        reason: None,
        cluster: false,
    }
}

fn past(rule: PolicyRule, entries: &[Entry], chosen: &[Entry]) -> Past {
    let policy: ApprovalPolicy = serde_json::from_value(json!({
        "apiVersion": "kausality.io/v1alpha1", "kind": "ApprovalPolicy",
        "metadata": {"name": "exceptions", "namespace": "park"}, "spec": {"rules": [rule]},
    }))
    .unwrap();
    Past::of(&Exceptions::new([&compile(&policy).unwrap()]), entries, chosen, noon())
}

#[test]
fn the_rule_of_a_drift_is_as_narrow_as_can_be() {
    let one = drift(&bed("south-1", "roses", "thistles"));
    let rule = serde_json::to_value(wish().rule(&one.drift.spec).unwrap()).unwrap();
    assert_eq!(
        rule,
        json!({
            "action": "allow", "apiVersion": "garden.io/v1", "kind": "Bed", "name": "south-1",
            "subjects": [{"kind": "ServiceAccount", "name": "gardener", "namespace": "garden"}],
            "operations": ["UPDATE"], "match": {"fields": ["spec.flowers"]}, "mode": "always",
            "reason": "as drift e675380dcb6f9bf1",
        })
    );
    let wide = Wish { any_name: true, any_field: true, cel: Some("true"), cluster: true, ..wish() };
    let rule = serde_json::to_value(wide.rule(&one.drift.spec).unwrap()).unwrap();
    assert_eq!(
        (&rule["name"], &rule["namespace"], &rule["match"]),
        (&json!("*"), &json!("park"), &json!({"cel": "true"}))
    );

    let many = drift(&json!({"spec": {"moreChanges": 1}}));
    assert!(wish().rule(&many.drift.spec).unwrap_err().contains("--any-field"));
    let anybody = drift(&json!({"spec": {"request": {"user": "a*"}}}));
    assert!(wish().rule(&anybody.drift.spec).is_err());
}

#[test]
fn what_else_would_have_matched_is_told() {
    let one = drift(&bed("south-1", "roses", "thistles"));
    let again = drift(&bed("south-1", "roses", "nettles"));
    let other = drift(&bed("south-2", "roses", "thistles"));
    let lost = drift(&json!({"metadata": {"name": "lost"}}));
    let all = [one.clone(), again, other, lost];
    let chosen = [one.clone()];

    let narrow = past(wish().rule(&one.drift.spec).unwrap(), &all, &chosen);
    assert_eq!(
        narrow.lines(10),
        [
            "It would also have matched 1 of 3 other drifts in the ledger:",
            "  drift/south-1-nettles Bed/south-1 of Garden/south: spec.flowers: \"roses\" → \"thistles\"",
            "Of 1 drift, the ledger does not hold the objects.",
        ]
    );
    let wide = Wish { any_name: true, ..wish() };
    let wide = past(wide.rule(&one.drift.spec).unwrap(), &all, &chosen);
    assert_eq!((wide.matched.len(), wide.lines(1)[2].as_str()), (2, "  … and 1 more"));
    let none = Wish { cel: Some("object.spec.flowers == 'tulips'"), ..wish() };
    let none = past(none.rule(&one.drift.spec).unwrap(), &all, &chosen);
    assert_eq!(none.lines(10)[0], "It would have matched none of 3 other drifts in the ledger.");
    let alone = past(wish().rule(&one.drift.spec).unwrap(), &chosen, &chosen);
    assert_eq!(alone.lines(10), ["There is no other drift in the ledger that it could have matched."]);
}
