//! Posts reports to an endpoint.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use http::{HeaderValue, Method, Request, StatusCode, header};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Bytes;
use jiff::Timestamp;
use kausality_api::{
    report::DriftReport,
    text::{plain, shorten},
};

use crate::{
    backoff::{self, Patience},
    endpoint::{BadEndpoints, Endpoint},
    secret::{self, Token},
    signature::{Key, SIGNATURE, Signed, TIMESTAMP},
};

mod answer;
mod connection;

use connection::{Connection, Material};

/// A field of the configuration, and what is wrong with it.
type Fault = (&'static str, String);

/// The bytes of the largest answer that is read.
pub const LARGEST_ANSWER: usize = 64 << 10;

/// The characters of a failure that are kept.
const LONGEST_TEXT: usize = 300;

/// Why a report was not taken over.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct Failure {
    /// Whether it is about the endpoint, or about this report.
    pub about: About,
    /// How soon it is worth another try.
    pub patience: Patience,
    /// How long the endpoint asked us to wait.
    pub asked: Option<Duration>,
    /// For people; without secrets, and bounded.
    pub text: String,
}

/// What a failure is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    /// The endpoint is not there, or has too much to do: other reports will fare no better.
    Endpoint,
    /// The endpoint is there, and does not take this report.
    Report,
}

impl Failure {
    fn of_endpoint(text: impl Into<String>) -> Self {
        Self { about: About::Endpoint, patience: Patience::Growing, asked: None, text: text.into() }
    }

    fn of_report(text: impl Into<String>) -> Self {
        Self { about: About::Report, ..Self::of_endpoint(text) }
    }
}

/// Posts reports to one endpoint. Keeps connections open while files are as they were.
pub struct Sender {
    endpoint: Endpoint,
    connection: Mutex<Option<Arc<Connection>>>,
}

impl Sender {
    /// A sender to an endpoint.
    ///
    /// # Errors
    /// If a file that it needs is not there, or not what it should be.
    pub fn new(endpoint: Endpoint) -> Result<Self, BadEndpoints> {
        let sender = Self { endpoint, connection: Mutex::default() };
        let wrong = |(field, why)| BadEndpoints::Field { endpoint: sender.name().to_owned(), field, why };
        sender.connect().map_err(wrong)?;
        sender.secrets().map_err(wrong)?;
        Ok(sender)
    }

    /// The endpoint's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.endpoint.name
    }

    /// Posts a report. It is taken over if this succeeds, and may have been otherwise.
    ///
    /// # Errors
    /// If the endpoint did not say that it has taken it over.
    pub async fn send(&self, report: &DriftReport, now: Timestamp) -> Result<(), Failure> {
        let unready = |(field, why): Fault| Failure::of_endpoint(format!("{field}: {why}"));
        let (token, key) = self.secrets().map_err(unready)?;
        let attempt = async {
            let connection = self.connect().map_err(unready)?;
            let body = serde_json::to_vec(report)
                .map_err(|error| Failure::of_report(format!("the report cannot be written: {error}")))?;
            let mut request = Request::builder()
                .method(Method::POST)
                .uri(&self.endpoint.url)
                .header(header::CONTENT_TYPE, "application/json")
                .header(header::ACCEPT, "application/json")
                .header(header::USER_AGENT, concat!("kausality/", env!("CARGO_PKG_VERSION")));
            if let Some(token) = token.as_ref().and_then(Token::header) {
                request = request.header(header::AUTHORIZATION, token);
            }
            if let Some(key) = &key {
                let Signed { timestamp, signature } = key.sign(now, &body);
                request = request.header(TIMESTAMP, timestamp).header(SIGNATURE, signature);
            }
            let request = request
                .body(Full::new(Bytes::from(body)))
                .map_err(|error| Failure::of_endpoint(format!("no request can be made: {error}")))?;
            exchange(&connection, request).await
        };
        let outcome = match tokio::time::timeout(self.endpoint.timeout, attempt).await {
            Ok(outcome) => outcome,
            Err(_) => Err(Failure::of_endpoint(format!("no answer within {:?}", self.endpoint.timeout))),
        };
        outcome.map_err(|failure| {
            let text = plain(&failure.text);
            // An endpoint may repeat what it was sent.
            let text = token.as_ref().map_or_else(|| text.clone().into_owned(), |token| token.blacken(&text));
            Failure { text: shorten(&text, LONGEST_TEXT), ..failure }
        })
    }

    fn secrets(&self) -> Result<(Option<Token>, Option<Key>), Fault> {
        let files = &self.endpoint.files;
        let token = files.token.as_deref().map(Token::read).transpose();
        let token = token.map_err(|bad| ("tokenFile", bad.to_string()))?;
        let key = files.hmac_key.as_deref().map(secret::key).transpose();
        let key = key.map_err(|bad| ("hmacKeyFile", bad.to_string()))?;
        Ok((token, key))
    }

    /// Connections that fit the files as they are at present.
    fn connect(&self) -> Result<Arc<Connection>, Fault> {
        let is_tls = self.endpoint.url.scheme_str() == Some("https");
        let material = Material::read(&self.endpoint.files, is_tls)?;
        let mut current = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(connection) = current.as_ref().filter(|connection| connection.is_of(&material)) {
            return Ok(Arc::clone(connection));
        }
        let connection = Arc::new(Connection::new(material)?);
        *current = Some(Arc::clone(&connection));
        Ok(connection)
    }
}

impl std::fmt::Debug for Sender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sender").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}

async fn exchange(connection: &Connection, request: Request<Full<Bytes>>) -> Result<(), Failure> {
    let response = connection.request(request).await.map_err(Failure::of_endpoint)?;
    let (parts, body) = response.into_parts();
    let asked = parts.headers.get(header::RETRY_AFTER).and_then(seconds);
    let body = Limited::new(body, LARGEST_ANSWER).collect().await;
    let outcome = match body {
        Ok(body) => answer::judge(parts.status, &body.to_bytes()),
        // Whatever it is, it is not the answer to a report; unless the status says that it failed anyway.
        Err(error) if error.is::<LengthLimitError>() => match answer::judge(parts.status, b"") {
            Ok(()) => Err(answer::something_else(&format!("more than {LARGEST_ANSWER} bytes"))),
            failed => failed,
        },
        Err(_) => Err(Failure::of_endpoint("the answer broke off")),
    };
    outcome.map_err(|failure| Failure { asked, ..failure })
}

fn seconds(value: &HeaderValue) -> Option<Duration> {
    backoff::retry_after(value.to_str().ok()?)
}

/// Whether a status says that it is worth another try soon.
fn is_passing(status: StatusCode) -> bool {
    !status.is_client_error() || matches!(status, StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS)
}

#[cfg(test)]
mod tests;
