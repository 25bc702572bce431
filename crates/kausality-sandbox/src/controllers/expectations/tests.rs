use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::controllers::{PODS, REPLICA_SETS};

fn pod(name: &str, deleting: bool) -> Arc<Value> {
    let owners = json!([{ "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u", "controller": true }]);
    let mut metadata =
        json!({ "name": name, "namespace": "default", "uid": name, "ownerReferences": owners });
    if deleting {
        metadata["deletionTimestamp"] = json!("2026-11-15T08:00:00Z");
    }
    Arc::new(json!({ "metadata": metadata }))
}

/// Expectations of one creation and one deletion, that of the Pod `a`.
fn open() -> (Expectations, Key) {
    let (mut expectations, key) = (Expectations::default(), REPLICA_SETS.key("default", "web"));
    let writes = [Write::create(&PODS, json!({})), Write::delete(&PODS, &pod("a", false), None)];
    expectations.expect(&key, &writes, Time(0));
    (expectations, key)
}

fn observe(
    expectations: &mut Expectations,
    before: Option<Arc<Value>>,
    after: Option<Arc<Value>>,
) -> Vec<Key> {
    let change = Change { resource: PODS.clone(), before, after };
    expectations.observe(&REPLICA_SETS, &Cache::default(), &change)
}

#[test]
fn what_was_asked_for_is_waited_for() {
    let (mut expectations, key) = open();
    assert!(observe(&mut expectations, None, Some(pod("b", false))).contains(&key));
    assert!(!expectations.satisfied(&key, Time(1)), "the deletion is open");
    observe(&mut expectations, Some(pod("c", false)), Some(pod("c", true)));
    assert!(!expectations.satisfied(&key, Time(1)), "another's deletion does not count");
    observe(&mut expectations, Some(pod("a", false)), Some(pod("a", true)));
    assert!(expectations.satisfied(&key, Time(1)), "a Pod that is going counts as gone");
}

#[test]
fn what_did_not_happen_is_not_waited_for() {
    let (mut expectations, key) = open();
    let undone = [Write::create(&PODS, json!({})), Write::delete(&PODS, &pod("a", false), None)];
    expectations.undone(&key, &undone);
    assert!(expectations.satisfied(&key, Time(1)));
}

#[test]
fn nothing_is_waited_for_without_end() {
    let (expectations, key) = open();
    assert!(!expectations.satisfied(&key, Time(TIMEOUT)));
    assert!(expectations.satisfied(&key, Time(TIMEOUT + 1)));
}
