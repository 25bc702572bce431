//! Whether this replica can be asked, and how long its certificate lasts, as metrics.

use std::{fmt, sync::Arc};

use kausality_cluster::Cluster;
use kausality_webhook::Certificates;
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric},
    metrics::{MetricType, counter::ConstCounter, gauge::ConstGauge},
};
use x509_parser::prelude::{FromDer, X509Certificate};

/// Looks whenever metrics are asked for.
pub(super) struct Served {
    pub(super) cluster: Arc<Cluster>,
    pub(super) certificates: Certificates,
}

impl fmt::Debug for Served {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Served")
    }
}

impl Collector for Served {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let ready = self.cluster.is_synced() && self.certificates.is_ready();
        let help = "Whether this replica has all that it needs to answer";
        let metric = encoder.encode_descriptor("kausality_webhook_ready", help, None, MetricType::Gauge)?;
        ConstGauge::new(f64::from(u8::from(ready))).encode(metric)?;
        let help = "Reviews that had no effect, since the object that they speak of is not as they say";
        let metric =
            encoder.encode_descriptor("kausality_reviews_disproved", help, None, MetricType::Counter)?;
        ConstCounter::new(self.cluster.disproved()).encode(metric)?;
        if let Some(expiry) = self.certificates.shown().as_deref().and_then(expiry) {
            let name = "kausality_certificate_expiry_timestamp_seconds";
            let help = "When the certificate that this replica serves is over, in seconds since 1970";
            let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            ConstGauge::new(expiry).encode(metric.encode_family(&[("certificate", "serving")])?)?;
        }
        Ok(())
    }
}

/// When a certificate is over.
fn expiry(certificate: &[u8]) -> Option<f64> {
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    Some(certificate.validity().not_after.timestamp() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_certificate_that_is_served_says_when_it_is_over() {
        let certificates = Certificates::handed_over("a test");
        assert!(certificates.shown().is_none());
        let mut params = rcgen::CertificateParams::new(["localhost".to_owned()]).unwrap();
        params.not_after = rcgen::date_time_ymd(2030, 1, 1);
        let key = rcgen::KeyPair::generate().unwrap();
        let made = params.self_signed(&key).unwrap();
        certificates.set(made.pem().as_bytes(), key.serialize_pem().as_bytes()).unwrap();
        let shown = certificates.shown().unwrap();
        assert_eq!(expiry(&shown), Some(1_893_456_000.0));
        assert_eq!(expiry(b"no certificate"), None);
    }
}
