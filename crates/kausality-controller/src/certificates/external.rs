//! CAs that somebody else makes, and how one follows the other.
//!
//! When there is another, replicas of the webhook take its certificate at different times. So API servers trust both for a
//! while. How long that has been so is not stored: a leader that has just begun counts anew, and the old one is trusted for
//! longer, never for less.

use jiff::{SignedDuration, Timestamp};
use rustls::pki_types::{CertificateDer, pem::PemObject};
use x509_parser::prelude::{FromDer, X509Certificate};

/// How a PEM certificate ends.
const END: &str = "-----END CERTIFICATE-----";

/// CAs that are trusted beside the present ones.
#[derive(Debug, Default)]
pub struct Overlap {
    old: String,
    since: Option<Timestamp>,
}

impl Overlap {
    /// The bundle for API servers to trust, and when there will be another. `trusted` is the one that they have; `present`
    /// are the CAs as somebody has written them.
    pub fn bundle(
        &mut self,
        now: Timestamp,
        trusted: Option<&str>,
        present: &str,
        settling: SignedDuration,
    ) -> (String, Option<Timestamp>) {
        let old = left_over(trusted.unwrap_or_default(), present);
        if old != self.old {
            *self = Self { since: (!old.is_empty()).then_some(now), old };
        }
        let until = self.since.map(|since| super::add(since, settling)).filter(|until| *until > now);
        let mut bundle = present.to_owned();
        if until.is_some() {
            if !bundle.ends_with('\n') {
                bundle.push('\n');
            }
            bundle.push_str(&self.old);
        }
        (bundle, until)
    }
}

/// The certificates of a text that are not in another.
pub(super) fn left_over(trusted: &str, present: &str) -> String {
    let known: Vec<&str> = blocks(present).collect();
    blocks(trusted).filter(|block| !known.contains(block)).map(|block| format!("{block}\n")).collect()
}

/// The certificates of a PEM text, as they are written.
fn blocks(pem: &str) -> impl Iterator<Item = &str> {
    let ended = pem.split_inclusive(END).filter(|block| block.ends_with(END));
    ended.filter_map(|block| block.find("-----BEGIN").and_then(|begin| block.get(begin..)))
}

/// When the last of the certificates in a text is over.
#[must_use]
pub fn expiry(pem: &str) -> Option<Timestamp> {
    let ends = CertificateDer::pem_slice_iter(pem.as_bytes()).filter_map(|der| {
        let der = der.ok()?;
        let (_, certificate) = X509Certificate::from_der(&der).ok()?;
        Timestamp::from_second(certificate.validity().not_after.timestamp()).ok()
    });
    ends.max()
}
