use serde_json::{Value, json};

use super::*;
use crate::ledger::fixture::{drift, noon};

fn bed(flowers: &str) -> Value {
    json!({"apiVersion": "garden.io/v1", "kind": "Bed", "metadata": {"name": "south-1", "namespace": "park"},
        "spec": {"flowers": flowers}})
}

/// A drift whose objects the ledger holds.
fn thistles() -> Drift {
    drift(&json!({"spec": {"oldObject": bed("roses"), "newObject": bed("thistles")}})).drift
}

/// What there is to say about the drift, by these rules of one policy.
fn held(drift: &Drift, rules: &[Value], parent: Option<&Value>, namespace: Option<&Labels>) -> DriftStep {
    let rules: Vec<Value> = (rules.iter())
        .map(|more| {
            let mut rule =
                json!({"apiVersion": "garden.io/v1", "kind": "Bed", "subjects": [{"kind": "User", "name": "*"}]});
            json_patch::merge(&mut rule, more);
            rule
        })
        .collect();
    let policy = json!({"apiVersion": API_VERSION, "kind": "ClusterApprovalPolicy", "metadata": {"name": "beds"},
        "spec": {"rules": rules}});
    let mut all = Rules::default();
    all.take(PolicyKind::ClusterApprovalPolicy, serde_json::from_value(policy).unwrap());
    all.labels.extend(namespace.map(|labels| (drift.spec.child.namespace.clone(), labels.clone())));
    all.hold(drift, parent, noon())
}

#[test]
fn each_rule_about_such_changes_says_whether_it_matches() {
    let rules = [
        json!({"kind": "Pond"}),
        json!({"action": "deny", "match": {"fields": ["spec.stones"]}}),
        json!({"dryRun": true, "action": "deny", "reason": "on trial"}),
        json!({"match": {"cel": "object.spec.flowers == 'thistles'"}, "reason": "thistles are fine"}),
        json!({"match": {"cel": "parent.spec.open == true"}}),
        json!({"match": {"cel": "namespaceObject.metadata.labels['env'] == 'dev'"}}),
    ];
    let step = held(&thistles(), &rules, None, None);
    assert_eq!(step.finding, "ClusterApprovalPolicy/beds rules[3] (thistles are fine) lets it pass");
    let [fields, tried, fine, parent, namespace] = step.evidence.as_slice() else { panic!("{step:?}") };
    assert_eq!(fields, "ClusterApprovalPolicy/beds rules[1] does not match: is for changes of spec.stones");
    assert_eq!(tried, "ClusterApprovalPolicy/beds rules[2] (on trial) matches, and would deny it (dryRun)");
    assert_eq!(fine, "ClusterApprovalPolicy/beds rules[3] (thistles are fine) matches, and lets it pass");
    assert!(parent.contains("rules[4] does not match: match.cel cannot be told"), "{parent}");
    assert!(namespace.contains("rules[5] does not match: match.cel cannot be told"), "{namespace}");

    let labels = Labels::from([("env".to_owned(), "dev".to_owned())]);
    let garden = json!({"apiVersion": "garden.io/v1", "kind": "Garden", "spec": {"open": true}});
    let step = held(&thistles(), &rules, Some(&garden), Some(&labels));
    assert!(step.evidence[3].ends_with("rules[4] matches, and lets it pass"), "{step:?}");
    assert!(step.evidence[4].ends_with("rules[5] matches, and lets it pass"), "{step:?}");
}

#[test]
fn a_rule_that_denies_is_named_before_those_that_allow() {
    let step = held(
        &thistles(),
        &[json!({"name": "south-*"}), json!({"action": "deny", "reason": "never"})],
        None,
        None,
    );
    assert_eq!(step.finding, "ClusterApprovalPolicy/beds rules[1] (never) denies it");
    let nothing = held(&thistles(), &[json!({"match": {"regexp": "no"}})], None, None);
    assert_eq!(nothing.finding, "no rule decides");
    let others = held(&thistles(), &[json!({"kind": "Pond"})], None, None);
    assert_eq!((others.finding.as_str(), others.evidence.len()), ("no rule is about such a change", 0));
}

#[test]
fn what_cannot_be_told_is_said() {
    let none = Rules::default().hold(&thistles(), None, noon());
    assert_eq!((none.finding.as_str(), none.evidence.len()), ("there are no rules", 0));
    let unread = Rules { forbidden: vec!["a".to_owned(), "b".to_owned()], ..Rules::default() };
    let unread = unread.hold(&thistles(), None, noon());
    let line = "cannot be told: you may not list a and b: ask for the verb \"list\" on them, of kausality.io";
    assert_eq!((unread.finding.as_str(), unread.evidence.len()), (line, 0));
    let bare = held(&drift(&json!({})).drift, &[json!({})], None, None);
    assert_eq!(bare.finding, "cannot be told: the ledger does not hold the objects of this drift");
    let invalid =
        held(&thistles(), &[json!({"match": {"cel": "object.("}}), json!({"action": "deny"})], None, None);
    assert_eq!(invalid.finding, "ClusterApprovalPolicy/beds rules[1] denies it");
    let note = invalid.evidence.last().unwrap();
    assert_eq!(note, "ClusterApprovalPolicy/beds is not valid: only those of its rules hold that deny");
    let many = held(&thistles(), &vec![json!({}); SHOWN + 3], None, None);
    assert_eq!(
        (many.evidence.len(), many.evidence.last().unwrap().as_str()),
        (SHOWN + 1, "… and 3 more rules")
    );
}

#[test]
fn of_a_scale_rules_are_about_the_object_behind_it() {
    let scale = |replicas: u8| {
        json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "south-1", "namespace": "park"},
            "spec": {"replicas": replicas}})
    };
    let drift = drift(&json!({"spec": {"oldObject": scale(1), "newObject": scale(2)}})).drift;
    let step = held(&drift, &[json!({"match": {"fields": ["spec.replicas"]}})], None, None);
    assert_eq!(step.finding, "ClusterApprovalPolicy/beds rules[0] lets it pass");
}
