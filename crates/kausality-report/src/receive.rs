//! Receives reports: the routes that both backends share.
//!
//! A report is acknowledged when whoever keeps it has it safe. In every other case the answer says why, and the sender
//! tries again.

use std::{sync::Arc, time::Duration};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{Request, State},
    http::{HeaderValue, StatusCode, header, request::Parts},
    response::{IntoResponse, Response},
    routing::post,
};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use jiff::Timestamp;
use kausality_api::report::DriftReportResponse;
use tokio::{sync::Semaphore, time::timeout};

mod guard;
mod received;

pub use guard::{Guard, Unprotected};
pub use received::{BadReport, Received};

/// The bytes of the largest report.
pub const LARGEST: usize = 1 << 20;

/// How many reports are received at once. More are asked to come again.
const AT_ONCE: usize = 64;

/// How long a report may take to arrive.
const ARRIVAL: Duration = Duration::from_secs(30);

/// How many seconds a sender is asked to wait when its report cannot be kept.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("5");

/// Where reports go.
pub trait Keep: Send + Sync + 'static {
    /// Keeps a report. Only what is safe is acknowledged.
    fn keep(&self, report: Received) -> impl Future<Output = Result<(), Unkept>> + Send;
}

/// Why a report was not kept, for the sender and those who read its logs. It comes again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unkept(pub String);

/// Why a request is not answered as it wishes.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    #[error(transparent)]
    Unauthorized(#[from] guard::Refused),
    #[error("reports are application/json, and this is not")]
    NotJson,
    #[error("the report is larger than {LARGEST} bytes")]
    TooLarge,
    #[error("the report did not arrive within {} s", ARRIVAL.as_secs())]
    Late,
    #[error("the request broke off")]
    Broken,
    #[error(transparent)]
    Malformed(#[from] BadReport),
    #[error("too many reports at once")]
    Busy,
    #[error(transparent)]
    Unkept(#[from] Unkept),
}

impl Refusal {
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::Unauthorized(refused) => refused.status(),
            Self::NotJson => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Late => StatusCode::REQUEST_TIMEOUT,
            Self::Broken | Self::Malformed(_) => StatusCode::BAD_REQUEST,
            Self::Busy | Self::Unkept(_) => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = self.status();
        let mut response = (status, json(&DriftReportResponse::failed(self.to_string()))).into_response();
        if status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(header::RETRY_AFTER, RETRY_AFTER);
        }
        if status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

/// What requests share.
struct Reception<K> {
    keep: Arc<K>,
    guard: Arc<Guard>,
    room: Semaphore,
}

/// The routes that take reports: `POST /webhook` and `POST /`.
pub fn router<K: Keep>(keep: Arc<K>, guard: Arc<Guard>) -> Router {
    let reception = Arc::new(Reception { keep, guard, room: Semaphore::new(AT_ONCE) });
    Router::new().route("/", post(take::<K>)).route("/webhook", post(take::<K>)).with_state(reception)
}

async fn take<K: Keep>(State(reception): State<Arc<Reception<K>>>, request: Request) -> Response {
    match reception.take(request).await {
        Ok(()) => json(&DriftReportResponse::acknowledged()),
        Err(refusal) => {
            tracing::warn!(status = refusal.status().as_u16(), error = %refusal, "a report was not taken");
            refusal.into_response()
        }
    }
}

impl<K: Keep> Reception<K> {
    async fn take(&self, request: Request) -> Result<(), Refusal> {
        let _room = self.room.try_acquire().map_err(|_| Refusal::Busy)?;
        let (parts, body) = request.into_parts();
        let body = read(body).await?;
        let now = Timestamp::now();
        self.guard.check(&parts, &body, now)?;
        // What a page in a browser may send anywhere without asking is never this type.
        if !is_json(&parts) {
            return Err(Refusal::NotJson);
        }
        Ok(self.keep.keep(Received::read(&body, now)?).await?)
    }
}

async fn read(body: Body) -> Result<Bytes, Refusal> {
    match timeout(ARRIVAL, Limited::new(body, LARGEST).collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(Refusal::TooLarge),
        Ok(Err(_)) => Err(Refusal::Broken),
        Err(_) => Err(Refusal::Late),
    }
}

fn is_json(parts: &Parts) -> bool {
    let kind = parts.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.and_then(|kind| kind.split(';').next()).unwrap_or_default();
    kind.trim().eq_ignore_ascii_case("application/json")
}

/// An answer in JSON.
pub(crate) fn json(content: &impl serde::Serialize) -> Response {
    match serde_json::to_vec(content) {
        Ok(text) => ([(header::CONTENT_TYPE, "application/json")], text).into_response(),
        Err(_) => (StatusCode::INTERNAL_SERVER_ERROR, "the answer cannot be written\n").into_response(),
    }
}

#[cfg(test)]
mod tests;
