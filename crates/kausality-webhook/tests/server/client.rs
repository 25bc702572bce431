//! A client that says what went wrong, and when: reqwest and the like retry on their own.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::body::Body;
use http_body_util::BodyExt;
use hyper::{
    HeaderMap, Request, Version,
    client::conn::{http1, http2},
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use kausality_webhook::Bytes;
use rustls::{
    ClientConfig, RootCertStore,
    crypto::aws_lc_rs,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
};
use tokio::{net::TcpStream, time::timeout};
use tokio_rustls::TlsConnector;

/// Longer than anything here takes, on the busiest machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Http1,
    Http2,
}

pub(crate) const BOTH: [Protocol; 2] = [Protocol::Http1, Protocol::Http2];

#[derive(Clone)]
pub(crate) struct Client {
    address: SocketAddr,
    roots: RootCertStore,
    /// What it shows of itself.
    identity: Option<Arc<(String, String)>>,
}

pub(crate) struct Connection {
    sender: Sender,
    pub(crate) certificate: Vec<u8>,
}

enum Sender {
    Http1(http1::SendRequest<Body>),
    Http2(http2::SendRequest<Body>),
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) version: Version,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// How a request fails.
#[derive(Debug)]
pub(crate) enum Failed {
    /// It was never sent, or the server said that it does not process it: send it again elsewhere.
    Unsent,
    /// It was lost.
    Lost(String),
}

impl Client {
    pub(crate) fn new(address: SocketAddr, roots: &[&str]) -> Self {
        let mut store = RootCertStore::empty();
        for pem in roots {
            store.add(CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()).unwrap();
        }
        Self { address, roots: store, identity: None }
    }

    /// The same, with a certificate and its key, in PEM form.
    pub(crate) fn with_certificate(&self, certificate: String, key: String) -> Self {
        Self { identity: Some(Arc::new((certificate, key))), ..self.clone() }
    }

    /// A connection that says nothing.
    pub(crate) async fn dial(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Connects. An error means that no connection came about.
    pub(crate) async fn connect(&self, protocol: Protocol) -> std::io::Result<Connection> {
        // A configuration of its own remembers no session, so that each handshake shows the certificate.
        let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(self.roots.clone());
        let mut config = match self.identity.as_deref() {
            None => config.with_no_client_auth(),
            Some((certificate, key)) => {
                let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
                let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
                config.with_client_auth_cert(vec![certificate], key).unwrap()
            }
        };
        config.alpn_protocols = match protocol {
            Protocol::Http1 => vec![b"http/1.1".to_vec()],
            Protocol::Http2 => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
        };
        let stream = TcpStream::connect(self.address).await?;
        let name = ServerName::try_from("localhost").unwrap();
        let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
        let (_, tls) = stream.get_ref();
        let agreed = tls.alpn_protocol().map(<[u8]>::to_vec);
        let certificate = tls.peer_certificates().unwrap()[0].to_vec();
        let io = TokioIo::new(stream);
        let sender = match protocol {
            Protocol::Http1 => {
                assert_eq!(agreed.as_deref(), Some(&b"http/1.1"[..]));
                let (sender, connection) = http1::handshake(io).await.unwrap();
                tokio::spawn(connection);
                Sender::Http1(sender)
            }
            Protocol::Http2 => {
                assert_eq!(agreed.as_deref(), Some(&b"h2"[..]));
                let (sender, connection) = http2::handshake(TokioExecutor::new(), io).await.unwrap();
                tokio::spawn(connection);
                Sender::Http2(sender)
            }
        };
        Ok(Connection { sender, certificate })
    }

    /// Sends one request on a connection of its own.
    pub(crate) async fn send(&self, protocol: Protocol, request: Request<Body>) -> Answer {
        let mut connection = self.connect(protocol).await.unwrap();
        connection.send(request).await.unwrap()
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(Protocol::Http1, request("GET", path, Body::empty())).await
    }

    pub(crate) async fn post(&self, protocol: Protocol, body: impl Into<Body>) -> Answer {
        self.send(protocol, request("POST", "/admit", body)).await
    }
}

pub(crate) fn request(method: &str, path: &str, body: impl Into<Body>) -> Request<Body> {
    let uri = format!("https://localhost{path}");
    Request::builder().method(method).uri(uri).header("host", "localhost").body(body.into()).unwrap()
}

impl Connection {
    pub(crate) async fn send(&mut self, request: Request<Body>) -> Result<Answer, Failed> {
        timeout(PATIENCE, self.exchange(request)).await.map_err(|_| Failed::Lost("no answer".to_owned()))?
    }

    async fn exchange(&mut self, request: Request<Body>) -> Result<Answer, Failed> {
        let response = match &mut self.sender {
            Sender::Http1(sender) => {
                sender.ready().await.map_err(|_| Failed::Unsent)?;
                sender.try_send_request(request).await
            }
            Sender::Http2(sender) => {
                sender.ready().await.map_err(|_| Failed::Unsent)?;
                sender.try_send_request(request).await
            }
        };
        let response = response.map_err(|mut failed| match failed.take_message() {
            Some(_) => Failed::Unsent,
            None => lost(&failed.into_error()),
        })?;
        let (head, body) = response.into_parts();
        let body = body.collect().await.map_err(|error| lost(&error))?.to_bytes();
        Ok(Answer { status: head.status.as_u16(), version: head.version, headers: head.headers, body })
    }
}

fn lost(error: &hyper::Error) -> Failed {
    let text = format!("{error:?}");
    // A stream beyond the last one of a GOAWAY was not looked at.
    if text.contains("GoAway") && text.contains("NO_ERROR") { Failed::Unsent } else { Failed::Lost(text) }
}

impl Answer {
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}
