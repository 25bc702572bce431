//! Calls of webhooks over HTTPS.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use futures::future::{Either, select};
use http::{Request, Uri, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use rustls::pki_types::{CertificateDer, ServerName, pem::PemObject as _};
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::Verdict;
use super::rules::Configured;
use crate::sandbox::{Sandbox, lock};

pub(crate) type Connection = SendRequest<Full<Bytes>>;

/// Connections to webhooks that are open and idle, by URL and CA.
#[derive(Default)]
pub(crate) struct Callers {
    idle: Mutex<BTreeMap<String, Vec<Connection>>>,
}

/// Connections to one webhook that are kept.
const KEPT: usize = 16;

/// Asks a webhook, for as long as it may take.
pub(super) async fn call(
    sandbox: &Sandbox,
    webhook: &Configured,
    uid: &str,
    review: Bytes,
) -> Result<Verdict, String> {
    let deadline = sandbox.now().after_seconds(webhook.timeout_seconds);
    let timeout = sandbox.clock().sleep_until(deadline);
    let asked = Box::pin(ask(sandbox, webhook, uid, review));
    match select(asked, timeout).await {
        Either::Left((answer, _)) => answer,
        Either::Right(_) => Err(format!(
            "Post {:?}: context deadline exceeded",
            format!(
                "{}?timeout={}s",
                webhook.client["url"].as_str().unwrap_or_default(),
                webhook.timeout_seconds
            )
        )),
    }
}

async fn ask(sandbox: &Sandbox, webhook: &Configured, uid: &str, review: Bytes) -> Result<Verdict, String> {
    let url = webhook.client["url"].as_str();
    let url = url.ok_or("the sandbox has no network: a webhook needs a url, a service cannot be reached")?;
    let uri: Uri = url.parse().map_err(|error| format!("the url {url:?} is invalid: {error}"))?;
    let host = uri.host().ok_or_else(|| format!("the url {url:?} has no host"))?;
    let authority = uri.authority().map(ToString::to_string).unwrap_or_default();
    let ca = webhook.client["caBundle"].as_str().unwrap_or_default();
    let path = uri.path();
    let query = uri.query().map(|query| format!("{query}&")).unwrap_or_default();
    let path = format!("{path}?{query}timeout={}s", webhook.timeout_seconds);
    let request = || {
        Request::post(&path)
            .header(header::HOST, &authority)
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, "application/json")
            .header(header::USER_AGENT, "kube-apiserver-admission")
            .body(Full::new(review.clone()))
            .map_err(|error| error.to_string())
    };
    let key = format!("{authority} {ca}");
    let idle = || lock(&sandbox.inner.callers.idle).get_mut(&key).and_then(Vec::pop);
    // A connection that was idle may have been closed meanwhile: then a new one is tried.
    while let Some(mut connection) = idle() {
        if connection.ready().await.is_ok()
            && let Ok(answer) = exchange(&mut connection, request()?).await
        {
            keep(sandbox, key, connection);
            return verdict(&answer, uid);
        }
    }
    let mut connection = connect(host, uri.port_u16().unwrap_or(443), ca).await?;
    let answer =
        exchange(&mut connection, request()?).await.map_err(|error| format!("Post {url:?}: {error}"))?;
    keep(sandbox, key, connection);
    verdict(&answer, uid)
}

fn keep(sandbox: &Sandbox, key: String, connection: Connection) {
    let mut idle = lock(&sandbox.inner.callers.idle);
    let idle = idle.entry(key).or_default();
    if idle.len() < KEPT {
        idle.push(connection);
    }
}

async fn exchange(connection: &mut Connection, request: Request<Full<Bytes>>) -> Result<Bytes, String> {
    let response = connection.send_request(request).await.map_err(|error| error.to_string())?;
    let status = response.status();
    let body = response.into_body().collect().await.map_err(|error| error.to_string())?.to_bytes();
    if status.is_success() { Ok(body) } else { Err(format!("the server answered with status {status}")) }
}

pub(crate) async fn connect(host: &str, port: u16, ca: &str) -> Result<Connection, String> {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let stream = TcpStream::connect((host, port)).await.map_err(|error| match error.kind() {
        ErrorKind::ConnectionRefused => format!("dial tcp {host}:{port}: connect: connection refused"),
        _ => format!("dial tcp {host}:{port}: {error}"),
    })?;
    _ = stream.set_nodelay(true);
    let name = ServerName::try_from(host.to_owned()).map_err(|error| error.to_string())?;
    let connector = TlsConnector::from(Arc::new(trust(ca)?));
    let stream = connector.connect(name, stream).await.map_err(|error| format!("tls: {error}"))?;
    let (sender, connection) = handshake(TokioIo::new(stream)).await.map_err(|error| error.to_string())?;
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection to a webhook broke");
        }
    });
    Ok(sender)
}

/// Trusts who is signed by the CA of a webhook.
fn trust(ca: &str) -> Result<ClientConfig, String> {
    let pem =
        base64::engine::general_purpose::STANDARD.decode(ca).map_err(|error| format!("caBundle: {error}"))?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        let certificate = certificate.map_err(|error| format!("caBundle: {error}"))?;
        roots.add(certificate).map_err(|error| format!("caBundle: {error}"))?;
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(|error| error.to_string())?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

/// The verdict in an AdmissionReview.
fn verdict(text: &[u8], uid: &str) -> Result<Verdict, String> {
    let review: Value = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    let response = &review["response"];
    if response["uid"] != uid {
        return Err(format!("expected response.uid={uid:?}, got {}", response["uid"]));
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let patch = match response["patch"].as_str() {
        None => None,
        Some(patch) => {
            let patch = base64::engine::general_purpose::STANDARD.decode(patch);
            let patch = patch.map_err(|error| format!("response.patch: {error}"))?;
            Some(serde_json::from_slice(&patch).map_err(|error| format!("response.patch: {error}"))?)
        }
    };
    let status = &response["status"];
    Ok(Verdict {
        allowed: response["allowed"] == true,
        code: status["code"].as_u64().and_then(|code| u16::try_from(code).ok()).unwrap_or_default(),
        reason: text(&status["reason"]),
        message: text(&status["message"]),
        patch,
        warnings: response["warnings"].as_array().into_iter().flatten().map(text).collect(),
        audit: response["auditAnnotations"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(key, value)| (key.clone(), text(value)))
            .collect(),
    })
}
