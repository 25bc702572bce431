//! What the controller counts.

use std::sync::atomic::AtomicU64;

use jiff::Timestamp;
use prometheus_client::{
    metrics::{
        counter::Counter,
        family::Family,
        gauge::{ConstGauge, Gauge},
    },
    registry::Registry,
};

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
        let expiry =
            "When a certificate is over, in seconds since 1970; that of the CA is known to the leader";
        registry.register("kausality_certificate_expiry_timestamp_seconds", expiry, self.expiry.clone());
        let build = Family::<[(&'static str, &'static str); 1], ConstGauge, _>::new_with_constructor(
            (|| ConstGauge::new(1)) as fn() -> _,
        );
        drop(build.get_or_create(&[("version", env!("CARGO_PKG_VERSION"))]));
        registry.register("kausality_build_info", "The version that runs", build);
    }

    /// Whether this replica leads. What only the leader knows is forgotten with it: an old figure would look like one that
    /// nobody cares about.
    pub fn leading(&self, leads: bool) {
        self.leading.set(leads.into());
        if !leads {
            self.expiry.clear();
        }
    }

    pub(crate) fn reconciled(&self, well: bool) {
        self.reconciles.get_or_create(&[("outcome", if well { "ok" } else { "failed" })]).inc();
    }

    /// When the last of the CAs that API servers are to trust is over, where that is known.
    pub(crate) fn certified(&self, ca: Option<Timestamp>) {
        match ca {
            Some(until) => _ = self.expiry.get_or_create(&[CA]).set(until.as_second() as f64),
            None => _ = self.expiry.remove(&[CA]),
        }
    }
}

/// The certificate of the CA; that of the webhook is told of by whoever serves it.
const CA: (&str, &str) = ("certificate", "ca");

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(metrics: &Metrics) -> String {
        let mut registry = Registry::default();
        metrics.register(&mut registry);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        text
    }

    #[test]
    fn who_leads_no_more_tells_of_no_certificate() {
        let metrics = Metrics::default();
        let expiry = "kausality_certificate_expiry_timestamp_seconds{certificate=\"ca\"} 7200.0";
        metrics.leading(true);
        metrics.certified(Timestamp::from_second(7200).ok());
        assert!(shown(&metrics).contains(expiry), "{}", shown(&metrics));
        metrics.leading(false);
        assert!(!shown(&metrics).contains(expiry), "{}", shown(&metrics));
    }

    #[test]
    fn the_version_is_told() {
        let version = format!("kausality_build_info{{version=\"{}\"}} 1", env!("CARGO_PKG_VERSION"));
        assert!(shown(&Metrics::default()).contains(&version), "{}", shown(&Metrics::default()));
    }
}
