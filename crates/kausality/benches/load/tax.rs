//! The tax on a cluster: what a write costs the API server, etcd and the webhook together, on a real control plane. Namespaces
//! differ in one thing, the webhook that is registered for them, and are written to in turns.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use hdrhistogram::Histogram;
use kausality_testbed::{Component, ControlPlane};
use serde_json::{Map, Value, json};
use tokio::task::JoinSet;

use crate::{
    Plan,
    figures::{Latencies, Report, Rounds, histogram, print_table},
    machine,
    writes::control_plane,
};

mod stage;

use stage::{DRIFTING, ENFORCED, FREE, OURS, PATCHING, SILENT, Stage};

/// How many write at once, where nothing is drift.
const AT_ONCE: usize = 8;

/// How many writes each of them makes before it is another namespace's turn.
const TURN: usize = 20;

/// How much of a processor of the API server a covered write may take, in those of a webhook that sets as many annotations.
const MOST_WORK: f64 = 1.10;

/// How many covered writes there are to be in the time that those take.
const LEAST_WRITES: f64 = 0.95;

/// What is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// Children of a parent that has not settled, by whoever.
    Calm,
    /// A kind that no policy names.
    Uncovered,
    /// Each time another child of a parent that has settled, by who reconciles it.
    DriftOnce,
    /// The same child of such a parent, to and fro.
    DriftLoop,
}

impl What {
    fn name(self) -> &'static str {
        match self {
            Self::Calm => "no drift",
            Self::Uncovered => "not covered",
            Self::DriftOnce => "drift, seen once",
            Self::DriftLoop => "drift, in a loop",
        }
    }

    fn sides(self) -> &'static [&'static str] {
        match self {
            Self::Calm => &[FREE, SILENT, PATCHING, OURS],
            Self::Uncovered => &[FREE, OURS],
            Self::DriftOnce | Self::DriftLoop => &[FREE, PATCHING, OURS, ENFORCED],
        }
    }

    fn is_drift(self) -> bool {
        matches!(self, Self::DriftOnce | Self::DriftLoop)
    }
}

/// Measures all of it; nothing where there is no control plane.
pub(crate) fn measure(plan: &Plan, report: &mut Report) -> Result<Value> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        match control_plane("The tax on writes").await? {
            Some(plane) => run(&plane, plan, report).await,
            None => Ok(Value::Null),
        }
    })
}

async fn run(plane: &ControlPlane, plan: &Plan, report: &mut Report) -> Result<Value> {
    let stage = Stage::set(plane, &plan.others).await?;
    let mut figures = Map::new();
    for what in [What::Calm, What::Uncovered, What::DriftOnce, What::DriftLoop] {
        let others = stage.others().filter(|_| what == What::Calm);
        let sides: Vec<&str> = what.sides().iter().copied().chain(others).collect();
        let mut tallies: Vec<Tally> = sides.iter().map(|_| Tally::default()).collect();
        for round in 0..plan.rounds {
            eprintln!("round {} of {}: {}", round + 1, plan.rounds, what.name());
            let taken = one_round(plane, &stage, what, &sides, (round, turns(what, plan))).await?;
            for (tally, taken) in tallies.iter_mut().zip(&taken) {
                tally.push(taken);
            }
        }
        let rows = sides.iter().zip(&tallies).map(|(side, tally)| tally.row(side)).collect();
        let header =
            ["webhook", "writes/s", "p50, µs", "p99, µs", "API server, µs", "etcd, µs", "webhook, µs"];
        print_table(&format!("Writes of a real API server: {}", what.name()), &header, rows);
        compare(what, &sides, &tallies, report);
        let of_sides = sides.iter().zip(&tallies).map(|(side, tally)| ((*side).to_owned(), tally.json()));
        figures.insert(what.name().to_owned(), of_sides.collect::<Map<_, _>>().into());
    }
    Ok(Value::Object(figures))
}

/// Holds ours against its budgets, round by round.
fn compare(what: What, sides: &[&str], tallies: &[Tally], report: &mut Report) {
    let of = |name: &str| sides.iter().position(|side| *side == name).and_then(|nth| tallies.get(nth));
    let base = if what == What::Uncovered { FREE } else { PATCHING };
    let (Some(base), Some(ours)) = (of(base), of(OURS)) else { return };
    let ratio = |of: fn(&Tally) -> &Rounds| of(ours).against(of(base));
    let (work, rate) = (ratio(|tally| &tally.api_server), ratio(|tally| &tally.rate));
    println!("of the API server: {} x; writes/s: {} x", work.show(2), rate.show(2));
    if what.is_drift() {
        let more = ours.latencies.p50.median() - base.latencies.p50.median();
        let about = format!("{}, mode log: more at p50", what.name());
        report.at_most(&about, more / 1000.0, 1.0, "ms");
        if let Some(enforced) = of(ENFORCED) {
            let about = format!("{}, mode enforce: p50", what.name());
            report.at_most(&about, enforced.latencies.p50.median() / 1000.0, 10.0, "ms");
        }
    } else {
        let about = |figure: &str| format!("{}: {figure}", what.name());
        report.at_most(&about("CPU of the API server a write"), work.median(), MOST_WORK, "x");
        report.at_least(&about("writes/s"), rate.median(), LEAST_WRITES, "x");
    }
}

/// What one side took in a round.
struct Taken {
    writes: usize,
    wall: Duration,
    latencies: Histogram<u64>,
    /// What was taken of processors by the API server, by etcd and by the webhook.
    busy: [Duration; 3],
}

/// The figures of one side.
#[derive(Default)]
struct Tally {
    rate: Rounds,
    latencies: Latencies,
    api_server: Rounds,
    etcd: Rounds,
    webhook: Rounds,
}

impl Tally {
    fn push(&mut self, Taken { writes, wall, latencies, busy: [api_server, etcd, webhook] }: &Taken) {
        #[allow(clippy::cast_precision_loss, reason = "there are not that many")]
        let writes = *writes as f64;
        self.rate.push(writes / wall.as_secs_f64());
        self.latencies.push(latencies);
        let each = |busy: &Duration| busy.as_secs_f64() * 1e6 / writes;
        self.api_server.push(each(api_server));
        self.etcd.push(each(etcd));
        self.webhook.push(each(webhook));
    }

    fn row(&self, side: &str) -> Vec<String> {
        let latencies = [&self.latencies.p50, &self.latencies.p99];
        let figures = [&self.rate].into_iter().chain(latencies);
        let figures = figures.chain([&self.api_server, &self.etcd, &self.webhook]);
        [side.to_owned()].into_iter().chain(figures.map(|rounds| rounds.show(0))).collect()
    }

    fn json(&self) -> Value {
        json!({"rate": self.rate.json(), "latencies": self.latencies.json(), "apiServer": self.api_server.json(),
            "etcd": self.etcd.json(), "webhook": self.webhook.json()})
    }
}

/// How many turns a round has. There must be a child for each drift that is seen once.
fn turns(what: What, plan: &Plan) -> usize {
    let rounds = usize::try_from(plan.rounds).unwrap_or(1);
    let writes = if what == What::DriftOnce { plan.writes.min(DRIFTING / rounds) } else { plan.writes };
    (writes / TURN).max(1)
}

/// One round, in short turns. Who begins changes from turn to turn.
async fn one_round(
    plane: &ControlPlane,
    stage: &Stage,
    what: What,
    sides: &[&str],
    (round, turns): (u32, usize),
) -> Result<Vec<Taken>> {
    let writers = if what.is_drift() { 1 } else { AT_ONCE };
    let mut all = Vec::new();
    for _ in sides {
        all.push(Taken {
            writes: 0,
            wall: Duration::ZERO,
            latencies: histogram()?,
            busy: Default::default(),
        });
    }
    for turn in 0..turns {
        for place in 0..sides.len() {
            let nth = (turn + place) % sides.len();
            let (side, taken) = (sides[nth], &mut all[nth]);
            let processes = [
                Some(plane.pid(Component::ApiServer)),
                Some(plane.pid(Component::Etcd)),
                stage.webhook_of(side),
            ];
            let busy = || processes.map(|process| process.map(machine::busy).unwrap_or_default());
            let (begun, before) = (Instant::now(), busy());
            let mut tasks = JoinSet::new();
            for writer in 0..writers {
                let first = (usize::try_from(round)? * turns + turn) * TURN;
                let writer = stage.writer(what, side, writer).context("no such namespace")?;
                tasks.spawn(async move { writer.write(first..first + TURN).await });
            }
            while let Some(took) = tasks.join_next().await {
                for nanoseconds in took?? {
                    taken.latencies.saturating_record(nanoseconds);
                    taken.writes += 1;
                }
            }
            taken.wall += begun.elapsed();
            for (busy, (after, before)) in taken.busy.iter_mut().zip(busy().into_iter().zip(before)) {
                *busy += after.saturating_sub(before);
            }
        }
    }
    Ok(all)
}
