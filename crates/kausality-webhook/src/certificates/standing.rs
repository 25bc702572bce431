//! Whether API servers can accept the certificate that is served.

use std::time::Duration;

use jiff::Timestamp;
use rustls::{
    client::verify_server_name,
    pki_types::{CertificateDer, ServerName},
    server::ParsedCertificate,
};
use x509_parser::prelude::{FromDer, X509Certificate};

use super::Certificates;

/// How often it is looked whether the certificate is still valid.
const LOOK: Duration = Duration::from_secs(5);

/// Why API servers refuse a certificate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Its time is over.
    #[error("the certificate ({origin}) expired at {until}; renew it")]
    Expired {
        /// Where it comes from.
        origin: String,
        /// Since when.
        until: Timestamp,
    },
    /// Its time has not come.
    #[error("the certificate ({origin}) is not valid before {from}; check the clocks, or issue another one")]
    NotYetValid {
        /// Where it comes from.
        origin: String,
        /// From when on it is valid.
        from: Timestamp,
    },
    /// API servers call the webhook by another name.
    #[error(
        "the certificate ({origin}) is not for {wanted}; issue one with that among its subject alternative names"
    )]
    OtherName {
        /// Where it comes from.
        origin: String,
        /// The names that they call it by.
        wanted: String,
    },
}

impl Fault {
    /// Whether nobody at all can accept the certificate. The name is a matter of who calls.
    #[must_use]
    pub fn is_for_everybody(&self) -> bool {
        !matches!(self, Self::OtherName { .. })
    }
}

impl Certificates {
    /// What is wrong with the certificate that the next handshake shows. `names` are those that API servers call the webhook
    /// by; it must be for one of them, if there are any. What is no certificate has no fault: it cannot be served.
    #[must_use]
    pub fn fault(&self, names: &[String], now: Timestamp) -> Option<Fault> {
        let shown = self.shown()?;
        let (_, read) = X509Certificate::from_der(&shown).ok()?;
        let time = |seconds| Timestamp::from_second(seconds).ok();
        let validity = read.validity();
        let origin = self.origin.clone();
        if let Some(until) = time(validity.not_after.timestamp()).filter(|until| *until < now) {
            return Some(Fault::Expired { origin, until });
        }
        if let Some(from) = time(validity.not_before.timestamp()).filter(|from| *from > now) {
            return Some(Fault::NotYetValid { origin, from });
        }
        let der = CertificateDer::from(shown.as_slice());
        let parsed = ParsedCertificate::try_from(&der).ok()?;
        let is_for = |name: &String| {
            ServerName::try_from(name.as_str()).is_ok_and(|name| verify_server_name(&parsed, &name).is_ok())
        };
        let is_meant = names.is_empty() || names.iter().any(is_for);
        (!is_meant).then(|| Fault::OtherName { origin, wanted: names.join(" or ") })
    }

    /// Logs what is wrong with the certificate whenever that changes, for ever.
    pub(crate) async fn watch(self, names: Vec<String>) {
        let mut said = None;
        let mut looks = tokio::time::interval(LOOK);
        loop {
            looks.tick().await;
            tell(&mut said, self.fault(&names, Timestamp::now()));
        }
    }
}

/// Logs a fault, unless that was `said` before. Whether it did.
fn tell(said: &mut Option<Fault>, fault: Option<Fault>) -> bool {
    if *said == fault {
        return false;
    }
    match &fault {
        Some(fault) => tracing::error!(%fault, "API servers refuse the certificate of the webhook"),
        None => tracing::info!("API servers accept the certificate of the webhook again"),
    }
    *said = fault;
    true
}

#[cfg(test)]
mod tests;
