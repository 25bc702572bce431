#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use kausality_api::approval::ApprovalMode;
use serde_json::json;

use super::{
    super::{
        fixture::{bed, rule, wish},
        rules::Wish,
    },
    *,
};
use crate::ledger::fixture::{drift, noon};

fn past(rules: &Exceptions, entries: &[Entry], chosen: &[Entry]) -> Past {
    Past::of(rules, entries, chosen, &Known::default(), noon())
}

#[test]
fn the_rule_of_a_drift_is_as_narrow_as_can_be() {
    let one = bed("south-1", "roses", "thistles");
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
    let one = bed("south-1", "roses", "thistles");
    let again = bed("south-1", "roses", "nettles");
    let other = bed("south-2", "roses", "thistles");
    let lost = drift(&json!({"metadata": {"name": "lost"}}));
    // Of this one it can be told without its objects.
    let elsewhere = drift(&json!({"metadata": {"name": "else"}, "spec": {"child": {"name": "south-9"}}}));
    let all = [one.clone(), again, other, lost, elsewhere];
    let chosen = [one.clone()];

    let narrow = past(&rule(&wish(), &one), &all, &chosen);
    assert_eq!(
        narrow.lines(10),
        [
            "It would also have matched 1 of 4 other drifts in the ledger:",
            "  drift/south-1-nettles Bed/south-1 of Garden/south: spec.flowers: \"roses\" → \"thistles\"",
            "Of 1 drift, it cannot be told: the ledger does not hold the objects.",
        ]
    );
    let wide = Wish { any_name: true, ..wish() };
    let wide = past(&rule(&wide, &one), &all, &chosen);
    assert_eq!((wide.matched.len(), wide.lines(1)[2].as_str()), (2, "  … and 1 more"));
    let none = Wish { cel: Some("object.spec.flowers == 'tulips'"), ..wish() };
    let none = past(&rule(&none, &one), &all, &chosen);
    assert_eq!(none.lines(10)[0], "It would have matched none of 4 other drifts in the ledger.");
    let alone = past(&rule(&wish(), &one), &chosen, &chosen);
    assert_eq!(alone.lines(10), ["There is no other drift in the ledger that it could have matched."]);
}

/// Parents and namespaces are not in the ledger: what rules ask of them is told as of now, or not at all.
#[test]
fn what_is_not_known_is_not_taken_for_no() {
    let one = bed("south-1", "roses", "thistles");
    let again = bed("south-1", "roses", "nettles");
    let gone = {
        let mut gone = bed("south-1", "roses", "ivy");
        gone.drift.spec.parent.uid = Some("another".to_owned());
        gone
    };
    let all = [one.clone(), again, gone];
    let known = |flowers: &str, env: &str| {
        let parent =
            json!({"kind": "Garden", "metadata": {"uid": "uid-south"}, "spec": {"flowers": flowers}});
        Known::these(&one.drift.spec, parent, [("env".to_owned(), env.to_owned())].into())
    };
    for (cel, env, matched, unclear) in [
        ("parent.spec.flowers == 'roses'", "dev", 1, 1),
        ("parent.spec.flowers == 'tulips'", "dev", 0, 1),
        ("namespaceObject.metadata.labels['env'] == 'dev'", "dev", 2, 0),
        ("namespaceObject.metadata.labels['env'] == 'dev'", "prod", 0, 0),
        ("request.operation == 'UPDATE'", "dev", 0, 2),
    ] {
        let rule = rule(&Wish { cel: Some(cel), ..wish() }, &one);
        let past = Past::of(&rule, &all, &all[..1], &known("roses", env), noon());
        assert_eq!((past.matched.len(), past.unclear.values().sum()), (matched, unclear), "{cel}: {past:?}");
    }
    let asks =
        rule(&Wish { cel: Some("parent.spec.flowers != namespaceObject.metadata.name"), ..wish() }, &one);
    let nothing = Past::of(&asks, &all, &all[..1], &Known::default(), noon());
    assert_eq!((nothing.matched.len(), nothing.unclear.values().sum()), (0, 2), "{nothing:?}");
    let once = rule(&Wish { mode: ApprovalMode::Once, ..wish() }, &one);
    let nothing = Past::of(&once, &all, &all[..1], &Known::default(), noon());
    assert_eq!((nothing.matched.len(), nothing.unclear.values().sum()), (0, 2), "{nothing:?}");
}

#[test]
fn secrets_are_not_judged_by_the_digests_of_their_values() {
    let secret = |value: &str| {
        json!({"apiVersion": "v1", "kind": "Secret", "data": {"key": value},
        "metadata": {"name": "s", "namespace": "park"}})
    };
    let one = drift(&json!({"spec": {"child": {"apiVersion": "v1", "kind": "Secret", "name": "s"},
        "changes": [{"path": "data.key"}], "oldObject": secret("digest-1"), "newObject": secret("digest-2")}}));
    let mut again = one.clone();
    again.drift.metadata.name = "again".to_owned();
    let all = [one.clone(), again];
    let past = |wish: &Wish<'_>| past(&rule(wish, &one), &all, &all[..1]);
    assert_eq!(past(&wish()).matched.len(), 1, "fields can be told");
    let values = past(&Wish { cel: Some("object.data.key != ''"), ..wish() });
    assert_eq!((values.matched.len(), values.unclear.len()), (0, 1));
}

#[test]
fn what_was_scaled_is_the_object_and_not_its_scale() {
    let scale = |replicas: u8| {
        json!({"apiVersion": "autoscaling/v1", "kind": "Scale",
        "metadata": {"name": "south-1", "namespace": "park"}, "spec": {"flowers": replicas}})
    };
    let one = drift(&json!({"spec": {"oldObject": scale(1), "newObject": scale(2)}}));
    let mut again = one.clone();
    again.drift.metadata.name = "again".to_owned();
    let all = [one.clone(), again];
    assert_eq!(past(&rule(&wish(), &one), &all, &all[..1]).matched.len(), 1);
}
