//! The way to a webhook, as the API server goes it: TLS, and one of two protocols.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use http::{Request, Response, Uri, header};
use http_body_util::{BodyExt, Full};
use hyper::{
    body::Incoming,
    client::conn::{http1, http2},
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use kausality_webhook::Bytes;
use rustls::{
    ClientConfig, DigitallySignedStruct, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, aws_lc_rs},
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject},
};
use tokio::{net::TcpStream, sync::Semaphore};
use tokio_rustls::TlsConnector;

use crate::passport::Passport;

/// How many connections there are over HTTP/2. An API server has one, and more when that is full.
const CONNECTIONS: usize = 2;

/// How many requests are under way at once on HTTP/1.1, each on a connection of its own.
const CONNECTIONS_OF_OLD: usize = 32;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// How an API server talks to a webhook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// To a Service, or to another machine: one request at a time on each connection, so that load is balanced.
    Http1,
    /// To loopback: many at once.
    Http2,
}

impl Protocol {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Http1 => "HTTP/1.1",
            Self::Http2 => "HTTP/2",
        }
    }

    /// What is offered to the server.
    fn offers(self) -> Vec<Vec<u8>> {
        let all = [b"h2".to_vec(), b"http/1.1".to_vec()];
        all.into_iter().skip(usize::from(self == Self::Http1)).collect()
    }
}

/// Connections to one webhook.
pub(crate) struct Wire {
    uri: Uri,
    lanes: Lanes,
}

enum Lanes {
    /// Each carries many requests at once.
    Shared { senders: Vec<http2::SendRequest<Full<Bytes>>>, next: AtomicUsize },
    /// Each carries one request at a time.
    Single { free: Mutex<Vec<http1::SendRequest<Full<Bytes>>>>, permits: Semaphore },
}

impl Wire {
    /// Connects; with HTTP/1.1 where nothing else is spoken.
    pub(crate) async fn connect(url: &str, protocol: Protocol, passport: Option<&Passport>) -> Result<Self> {
        let uri: Uri = url.parse().with_context(|| format!("{url} is no URL"))?;
        ensure!(uri.scheme_str() == Some("https"), "{url} does not begin with https://");
        let mut shared = Vec::new();
        for _ in 0..CONNECTIONS {
            let (stream, is_http2) = handshake(&uri, protocol, passport)
                .await
                .with_context(|| format!("cannot connect to {url}"))?;
            if !is_http2 {
                return Ok(Self { lanes: single(&uri, passport).await?, uri });
            }
            let (sender, connection) = http2::handshake(TokioExecutor::new(), stream).await?;
            tokio::spawn(connection);
            shared.push(sender);
        }
        Ok(Self { uri, lanes: Lanes::Shared { senders: shared, next: AtomicUsize::new(0) } })
    }

    /// How requests travel.
    pub(crate) fn protocol(&self) -> Protocol {
        match self.lanes {
            Lanes::Shared { .. } => Protocol::Http2,
            Lanes::Single { .. } => Protocol::Http1,
        }
    }

    /// Sends a review, and reads the answer to its end.
    pub(crate) async fn send(&self, review: Bytes) -> Result<Bytes> {
        tokio::time::timeout(PATIENCE, self.exchange(review)).await.context("no answer in time")?
    }

    async fn exchange(&self, review: Bytes) -> Result<Bytes> {
        let request = Request::post(self.uri.clone()).header(header::CONTENT_TYPE, "application/json");
        match &self.lanes {
            Lanes::Shared { senders, next } => {
                let turn = next.fetch_add(1, Ordering::Relaxed) % senders.len();
                let mut sender = senders.get(turn).context("no connection")?.clone();
                let request = request.body(Full::new(review))?;
                sender.ready().await?;
                read(sender.send_request(request).await?).await
            }
            Lanes::Single { free, permits } => {
                let _permit = permits.acquire().await?;
                let idle = || free.lock().unwrap_or_else(PoisonError::into_inner);
                let mut sender = idle().pop().context("all connections are broken")?;
                let host = self.uri.authority().map_or("", |authority| authority.as_str());
                let request = request.header(header::HOST, host).body(Full::new(review))?;
                sender.ready().await?;
                let answer = read(sender.send_request(request).await?).await?;
                idle().push(sender);
                Ok(answer)
            }
        }
    }
}

async fn read(response: Response<Incoming>) -> Result<Bytes> {
    let status = response.status();
    let body = response.into_body().collect().await?.to_bytes();
    ensure!(status.is_success(), "{status}: {}", String::from_utf8_lossy(&body));
    Ok(body)
}

async fn single(uri: &Uri, passport: Option<&Passport>) -> Result<Lanes> {
    let mut free = Vec::new();
    for _ in 0..CONNECTIONS_OF_OLD {
        let (sender, connection) =
            http1::handshake(handshake(uri, Protocol::Http1, passport).await?.0).await?;
        tokio::spawn(connection);
        free.push(sender);
    }
    Ok(Lanes::Single { free: Mutex::new(free), permits: Semaphore::new(CONNECTIONS_OF_OLD) })
}

type Stream = TokioIo<tokio_rustls::client::TlsStream<TcpStream>>;

/// A connection, and whether it is for HTTP/2.
async fn handshake(uri: &Uri, protocol: Protocol, passport: Option<&Passport>) -> Result<(Stream, bool)> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anybody(provider)));
    let mut config = match passport {
        None => config.with_no_client_auth(),
        Some(Passport { certificate, key, .. }) => {
            let chain = vec![CertificateDer::from_pem_slice(certificate.as_bytes())?];
            config.with_client_auth_cert(chain, PrivateKeyDer::from_pem_slice(key.as_bytes())?)?
        }
    };
    config.alpn_protocols = protocol.offers();
    let host = uri.host().context("the URL names no host")?;
    let stream = TcpStream::connect((host, uri.port_u16().unwrap_or(443))).await?;
    stream.set_nodelay(true)?;
    let name = ServerName::try_from(host.to_owned())?;
    let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
    let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    Ok((TokioIo::new(stream), is_http2))
}

/// The last certificate that a webhook shows, as PEM: who trusts that trusts it.
pub(crate) async fn certificate_of(url: &str) -> Result<String> {
    let (stream, _) = handshake(&url.parse()?, Protocol::Http1, None).await?;
    let chain = stream.inner().get_ref().1.peer_certificates().context("it shows no certificate")?;
    let last = BASE64_STANDARD.encode(chain.last().context("it shows no certificate")?);
    Ok(format!("-----BEGIN CERTIFICATE-----\n{last}\n-----END CERTIFICATE-----\n"))
}

/// Trusts anybody: all that is sent has been published, and what is answered is only counted.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
