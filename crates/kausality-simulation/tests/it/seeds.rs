//! Plays seeds: 100 of them and the witnesses, or as many as `KAUSALITY_SEEDS` says (`make soak` plays thousands), or the
//! one that `KAUSALITY_SEED` names, with all that happens in it.
#![allow(clippy::print_stdout, reason = "so many seeds show how far they have got")]

use std::{
    collections::BTreeMap,
    io::{Write as _, stderr},
    sync::atomic::{AtomicU64, AtomicUsize, Ordering},
    thread,
    time::Instant,
};

use kausality_simulation::{Outcome, simulate};

/// So many are enough to notice most of what goes wrong.
const SEEDS: u64 = 100;

/// Seeds that show what the first [`SEEDS`] do not: a stale mark that is trusted (`cargo xtask plant`). A run that starts at 0
/// prints the first seed for each event.
const WITNESSES: &[u64] = &[264];

/// A seventh of the time goes into memory.
#[global_allocator]
static MEMORY: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable)
        .ok()
        .map(|text| text.parse().unwrap_or_else(|_| panic!("{variable}={text} is no number")))
}

/// How often anything panicked: a task that does ends without a word.
static PANICS: AtomicU64 = AtomicU64::new(0);

/// How often something happened, and the first seed that shows it.
#[derive(Debug)]
struct Shown {
    times: u64,
    first: u64,
}

#[test]
fn nothing_goes_wrong_that_must_not() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |what| {
        PANICS.fetch_add(1, Ordering::Relaxed);
        print(what);
    }));
    if let Some(seed) = number("KAUSALITY_SEED") {
        let outcome = simulate(seed).unwrap();
        println!("{outcome}{:#?}", outcome.counts);
        assert!(outcome.violations.is_empty(), "seed {seed}");
        return;
    }
    let first = number("KAUSALITY_FIRST_SEED").unwrap_or(0);
    let end = first + number("KAUSALITY_SEEDS").unwrap_or(SEEDS);
    let whole = first == 0 && end >= SEEDS;
    let witnesses = WITNESSES.iter().copied().filter(|seed| whole && *seed >= end);
    let seeds: Vec<u64> = (first..end).chain(witnesses).collect();
    let begun = Instant::now();
    let next = AtomicUsize::new(0);
    let threads = thread::available_parallelism().map_or(2, usize::from);
    let play = || {
        let mut mine: Vec<Outcome> = Vec::new();
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let failed = mine.iter().any(|outcome| !outcome.violations.is_empty());
            let Some(seed) = seeds.get(place).filter(|_| !failed) else { return mine };
            let mut outcome = simulate(*seed).unwrap();
            if outcome.violations.is_empty() {
                outcome.log = Vec::new();
            } else {
                next.store(seeds.len(), Ordering::Relaxed);
            }
            mine.push(outcome);
            if place % 100 == 99 {
                // Not `println!`, which nobody sees before the end.
                let seconds = begun.elapsed().as_secs_f64();
                writeln!(stderr(), "{} seeds in {seconds:.0} s", place + 1).unwrap();
            }
        }
    };
    let outcomes: Vec<Outcome> = thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(play)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let mut counts: BTreeMap<&str, Shown> = BTreeMap::new();
    for outcome in &outcomes {
        for (what, count) in &outcome.counts {
            let shown = counts.entry(what).or_insert(Shown { times: 0, first: outcome.seed });
            *shown = Shown { times: shown.times + count, first: shown.first.min(outcome.seed) };
        }
    }
    println!("{counts:#?}");
    if let Some(outcome) =
        outcomes.iter().filter(|outcome| !outcome.violations.is_empty()).min_by_key(|it| it.seed)
    {
        println!("{outcome}");
        panic!("seed {} fails: KAUSALITY_SEED={} plays it again", outcome.seed, outcome.seed);
    }
    assert_eq!(PANICS.load(Ordering::Relaxed), 0, "something panicked");
    // Fewer need not show everything.
    if !whole {
        return;
    }
    for what in [
        "drifts denied",
        "drifts let pass",
        "drifts that turned out to be none",
        "drifts approved",
        "approved again",
        "frozen",
        "rejected",
        "allowed",
        "API server restarted",
        "answers lost",
        "answers that never come",
        "calls refused",
        "conflicts",
        "controllers restarted",
        "decisions lost",
        "delays",
        "events twice",
        "replicas stopped",
        "watches cut",
        "watches of controllers cut",
        "watches of controllers stalled",
        "watches stalled",
        "writes failed after admission",
        "writes meddled with",
    ] {
        assert!(counts.contains_key(what), "in {} seeds nothing was {what}: {counts:?}", seeds.len());
    }
}

#[test]
fn a_seed_plays_the_same_way_again() {
    for seed in 0..5 {
        let (once, again) = (simulate(seed).unwrap(), simulate(seed).unwrap());
        assert!(once.log.len() > 100, "{once}");
        assert_eq!(once.log, again.log, "seed {seed}");
    }
}
