//! A pair that somebody hands over, and again when there is another.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use rustls::{
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};

use super::{CertificateError, certified};

/// The last good pair; none to begin with.
#[derive(Debug, Default)]
pub(super) struct Handed(ArcSwapOption<CertifiedKey>);

impl Handed {
    pub(super) fn is_there(&self) -> bool {
        self.0.load().is_some()
    }

    pub(super) fn current(&self) -> Option<Arc<CertifiedKey>> {
        self.0.load_full()
    }

    /// The errors of the PEM parser are not passed on, for they quote lines.
    pub(super) fn set(&self, certificate: &[u8], key: &[u8]) -> Result<(), CertificateError> {
        let chain = CertificateDer::pem_slice_iter(certificate)
            .collect::<Result<Vec<_>, _>>()
            .ok()
            .filter(|chain| !chain.is_empty())
            .ok_or_else(|| CertificateError::NoCertificate { path: "the certificate".into() })?;
        let key = PrivateKeyDer::from_pem_slice(key)
            .map_err(|_| CertificateError::NoKey { path: "the private key".into() })?;
        self.0.store(Some(Arc::new(certified(chain, key)?)));
        Ok(())
    }
}

impl ResolvesServerCert for Handed {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.current()
    }
}

#[cfg(test)]
mod tests {
    use crate::Certificates;

    fn pair() -> (String, String) {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        (made.cert.pem(), made.signing_key.serialize_pem())
    }

    #[test]
    fn what_cannot_be_used_leaves_the_one_before_in_use_and_quotes_no_key() {
        let certificates = Certificates::handed_over("a test");
        let ((certificate, key), (_, stranger)) = (pair(), pair());
        assert!(!certificates.is_ready(), "there is none yet");
        for (certificate, key) in [("", ""), (&*certificate, ""), ("", &*key), (&*certificate, &*stranger)] {
            let error = certificates.set(certificate.as_bytes(), key.as_bytes()).unwrap_err();
            let secret = key.lines().nth(1).unwrap_or("-----BEGIN");
            assert!(!error.to_string().contains(secret), "{error}");
            assert!(!certificates.is_ready());
        }
        certificates.set(certificate.as_bytes(), key.as_bytes()).unwrap();
        assert!(certificates.is_ready());
        certificates.set(b"", b"").unwrap_err();
        assert!(certificates.is_ready());
    }

    #[test]
    fn those_that_are_made_up_are_ready_at_once() {
        assert!(Certificates::self_signed(&["localhost".to_owned()], &[]).unwrap().is_ready());
    }
}
