//! A pair of files that handshakes read again when they change.

use std::{path::PathBuf, sync::Arc};

use rustls::{
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};

use super::{CertificateError, certified};
use crate::reread::Reread;

/// The files, and the last good pair that was in them.
#[derive(Debug)]
pub(super) struct Files(Reread<CertifiedKey>);

impl Files {
    pub(super) fn open(certificate: PathBuf, key: PathBuf) -> Result<Self, CertificateError> {
        Reread::open("certificate", vec![certificate, key], parse).map(Self)
    }

    /// The pair that is in the files by now, or the last one that could be used.
    pub(super) fn current(&self) -> Arc<CertifiedKey> {
        self.0.current()
    }
}

impl ResolvesServerCert for Files {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current())
    }
}

/// The errors of the PEM parser are not passed on, for they quote lines.
fn parse(files: &[PathBuf], texts: &[Vec<u8>]) -> Result<CertifiedKey, CertificateError> {
    let file = |place: usize| files.get(place).cloned().unwrap_or_default();
    let text = |place: usize| texts.get(place).map_or(&[][..], Vec::as_slice);
    let chain = CertificateDer::pem_slice_iter(text(0))
        .collect::<Result<Vec<_>, _>>()
        .ok()
        .filter(|chain| !chain.is_empty())
        .ok_or_else(|| CertificateError::NoCertificate { path: file(0) })?;
    let key =
        PrivateKeyDer::from_pem_slice(text(1)).map_err(|_| CertificateError::NoKey { path: file(1) })?;
    Ok(certified(chain, key)?)
}

#[cfg(test)]
mod tests;
