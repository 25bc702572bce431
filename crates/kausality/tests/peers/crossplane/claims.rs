//! A claim and the composite that Crossplane makes for it, which has no owner reference.

use super::check::{all_begin_with, settled};
use super::kinds::{Composition, Mode};
use super::shop::Shop;
use super::world;
use super::world::{CROSSPLANE, Kausality};
use crate::agreement;
use crate::check::{none_is_drift, summary};
use crate::stage::say;

#[tokio::test(flavor = "multi_thread")]
async fn a_trace_of_a_claim_begins_with_who_changed_it() {
    let Some(world) = world(Kausality::Logs).await else { return };
    let mut log = world.log();
    let composition = Composition::new("XStore", "claimed", Mode::Plain);
    world.apply(&composition.manifest());
    let begun = log.mark();
    let mut store = Shop::claim(&world, "carol", "market", &composition).await;
    settled(std::slice::from_ref(&store), &mut log).await;
    all_begin_with(&store, "carol").await;

    store.resize("dave", 2).await;
    settled(std::slice::from_ref(&store), &mut log).await;
    all_begin_with(&store, "dave").await;
    let changes = log.changes(begun);
    say(format_args!("claim created and edited: {}", summary(&changes)));
    none_is_drift(&changes);
    agreement::check(&world.plane, &[]);
    world.runs();
}

/// Crossplane undoes what a person did to a composite, since nobody asked for it in the claim. The children follow the
/// composite there and back, which is no drift of theirs.
#[tokio::test(flavor = "multi_thread")]
async fn a_composite_that_is_set_back_to_its_claim_is_drift() {
    let Some(world) = world(Kausality::Logs).await else { return };
    let mut log = world.log();
    let composition = Composition::new("XStore", "claimed", Mode::Plain);
    world.apply(&composition.manifest());
    let store = [Shop::claim(&world, "alice", "market", &composition).await];
    settled(&store, &mut log).await;

    let begun = log.mark();
    store[0].edit_composite("bob", 7).await;
    settled(&store, &mut log).await;
    let changes = log.changes(begun);
    say(format_args!("composite of a claim edited by hand: {}", summary(&changes)));
    let (children, composite): (Vec<_>, Vec<_>) =
        changes.into_iter().partition(|change| change.resource == "objects");
    none_is_drift(&children);
    let causes: Vec<_> = composite.iter().map(|change| (&*change.user, change.cause.as_deref())).collect();
    assert_eq!(causes, [("bob", Some("Origin")), (CROSSPLANE, Some("Drift"))], "{composite:#?}");
    agreement::check(&world.plane, &[]);
    world.runs();
}
