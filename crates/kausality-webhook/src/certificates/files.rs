//! A pair of files that handshakes read again when they change.

use std::{
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use arc_swap::ArcSwap;
use rustls::{
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};

use super::{CertificateError, certified};

/// The least time between two looks at the files.
const PAUSE: Duration = Duration::from_secs(1);

/// The files, and the last good pair that was in them.
#[derive(Debug)]
pub(super) struct Files {
    certificate: PathBuf,
    key: PathBuf,
    current: ArcSwap<CertifiedKey>,
    last: Mutex<Look>,
}

/// A look at the files.
#[derive(Debug)]
struct Look {
    at: Instant,
    /// A digest of what was there. Times of modification would miss what is written twice in one tick, and
    /// the files are small.
    saw: u64,
}

impl Files {
    pub(super) fn open(certificate: PathBuf, key: PathBuf) -> Result<Self, CertificateError> {
        let texts = Texts::read(&certificate, &key)?;
        let last = Mutex::new(Look { at: Instant::now(), saw: digest(&texts) });
        let current = ArcSwap::from_pointee(texts.parse(&certificate, &key)?);
        Ok(Self { certificate, key, current, last })
    }

    /// The pair that is in the files by now, or the last one that could be used.
    pub(super) fn current(&self) -> Arc<CertifiedKey> {
        self.refresh();
        self.current.load_full()
    }

    /// Looks at the files if it is time to.
    fn refresh(&self) {
        // Whoever comes while another looks goes on with the pair that is there.
        let Ok(mut last) = self.last.try_lock() else { return };
        if last.at.elapsed() < PAUSE {
            return;
        }
        last.at = Instant::now();
        let texts = Texts::read(&self.certificate, &self.key);
        let saw = match &texts {
            Ok(texts) => digest(texts),
            Err(error) => digest(&error.to_string()),
        };
        if std::mem::replace(&mut last.saw, saw) == saw {
            return;
        }
        let files = (self.certificate.display(), self.key.display());
        match texts.and_then(|texts| texts.parse(&self.certificate, &self.key)) {
            Ok(pair) => {
                self.current.store(Arc::new(pair));
                tracing::info!(certificate = %files.0, key = %files.1, "certificate replaced");
            }
            Err(error) => tracing::error!(
                certificate = %files.0, key = %files.1, %error,
                "the certificate on disk cannot be used; the one before it stays in use"
            ),
        }
    }
}

impl ResolvesServerCert for Files {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current())
    }
}

/// What is in the files. No `Debug`: one is a key.
#[derive(Hash)]
struct Texts {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

impl Texts {
    fn read(certificate: &Path, key: &Path) -> Result<Self, CertificateError> {
        let read = |path: &Path| {
            fs::read(path).map_err(|source| CertificateError::Unreadable { path: path.to_owned(), source })
        };
        Ok(Self { certificate: read(certificate)?, key: read(key)? })
    }

    /// The errors of the PEM parser are not passed on, for they quote lines.
    fn parse(&self, certificate: &Path, key: &Path) -> Result<CertifiedKey, CertificateError> {
        let chain = CertificateDer::pem_slice_iter(&self.certificate)
            .collect::<Result<Vec<_>, _>>()
            .ok()
            .filter(|chain| !chain.is_empty())
            .ok_or_else(|| CertificateError::NoCertificate { path: certificate.to_owned() })?;
        let key = PrivateKeyDer::from_pem_slice(&self.key)
            .map_err(|_| CertificateError::NoKey { path: key.to_owned() })?;
        Ok(certified(chain, key)?)
    }
}

fn digest(what: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests;
