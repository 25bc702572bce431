//! Cluster API with providers that we play: clusters live their lives, and the audit log says what Kausality made of each
//! change.
//!
//! One user runs all core controllers, children are made before their parents, and a status that says done may be followed
//! by one that does not. None of that may look like drift, hide it, or take the person out of a trace.

mod kinds;
mod pool;
mod world;

use kausality_testbed::{eventually, peer_or_skip};
use kube::api::DeleteParams;
use serde_json::{Value, json};

use crate::agreement;
use crate::check::summary;
use crate::log::{Change, Log, Mark};
use crate::stage::{PATIENCE, say};
use kinds::{class, classed_cluster, classes, cluster_with_pool, health_check, machine_sets, machines};
use pool::{Pool, becomes, change, condition, create, template};
use world::World;

/// What a MachineSet makes for one more Machine.
const MADE: [(&str, &str); 3] =
    [("patch", "kubeadmconfigs"), ("patch", "playedmachines"), ("patch", "machines")];

const DRAIN: &str = "/spec/deletion/nodeDrainTimeoutSeconds";

#[tokio::test(flavor = "multi_thread")]
async fn a_pool_lives_its_life() {
    let Some(world) = world("log").await else { return };
    let mut log = world.log();
    let mut pool = lives(&world, &mut log).await;

    // Nobody asked for what happens to a Machine that breaks: a curated policy is for that.
    let broken = pool.machines().await[0].clone();
    create(&world, "alice", vec![health_check("one")]).await;
    log.quiet().await;
    let begun = log.mark();
    world.break_node(broken["status"]["nodeRef"]["name"].as_str().unwrap());
    is_replaced(&pool, &broken).await;
    let replaced = by_controllers(&mut log, begun).await;
    drifts("a broken Machine", &replaced, &[&[("delete", "machines")], &MADE[..]].concat());
    world.api("alice", &kinds::health_checks()).delete("one", &DeleteParams::default()).await.unwrap();
    log.quiet().await;

    // Nor for another Machine in place of one that a person deletes.
    let begun = log.mark();
    let deleted = pool.machines().await[0].clone();
    let name = deleted["metadata"]["name"].as_str().unwrap();
    world.api("bob", &machines()).delete(name, &DeleteParams::default()).await.unwrap();
    is_replaced(&pool, &deleted).await;
    drifts("a deleted Machine", &by_controllers(&mut log, begun).await, &MADE);

    // Hand edits are undone.
    let set = pool.machine_set().await;
    let set = set["metadata"]["name"].as_str().unwrap();
    let edit = json!({ "deletion": { "nodeDrainTimeoutSeconds": 77 } });
    let begun = log.mark();
    change(&world, "carol", &machine_sets(), set, json!({ "spec": { "template": { "spec": edit } } })).await;
    becomes(&world, &machine_sets(), set, |set| set["spec"]["template"].pointer(DRAIN) == Some(&json!(60)))
        .await;
    let undone = by_controllers(&mut log, begun).await;
    assert!(undone.iter().any(|change| change.is_drift() && change.resource == "machinesets"), "{undone:#?}");

    let begun = log.mark();
    let machine = pool.machines().await[0]["metadata"]["name"].as_str().unwrap().to_owned();
    change(&world, "carol", &machines(), &machine, json!({ "spec": edit })).await;
    becomes(&world, &machines(), &machine, |machine| machine.pointer(DRAIN) == Some(&json!(60))).await;
    drifts("a Machine edited by hand", &by_controllers(&mut log, begun).await, &[("patch", "machines")]);

    // And then a person's change is one again.
    let begun = log.mark();
    pool.scale("alice", 2).await;
    pool.is_done(|_| true).await;
    asked_for("scaled after that", &by_controllers(&mut log, begun).await, "alice");

    let begun = log.mark();
    pool.delete("alice").await;
    let deleted = by_controllers(&mut log, begun).await;
    say(format_args!("deleted: {}", summary(&deleted)));
    assert!(deleted.iter().all(|change| !change.is_drift()), "{deleted:#?}");
    agreement::check(&world.plane, &[]);
    world.runs();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_class_makes_a_pool() {
    let Some(world) = world("log").await else { return };
    let mut log = world.log();
    let mut pool = is_made_from_a_class(&world, &mut log).await;

    let begun = log.mark();
    pool.patch("bob", json!({ "spec": { "replicas": 4 } })).await;
    pool.is_done(|_| true).await;
    let undone = by_controllers(&mut log, begun).await;
    let reverted = |change: &&Change| change.is_drift() && change.resource == "machinedeployments";
    assert_eq!(undone.iter().filter(reverted).count(), 1, "{undone:#?}");

    // Nobody changed the Cluster: what a class makes of it is drift.
    let begun = log.mark();
    let before = pool.object().await;
    create(&world, "platform", vec![kinds::machine_template("next", 1)]).await;
    let mut workers =
        json!(world.api("platform", &classes()).get("class").await.unwrap())["spec"]["workers"].take();
    workers["machineDeployments"][0]["infrastructure"]["templateRef"]["name"] = json!("next");
    change(&world, "platform", &classes(), "class", json!({ "spec": { "workers": workers } })).await;
    pool.is_done(|pool| template(pool) != template(&before)).await;
    let of_class = [
        ("patch", "playedmachinetemplates"),
        ("patch", "machinedeployments"),
        ("delete", "playedmachinetemplates"),
    ];
    drifts("class edited", &by_controllers(&mut log, begun).await, &of_class);

    let begun = log.mark();
    pool.scale_topology("carol", 2).await;
    pool.is_done(|_| true).await;
    asked_for("scaled after that", &by_controllers(&mut log, begun).await, "carol");
    agreement::check(&world.plane, &[]);
    world.runs();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_people_ask_for_is_done() {
    let Some(world) = world("enforce").await else { return };
    let mut log = world.log();
    let begun = log.mark();
    lives(&world, &mut log).await;
    is_made_from_a_class(&world, &mut log).await;
    let changes = log.changes(begun);
    let denied: Vec<_> = changes.iter().filter(|change| change.denied).collect();
    assert!(denied.is_empty(), "{denied:#?}");
    agreement::check(&world.plane, &["--mode", "enforce"]);
    world.runs();
}

async fn world(mode: &str) -> Option<World> {
    let peer = peer_or_skip("cluster-api").await.unwrap()?;
    World::start(&peer, mode).await
}

/// A person creates a Cluster, and others scale it, roll it out, and change its Machines in place.
async fn lives<'a>(world: &'a World, log: &mut Log) -> Pool<'a> {
    let begun = log.mark();
    let mut pool = Pool::create(world, "alice", "one", cluster_with_pool("one", 3), 3).await;
    pool.is_done(|pool| condition(pool, "Available") == "True").await;
    asked_for("created", &by_controllers(log, begun).await, "alice");

    let begun = log.mark();
    pool.scale("bob", 4).await;
    pool.is_done(|_| true).await;
    asked_for("scaled up", &by_controllers(log, begun).await, "bob");

    let begun = log.mark();
    pool.scale("carol", 3).await;
    pool.is_done(|_| true).await;
    asked_for("scaled down", &by_controllers(log, begun).await, "carol");

    let begun = log.mark();
    pool.roll_out("bob", "two", 2).await;
    pool.is_done(|_| true).await;
    asked_for("rolled out", &by_controllers(log, begun).await, "bob");

    let begun = log.mark();
    let drain = json!({ "deletion": { "nodeDrainTimeoutSeconds": 60 } });
    pool.patch("carol", json!({ "spec": { "template": { "spec": drain } } })).await;
    for machine in pool.machines().await {
        let name = machine["metadata"]["name"].as_str().unwrap();
        becomes(world, &machines(), name, |machine| machine.pointer(DRAIN) == Some(&json!(60))).await;
    }
    asked_for("changed in place", &by_controllers(log, begun).await, "carol");
    pool
}

/// A person creates a Cluster of a class, and others change its topology.
async fn is_made_from_a_class<'a>(world: &'a World, log: &mut Log) -> Pool<'a> {
    create(world, "platform", class("class")).await;
    becomes(world, &classes(), "class", |class| condition(class, "VariablesReady") == "True").await;
    log.quiet().await;

    let begun = log.mark();
    let cluster = vec![classed_cluster("two", "class", 2)];
    let mut pool = Pool::create(world, "alice", "two", cluster, 2).await;
    pool.is_done(|pool| condition(pool, "Available") == "True").await;
    asked_for("created from a class", &by_controllers(log, begun).await, "alice");

    let begun = log.mark();
    pool.scale_topology("bob", 3).await;
    pool.is_done(|_| true).await;
    asked_for("topology scaled", &by_controllers(log, begun).await, "bob");

    let begun = log.mark();
    pool.patch_topology("carol", "version", json!("v1.35.1")).await;
    pool.is_done(|pool| pool["spec"]["template"]["spec"]["version"] == "v1.35.1").await;
    asked_for("upgraded", &by_controllers(log, begun).await, "carol");
    pool
}

/// Waits until another Machine is there in place of one.
async fn is_replaced(pool: &Pool<'_>, machine: &Value) {
    eventually(PATIENCE, "another Machine", async || {
        let machines = pool.machines().await;
        let gone = machines.iter().all(|other| other["metadata"]["uid"] != machine["metadata"]["uid"]);
        gone.then_some(())
    })
    .await
    .unwrap();
    pool.is_done(|_| true).await;
}

/// Waits until all is done, and returns what controllers changed since a mark.
async fn by_controllers(log: &mut Log, begun: Mark) -> Vec<Change> {
    log.quiet().await;
    let mut changes = log.changes(begun);
    changes.retain(|change| change.user.starts_with("system:"));
    changes
}

/// Kausality saw all changes, found none to be drift, and knows the person who asked for them.
#[track_caller]
fn asked_for(what: &str, changes: &[Change], person: &str) {
    say(format_args!("{what}: {}", summary(changes)));
    assert!(!changes.is_empty(), "{what}");
    let is_of = |change: &&Change| match change.cause.as_deref() {
        // What goes with an object has the trace of that object, not of its deletion.
        Some("Cleanup") => true,
        Some("Expected" | "Initialization") => change.origin.as_ref().is_some_and(|(_, user)| user == person),
        _ => false,
    };
    let others: Vec<_> = changes.iter().filter(|change| !is_of(change)).collect();
    assert!(others.is_empty(), "{what}: {} of {} changes: {others:#?}", others.len(), changes.len());
}

/// Kausality found these changes to be drift, and no others. A deletion shows no version, and may stand anywhere.
#[track_caller]
fn drifts(what: &str, changes: &[Change], expected: &[(&str, &str)]) {
    say(format_args!("{what}: {}", summary(changes)));
    let found = changes.iter().filter(|change| change.is_drift());
    let mut found: Vec<_> = found.map(|change| (&*change.verb, &*change.resource)).collect();
    let mut expected = expected.to_vec();
    found.sort_unstable();
    expected.sort_unstable();
    assert_eq!(found, expected, "{what}: {changes:#?}");
}
