//! How the watches and the ledger are doing, as metrics.

use std::{fmt, sync::Arc};

use kausality_cluster::{Cluster, WatchHealth};
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
};

/// Reads the health of a cluster's watches, and of its ledger, whenever metrics are asked for.
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
            let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for watch in &watches {
                if let Some(value) = value(watch) {
                    let labels = [("group", watch.group.as_str()), ("kind", watch.kind.as_str())];
                    ConstGauge::new(value).encode(metric.encode_family(&labels)?)?;
                }
            }
        }
        let help = "Drifts that were not entered into the ledger, since so many wait for somebody";
        let mut metric =
            encoder.encode_descriptor("kausality_drifts_not_entered", help, None, MetricType::Counter)?;
        for (reason, count) in self.0.not_entered() {
            ConstCounter::new(count).encode(metric.encode_family(&[("reason", reason)])?)?;
        }
        Ok(())
    }
}
