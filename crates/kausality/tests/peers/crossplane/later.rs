//! What somebody asked for is done long after, since Crossplane was kept from it.

use super::check::{all_begin_with, changes_of_children, settled, settled_since};
use super::kinds::{Composition, Mode};
use super::shop::Shop;
use super::world;
use super::world::Kausality;
use crate::agreement;
use crate::check::{none_is_drift, summary};
use crate::stage::say;

#[tokio::test(flavor = "multi_thread")]
async fn what_people_asked_for_long_ago_is_no_drift() {
    let Some(world) = world(Kausality::Logs).await else { return };
    let mut log = world.log();
    let of_shops = Composition::new("Shop", "reactive", Mode::Reactive);
    let of_stores = Composition::new("XStore", "claimed", Mode::Plain);
    world.apply(&of_shops.manifest());
    world.apply(&of_stores.manifest());
    let mut shops = [
        Shop::create(&world, "alice", "corner", &of_shops).await,
        Shop::claim(&world, "alice", "market", &of_stores).await,
    ];
    settled(&shops, &mut log).await;

    let begun = log.mark();
    for shop in &mut shops {
        shop.pause("alice").await;
    }
    log.quiet().await;
    for shop in &mut shops {
        shop.resize("bob", 2).await;
    }
    log.quiet().await;
    for shop in &mut shops {
        shop.unpause("alice").await;
    }
    let resumed = settled_since(&shops, &mut log, begun).await;
    say(format_args!("edited while paused: {}", summary(&resumed)));
    none_is_drift(&resumed);
    for shop in &shops {
        all_begin_with(shop, "bob").await;
    }

    world.stop_crossplane();
    let begun = log.mark();
    for shop in &mut shops {
        shop.resize("carol", 3).await;
    }
    log.quiet().await;
    world.start_crossplane().await;
    let resumed = settled_since(&shops, &mut log, begun).await;
    say(format_args!("edited while Crossplane was stopped: {}", summary(&resumed)));
    none_is_drift(&resumed);
    for shop in &shops {
        all_begin_with(shop, "carol").await;
    }

    let begun = log.mark();
    world.stop_crossplane();
    world.start_crossplane().await;
    settled(&shops, &mut log).await;
    let changes = log.changes(begun);
    assert!(changes.is_empty(), "Crossplane was merely started again: {changes:#?}");
    agreement::check(&world.plane, &[]);
    world.runs();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revision_that_somebody_chose_is_no_drift() {
    let Some(world) = world(Kausality::Logs).await else { return };
    let mut log = world.log();
    let composition = Composition::new("Shop", "plain", Mode::Plain);
    world.apply(&composition.manifest());
    let mut shop = Shop::create(&world, "alice", "corner", &composition).await;
    shop.hold_revision("alice").await;
    settled(std::slice::from_ref(&shop), &mut log).await;

    let begun = log.mark();
    shop.composition.text = "two";
    shop.recompose();
    log.quiet().await;
    let held = changes_of_children(&mut log, begun);
    assert!(held.is_empty(), "the revision is held: {held:#?}");

    let begun = log.mark();
    shop.choose_newest_revision("bob").await;
    let chosen = settled_since(std::slice::from_ref(&shop), &mut log, begun).await;
    say(format_args!("revision chosen by a person: {}", summary(&chosen)));
    none_is_drift(&chosen);
    all_begin_with(&shop, "bob").await;
    agreement::check(&world.plane, &[]);
    world.runs();
}
