//! What is counted. Labels have few values, and never name an object or a user.

use std::{
    fmt,
    time::{Instant, SystemTime, UNIX_EPOCH},
};

use kausality_core::{Decision, cause::Cause};
use prometheus_client::{
    encoding::{EncodeLabelSet, text},
    metrics::{
        counter::Counter,
        family::Family,
        gauge::{ConstGauge, Gauge},
        histogram::Histogram,
    },
    registry::Registry,
};

use crate::connection::capacity::Closed;

/// The content type of [`Metrics::text`].
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The webhook's name in labels: its path, as controller-runtime has it.
const WEBHOOK: Webhook = Webhook { webhook: "/admit" };

/// The code of a request whose client went away before there was an answer, as web servers log it.
const CLIENT_GONE: u16 = 499;

/// Upper bounds of latencies in seconds: from what a cached decision takes to what an API server waits.
const LATENCIES: [f64; 14] =
    [0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0];

/// Somebody who may not post reviews.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Client {
    reason: &'static str,
}

/// The metrics of the server, with those that others registered before.
pub struct Metrics {
    registry: Registry,
    requests: Family<Code, Counter>,
    latency: Histogram,
    in_flight: Gauge,
    decisions: Family<Outcome, Counter>,
    drifts: Family<Gate, Counter>,
    facts_left_out: Counter,
    bad_reviews: Counter,
    panics: Counter,
    clients_refused: Family<Client, Counter>,
    connections_closed: Family<Closed, Counter>,
}

impl Metrics {
    /// Adds the metrics of the server to a registry. The first two have the names of controller-runtime, so
    /// that dashboards for webhooks written in Go show this one too.
    #[must_use]
    pub fn new(mut registry: Registry) -> Self {
        let requests = Family::<Code, Counter>::default();
        let latency = Family::<Webhook, Histogram, _>::new_with_constructor(histogram as fn() -> Histogram);
        let in_flight = Family::<Webhook, Gauge>::default();
        let decisions = Family::<Outcome, Counter>::default();
        let drifts = Family::<Gate, Counter>::default();
        let facts_left_out = Counter::default();
        let bad_reviews = Counter::default();
        let panics = Counter::default();
        let clients_refused = Family::<Client, Counter>::default();
        let connections_closed = Family::<Closed, Counter>::default();
        let build =
            Family::<Build, ConstGauge, _>::new_with_constructor((|| ConstGauge::new(1)) as fn() -> _);
        drop(build.get_or_create(&Build { version: env!("CARGO_PKG_VERSION") }));
        let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();

        registry.register(
            "controller_runtime_webhook_requests",
            "Admission requests by HTTP status; 499 where the client went away",
            requests.clone(),
        );
        registry.register(
            "controller_runtime_webhook_latency_seconds",
            "Time from the head of an admission request to its answer",
            latency.clone(),
        );
        registry.register(
            "controller_runtime_webhook_requests_in_flight",
            "Admission requests under way",
            in_flight.clone(),
        );
        registry.register(
            "kausality_decisions",
            "Decisions by cause of the change, verdict and resolution",
            decisions.clone(),
        );
        registry.register(
            "kausality_drifts",
            "Changes that nobody asked for, by mode and by what let them pass or stopped them",
            drifts.clone(),
        );
        registry.register(
            "kausality_facts_left_out",
            "Objects without room for annotations of Kausality's, beside the others that they have",
            facts_left_out.clone(),
        );
        registry.register(
            "kausality_bad_reviews",
            "Bodies that were no admission review",
            bad_reviews.clone(),
        );
        registry.register("kausality_panics", "Requests that ended in a panic: bugs", panics.clone());
        registry.register(
            "kausality_clients_refused",
            "Requests of clients that may not post reviews, by what is wrong with their credentials",
            clients_refused.clone(),
        );
        registry.register(
            "kausality_connections_closed",
            "Connections closed for want of room: idle ones, or those that came when all were in use",
            connections_closed.clone(),
        );
        registry.register("kausality_build_info", "The version that runs", build);
        registry.register(
            "process_start_time_seconds",
            "When the server was set up, in seconds since 1970",
            ConstGauge::new(started),
        );
        Self {
            registry,
            requests,
            latency: latency.get_or_create_owned(&WEBHOOK),
            in_flight: in_flight.get_or_create_owned(&WEBHOOK),
            decisions,
            drifts,
            facts_left_out,
            bad_reviews,
            panics,
            clients_refused,
            connections_closed,
        }
    }

    /// All metrics of the registry as OpenMetrics text.
    ///
    /// # Errors
    /// If a metric that somebody else registered cannot be written.
    pub fn text(&self) -> Result<String, fmt::Error> {
        let mut all = String::new();
        text::encode(&mut all, &self.registry)?;
        Ok(all)
    }

    /// Follows one request.
    pub(crate) fn begin(&self) -> Observation<'_> {
        self.in_flight.inc();
        Observation { metrics: self, started: Instant::now(), code: CLIENT_GONE }
    }

    pub(crate) fn decided(&self, decision: &Decision) {
        let resolution = decision.resolution.as_str();
        let cause = decision.cause.map_or("none", Cause::as_str);
        let verdict = decision.verdict.as_str();
        self.decisions.get_or_create(&Outcome { cause, verdict, resolution }).inc();
        if decision.patch.left_out {
            self.facts_left_out.inc();
        }
        if decision.cause == Some(Cause::Drift) {
            let mode = decision.mode.map_or("none", |mode| mode.as_str());
            self.drifts.get_or_create(&Gate { mode, resolution }).inc();
        }
    }

    pub(crate) fn bad_review(&self) {
        self.bad_reviews.inc();
    }

    pub(crate) fn client_refused(&self, reason: &'static str) {
        self.clients_refused.get_or_create(&Client { reason }).inc();
    }

    pub(crate) fn connections_closed(&self) -> Family<Closed, Counter> {
        self.connections_closed.clone()
    }

    pub(crate) fn panicked(&self) {
        self.panics.inc();
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new(Registry::default())
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

/// One request, counted when this is dropped: a request whose client went away is dropped unanswered.
pub(crate) struct Observation<'a> {
    metrics: &'a Metrics,
    pub(crate) started: Instant,
    code: u16,
}

impl Observation<'_> {
    /// Says how the request ended.
    pub(crate) fn end(mut self, code: u16) {
        self.code = code;
    }
}

impl Drop for Observation<'_> {
    fn drop(&mut self) {
        self.metrics.in_flight.dec();
        self.metrics.latency.observe(self.started.elapsed().as_secs_f64());
        self.metrics.requests.get_or_create(&Code { webhook: WEBHOOK.webhook, code: self.code }).inc();
    }
}

fn histogram() -> Histogram {
    Histogram::new(LATENCIES)
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Webhook {
    webhook: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Code {
    webhook: &'static str,
    code: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Outcome {
    cause: &'static str,
    verdict: &'static str,
    resolution: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Gate {
    mode: &'static str,
    resolution: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Build {
    version: &'static str,
}
