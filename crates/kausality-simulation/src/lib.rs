//! Kausality on a sandbox, in time that is made up, with every fault that a seed can think of.
//!
//! ```text
//!   people ─────── line ──┐
//!   controllers ── line ──┤                       ┌── replica ── line ─┐
//!                         ├──▶ sandbox ──▶ gate ──┼── replica ── line ─┼──▶ sandbox
//!                         │       │               └── replica ── line ─┘
//!                         │       ▼                        │
//!                         └──── oracle ◀───────────────────┘
//! ```
//!
//! All of it is the code that runs in a cluster, on one thread. Whoever waits, waits in tokio's paused time, so that an
//! hour takes as long as what happens in it. What is random comes from the seed: when people do what, how long a call
//! takes, what gets lost, breaks and crashes. So the same seed plays the same way again, to the last write.
//!
//! The [`oracle`] sees every decision and every write as it is stored, and knows what must hold after each of them; when
//! the faults are over, everything must come to rest as people want it.
//!
//! An API server never leaves out an event of a watch that goes on, so none is left out here: what is dropped is dropped
//! with its connection. Not played: a webhook that is passed over while it is down (`failurePolicy: Ignore`).

use std::{collections::BTreeMap, fmt, sync::Arc, time::Duration};

mod clock;
mod controllers;
mod dice;
mod ending;
mod line;
mod oracle;
mod people;
mod replicas;
mod weather;

use clock::Clock;
use controllers::{Controllers, Habits};
use dice::Dice;
use http::Request;
use hyper::body::Bytes;
use kausality_cluster::registration::WEBHOOK;
use kausality_sandbox::{Sandbox, User};
use oracle::Oracle;
use people::{NAMESPACE, People};
use replicas::{Gate, Neighbour, Replicas};
use serde_json::json;
use weather::Sky;
pub use weather::Weather;

/// Who Kausality is.
const SELF: &str = "kausality";

/// Who reconciles Stacks.
const OPERATOR: &str = "system:serviceaccount:stacks:operator";

/// What came of a seed.
#[derive(Debug)]
pub struct Outcome {
    /// The seed.
    pub seed: u64,
    /// What was as it must not be.
    pub violations: Vec<String>,
    /// All that happened.
    pub log: Vec<String>,
    /// How often what happened.
    pub counts: BTreeMap<&'static str, u64>,
    /// What could go wrong.
    pub weather: Weather,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {}, {:?}", self.seed, self.weather)?;
        self.log.iter().try_for_each(|line| writeln!(f, "{line}"))?;
        self.violations.iter().try_for_each(|violation| writeln!(f, "seed {}: {violation}", self.seed))
    }
}

/// Plays a seed.
///
/// # Errors
/// If there is no runtime to be had.
pub fn simulate(seed: u64) -> std::io::Result<Outcome> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
    Ok(runtime.block_on(play(seed)))
}

async fn play(seed: u64) -> Outcome {
    let weather = Weather::of(seed);
    let clock = Clock::start();
    let quiet_time = Habits::of(seed).quiet_time(seed);
    let oracle = Arc::new(Oracle::new(clock, weather, quiet_time));
    let sandbox = Sandbox::builder().clock(clock).seed(seed).history(300).audit(0).build();
    let sky = Arc::new(Sky::new(weather));
    let people = People::new(seed, &sandbox, &sky, &oracle);
    furnish(&sandbox).await;

    sandbox.add_observer(oracle.clone());
    let replicas = Replicas::new(seed, quiet_time, &sandbox, &sky, clock, &oracle);
    for _ in 0..1 + Dice::new(seed, "how many").below(3) {
        replicas.start();
    }
    while !replicas.are_ready() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    sandbox.add_admission(Arc::new(Gate(replicas.clone())));
    sandbox.add_admission(Arc::new(Neighbour { sky: sky.clone(), dice: Dice::new(seed, "neighbour") }));
    let mut controllers = Controllers::new(seed, &sandbox, &sky, &oracle);

    for root in &people.roots {
        people.create(*root).await;
    }
    let mut acting = Box::pin(people.act(12 + Dice::new(seed, "times").below(20)));
    let faults = Dice::new(seed, "faults");
    loop {
        let pause = weather.crashes.unwrap_or(Duration::from_secs(120));
        let pause = pause / 2 + faults.time(pause);
        if tokio::time::timeout(pause, &mut acting).await.is_ok() || oracle.is_violated() {
            break;
        }
        match faults.below(10) {
            _ if weather.crashes.is_none() => controllers.upgrade(),
            0..4 if replicas.len() > 0 => {
                replicas.stop_one().await;
                replicas.start();
            }
            4..8 => controllers.restart_one(),
            8 => sandbox.compact(),
            _ => {
                oracle.note("the API server crashes, and starts again");
                oracle.count("API server restarted");
                sky.restart();
            }
        }
    }
    drop(acting);
    if !oracle.is_violated() {
        sky.clear_up();
        ending::converges(&people, &replicas, &oracle, &sandbox, controllers.version()).await;
    }
    // They know the sandbox, and the sandbox knows them.
    sandbox.remove_admission(WEBHOOK);
    let (violations, log, mut counts) = oracle.result();
    counts.extend(sky.counts());
    Outcome { seed, violations, log, counts, weather }
}

/// What must be there before anything can happen.
async fn furnish(sandbox: &Sandbox) {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
    let anything = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let schema = json!({"type": "object", "properties": {"spec": anything, "status": anything}});
    let stacks = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "stacks.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"kind": "Stack", "listKind": "StackList", "plural": "stacks", "singular": "stack"},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": schema}}],
        },
    });
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    for (url, body) in [("/api/v1/namespaces", namespace), (definitions, stacks)] {
        let request = Request::post(url)
            .header("content-type", "application/json")
            .extension(User::admin("admin"))
            .body(Bytes::from(body.to_string()));
        if let Ok(request) = request {
            sandbox.handle(request).await;
        }
    }
}
