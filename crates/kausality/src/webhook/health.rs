//! How the watches are doing, as metrics.

use std::{fmt, sync::Arc};

use kausality_cluster::{Cluster, IndexHealth};
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::gauge::ConstGauge,
};

/// Reads the health of a cluster's indexes whenever metrics are asked for.
pub(super) struct Watches(pub(super) Arc<Cluster>);

impl fmt::Debug for Watches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watches")
    }
}

/// A gauge: its name, what it says, and its value for one kind, where it has one.
type Gauge = (&'static str, &'static str, fn(&IndexHealth) -> Option<f64>);

const GAUGES: [Gauge; 4] = [
    ("kausality_index_objects", "Objects of a kind that are known from its watch", |index| {
        Some(index.health.objects as f64)
    }),
    ("kausality_index_synced", "Whether the watch of a kind has told everything once", |index| {
        Some(f64::from(u8::from(index.health.synced)))
    }),
    ("kausality_index_outage_seconds", "How long the watch of a kind has been broken", |index| {
        Some(index.health.outage.map_or(0.0, |outage| outage.as_secs_f64()))
    }),
    ("kausality_index_last_event_age_seconds", "How long ago the watch of a kind told something", |index| {
        index.health.silence.map(|silence| silence.as_secs_f64())
    }),
];

impl Collector for Watches {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let indexes = self.0.health();
        for (name, help, value) in GAUGES {
            let kind = prometheus_client::metrics::MetricType::Gauge;
            let mut metric = encoder.encode_descriptor(name, help, None, kind)?;
            for index in &indexes {
                if let Some(value) = value(index) {
                    let labels = [("group", index.group.as_str()), ("kind", index.kind.as_str())];
                    ConstGauge::new(value).encode(metric.encode_family(&labels)?)?;
                }
            }
        }
        Ok(())
    }
}
