//! How the watches are doing, as metrics.

use std::{fmt, sync::Arc};

use kausality_cluster::{Cluster, WatchHealth};
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::gauge::ConstGauge,
};

/// Reads the health of a cluster's watches whenever metrics are asked for.
pub(super) struct Watches(pub(super) Arc<Cluster>);

impl fmt::Debug for Watches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watches")
    }
}

/// A gauge: its name, what it says, and its value for one kind, where it has one.
type Gauge = (&'static str, &'static str, fn(&WatchHealth) -> Option<f64>);

const GAUGES: [Gauge; 4] = [
    ("kausality_watch_objects", "Objects of a kind that are known from its watch", |watch| {
        Some(watch.health.objects as f64)
    }),
    ("kausality_watch_synced", "Whether the watch of a kind has told everything once", |watch| {
        Some(f64::from(u8::from(watch.health.synced)))
    }),
    ("kausality_watch_outage_seconds", "How long the watch of a kind has been broken", |watch| {
        Some(watch.health.outage.map_or(0.0, |outage| outage.as_secs_f64()))
    }),
    (
        "kausality_watch_silence_seconds",
        "How long ago the API server last showed that it still watches",
        |watch| watch.health.silence.map(|silence| silence.as_secs_f64()),
    ),
];

impl Collector for Watches {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let watches = self.0.health();
        for (name, help, value) in GAUGES {
            let kind = prometheus_client::metrics::MetricType::Gauge;
            let mut metric = encoder.encode_descriptor(name, help, None, kind)?;
            for watch in &watches {
                if let Some(value) = value(watch) {
                    let labels = [("group", watch.group.as_str()), ("kind", watch.kind.as_str())];
                    ConstGauge::new(value).encode(metric.encode_family(&labels)?)?;
                }
            }
        }
        Ok(())
    }
}
