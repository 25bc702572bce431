//! The game: inputs are made and played until one fails or it is enough.

use std::{
    collections::BTreeSet,
    env,
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
    time::{Duration, Instant, SystemTime},
};

use crate::fuzz::{corpus, dice::Dice, growth::Growing, mutation::mutate};

/// The seed of `cargo test`.
const SEED: u64 = 0x5eed;

/// How many inputs are kept to make others from.
const MAX_POOL: usize = 3_000;

/// How often time is measured: once in so many inputs.
const MEASURED: usize = 40;

/// Something that takes input.
pub(crate) struct Target {
    pub(crate) name: &'static str,
    /// Takes an input. What became of it, in a few words that are the same for the same way through the code.
    pub(crate) run: fn(&[u8]) -> String,
    /// Inputs beside those that are kept.
    pub(crate) seeds: fn() -> Vec<Vec<u8>>,
    /// How long inputs are at first where time is measured.
    pub(crate) bytes: usize,
    /// How many inputs are played where nobody says how long.
    pub(crate) inputs: usize,
}

/// Plays until one fails or it is enough.
pub(crate) fn play(target: &Target) {
    let limit =
        env::var("KAUSALITY_FUZZ_SECONDS").ok().map(|seconds| Duration::from_secs(seconds.parse().unwrap()));
    let seed = match env::var("KAUSALITY_FUZZ_SEED") {
        Ok(seed) => seed.parse().unwrap(),
        Err(_) if limit.is_some() => SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs(),
        Err(_) => SEED,
    };
    println!("{}: seed {seed}", target.name);
    let mut game = Game {
        target,
        seed,
        count: 0,
        measured: 0,
        seen: BTreeSet::new(),
        pool: Vec::new(),
        last: last(target),
    };
    for input in corpus::kept(target.name).into_iter().chain((target.seeds)()) {
        game.input(&input);
        game.pool.push(input);
    }
    let mut dice = Dice::new(seed);
    let begun = Instant::now();
    let enough = |count: usize| match limit {
        Some(limit) => begun.elapsed() >= limit,
        None => count >= target.inputs,
    };
    while !enough(game.count) {
        let parent = dice.pick(&game.pool).clone();
        if dice.one_in(MEASURED) {
            game.measure(&mut dice, &parent);
        } else {
            let input = mutate(&mut dice, &parent, &game.pool);
            game.input(&input);
        }
    }
    println!(
        "{}: {} inputs, {} of them measured, {} different ways, {:.0?}",
        target.name,
        game.count,
        game.measured,
        game.seen.len(),
        begun.elapsed()
    );
    assert!(game.seen.len() > 10, "nothing happens: {:#?}", game.seen);
}

/// Where an input is noted before it is played in a long game: nothing else is left of one that overflows the stack.
fn last(target: &Target) -> Option<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    env::var("KAUSALITY_FUZZ_SECONDS")
        .is_ok()
        .then(|| folder.join(format!("fuzz-{}-last-input", target.name)))
}

struct Game<'a> {
    target: &'a Target,
    seed: u64,
    count: usize,
    measured: usize,
    /// What has become of inputs.
    seen: BTreeSet<String>,
    pool: Vec<Vec<u8>>,
    last: Option<PathBuf>,
}

impl Game<'_> {
    fn input(&mut self, input: &[u8]) {
        self.count += 1;
        if let Some(last) = &self.last {
            std::fs::write(last, input).unwrap();
        }
        match catch_unwind(AssertUnwindSafe(|| (self.target.run)(input))) {
            Ok(way) => {
                if self.seen.insert(way) && self.pool.len() < MAX_POOL {
                    self.pool.push(input.to_vec());
                }
            }
            Err(_) => self.fail(input, "it panics"),
        }
    }

    fn measure(&mut self, dice: &mut Dice, parent: &[u8]) {
        let Some(growing) = Growing::new(dice, parent, self.target.bytes) else { return };
        self.input(&growing.short());
        self.input(&growing.long());
        self.measured += 1;
        if let Some(told) = growing.is_superlinear(&self.target.run) {
            self.fail(&growing.short(), &format!("time grows faster than input: {told}"));
        }
    }

    fn fail(&self, input: &[u8], why: &str) {
        let path = corpus::keep(self.target.name, input);
        let shown: String = String::from_utf8_lossy(input).chars().take(2_000).collect();
        panic!(
            "{}: seed {}, input {}: {why}\n{shown}\nall of it is in {}",
            self.target.name,
            self.seed,
            self.count,
            path.display()
        );
    }
}
