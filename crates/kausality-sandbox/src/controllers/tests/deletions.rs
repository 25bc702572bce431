//! The garbage collector and the namespace controller.

use serde_json::{Value, json};

use super::{
    super::{DEPLOYMENTS, Key, NAMESPACES, PODS, Propagation, REPLICA_SETS, Resource, object},
    World,
    api::{CLUSTERS, CONFIG_MAPS, FLEETS},
    deployment, for_seeds,
};

fn deployed(world: &mut World) -> Key {
    world.create(&DEPLOYMENTS, deployment(2));
    world.settle();
    DEPLOYMENTS.key("default", "web")
}

fn assert_empty(world: &World) {
    for resource in [&DEPLOYMENTS, &REPLICA_SETS, &PODS] {
        assert!(world.names(resource).is_empty(), "{:?}", world.names(resource));
    }
}

/// Who deleted objects of a resource, and whether the last object of another was gone by then.
fn deleters<'a>(world: &'a World, resource: &'a Resource) -> impl Iterator<Item = &'a str> {
    let deleted = move |it: &&super::api::Tried| {
        it.verb == "DELETE" && it.resource == *resource && it.refusal.is_none()
    };
    world.api.log.iter().filter(deleted).map(|it| it.user.as_str())
}

#[test]
fn in_the_background_dependents_go_after_their_owner() {
    for_seeds(200, |world| {
        let web = deployed(world);
        world.delete(&web, Propagation::Background);
        assert!(world.api.get(&web).is_none(), "the owner goes at once");
        world.settle();
        assert_empty(world);
        assert!(deleters(world, &REPLICA_SETS).all(|user| user == "generic-garbage-collector"));
        assert!(deleters(world, &PODS).all(|user| ["generic-garbage-collector", "sandbox"].contains(&user)));
    });
}

#[test]
fn in_the_foreground_dependents_go_before_their_owner() {
    for_seeds(100, |world| {
        world.lag = false;
        let web = deployed(world);
        world.delete(&web, Propagation::Foreground);
        world.watch(|api| {
            let has = |resource| api.list(resource).next().is_some();
            assert!(!has(&REPLICA_SETS) || has(&DEPLOYMENTS), "a ReplicaSet without its Deployment");
            assert!(!has(&PODS) || has(&REPLICA_SETS), "a Pod without its ReplicaSet");
        });
        world.settle();
        assert_empty(world);
    });
}

#[test]
fn in_the_foreground_nothing_stays_with_any_cache() {
    for_seeds(100, |world| {
        let web = deployed(world);
        world.delete(&web, Propagation::Foreground);
        world.settle();
        assert_empty(world);
    });
}

#[test]
fn orphans_stay_without_their_owner() {
    for_seeds(200, |world| {
        let web = deployed(world);
        world.delete(&web, Propagation::Orphan);
        world.settle();
        assert!(world.api.get(&web).is_none());
        let sets: Vec<_> = world.api.list(&REPLICA_SETS).collect();
        assert_eq!(sets.len(), 1);
        assert!(object::owners(sets[0]).next().is_none());
        assert_eq!(world.names(&PODS).len(), 2);
    });
}

fn config(name: &str, owners: &[&Value]) -> Value {
    let owners: Vec<_> = owners
        .iter()
        .map(|owner| {
            json!({
                "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": object::name(owner),
                "uid": object::uid(owner)
            })
        })
        .collect();
    let metadata = json!({ "name": name, "namespace": "default", "ownerReferences": owners });
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {} })
}

fn custom(resource: &Resource, name: &str) -> Value {
    let mut metadata = json!({ "name": name });
    if resource.namespaced {
        metadata["namespace"] = json!("default");
    }
    json!({ "apiVersion": "example.com/v1", "kind": resource.kind, "metadata": metadata, "spec": {} })
}

#[test]
fn what_has_several_owners_stays_until_the_last_is_gone() {
    for_seeds(100, |world| {
        let one = world.create(&CLUSTERS, custom(&CLUSTERS, "one"));
        let two = world.create(&FLEETS, custom(&FLEETS, "two"));
        world.create(&CONFIG_MAPS, config("shared", &[&one, &two]));
        world.settle();
        world.delete(&CLUSTERS.key("default", "one"), Propagation::Background);
        world.settle();
        let shared = world.get(&CONFIG_MAPS, "shared");
        let left: Vec<_> = object::owners(&shared).map(|owner| owner.name()).collect();
        assert_eq!(left, ["two"], "the reference to the other is taken off");
        world.delete(&FLEETS.key("", "two"), Propagation::Background);
        world.settle();
        assert!(world.names(&CONFIG_MAPS).is_empty());
    });
}

#[test]
fn what_names_an_owner_that_never_was_goes() {
    for_seeds(20, |world| {
        let one = world.create(&CLUSTERS, custom(&CLUSTERS, "one"));
        let mut ghost = (*one).clone();
        ghost["metadata"]["uid"] = json!("another");
        world.create(&CONFIG_MAPS, config("ghostly", &[&ghost]));
        world.create(&CONFIG_MAPS, config("solid", &[&one]));
        world.settle();
        assert_eq!(world.names(&CONFIG_MAPS), ["solid"]);
    });
}

#[test]
fn an_owner_of_an_unknown_kind_is_given_the_benefit_of_the_doubt() {
    let mut world = World::new(1);
    let ghost =
        json!({ "apiVersion": "none.io/v1", "kind": "None", "metadata": { "name": "x", "uid": "x" } });
    world.create(&CONFIG_MAPS, config("kept", &[&ghost]));
    world.settle_within(100);
    assert_eq!(world.names(&CONFIG_MAPS), ["kept"]);
}

#[test]
fn a_namespace_goes_with_all_that_is_in_it() {
    for_seeds(100, |world| {
        deployed(world);
        world.create(&FLEETS, custom(&FLEETS, "outside"));
        let cluster = world.create(&CLUSTERS, custom(&CLUSTERS, "inside"));
        world.create(&CONFIG_MAPS, config("inside", &[&cluster]));
        let home = NAMESPACES.key("", "default");
        world.delete(&home, Propagation::Background);
        world.watch(move |api| {
            let inside = |resource| api.list(resource).any(|it| object::namespace(it) == "default");
            let any = [&DEPLOYMENTS, &REPLICA_SETS, &PODS, &CLUSTERS, &CONFIG_MAPS].into_iter().any(inside);
            assert!(!any || api.get(&home).is_some(), "an object without its namespace");
        });
        world.settle();
        assert_empty(world);
        assert!(world.names(&NAMESPACES).is_empty());
        assert_eq!(world.names(&FLEETS), ["outside"]);
        assert!(deleters(world, &DEPLOYMENTS).all(|user| user == "namespace-controller"));
    });
}
