//! What delivery counts.

use kausality_api::report::ReportPhase;
use prometheus_client::{
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

/// What was told to whom, and what waits. Clones count together.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    deliveries: Family<[(&'static str, String); 3], Counter>,
    pending: Family<[(&'static str, String); 1], Gauge>,
}

impl Metrics {
    /// Has them shown.
    pub fn register(&self, registry: &mut Registry) {
        let deliveries = "How often a report was sent to an endpoint, by whether it took it over";
        registry.register("kausality_report_deliveries", deliveries, self.deliveries.clone());
        let pending = "How many drifts an endpoint has yet to hear of; known to the leader";
        registry.register("kausality_report_pending", pending, self.pending.clone());
    }

    pub(crate) fn sent(&self, endpoint: &str, phase: ReportPhase, well: bool) {
        let outcome = if well { "ok" } else { "failed" };
        let labels = [
            ("endpoint", endpoint.to_owned()),
            ("phase", phase_name(phase).to_owned()),
            ("outcome", outcome.to_owned()),
        ];
        self.deliveries.get_or_create(&labels).inc();
    }

    pub(crate) fn pending(&self, endpoint: &str, drifts: usize) {
        let drifts = i64::try_from(drifts).unwrap_or(i64::MAX);
        self.pending.get_or_create(&[("endpoint", endpoint.to_owned())]).set(drifts);
    }
}

/// The word for a phase.
#[must_use]
pub fn phase_name(phase: ReportPhase) -> &'static str {
    match phase {
        ReportPhase::Detected => "Detected",
        ReportPhase::Resolved => "Resolved",
    }
}
