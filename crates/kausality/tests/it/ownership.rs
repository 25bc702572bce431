//! Who owns what, computed by us and by a real API server: random programs of applies, updates and patches by several
//! managers must leave the very same bytes in `metadata.managedFields`, and conflict over the same fields.
//!
//! `KAUSALITY_PROGRAMS` says how many programs are run, `KAUSALITY_SEED` runs that one alone.

#![allow(clippy::print_stderr, reason = "a program that fails is told to a person")]

mod call;
mod compare;
pub(crate) mod content;
mod edit;
pub(crate) mod kinds;
mod model;
mod program;
pub(crate) mod random;
mod run;
mod scale;

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use futures::{StreamExt, stream};
use kausality_cluster::Schemas;
use kausality_testbed::{Component, ControlPlane, MASTERS, eventually, start_or_skip};
use kube::Client;
use model::Model;
use program::{Action, Program};
use run::{Outcome, Run};

/// So many come to everything that is asserted below; `make soak` runs more.
const PROGRAMS: u64 = 200;

/// Requests that are under way at once.
const AT_ONCE: usize = 16;

/// Programs that are told of in full.
const TOLD: usize = 3;

#[tokio::test(flavor = "multi_thread")]
async fn owners_are_those_that_the_api_server_keeps() {
    let Some(plane) = start_or_skip().await.unwrap() else { return };
    // No controller may write to what programs are about.
    plane.pause(Component::ControllerManager).unwrap();
    let client = plane.client("alice", &[MASTERS]).unwrap();
    let model = prepare(&plane, &client).await;

    let begun = Instant::now();
    let seeds: Vec<u64> = match number("KAUSALITY_SEED") {
        Some(seed) => vec![seed],
        None => (0..number("KAUSALITY_PROGRAMS").unwrap_or(PROGRAMS)).collect(),
    };
    let count = seeds.len();
    let runs = seeds.into_iter().map(|seed| Run::new(Program::generate(seed), format!("p{seed}"))).collect();
    let runs = run_all(runs, &client, &model).await;
    let mut outcomes = BTreeMap::new();
    for (outcome, times) in runs.iter().flat_map(|run| &run.outcomes) {
        *outcomes.entry(*outcome).or_insert(0) += times;
    }
    eprintln!("{count} programs in {:.1?}: {outcomes:?}", begun.elapsed());

    let failed: Vec<&Run> = runs.iter().filter(|run| run.failure.is_some()).collect();
    for run in &failed {
        let failure = run.failure.as_deref().unwrap_or_default();
        eprintln!(
            "seed {} ({:?}) {}",
            run.program.seed,
            run.program.kind,
            failure.lines().next().unwrap_or_default()
        );
    }
    for run in failed.iter().take(TOLD) {
        tell(run, &client, &model).await;
    }
    assert!(failed.is_empty(), "{} of {count} programs differ", failed.len());
    if count as u64 >= PROGRAMS {
        let never = |seen: &(Action, Outcome)| !outcomes.contains_key(seen);
        let of_interest = Action::ALL.map(|action| (action, Outcome::Stored));
        let conflict = (Action::Apply, Outcome::Conflict);
        let missing: Vec<_> = of_interest.into_iter().chain([conflict]).filter(never).collect();
        assert!(missing.is_empty(), "programs never came to this: {missing:?}");
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name)
        .ok()
        .map(|text| text.parse().unwrap_or_else(|_| panic!("{name} must be a number: {text}")))
}

/// Defines our kinds, and learns the types of all.
async fn prepare(plane: &ControlPlane, client: &Client) -> Model {
    let file = plane.folder().join("kinds.json");
    let list = serde_json::json!({"apiVersion": "v1", "kind": "List", "items": kinds::definitions()});
    std::fs::write(&file, list.to_string()).unwrap();
    let output = plane.kubectl("alice", &[MASTERS]).arg("apply").arg("-f").arg(&file).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let learn =
        async || Model::load(&Schemas::new(client.clone())).await.map_err(|error| format!("{error:#}"));
    eventually(Duration::from_secs(60), "the types of our kinds", learn).await.unwrap()
}

/// Runs all, the first step of each before the second of any.
async fn run_all(runs: Vec<Run>, client: &Client, model: &Model) -> Vec<Run> {
    let longest = runs.iter().map(|run| run.program.steps.len()).max().unwrap_or_default();
    let mut runs = runs;
    for nth in 0..longest {
        let step = async |mut run: Run| {
            run.step(nth, client, model).await;
            run
        };
        runs = stream::iter(runs).map(step).buffer_unordered(AT_ONCE).collect().await;
    }
    runs.sort_by_key(|run| run.program.seed);
    runs
}

/// Leaves out steps as long as the program still fails, and shows what remains.
async fn tell(run: &Run, client: &Client, model: &Model) {
    let mut program = run.program.clone();
    let mut shortest: Option<Run> = None;
    let mut attempt = 0;
    let mut nth = 0;
    while nth < program.steps.len() {
        let mut shorter = program.clone();
        shorter.steps.remove(nth);
        attempt += 1;
        let again = Run::new(shorter.clone(), format!("p{}-{attempt}", program.seed));
        let again = run_all(vec![again], client, model).await.pop().unwrap();
        if again.failure.is_some() {
            program = shorter;
            shortest = Some(again);
        } else {
            nth += 1;
        }
    }
    let run = shortest.as_ref().unwrap_or(run);
    eprintln!(
        "\nKAUSALITY_SEED={} ({:?}), at its shortest:\n{}\n{}",
        program.seed,
        program.kind,
        run.log.join("\n"),
        run.failure.as_deref().unwrap_or_default()
    );
}
