//! What the controller counts.

use std::sync::atomic::AtomicU64;

use prometheus_client::{
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

use crate::certificates::Stored;

/// Whether it leads, what it does, and how long certificates last. Clones count together.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    leading: Gauge,
    reconciles: Family<[(&'static str, &'static str); 1], Counter>,
    expiry: Family<[(&'static str, &'static str); 1], Gauge<f64, AtomicU64>>,
}

impl Metrics {
    /// Has them shown.
    pub fn register(&self, registry: &mut Registry) {
        let leading = "Whether this replica leads";
        registry.register("kausality_controller_leading", leading, self.leading.clone());
        let reconciles = "How often everything was looked at, by whether all is as it should be now";
        registry.register("kausality_controller_reconciles", reconciles, self.reconciles.clone());
        let expiry = "When a certificate is over, in seconds since 1970; known to the leader";
        registry.register("kausality_certificate_expiry_timestamp_seconds", expiry, self.expiry.clone());
    }

    /// Whether this replica leads.
    pub fn leading(&self, leads: bool) {
        self.leading.set(leads.into());
    }

    pub(crate) fn reconciled(&self, well: bool) {
        self.reconciles.get_or_create(&[("outcome", if well { "ok" } else { "failed" })]).inc();
    }

    pub(crate) fn certified(&self, stored: &Stored) {
        let ca = stored.authority.as_ref().map(|authority| authority.term.until);
        let serving = stored.serving.as_ref().map(|serving| serving.term.until);
        for (name, until) in [("ca", ca), ("serving", serving)] {
            if let Some(until) = until {
                self.expiry.get_or_create(&[("certificate", name)]).set(until.as_second() as f64);
            }
        }
    }
}
