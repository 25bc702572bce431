#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use kausality_api::annotation::Suffix;
use serde_json::{Value, json};

use super::*;
use crate::{exceptions::compile, review::Object};

/// The rules of a policy with one rule of this mode for each of these kinds.
fn rules(mode: &str, kinds: &[&str]) -> Exceptions {
    let rule = |kind: &&str| json!({"apiVersion": "v1", "kind": kind, "mode": mode, "subjects": [{"kind": "User", "name": "a"}]});
    let policy = json!({"apiVersion": "kausality.io/v1alpha1", "kind": "ClusterApprovalPolicy", "metadata": {"name": "p"},
        "spec": {"rules": kinds.iter().map(rule).collect::<Vec<Value>>()}});
    Exceptions::new([&compile(&serde_json::from_value(policy).unwrap()).unwrap()])
}

fn parent(record: Option<&str>) -> Summary {
    let annotations = record.map(|record| json!({Suffix::of("", "Top", "", "top").key(EXCEPTED): record}));
    let object = json!({"apiVersion": "v1", "kind": "Top", "metadata": {"name": "top", "generation": 3, "annotations": annotations}});
    let text = object.to_string();
    Summary::of(&Object::parse(&text).unwrap())
}

fn child(namespace: &str, name: &str) -> ObjectId {
    let (api_version, kind) = ("v1".to_owned(), "Pod".to_owned());
    ObjectId { api_version, kind, namespace: namespace.to_owned(), name: name.to_owned() }
}

fn is_over(all: &Exceptions, id: &ObjectId, record: &str) -> bool {
    over(&all.rules[0], all, id, &parent(Some(record))).is_some()
}

#[test]
fn once_is_once_for_each_child_in_each_namespace() {
    let all = rules("once", &["Pod"]);
    let record = used(&all.rules[0].ruled(), &all, &child("a", "x"), &parent(None)).unwrap();
    assert!(is_over(&all, &child("a", "x"), &record));
    assert!(!is_over(&all, &child("b", "x"), &record));
    assert!(!is_over(&all, &child("a", "y"), &record));
}

#[test]
fn a_full_record_lets_go_of_rules_that_are_no_more() {
    let (before, now) = (rules("once", &["Pod", "Service"]), rules("once", &["Pod"]));
    let mut record: Option<String> = None;
    for number in 0..MAX_USES {
        let rule = before.rules[number % 2].ruled();
        record = used(&rule, &before, &child("a", &number.to_string()), &parent(record.as_deref()));
    }
    let record = record.unwrap();
    let new = child("a", "new");
    assert!(is_over(&before, &new, &record), "no more fit");
    assert!(!is_over(&now, &new, &record), "half of them are of a rule that is gone");
    let after = used(&now.rules[0].ruled(), &now, &new, &parent(Some(&record))).unwrap();
    let uses: Vec<Use> = serde_json::from_str(&after).unwrap();
    assert_eq!(uses.len(), MAX_USES / 2 + 1);
    assert!(is_over(&now, &child("a", "0"), &after) && is_over(&now, &new, &after));
    let few = used(&before.rules[1].ruled(), &before, &child("a", "x"), &parent(None)).unwrap();
    let kept = used(&now.rules[0].ruled(), &now, &new, &parent(Some(&few))).unwrap();
    let uses: Vec<Use> = serde_json::from_str(&kept).unwrap();
    assert_eq!(uses.len(), 2, "a rule that is not known here may be new");
}
