//! What admission costs: `cargo bench -p kausality --bench load [-- --quick] [--json FILE] [--other URL]… [PART…]`.
//!
//! ```text
//!  contest   generator ──HTTP, TLS──▶ null webhook          writes    clients ──▶ API server ──▶ kausality webhook
//!            (this process)       ──▶ ours, on an API in memory       (a real control plane, with us and without)
//!                                 ──▶ any other, by its URL
//!  parents   a fresh process each: memory and start-up      cost      one decision, with many policies or objects
//!  hot       a controller that drifts 1,000 times a second ──▶ kausality webhook ──▶ a real API server
//! ```
//!
//! - `contest`: the most that each webhook can take, then the latency of each at the same rate. The null webhook is our
//!   server with nobody behind it: the difference is what deciding costs. `guarded` is ours with client certificates. Recorded
//!   reviews, none of them drift.
//! - `writes`: how long the API server takes for an update that is reviewed, and for one that is not.
//! - `tax`: what a write costs the API server, etcd and the webhook, beside null webhooks and none.
//! - `clients`: what it costs the webhook that a real API server shows it a client certificate.
//! - `parents`: memory for each watched parent, and how long it takes until all are known.
//! - `cost`: one decision against the number of policies, and of watched objects.
//! - `hot`: what one drift in a hot loop costs others, and the API server.
//!
//! All that is compared is measured in turns, so that what else the machine does meets everybody. Where there are two
//! processors or more, servers have one to themselves, and the generator another.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "this is what it is for")]

use std::{path::PathBuf, time::Duration};

use anyhow::{Context, Result};
use clap::{Parser, ValueEnum};
use serde_json::{Map, Value};
use tracing_subscriber::{
    Layer as _,
    filter::{LevelFilter, Targets},
    layer::SubscriberExt as _,
    util::SubscriberInitExt as _,
};

mod api;
mod clients;
mod contest;
mod contestant;
mod cost;
mod deployments;
mod figures;
mod garden;
mod generator;
mod hot;
mod machine;
mod parents;
mod passport;
mod reviews;
mod tax;
mod wire;
mod writes;

use contestant::Role;
use figures::Report;

/// Measure what admission costs.
#[derive(Debug, Parser)]
struct Arguments {
    /// What to measure [default: all]
    part: Vec<Part>,

    /// Short rounds: to see that it works, not for figures
    #[arg(long)]
    quick: bool,

    /// Write all figures into this file, too
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Another webhook to compare with; may be given several times
    #[arg(long, value_name = "URL")]
    other: Vec<String>,

    /// How often everything is measured
    #[arg(long, value_name = "COUNT", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,

    /// What cargo passes to every benchmark
    #[arg(long, hide = true)]
    bench: bool,

    /// What this process is, if not the one that a person started
    #[arg(long, hide = true)]
    role: Option<Role>,

    /// How many parents there are for it
    #[arg(long, hide = true, default_value_t = 0)]
    count: usize,
}

/// What can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Throughput and latency of webhooks
    Contest,
    /// Latency of writes at the API server
    Writes,
    /// What a write costs the API server, etcd and webhooks
    Tax,
    /// Webhooks with and without client authentication, asked by an API server
    Clients,
    /// Memory and start-up
    Parents,
    /// Cost of a decision
    Cost,
    /// A drift in a hot loop
    Hot,
}

/// How long to measure, and how much.
#[derive(Clone, Debug)]
struct Plan {
    rounds: u32,
    /// How long a round takes, after a warm-up.
    round: Duration,
    warm_up: Duration,
    /// The numbers of parents.
    parents: Vec<usize>,
    /// Writes in one round, one after the other.
    writes: usize,
    /// Decisions in one round.
    decisions: usize,
    /// How long a hot loop takes.
    hot: Duration,
    others: Vec<String>,
}

impl Plan {
    fn of(arguments: &Arguments) -> Self {
        let (rounds, others) = (arguments.rounds, arguments.other.clone());
        if arguments.quick {
            return Self {
                rounds,
                round: Duration::from_millis(600),
                warm_up: Duration::from_millis(200),
                parents: vec![1_000, 10_000],
                writes: 40,
                decisions: 2_000,
                hot: Duration::from_secs(3),
                others,
            };
        }
        Self {
            rounds,
            round: Duration::from_secs(8),
            warm_up: Duration::from_secs(2),
            parents: vec![1_000, 10_000, 100_000],
            writes: 400,
            decisions: 20_000,
            hot: Duration::from_secs(60),
            others,
        }
    }
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    // What the API server refuses is looked at where it is asked: until a webhook is up, it refuses much.
    let said = Targets::new().with_default(LevelFilter::WARN).with_target("kube_client", LevelFilter::OFF);
    let shown = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    tracing_subscriber::registry().with(shown.with_filter(said)).init();
    if let Some(role) = arguments.role {
        return contestant::play(role, arguments.count);
    }
    let plan = Plan::of(&arguments);
    let mut report = Report::default();
    let mut figures = Map::new();
    let wanted = |part| arguments.part.is_empty() || arguments.part.contains(&part);
    type Measure = fn(&Plan, &mut Report) -> Result<Value>;
    let parts: [(Part, &str, Measure); 7] = [
        (Part::Contest, "contest", contest::measure),
        (Part::Writes, "writes", writes::measure),
        (Part::Tax, "tax", tax::measure),
        (Part::Clients, "clients", clients::measure),
        (Part::Parents, "parents", parents::measure),
        (Part::Cost, "cost", cost::measure),
        (Part::Hot, "hot", hot::measure),
    ];
    for (part, name, measure) in parts {
        if wanted(part) {
            figures.insert(name.to_owned(), measure(&plan, &mut report).context(name)?);
        }
    }
    report.print_budgets();
    figures.insert("budgets".to_owned(), report.budgets());
    figures.insert("machine".to_owned(), machine::describe());
    figures.insert("rounds".to_owned(), plan.rounds.into());
    if let Some(file) = arguments.json {
        let text = serde_json::to_string_pretty(&Value::Object(figures))?;
        std::fs::write(&file, text + "\n").with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(())
}
