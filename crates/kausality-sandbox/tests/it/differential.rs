//! Programs of requests on a real API server and on the sandbox: the answers must be the same.
//!
//! `program.jsonl` has a request a line. Both must answer with the same code and the same body, except for what is made up
//! (uids, times, addresses). Where a line says `"compare": "code"`, code and reason must be the same: the rest is in words
//! that only Go's libraries find, or written by a part that the sandbox does not have.
//!
//! `found.jsonl` has what random programs have found, and `bad-input.jsonl` what is refused: of refusals the code, the reason
//! and the faults that the sandbox tells must be the same. `webhooks.jsonl` has configurations of webhooks.
//!
//! Random programs follow from seeds. `KAUSALITY_DIFFERENTIAL_SEEDS` says how many are run,
//! `KAUSALITY_DIFFERENTIAL_SEED` runs that one alone.

#![allow(clippy::print_stderr, reason = "a program that fails is told to a person")]

mod compare;
mod content;
mod exchange;
mod kinds;
mod program;
#[path = "../../../kausality/tests/it/ownership/random.rs"]
mod random;
mod run;
mod spoil;

use std::time::{Duration, Instant};

use exchange::{Answer, send};
use futures::{StreamExt, stream};
use kausality_sandbox::{Sandbox, User};
use kausality_testbed::{Component, ControlPlane, MASTERS, eventually, start_or_skip};
use kube::Client;
use run::{Sides, run, shorten, within};
use serde_json::{Value, json};

/// What is compared to the letter.
const PROGRAM: &str = include_str!("differential/program.jsonl");

/// What random programs have found.
const FOUND: &str = include_str!("differential/found.jsonl");

/// Bad input: malformed manifests, unknown kinds, invalid patches. Each is refused with the same code and reason.
const BAD_INPUT: &str = include_str!("differential/bad-input.jsonl");

/// Configurations of webhooks, most of them refused.
const WEBHOOKS: &str = include_str!("differential/webhooks.jsonl");

/// Random programs, if nobody wants more.
const SEEDS: u64 = 300;

/// Programs that run at once.
const AT_ONCE: usize = 8;

/// Programs that are told of in full.
const TOLD: usize = 10;

#[tokio::test(flavor = "multi_thread")]
async fn the_sandbox_answers_as_a_real_api_server_does() {
    let Some((plane, sides)) = sides().await else { return };
    define(&sides).await;
    let mut different = Vec::new();
    let mut count = 0;
    for program in [PROGRAM, FOUND, BAD_INPUT, WEBHOOKS] {
        for line in program.lines() {
            let request: Value = serde_json::from_str(line).unwrap();
            let (real, ours) = (send(&sides.real, &request).await, send(&sides.ours, &request).await);
            if !same(program, &request, &real, &ours) {
                let what = [&request["note"], &request["do"]];
                different.push(format!("{what:?}\n  real    {real:?}\n  sandbox {ours:?}"));
            }
            if request["body"]["kind"] == "CustomResourceDefinition" && real.0 == 201 {
                served(&sides.real, &request["body"]["spec"]).await;
            }
            count += 1;
        }
    }
    // A process that is paused does not end when it is asked to.
    plane.resume(Component::ControllerManager).unwrap();
    assert!(different.is_empty(), "{} of {count} differ:\n{}", different.len(), different.join("\n"));
}

fn same(program: &str, request: &Value, real: &Answer, ours: &Answer) -> bool {
    if request["compare"] == "code" {
        compare::verdict(real) == compare::verdict(ours)
    } else if program == PROGRAM {
        compare::whole(real) == compare::whole(ours)
    } else {
        compare::differences(real, ours).is_empty()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sandbox_does_with_random_programs_as_a_real_api_server_does() {
    let Some((plane, sides)) = sides().await else { return };
    define(&sides).await;
    let seeds: Vec<u64> = match number("KAUSALITY_DIFFERENTIAL_SEED") {
        Some(seed) => vec![seed],
        None => (0..number("KAUSALITY_DIFFERENTIAL_SEEDS").unwrap_or(SEEDS)).collect(),
    };
    let begun = Instant::now();
    let one = async |seed: u64| {
        let program = program::generate(seed);
        let (requests, difference) = run(&sides, &program, &format!("s{seed}")).await;
        (seed, program, requests, difference)
    };
    let done: Vec<_> = stream::iter(seeds).map(one).buffer_unordered(AT_ONCE).collect().await;
    let requests: usize = done.iter().map(|(_, _, requests, _)| requests).sum();
    let count = done.len();
    eprintln!("{count} programs, {requests} requests in {:.1?}", begun.elapsed());

    let mut failed: Vec<_> =
        done.into_iter().filter_map(|(seed, program, _, found)| Some((seed, program, found?))).collect();
    failed.sort_by_key(|(seed, ..)| *seed);
    let different = failed.len();
    for (seed, program, difference) in failed.into_iter().take(TOLD) {
        let namespace = format!("t{seed}");
        let (program, difference) = shorten(&sides, &program, difference, &namespace).await;
        let steps: Vec<_> = program.iter().map(|step| within(step, "t").to_string()).collect();
        let places = difference.places.join("\n  ");
        eprintln!(
            "\nKAUSALITY_DIFFERENTIAL_SEED={seed}, at its shortest:\n{}\nstep {}:\n  {places}",
            steps.join("\n"),
            difference.step
        );
    }
    plane.resume(Component::ControllerManager).unwrap();
    assert!(different == 0, "{different} of {count} programs differ");
}

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} must be a number: {text}")))
}

/// A real API server on which nothing happens on its own, and a sandbox.
async fn sides() -> Option<(ControlPlane, Sides)> {
    let plane = start_or_skip().await.unwrap()?;
    plane.pause(Component::ControllerManager).unwrap();
    let real = plane.client("dif", &[MASTERS]).unwrap();
    let ours = Sandbox::default().client(&User::admin("dif"));
    Some((plane, Sides { real, ours }))
}

/// Defines our kinds on both sides.
async fn define(sides: &Sides) {
    for definition in kinds::definitions() {
        let create =
            json!({"do": "POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions", "body": definition});
        for side in [&sides.real, &sides.ours] {
            let answer = send(side, &create).await;
            assert!(answer.0 == 201, "{answer:?}");
        }
        served(&sides.real, &definition["spec"]).await;
    }
}

/// A custom resource is served a while after it is defined.
async fn served(client: &Client, spec: &Value) {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    for version in spec["versions"].as_array().unwrap() {
        let path = format!(
            "/apis/{}/{}/{}",
            text(&spec["group"]),
            text(&version["name"]),
            text(&spec["names"]["plural"])
        );
        let list = json!({"do": format!("GET {path}")});
        let probe = async || match send(client, &list).await {
            (200, _) => Ok(()),
            other => Err(format!("{other:?}")),
        };
        eventually(Duration::from_secs(30), "the custom resource", probe).await.unwrap();
    }
}
