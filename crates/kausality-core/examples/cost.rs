//! What a decision costs, for `cargo xtask cost`: counts nothing itself, but does one thing many times.
//!
//! `cost nothing|value|decide ROUNDS FILE…` reads recorded reviews and learns what each decision must know;
//! then, for every review and round, does nothing, parses it as a `serde_json::Value`, or parses and decides.

#![allow(clippy::print_stdout, reason = "tells xtask how much was measured")]

use std::{collections::HashMap, hint::black_box, sync::Arc};

use jiff::Timestamp;
use kausality_core::{Known, KnownParent, Review, Settings, Summary, decide, questions};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let what = arguments.next().ok_or("what to measure?")?;
    let rounds: usize = arguments.next().ok_or("how many rounds?")?.parse()?;
    let settings = Settings::default();
    let mut bytes = 0;
    for file in arguments {
        let text = std::fs::read(&file)?;
        let reviews = learn(&text, &settings)?;
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
                    other => return Err(format!("cannot measure {other:?}").into()),
                }
            }
        }
        bytes += text.len();
    }
    println!("{}", bytes * rounds);
    Ok(())
}

/// What each decision of a recording must know: its parent, as the recording and the decisions so far left it.
fn learn<'a>(recording: &'a [u8], settings: &Settings) -> Result<Vec<(&'a [u8], Known)>> {
    let mut objects: HashMap<String, Arc<Summary>> = HashMap::new();
    let mut reviews = Vec::new();
    for line in recording.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let review = Review::parse(line)?;
        let parent = questions(&review.request, settings).parent.map(|owner| {
            objects.get(&owner.uid).map_or(KnownParent::Gone, |summary| KnownParent::Found {
                summary: summary.clone(),
                resource: Arc::default(),
            })
        });
        let known =
            Known { parent: parent.unwrap_or(KnownParent::None), ..Known::new(Timestamp::UNIX_EPOCH) };
        let decision = decide(&review, &known.facts(settings));
        if let Some(object) = &review.request.object {
            let mut summary = Summary::of(object);
            if let Some(before) = objects.get(&summary.uid) {
                before.annotations().for_each(|(key, value)| summary.annotate(key, Some(value)));
            }
            let patch = &decision.patch.annotations;
            patch.iter().for_each(|(key, value)| summary.annotate(key, value.as_deref()));
            objects.insert(summary.uid.clone(), Arc::new(summary));
        }
        reviews.push((line, known));
    }
    Ok(reviews)
}
