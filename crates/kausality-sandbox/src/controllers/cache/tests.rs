use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::controllers::{PODS, REPLICA_SETS};

fn pod(name: &str, uid: &str, version: u64, owner: &str) -> Arc<Value> {
    let owners = json!([{ "kind": "ReplicaSet", "apiVersion": "apps/v1", "uid": owner, "controller": true }]);
    Arc::new(json!({
        "metadata": {
            "name": name, "namespace": "default", "uid": uid, "resourceVersion": version.to_string(),
            "ownerReferences": owners
        }
    }))
}

fn owned(cache: &Cache, owner: &str) -> Vec<String> {
    cache.owned(&PODS, owner).map(|pod| object::name(pod).to_owned()).collect()
}

#[test]
fn objects_are_found_by_place_uid_and_owner() {
    let mut cache = Cache::default();
    for (name, uid, owner) in [("a", "1", "x"), ("b", "2", "x"), ("c", "3", "y")] {
        assert_eq!(cache.apply(&PODS, Event::Applied(pod(name, uid, 1, owner))).len(), 1);
    }
    assert_eq!(owned(&cache, "x"), ["a", "b"]);
    assert_eq!(cache.find("3"), Some(&PODS.key("default", "c")));
    cache.apply(&PODS, Event::Applied(pod("a", "1", 2, "y")));
    cache.apply(&PODS, Event::Deleted(pod("b", "2", 2, "x")));
    assert_eq!((owned(&cache, "x"), owned(&cache, "y")), (vec![], vec!["a".to_owned(), "c".to_owned()]));
    assert!(cache.get(&PODS, "default", "b").is_none() && cache.find("2").is_none());
    assert!(cache.owned(&REPLICA_SETS, "x").next().is_none());
}

#[test]
fn an_event_that_tells_nothing_changes_nothing() {
    let mut cache = Cache::default();
    cache.apply(&PODS, Event::Applied(pod("a", "1", 1, "x")));
    assert!(cache.apply(&PODS, Event::Applied(pod("a", "1", 1, "x"))).is_empty());
    cache.apply(&PODS, Event::Applied(pod("a", "1", 10, "x")));
    assert!(cache.apply(&PODS, Event::Applied(pod("a", "1", 9, "y"))).is_empty());
    assert!(cache.apply(&PODS, Event::Deleted(pod("a", "other", 2, "x"))).is_empty());
    assert!(cache.apply(&PODS, Event::Deleted(pod("b", "2", 2, "x"))).is_empty());
    assert_eq!(owned(&cache, "x"), ["a"]);
}

#[test]
fn another_object_of_the_same_name_is_a_removal_and_an_addition() {
    let mut cache = Cache::default();
    cache.apply(&PODS, Event::Applied(pod("a", "1", 1, "x")));
    let changes = cache.apply(&PODS, Event::Applied(pod("a", "2", 5, "x")));
    let shape: Vec<_> = changes.iter().map(|it| (it.before.is_some(), it.after.is_some())).collect();
    assert_eq!(shape, [(true, false), (false, true)]);
    assert_eq!(cache.find("1"), None);
}

#[test]
fn a_list_tells_what_was_missed() {
    let mut cache = Cache::default();
    for (name, uid) in [("a", "1"), ("b", "2"), ("c", "3")] {
        cache.apply(&PODS, Event::Applied(pod(name, uid, 1, "x")));
    }
    let list = vec![pod("a", "1", 1, "x"), pod("b", "9", 7, "x"), pod("d", "4", 8, "x")];
    let changes = cache.replace(&PODS, list);
    let shape: Vec<_> = changes
        .iter()
        .map(|it| (object::name(it.object()), it.before.is_some(), it.after.is_some()))
        .collect();
    assert_eq!(shape, [("c", true, false), ("b", true, false), ("b", false, true), ("d", false, true)]);
    assert_eq!(cache.all().len(), 3);
}

#[test]
fn of_a_resource_that_is_forgotten_nothing_is_left() {
    let mut cache = Cache::default();
    cache.register(&REPLICA_SETS);
    cache.apply(&PODS, Event::Applied(pod("a", "1", 1, "x")));
    cache.forget(&PODS);
    assert_eq!(cache.resources().collect::<Vec<_>>(), [&REPLICA_SETS]);
    assert!(cache.find("1").is_none() && cache.dependents("x").next().is_none());
    assert!(cache.owned(&PODS, "x").next().is_none() && cache.list(&PODS).next().is_none());
}
