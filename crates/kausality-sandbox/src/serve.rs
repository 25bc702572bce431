//! The sandbox over HTTPS, for kubectl and all other programs.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use base64::Engine as _;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose, SanType,
};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};
use tokio_rustls::TlsAcceptor;

use crate::answer::{self, Body};
use crate::identity::User;
use crate::sandbox::Sandbox;
use crate::status::Failure;

/// The largest body of a request, as of a real API server.
const LIMIT: usize = 3 << 20;

/// A sandbox that is served. Serving ends when this is dropped.
#[derive(Debug)]
pub struct Served {
    /// `https://127.0.0.1:34567`.
    pub url: String,
    /// The CA that its certificate is signed by, as PEM.
    pub ca_pem: String,
    sandbox: Sandbox,
    accepting: AbortHandle,
}

/// Why a sandbox cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// It cannot listen.
    #[error("cannot listen on {address}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// There is no certificate.
    #[error("cannot make a certificate")]
    Certificate(#[from] rcgen::Error),
    /// TLS cannot be set up.
    #[error("cannot set up TLS")]
    Tls(#[from] rustls::Error),
}

impl Sandbox {
    /// Serves over HTTPS (HTTP/1.1 and 2) with a certificate made up on the spot. Port 0 takes any that is free.
    ///
    /// # Errors
    /// If it cannot.
    pub async fn serve(&self, address: SocketAddr) -> Result<Served, ServeError> {
        let listening = async { TcpListener::bind(address).await };
        let listener = listening.await.map_err(|source| ServeError::Listen { address, source })?;
        let address = listener.local_addr().map_err(|source| ServeError::Listen { address, source })?;
        let (ca_pem, config) = tls(address)?;
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let task = tokio::spawn(accept(self.clone(), listener, acceptor));
        Ok(Served {
            url: format!("https://{address}"),
            ca_pem,
            sandbox: self.clone(),
            accepting: task.abort_handle(),
        })
    }
}

impl Served {
    /// A kubeconfig (JSON, which is YAML) with which a user comes in.
    pub fn kubeconfig(&self, user: &User) -> String {
        let ca = base64::engine::general_purpose::STANDARD.encode(&self.ca_pem);
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "sandbox",
            "clusters": [{"name": "sandbox", "cluster": {"server": self.url, "certificate-authority-data": ca}}],
            "users": [{"name": user.name, "user": {"token": self.sandbox.token(user)}}],
            "contexts": [{"name": "sandbox", "context": {"cluster": "sandbox", "user": user.name}}],
        })
        .to_string()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(sandbox: Sandbox, listener: TcpListener, acceptor: TlsAcceptor) {
    let mut connections = JoinSet::new();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                connections.spawn(connection(sandbox.clone(), stream, acceptor.clone()));
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
        }
        while connections.try_join_next().is_some() {}
    }
}

async fn connection(sandbox: Sandbox, stream: TcpStream, acceptor: TlsAcceptor) {
    _ = stream.set_nodelay(true);
    let stream = match acceptor.accept(stream).await {
        Ok(stream) => stream,
        Err(error) => return tracing::debug!(%error, "TLS handshake failed"),
    };
    let service = service_fn(|request| respond(sandbox.clone(), request));
    let http = auto::Builder::new(TokioExecutor::new());
    if let Err(error) = http.serve_connection(TokioIo::new(stream), service).await {
        tracing::debug!(error, "a connection broke");
    }
}

async fn respond(sandbox: Sandbox, request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
    let (mut parts, body) = request.into_parts();
    // Who comes over the network is known by a token only.
    parts.extensions.remove::<User>();
    let response = match Limited::new(body, LIMIT).collect().await {
        Ok(body) => sandbox.handle(Request::from_parts(parts, body.to_bytes())).await,
        Err(error) => {
            let message = format!("Request entity too large: limit is {LIMIT}: {error}");
            answer::failure(&Failure::new(413, "RequestEntityTooLarge", message))
        }
    };
    Ok(response)
}

/// A CA, and TLS with a certificate that it signed. Its key is thrown away.
pub(crate) fn tls(address: SocketAddr) -> Result<(String, ServerConfig), ServeError> {
    let mut ca = CertificateParams::new(Vec::new())?;
    ca.distinguished_name.push(DnType::CommonName, "kausality-sandbox-ca");
    ca.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    let ca = CertifiedIssuer::self_signed(ca, KeyPair::generate()?)?;

    let mut server = CertificateParams::new(vec!["localhost".to_owned(), "127.0.0.1".to_owned()])?;
    server.distinguished_name.push(DnType::CommonName, "kausality-sandbox");
    server.subject_alt_names.push(SanType::IpAddress(address.ip()));
    server.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    server.use_authority_key_identifier_extension = true;
    let key = KeyPair::generate()?;
    let certificate = server.signed_by(&key, &ca)?;

    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], PrivateKeyDer::from(key))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok((ca.pem(), config))
}
