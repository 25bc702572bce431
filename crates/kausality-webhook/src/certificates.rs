//! The server's certificate: read from files and read again when they change, handed over, or made up on the spot.

use std::{fmt, net::IpAddr, path::PathBuf, sync::Arc};

use rustls::{
    ServerConfig,
    crypto::{CryptoProvider, aws_lc_rs},
    pki_types::{CertificateDer, PrivateKeyDer},
    server::{NoServerSessionStorage, ResolvesServerCert, danger::ClientCertVerifier},
    sign::{CertifiedKey, SingleCertAndKey},
};

mod files;
mod handed;
mod self_signed;
mod standing;

use handed::Handed;
pub use standing::Fault;

/// A source of certificates. Clones share what they read.
#[derive(Clone)]
pub struct Certificates {
    source: Arc<dyn ResolvesServerCert>,
    current: Arc<dyn Fn() -> Option<Arc<CertifiedKey>> + Send + Sync>,
    handed: Option<Arc<Handed>>,
    origin: String,
    ca_pem: Option<String>,
}

/// Why there is no certificate to serve with, or nothing to know clients by. Never quotes a key.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// A file cannot be read.
    #[error("cannot read {path}: {source}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file holds no certificate.
    #[error("{path} holds no certificate in PEM form")]
    NoCertificate {
        /// The file.
        path: PathBuf,
    },
    /// A file holds no private key.
    #[error("{path} holds no private key in PEM form")]
    NoKey {
        /// The file.
        path: PathBuf,
    },
    /// A file holds no token.
    #[error("{path} holds no token")]
    NoToken {
        /// The file.
        path: PathBuf,
    },
    /// Certificate and key do not serve, or not together.
    #[error("the certificate and its key cannot be used: {0}")]
    Unusable(#[from] rustls::Error),
    /// A certificate cannot be made for these names.
    #[error("cannot make a certificate: {0}")]
    Unmakeable(#[from] rcgen::Error),
}

impl Certificates {
    /// The certificate chain and the private key in these files, in PEM form.
    ///
    /// Handshakes look at the files again, at most once a second. A pair that cannot be used is logged, and
    /// the one before it stays in use.
    ///
    /// # Errors
    /// If there is no usable pair in the files to begin with.
    pub fn from_files(
        certificate: impl Into<PathBuf>,
        key: impl Into<PathBuf>,
    ) -> Result<Self, CertificateError> {
        let (certificate, key) = (certificate.into(), key.into());
        let origin = format!("{} and {}", certificate.display(), key.display());
        let source = Arc::new(files::Files::open(certificate, key)?);
        let current = source.clone();
        Ok(Self {
            source,
            current: Arc::new(move || Some(current.current())),
            handed: None,
            origin,
            ca_pem: None,
        })
    }

    /// A certificate for these names and addresses, signed by a CA that exists for nothing else and whose key
    /// is thrown away. Both live in memory: every call makes other ones, so replicas do not share them.
    ///
    /// # Errors
    /// If a name is none.
    pub fn self_signed(dns_names: &[String], addresses: &[IpAddr]) -> Result<Self, CertificateError> {
        let made = self_signed::make(dns_names, addresses)?;
        let pair = Arc::new(certified(made.chain, made.key)?);
        Ok(Self {
            source: Arc::new(SingleCertAndKey::from(pair.clone())),
            current: Arc::new(move || Some(pair.clone())),
            handed: None,
            origin: "self-signed".to_owned(),
            ca_pem: Some(made.ca_pem),
        })
    }

    /// Nothing, until somebody hands a pair over with [`Self::set`]. `origin` says where it will come from.
    #[must_use]
    pub fn handed_over(origin: &str) -> Self {
        let handed = Arc::new(Handed::default());
        let current = handed.clone();
        Self {
            source: handed.clone(),
            current: Arc::new(move || current.current()),
            handed: Some(handed),
            origin: origin.to_owned(),
            ca_pem: None,
        }
    }

    /// Hands over a chain and its private key, in PEM form, for the handshakes from now on. Those that are read from
    /// files, or made up, stay as they are.
    ///
    /// # Errors
    /// If they cannot be used. The pair before stays in use.
    pub fn set(&self, certificate: &[u8], key: &[u8]) -> Result<(), CertificateError> {
        self.handed.as_ref().map_or(Ok(()), |handed| handed.set(certificate, key))
    }

    /// Whether there is a certificate to show.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.handed.as_ref().is_none_or(|handed| handed.is_there())
    }

    /// The certificate that the next handshake shows, DER.
    #[must_use]
    pub fn shown(&self) -> Option<Vec<u8>> {
        let pair = (self.current)()?;
        pair.cert.first().map(|certificate| certificate.to_vec())
    }

    /// The CA of a self-signed certificate in PEM form: the `caBundle` of a registration.
    #[must_use]
    pub fn ca_pem(&self) -> Option<&str> {
        self.ca_pem.as_deref()
    }

    /// TLS as the server speaks it. `clients` asks for their certificates.
    pub(crate) fn server_config(
        &self,
        clients: Option<Arc<dyn ClientCertVerifier>>,
    ) -> Result<ServerConfig, rustls::Error> {
        let config = ServerConfig::builder_with_provider(Arc::new(provider()))
            .with_safe_default_protocol_versions()?;
        let config = match clients {
            Some(verifier) => config.with_client_cert_verifier(verifier),
            None => config.with_no_client_auth(),
        };
        let mut config = config.with_cert_resolver(Arc::clone(&self.source));
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        // Sessions are not resumed: API servers never ask for it, and every handshake shows the certificate
        // that is in use at that time.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(config)
    }
}

impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Certificates").field("origin", &self.origin).finish_non_exhaustive()
    }
}

/// Named outright: a process-wide provider would be a choice that belongs to the binary.
pub(crate) fn provider() -> CryptoProvider {
    aws_lc_rs::default_provider()
}

/// Puts chain and key together, and checks that they belong together.
fn certified(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<CertifiedKey, rustls::Error> {
    CertifiedKey::from_der(chain, key, &provider())
}
