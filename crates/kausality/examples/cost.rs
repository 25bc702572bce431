//! What a decision costs, for `cargo xtask cost`: counts nothing itself, but does one thing many times.
//!
//! `cost nothing|value|decide ROUNDS FILE…` reads recorded reviews and learns what each decision must know;
//! then, for every review and round, does nothing, parses it as a `serde_json::Value`, or parses and decides.

#![allow(clippy::print_stdout, reason = "tells xtask how much was measured")]

use std::hint::black_box;

use anyhow::{Context, Result, bail};
use kausality::replay::engine::{Engine, Source};
use kausality_core::{Known, Review, Settings, decide};

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let what = arguments.next().context("what to measure?")?;
    let rounds: usize = arguments.next().context("how many rounds?")?.parse()?;
    let settings = Settings::default();
    let mut bytes = 0;
    for file in arguments {
        let text = std::fs::read(&file).with_context(|| format!("reading {file}"))?;
        let reviews = learn(&text)?;
        for _ in 0..rounds {
            for (review, known) in &reviews {
                match what.as_str() {
                    "nothing" => {}
                    "value" => {
                        black_box(serde_json::from_slice::<serde_json::Value>(black_box(review))?);
                    }
                    "decide" => {
                        let review = Review::parse(black_box(review))?;
                        black_box(decide(&review, &known.facts(&settings)));
                    }
                    other => bail!("cannot measure {other:?}"),
                }
            }
        }
        bytes += text.len();
    }
    println!("{}", bytes * rounds);
    Ok(())
}

/// Replays a recording to learn what each decision must know.
fn learn(recording: &[u8]) -> Result<Vec<(&[u8], Known)>> {
    let mut engine = Engine::new(Settings::default());
    let lines = recording.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines
        .map(|line| {
            let known = engine.know(&Review::parse(line)?.request);
            engine.review(line, Source::Webhook)?;
            Ok((line, known))
        })
        .collect()
}
