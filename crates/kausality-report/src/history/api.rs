//! History over HTTP, on the routes and with the fields of the Go project's backend.

use std::sync::Arc;

use axum::{
    Router,
    extract::{Path, Request, State},
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::get,
};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{json, value::RawValue};

use super::{
    History,
    query::{BadQuery, Filter, Page, Stored},
};
use crate::receive::{self, Guard, Refusal, Unkept};

/// What handlers share.
#[derive(Clone)]
struct Archive {
    history: History,
    guard: Arc<Guard>,
}

/// Reports in, and answers to questions about them out.
pub fn router(history: &History, guard: &Arc<Guard>) -> Router {
    let archive = Archive { history: history.clone(), guard: Arc::clone(guard) };
    let questions = Router::new()
        .route("/api/v1/drifts", get(list))
        .route("/api/v1/drifts/{id}", get(show).delete(remove))
        .route("/healthz", get(health))
        .route("/readyz", get(ready))
        .with_state(archive);
    questions.merge(receive::router(Arc::new(history.clone()), Arc::clone(guard)))
}

/// Why a question is not answered.
#[derive(Debug, thiserror::Error)]
enum Wrong {
    #[error(transparent)]
    Refused(Refusal),
    #[error(transparent)]
    BadQuery(#[from] BadQuery),
    #[error(transparent)]
    Unreadable(#[from] Unkept),
    #[error("there are no reports of a drift {0:?}: is the id whole, and are they not too old?")]
    NotFound(String),
}

impl IntoResponse for Wrong {
    fn into_response(self) -> Response {
        let status = match &self {
            Self::Refused(refusal) => refusal.status(),
            Self::BadQuery(_) => StatusCode::BAD_REQUEST,
            Self::Unreadable(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::NotFound(_) => StatusCode::NOT_FOUND,
        };
        (status, receive::json(&json!({"error": self.to_string()}))).into_response()
    }
}

/// One report.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Item {
    report: Option<Box<RawValue>>,
    received_at: Option<Timestamp>,
}

/// Some reports.
#[derive(Serialize)]
struct Items {
    items: Vec<Item>,
    count: usize,
    #[serde(rename = "continue", skip_serializing_if = "Option::is_none")]
    more: Option<String>,
}

/// A drift: the latest report as the Go project shows it, and beside it all of them.
#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    latest: Item,
    items: Vec<Item>,
    count: usize,
}

impl From<Stored> for Item {
    fn from(stored: Stored) -> Self {
        Self {
            report: RawValue::from_string(stored.report).ok(),
            received_at: Timestamp::from_millisecond(stored.received).ok(),
        }
    }
}

impl Archive {
    fn check(&self, request: Request) -> Result<axum::http::Uri, Wrong> {
        let (parts, _) = request.into_parts();
        let checked = self.guard.check_query(&parts, Timestamp::now());
        checked.map_err(|refused| Wrong::Refused(refused.into()))?;
        Ok(parts.uri)
    }
}

async fn list(State(archive): State<Archive>, request: Request) -> Result<Response, Wrong> {
    let uri = archive.check(request)?;
    let filter = Filter::parse(uri.query().unwrap_or_default(), Timestamp::now())?;
    let Page { reports, more } = archive.history.page(filter).await?;
    let items: Vec<Item> = reports.into_iter().map(Item::from).collect();
    Ok(receive::json(&Items { count: items.len(), items, more }))
}

async fn show(
    State(archive): State<Archive>,
    Path(id): Path<String>,
    request: Request,
) -> Result<Response, Wrong> {
    archive.check(request)?;
    let reports = archive.history.of_drift(id.clone()).await?;
    let latest = reports.last().cloned().ok_or(Wrong::NotFound(id))?.into();
    let items: Vec<Item> = reports.into_iter().map(Item::from).collect();
    Ok(receive::json(&Shown { latest, count: items.len(), items }))
}

async fn remove(
    State(archive): State<Archive>,
    Path(id): Path<String>,
    request: Request,
) -> Result<StatusCode, Wrong> {
    archive.check(request)?;
    let reports = archive.history.delete(id.clone()).await?;
    tracing::info!(drift = id, reports, "deleted on demand");
    Ok(StatusCode::NO_CONTENT)
}

async fn health(State(archive): State<Archive>) -> Response {
    receive::json(&json!({
        "status": "ok",
        "driftCount": archive.history.count(),
        "time": Timestamp::now(),
    }))
}

async fn ready(State(archive): State<Archive>) -> Response {
    match archive.history.probe().await {
        Ok(()) => (StatusCode::OK, "ok\n").into_response(),
        Err(error) => (StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n")).into_response(),
    }
}
