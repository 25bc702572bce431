//! Hostile input: reviews, annotations and policies that nobody in their right mind would write.
//!
//! Inputs are mutations of a corpus: the recorded reviews, `fuzz/corpus/`, and whatever made something happen that had
//! not happened before. Each must come to an error or a result, without a panic, and eight times as much input must not
//! take much more than eight times as long.
//!
//! - `cargo test` plays a fixed number of inputs from a fixed seed.
//! - `KAUSALITY_FUZZ_SECONDS=600` plays on for that long, from `KAUSALITY_FUZZ_SEED`, or from a seed of its own that it prints.
//!
//! What fails is written to `fuzz/corpus/`, is to be kept there, and is played first from then on.

#![allow(clippy::print_stdout, reason = "it says from which seed it plays, and how much it has played")]

mod annotations;
mod corpus;
mod dice;
mod dimensions;
mod growth;
mod json;
mod mutation;
mod play;
mod policies;
mod reviews;

use play::{Target, play};

#[test]
fn reviews_come_to_an_error_or_a_decision() {
    play(&Target { name: "reviews", run: reviews::run, seeds: reviews::seeds, bytes: 12_000, inputs: 3_000 });
}

#[test]
fn annotations_say_something_or_nothing() {
    // Each is put into dozens of annotations.
    play(&Target {
        name: "annotations",
        run: annotations::run,
        seeds: annotations::seeds,
        bytes: 2_000,
        inputs: 3_000,
    });
}

#[test]
fn policies_match_or_are_refused() {
    play(&Target {
        name: "policies",
        run: policies::run,
        seeds: policies::seeds,
        bytes: 12_000,
        inputs: 2_000,
    });
}
