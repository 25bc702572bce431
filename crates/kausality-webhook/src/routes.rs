//! The paths of the server.

use std::sync::Arc;

use axum::{
    Router,
    extract::{Request, State},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use tokio::sync::watch;

use crate::{
    admission::{Admission, Question},
    admit::Desk,
    certificates::Certificates,
    connection::Stage,
    metrics, validate,
};

/// What handlers share.
struct Shared<A> {
    desk: Arc<Desk<A>>,
    certificates: Certificates,
    stage: watch::Receiver<Stage>,
}

impl<A> Clone for Shared<A> {
    fn clone(&self) -> Self {
        Self {
            desk: Arc::clone(&self.desk),
            certificates: self.certificates.clone(),
            stage: self.stage.clone(),
        }
    }
}

/// Admission, probes and metrics.
pub(crate) fn all<A: Admission>(
    desk: &Arc<Desk<A>>,
    certificates: &Certificates,
    stage: &watch::Receiver<Stage>,
) -> Router {
    let admission = Router::new()
        .route("/", post(admit::<A>))
        .route("/admit", post(admit::<A>))
        .route("/decisions", post(decisions::<A>))
        .route("/inputs", post(inputs::<A>))
        .route("/validate", post(validate::<A>))
        .with_state(Arc::clone(desk));
    admission.merge(probes(desk, certificates, stage))
}

/// Probes and metrics: what may be had without TLS.
pub(crate) fn probes<A: Admission>(
    desk: &Arc<Desk<A>>,
    certificates: &Certificates,
    stage: &watch::Receiver<Stage>,
) -> Router {
    let (desk, certificates) = (Arc::clone(desk), certificates.clone());
    Router::new()
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(ready::<A>))
        .route("/metrics", get(metrics::<A>))
        .with_state(Shared { desk, certificates, stage: stage.clone() })
}

async fn admit<A: Admission>(State(desk): State<Arc<Desk<A>>>, request: Request) -> Response {
    desk.answer(Question::All, request).await
}

async fn decisions<A: Admission>(State(desk): State<Arc<Desk<A>>>, request: Request) -> Response {
    desk.answer(Question::Decisions, request).await
}

async fn inputs<A: Admission>(State(desk): State<Arc<Desk<A>>>, request: Request) -> Response {
    desk.answer(Question::Inputs, request).await
}

async fn validate<A: Admission>(State(desk): State<Arc<Desk<A>>>, request: Request) -> Response {
    match desk.intake.read(request.into_body()).await {
        Ok((review, _share)) => validate::answer(&review),
        Err(refused) => (StatusCode::BAD_REQUEST, format!("kausality: {refused}\n")).into_response(),
    }
}

async fn ready<A: Admission>(State(shared): State<Shared<A>>) -> (StatusCode, &'static str) {
    if *shared.stage.borrow() != Stage::Serving {
        (StatusCode::SERVICE_UNAVAILABLE, "shutting down\n")
    } else if !shared.certificates.is_ready() {
        (StatusCode::SERVICE_UNAVAILABLE, "there is no certificate to serve with yet\n")
    } else if shared.desk.admission.is_ready() {
        (StatusCode::OK, "ok\n")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "caches are not synced yet\n")
    }
}

async fn metrics<A: Admission>(State(shared): State<Shared<A>>) -> Response {
    match shared.desk.metrics.text() {
        Ok(text) => ([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response(),
        Err(_) => (StatusCode::INTERNAL_SERVER_ERROR, "a metric cannot be written\n").into_response(),
    }
}
