//! Webhooks side by side: the most that each takes, and its latency at half of what the null webhook takes.

use std::{sync::Arc, time::Duration};

use anyhow::{Context, Result, ensure};
use kausality_webhook::Bytes;
use serde_json::{Value, json};

use crate::{
    Plan,
    contestant::{Process, Role},
    figures::{Latencies, Report, Rounds, print_table},
    generator::Load,
    machine::{self, Seat},
    passport::Passport,
    reviews::Recorded,
    wire::{Protocol, Wire},
};

/// A webhook, and how it has done so far.
struct Contestant {
    name: String,
    url: String,
    /// Its process, if we started it.
    process: Option<Process>,
    protocol: Protocol,
    /// What is shown to it.
    passport: Option<Passport>,
    throughput: Rounds,
    /// Requests for each second that a processor worked for it.
    capacity: Rounds,
    /// How much of the time a processor worked for it, in percent.
    busy: Rounds,
    latencies: Latencies,
    answered: u64,
    failed: u64,
}

impl Contestant {
    fn at(name: &str, url: String, process: Option<Process>, protocol: Protocol) -> Self {
        Self {
            name: name.to_owned(),
            url,
            process,
            protocol,
            passport: None,
            throughput: Rounds::default(),
            capacity: Rounds::default(),
            busy: Rounds::default(),
            latencies: Latencies::default(),
            answered: 0,
            failed: 0,
        }
    }

    fn start(name: &str, role: Role, protocol: Protocol) -> Result<Self> {
        let mut process = Process::start(role, 0)?;
        let told = process.hear()?;
        let url = told["url"].as_str().context("a server without a URL")?.to_owned();
        let passport = Passport::read(&told["passport"])?;
        Ok(Self { passport, ..Self::at(name, url, Some(process), protocol) })
    }

    async fn load(&mut self, reviews: &Arc<[Bytes]>) -> Result<Load> {
        let wire = Arc::new(Wire::connect(&self.url, self.protocol, self.passport.as_ref()).await?);
        self.protocol = wire.protocol();
        Ok(Load { wire, reviews: reviews.clone() })
    }

    async fn take_all(&mut self, reviews: &Arc<[Bytes]>, plan: &Plan) -> Result<()> {
        let load = self.load(reviews).await?;
        let busy = || self.process.as_ref().map(Process::busy).unwrap_or_default();
        let closed = load.closed(plan.warm_up, plan.round, busy).await?;
        #[allow(clippy::cast_precision_loss, reason = "there are not that many")]
        let answered = closed.answered as f64;
        self.throughput.push(answered / closed.wall.as_secs_f64());
        if self.process.is_some() {
            self.capacity.push(answered / closed.busy.as_secs_f64());
            self.busy.push(100.0 * closed.busy.as_secs_f64() / closed.wall.as_secs_f64());
        }
        self.answered += closed.answered;
        self.failed += closed.failed;
        Ok(())
    }

    async fn keep_pace(&mut self, reviews: &Arc<[Bytes]>, plan: &Plan, rate: f64) -> Result<()> {
        let open = self.load(reviews).await?.open(plan.warm_up, plan.round, rate).await?;
        self.latencies.push(&open.latencies);
        self.answered += open.latencies.len();
        self.failed += open.failed + open.unsent;
        Ok(())
    }

    fn row(&self) -> Vec<String> {
        let ours = |rounds: &Rounds, digits| {
            if self.process.is_some() { rounds.show(digits) } else { "?".to_owned() }
        };
        vec![
            format!("{} ({})", self.name, self.protocol.name()),
            self.throughput.show(0),
            ours(&self.capacity, 0),
            ours(&self.busy, 0),
            self.latencies.p50.show(0),
            self.latencies.p99.show(0),
            self.latencies.p999.show(0),
            self.failed.to_string(),
        ]
    }

    fn json(&self) -> Value {
        json!({"protocol": self.protocol.name(), "throughput": self.throughput.json(), "capacity": self.capacity.json(),
            "busy": self.busy.json(), "latency": self.latencies.json(), "answered": self.answered, "failed": self.failed})
    }
}

/// Measures all of it.
pub(crate) fn measure(plan: &Plan, report: &mut Report) -> Result<Value> {
    let reviews: Arc<[Bytes]> = Recorded::read()?.bodies().into();
    let mut figures = serde_json::Map::new();
    for protocol in [Protocol::Http1, Protocol::Http2] {
        figures.insert(protocol.name().to_owned(), compare(plan, &reviews, protocol, report)?);
    }
    Ok(Value::Object(figures))
}

/// Measures everybody over one protocol.
fn compare(plan: &Plan, reviews: &Arc<[Bytes]>, protocol: Protocol, report: &mut Report) -> Result<Value> {
    let mut contestants = vec![
        Contestant::start("null", Role::Null, protocol)?,
        Contestant::start("ours", Role::Ours, protocol)?,
        Contestant::start("reader", Role::Reader, protocol)?,
        Contestant::start("guarded", Role::Guarded, protocol)?,
    ];
    contestants.extend(plan.others.iter().map(|url| Contestant::at(url, url.clone(), None, protocol)));
    let (rate, calls) = machine::seated(Seat::Generator, || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(run(&mut contestants, reviews, plan))
    })?;
    ensure!(calls["drifts"] == 0, "some of the reviews were drift: {calls}");

    let title = format!(
        "Webhooks: {} recorded reviews, {} rounds of {:?}; latency at {rate:.0} requests/s, in µs",
        reviews.len(),
        plan.rounds,
        plan.round
    );
    let header = ["webhook", "requests/s", "per processor second", "busy %", "p50", "p99", "p99.9", "failed"];
    print_table(&title, &header, contestants.iter().map(Contestant::row).collect());
    let [null, ours, reader, guarded, ..] = contestants.as_slice() else {
        anyhow::bail!("there must be four")
    };
    let (asked, kept) =
        (requests(&calls, &["reads", "writes", "lists"]), requests(&calls, &["watches", "discovery"]));
    #[allow(clippy::cast_precision_loss, reason = "there are not that many")]
    let per_request = asked as f64 / ours.answered.max(1) as f64;
    println!(
        "ours: {asked} reads and writes of the API for {} requests; {kept} calls to keep up watches and discovery",
        ours.answered
    );
    let over = protocol.name();
    let of = |figures: &Rounds, null: &Rounds| figures.median() / null.median();
    let throughput = of(&ours.throughput, &null.throughput);
    report.at_least(&format!("throughput over {over}, of the null webhook's"), throughput, 0.8, "x");
    let capacity = of(&ours.capacity, &null.capacity);
    report.at_least(&format!("the same for each second of a processor, {over}"), capacity, 0.8, "x");
    // Both are ours, in the same rounds: whatever else the machine does meets both.
    let certificates = of(&guarded.throughput, &ours.throughput);
    let what = format!("throughput over {over} with client certificates, of that without");
    report.at_least(&what, certificates, 0.95, "x");
    let certificates = of(&guarded.capacity, &ours.capacity);
    let what = format!("the same for each second of a processor, {over}, with client certificates");
    report.at_least(&what, certificates, 0.95, "x");
    println!(
        "reader, which only finds out whether a review is JSON: {:.2} x the null webhook's throughput",
        of(&reader.throughput, &null.throughput)
    );
    let p99 = of(&ours.latencies.p99, &null.latencies.p99);
    report.at_most(
        &format!("p99 over {over} at half the null webhook's throughput, of its own"),
        p99,
        2.0,
        "x",
    );
    report.at_most(&format!("API calls for a request that is no drift, {over}"), per_request, 0.0, "");
    let figures = contestants.iter().map(|contestant| (contestant.name.clone(), contestant.json()));
    Ok(json!({"webhooks": Value::Object(figures.collect()), "rate": rate, "calls": calls}))
}

/// All rounds, everybody in turn. The rate at which latency was measured, and what ours asked the API meanwhile.
async fn run(contestants: &mut [Contestant], reviews: &Arc<[Bytes]>, plan: &Plan) -> Result<(f64, Value)> {
    for contestant in contestants.iter_mut() {
        contestant.load(reviews).await?.check().await.with_context(|| contestant.name.clone())?;
    }
    let before = state(contestants)?;
    for round in 0..plan.rounds {
        for contestant in contestants.iter_mut() {
            eprintln!("round {} of {}: the most that {} takes", round + 1, plan.rounds, contestant.name);
            contestant.take_all(reviews, plan).await.with_context(|| contestant.name.clone())?;
        }
    }
    let null = contestants.first().context("nobody is there")?;
    let rate = null.throughput.median() / 2.0;
    for round in 0..plan.rounds {
        for contestant in contestants.iter_mut() {
            let name = contestant.name.clone();
            eprintln!("round {} of {}: {name} at {rate:.0} requests/s", round + 1, plan.rounds);
            contestant.keep_pace(reviews, plan, rate).await.context(name)?;
            // What one left to be done must not slow the next one down.
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
    let after = state(contestants)?;
    let calls = ["reads", "writes", "lists", "watches", "discovery"].into_iter();
    let number = |state: &Value, call: &str| state["calls"][call].as_u64().unwrap_or_default();
    let calls = calls.map(|call| (call.to_owned(), (number(&after, call) - number(&before, call)).into()));
    let mut calls: serde_json::Map<String, Value> = calls.collect();
    calls.insert("drifts".to_owned(), after["drifts"].clone());
    Ok((rate, Value::Object(calls)))
}

/// What ours tells of itself.
fn state(contestants: &mut [Contestant]) -> Result<Value> {
    let ours = contestants.get_mut(1).and_then(|ours| ours.process.as_mut());
    ours.context("ours is not there")?.ask()
}

fn requests(calls: &Value, sorts: &[&str]) -> u64 {
    sorts.iter().map(|sort| calls[*sort].as_u64().unwrap_or_default()).sum()
}
