//! Crossplane with a provider and a composition function: composites and claims live their lives, and the audit log says
//! what Kausality made of each change.
//!
//! Crossplane reports a composite ready before its last child is written, writes into the spec of composites itself, and
//! copies annotations from claims to composites. None of that may look like drift, hide it, or cause extra writes.

mod check;
mod claims;
mod idle;
mod kinds;
mod later;
mod shop;
mod world;

use std::time::Duration;

use futures::future::join_all;
use kausality_testbed::{eventually, peer_or_skip};
use serde_json::json;

use crate::agreement;
use crate::check::{all_are_drift, none_is_drift, summary, trace};
use crate::stage::{PATIENCE, say};
use check::{all_begin_with, changes_of_children, recomposed, settled, settled_since};
use kinds::{Composition, Mode};
use shop::Shop;
use world::{CROSSPLANE, Kausality, World};

/// Set to anything but nothing or 0, the numbers below are the full ones.
const FULL: &str = "KAUSALITY_CROSSPLANE_FULL";

/// A number that the environment may set.
struct Number {
    variable: &'static str,
    usual: usize,
    full: usize,
}

/// How many composites of each of the three modes are created.
const CREATIONS: Number = Number { variable: "KAUSALITY_CROSSPLANE_CREATIONS", usual: 5, full: 17 };

/// How many times somebody changes a composite twice in short order.
const PAIRS: Number = Number { variable: "KAUSALITY_CROSSPLANE_PAIRS", usual: 20, full: 200 };

/// How many pairs at a time.
const AT_ONCE: usize = 5;

/// The time between the two changes of a pair: from the shortest to the longest, in equal ratios.
const GAPS: (Duration, Duration) = (Duration::from_millis(10), Duration::from_secs(3));

#[tokio::test(flavor = "multi_thread")]
async fn what_people_ask_for_is_no_drift() {
    let Some(world) = world(Kausality::Logs).await else { return };
    let mut log = world.log();
    let compositions = Mode::ALL.map(|mode| Composition::new("Shop", mode.name(), mode));
    compositions.iter().for_each(|composition| world.apply(&composition.manifest()));

    let begun = log.mark();
    let mut shops = Vec::new();
    for number in 0..CREATIONS.get() {
        for composition in &compositions {
            let name = format!("{}-{number}", composition.name);
            shops.push(Shop::create(&world, "alice", &name, composition).await);
        }
    }
    settled(&shops, &mut log).await;
    let created = changes_of_children(&mut log, begun);
    say(format_args!("{} composites created: {}", shops.len(), summary(&created)));
    none_is_drift(&created);
    for shop in &shops {
        all_begin_with(shop, "alice").await;
    }

    let begun = log.mark();
    let pairs = PAIRS.get();
    let gaps: Vec<_> = (0..pairs).map(|index| gap(index, pairs)).collect();
    let at_once = AT_ONCE.min(shops.len());
    for gaps in gaps.chunks(at_once) {
        let edits = shops.iter_mut().zip(gaps).map(|(shop, gap)| edit_twice(shop, "bob", *gap));
        join_all(edits).await;
        log.quiet().await;
        for shop in shops.iter().take(gaps.len()) {
            all_begin_with(shop, "bob").await;
        }
        // Other composites in the next round, so that similar gaps meet several modes.
        shops.rotate_left(at_once);
    }
    let edited = changes_of_children(&mut log, begun);
    say(format_args!("{pairs} pairs of edits: {}", summary(&edited)));
    none_is_drift(&edited);

    let begun = log.mark();
    for shop in &shops {
        shop.delete("alice").await;
    }
    for shop in &shops {
        eventually(PATIENCE, "the end of a composite", async || shop.is_gone().await).await.unwrap();
    }
    let deleted = log.changes(begun);
    say(format_args!("{} composites deleted: {}", shops.len(), summary(&deleted)));
    none_is_drift(&deleted);
    agreement::check(&world.plane, &[]);
    world.runs();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_asked_for_is_drift() {
    let Some(world) = world(Kausality::Logs).await else { return };
    let mut log = world.log();
    let of_shops = Composition::new("Shop", "plain", Mode::Plain);
    let of_stores = Composition::new("XStore", "claimed", Mode::Plain);
    world.apply(&of_shops.manifest());
    world.apply(&of_stores.manifest());
    let mut shops = [
        Shop::create(&world, "alice", "corner", &of_shops).await,
        Shop::claim(&world, "alice", "market", &of_stores).await,
    ];
    settled(&shops, &mut log).await;

    let edited = recomposed(&mut shops, &mut log, |composition| composition.text = "two").await;
    all_are_drift("compositions edited", &edited, "patch", 6);
    for (name, child) in shops[0].children().await.into_iter().chain(shops[1].children().await) {
        let trace = trace(&child);
        let (user, drift) = (&trace[0]["user"], &trace[0]["drift"]);
        assert_eq!((user, drift), (&json!(CROSSPLANE), &json!(true)), "{name}: {trace:#}");
    }

    let drop = |composition: &mut Composition| composition.children = vec!["a", "b"];
    let dropped = recomposed(&mut shops, &mut log, drop).await;
    all_are_drift("children dropped", &dropped, "delete", 2);

    let add = |composition: &mut Composition| composition.children = vec!["a", "b", "d"];
    let added = recomposed(&mut shops, &mut log, add).await;
    // Crossplane creates by apply.
    all_are_drift("children added", &added, "patch", 2);

    let begun = log.mark();
    world.upgrade_function("v2").await;
    shops.iter_mut().for_each(|shop| shop.version = "v2");
    let upgraded = settled_since(&shops, &mut log, begun).await;
    all_are_drift("function upgraded", &upgraded, "patch", 6);

    let begun = log.mark();
    for shop in &shops {
        shop.edit_child("bob", "a", "mine").await;
    }
    let reverted = settled_since(&shops, &mut log, begun).await;
    all_are_drift("children edited by hand", &reverted, "patch", 2);

    let begun = log.mark();
    for shop in &mut shops {
        shop.resize("carol", 2).await;
    }
    let asked_for = settled_since(&shops, &mut log, begun).await;
    say(format_args!("composites edited after that: {}", summary(&asked_for)));
    none_is_drift(&asked_for);
    for shop in &shops {
        all_begin_with(shop, "carol").await;
    }
    agreement::check(&world.plane, &[]);
    world.runs();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_people_ask_for_is_done_and_the_rest_is_denied() {
    let Some(world) = world(Kausality::Enforces).await else { return };
    let mut log = world.log();
    let begun = log.mark();
    let mut shops = Vec::new();
    for mode in Mode::ALL {
        let composition = Composition::new("Shop", mode.name(), mode);
        world.apply(&composition.manifest());
        shops.push(Shop::create(&world, "alice", mode.name(), &composition).await);
    }
    let claimed = Composition::new("XStore", "claimed", Mode::Plain);
    world.apply(&claimed.manifest());
    shops.push(Shop::claim(&world, "alice", "claimed", &claimed).await);
    for settled in [false, true] {
        for shop in &mut shops {
            shop.is_done().await;
            if settled {
                log.quiet().await;
            }
            shop.resize("bob", shop.size + 1).await;
            shop.is_done().await;
        }
    }
    log.quiet().await;
    let changes = log.changes(begun);
    let denied: Vec<_> = changes.iter().filter(|change| change.denied).collect();
    assert!(denied.is_empty(), "{denied:#?}");
    say(format_args!("enforced, 3 composites and a claim created and edited twice: {}", summary(&changes)));

    let begun = log.mark();
    for shop in &mut shops {
        shop.composition.text = "two";
        shop.recompose();
        // The composite says why it is stuck.
        eventually(PATIENCE, "the denial in the composite", async || shop.is_stuck().await).await.unwrap();
        shop.composition.text = "one";
        shop.recompose();
        shop.is_done().await;
    }
    let mut changes = changes_of_children(&mut log, begun);
    changes.retain(|change| change.user == CROSSPLANE);
    say(format_args!("enforced, compositions edited and restored: {}", summary(&changes)));
    let others: Vec<_> = changes.iter().filter(|change| !change.denied || !change.is_drift()).collect();
    assert!(!changes.is_empty() && others.is_empty(), "{others:#?}");
    agreement::check(&world.plane, &["--mode", "enforce"]);
    world.runs();
}

async fn world(kausality: Kausality) -> Option<World> {
    let peer = peer_or_skip("crossplane").await.unwrap()?;
    World::start(&peer, kausality).await
}

/// Changes a composite twice.
async fn edit_twice(shop: &mut Shop<'_>, user: &str, gap: Duration) {
    shop.resize(user, shop.size + 1).await;
    // The gap is what is varied here: how far Crossplane gets with the first change.
    tokio::time::sleep(gap).await;
    shop.resize(user, shop.size + 1).await;
    shop.is_done().await;
}

fn gap(index: usize, of: usize) -> Duration {
    let (shortest, longest) = GAPS;
    let part = if of > 1 { index as f64 / (of - 1) as f64 } else { 0.0 };
    shortest.mul_f64((longest.as_secs_f64() / shortest.as_secs_f64()).powf(part))
}

impl Number {
    /// Its own variable counts most.
    fn get(&self) -> usize {
        let is_full = std::env::var(FULL).is_ok_and(|text| !text.is_empty() && text != "0");
        let default = if is_full { self.full } else { self.usual };
        std::env::var(self.variable).map_or(default, |text| text.parse().unwrap())
    }
}
