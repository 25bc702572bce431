//! prometheus-operator: a Prometheus and an Alertmanager live their lives, and the audit log says what Kausality made of
//! each change.
//!
//! The operator acts on more than the two: monitors, rules and Secrets are inputs. It copies all annotations of a
//! Prometheus to its StatefulSet, and updates that whenever any of them changes.

mod controller;
mod story;
mod world;

use std::fs::File;
use std::io::{BufRead as _, BufReader, BufWriter, Write as _};
use std::time::{Duration, Instant};

use kausality_testbed::{eventually, peer_or_skip};
use serde_json::Value;

use crate::agreement;
use crate::check::{none_is_drift, summary};
use crate::log::{Change, Writes};
use crate::stage::{PATIENCE, say};
use story::{Step, Story};
use world::{Kausality, World};

/// How long Prometheus and Alertmanager are left alone.
const IDLE: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread")]
async fn what_people_ask_for_is_no_drift() {
    let Some(world) = world(Kausality::Logs).await else { return };
    let mut story = Story::new(&world);
    story.create().await;
    story.edit().await;
    story.change_inputs().await;
    story.change_credentials().await;
    story.delete().await;
    story.steps.iter().for_each(is_asked_for);
    agreement::check(&world.plane, &[]);
    world.runs();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_asked_for_is_drift() {
    let Some(world) = world(Kausality::Logs).await else { return };
    let mut story = Story::new(&world);
    story.create().await;
    story.edit().await;
    let asked = story.steps.len();
    story.edit_children().await;
    story.upgrade_operator().await;
    for step in &story.steps[asked..] {
        is_drift(step);
    }
    let found = story.steps.len();
    story.change_inputs().await;
    story.steps[..asked].iter().chain(&story.steps[found..]).for_each(is_asked_for);
    agreement::check(&world.plane, &[]);
    world.runs();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_people_ask_for_is_done_when_enforced() {
    let Some(world) = world(Kausality::Enforces).await else { return };
    let mut story = Story::new(&world);
    story.create().await;
    story.edit().await;
    story.change_inputs().await;
    story.change_credentials().await;
    story.delete().await;
    for step in &story.steps {
        let denied = step.changes.iter().filter(|change| change.denied && !is_too_late(change));
        let denied: Vec<_> = denied.collect();
        assert!(denied.is_empty(), "{}: {denied:#?}", step.what);
        is_asked_for(step);
    }
    agreement::check(&world.plane, &["--mode", "enforce"]);
    world.runs();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_prometheus_is_left_alone() {
    let Some(without) = idle(Kausality::Absent).await else { return };
    let Some(with) = idle(Kausality::Logs).await else { return };
    for (user, count) in with.users() {
        assert!(count <= without.of(user), "{user}: with Kausality {with}; without {without}");
    }
}

async fn idle(kausality: Kausality) -> Option<Writes> {
    let world = world(kausality).await?;
    let mut story = Story::new(&world);
    story.create().await;
    say(format_args!("created, Kausality {kausality:?}: {}", story.log.take_writes()));
    // The time is what is measured here: how much is written in it.
    let begun = Instant::now();
    eventually(PATIENCE, "the end of the idle time", async || (begun.elapsed() >= IDLE).then_some(()))
        .await
        .unwrap();
    let idle = story.log.take_writes();
    say(format_args!("idle for {IDLE:?}, Kausality {kausality:?}: {idle}"));
    world.runs();
    Some(idle)
}

/// Records the whole story without Kausality, for `fixtures/controllers`.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "writes the file that KAUSALITY_RECORDING names"]
async fn record() {
    let Some(world) = world(Kausality::Absent).await else { return };
    let mut story = Story::new(&world);
    story.create().await;
    story.edit().await;
    story.change_inputs().await;
    story.change_credentials().await;
    story.edit_children().await;
    story.upgrade_operator().await;
    story.delete().await;
    let log = BufReader::new(File::open(world.plane.folder().join("audit.log")).unwrap());
    let file = std::env::var("KAUSALITY_RECORDING").expect("KAUSALITY_RECORDING names a file");
    let mut recording = BufWriter::new(File::create(file).unwrap());
    for line in log.lines() {
        let line = line.unwrap();
        let event: Value = serde_json::from_str(&line).unwrap();
        let is_write = ["create", "update", "patch", "delete"].iter().any(|verb| event["verb"] == *verb);
        let namespace = &event["objectRef"]["namespace"];
        let is_noise =
            ["events", "leases"].iter().any(|resource| event["objectRef"]["resource"] == *resource);
        if is_write && !is_noise && *namespace == world::NAMESPACE {
            writeln!(recording, "{line}").unwrap();
        }
    }
}

async fn world(kausality: Kausality) -> Option<World> {
    let peer = peer_or_skip("prometheus-operator").await.unwrap()?;
    World::start(&peer, kausality).await
}

/// The operator did something, none of the changes is drift, and those of the operator began with who asked for them.
fn is_asked_for(step: &Step) {
    let Step { what, asked, changes } = step;
    say(format_args!("{what} {asked:?}: {}", summary(changes)));
    let changes: Vec<_> =
        changes.iter().filter(|change| *what != "deleted" || !is_too_late(change)).cloned().collect();
    none_is_drift(&changes);
    let by_operator = changes.iter().filter(|change| change.user == controller::USER);
    let mut origins: Vec<_> = by_operator.map(|change| change.origin.clone()).collect();
    origins.dedup();
    let asked: Vec<_> = asked.iter().map(|(kind, user)| Some((kind.to_string(), user.to_string()))).collect();
    assert!(origins == asked || *what == "deleted" && origins.is_empty(), "{what} {asked:?}: {changes:#?}");
}

/// Whether somebody who has not seen a deletion yet makes a child of what is gone: that has no cause. The garbage collector
/// deletes it.
fn is_too_late(change: &Change) -> bool {
    change.verb == "create" && change.cause.is_none()
}

/// The operator did something, and all of it is drift.
fn is_drift(step: &Step) {
    let by_operator = step.by_operator();
    say(format_args!("{}: {}", step.what, summary(&by_operator)));
    assert!(!by_operator.is_empty(), "{}: {:#?}", step.what, step.changes);
    for change in by_operator {
        assert!(change.is_drift(), "{}: {change:#?}", step.what);
    }
    let others = step.changes.iter().filter(|change| change.user != controller::USER);
    let others: Vec<_> = others.filter(|change| change.is_drift()).collect();
    assert!(others.is_empty(), "{}: {others:#?}", step.what);
}
