//! Nothing happens to a claim: Kausality must not cause writes.

use std::time::{Duration, Instant};

use kausality_testbed::eventually;

use super::check::settled;
use super::kinds::{Composition, Mode};
use super::shop::Shop;
use super::world;
use super::world::{CROSSPLANE, Kausality};
use crate::log::Writes;
use crate::stage::{PATIENCE, say};

/// How long a claim is left alone.
const IDLE: Duration = Duration::from_secs(60);

/// How many writes of Crossplane are awaited while it looks at a composite every second. It makes some ten at each look,
/// and none of them changes anything.
const POLLED: usize = 100;

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_claim_is_left_alone() {
    let Some(without) = idle(Kausality::Absent).await else { return };
    let Some(with) = idle(Kausality::Logs).await else { return };
    for (phase, with, without) in
        [("idle", &with.idle, &without.idle), ("polled", &with.polled, &without.polled)]
    {
        for (user, count) in with.users() {
            assert!(count <= without.of(user), "{phase}, {user}: with Kausality {with}; without {without}");
        }
    }
}

struct Figures {
    /// All writes while nothing happens.
    idle: Writes,
    /// Those with an effect while Crossplane applies again and again what is there.
    polled: Writes,
}

async fn idle(kausality: Kausality) -> Option<Figures> {
    let world = world(kausality).await?;
    let mut log = world.log();
    let composition = Composition::new("XStore", "claimed", Mode::Plain);
    world.apply(&composition.manifest());
    let store = [Shop::claim(&world, "carol", "market", &composition).await];
    settled(&store, &mut log).await;
    say(format_args!("claim created, Kausality {kausality:?}: {}", log.take_writes()));

    // The time is what is measured here: how much is written in it.
    let begun = Instant::now();
    eventually(PATIENCE, "the end of the idle time", async || (begun.elapsed() >= IDLE).then_some(()))
        .await
        .unwrap();
    let idle = log.take_writes();
    say(format_args!("claim idle for {IDLE:?}, Kausality {kausality:?}: {idle}"));

    let begun = log.mark();
    store[0].poll("carol").await;
    // The annotation is copied to the composite, which is a change.
    let some = async || (log.writes_by(CROSSPLANE, begun) >= POLLED / 2).then_some(());
    eventually(PATIENCE, "the first polls", some).await.unwrap();
    let begun = log.mark();
    let many = async || (log.writes_by(CROSSPLANE, begun) >= POLLED).then_some(());
    eventually(PATIENCE, "more polls", many).await.unwrap();
    let polled = log.effective(begun);
    let all = log.writes_by(CROSSPLANE, begun);
    say(format_args!(
        "claim polled, Kausality {kausality:?}, {all} writes by Crossplane; with effect: {polled}"
    ));
    store[0].is_done().await;
    world.runs();
    Some(Figures { idle, polled })
}
