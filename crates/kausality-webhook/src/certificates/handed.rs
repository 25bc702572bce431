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
        self.0.load_full()
    }
}
