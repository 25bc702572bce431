//! The paths of the server.

use std::sync::Arc;

use axum::{
    Router,
    extract::{Request, State},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use jiff::Timestamp;
use tokio::sync::watch;

use crate::{
    admission::{Admission, Question},
    admit::Desk,
    certificates::{Certificates, Fault},
    connection::Stage,
    metrics,
};

/// The certificate that is served, and the names that it is to be for.
#[derive(Clone)]
pub(crate) struct Served {
    pub(crate) certificates: Certificates,
    pub(crate) names: Arc<[String]>,
}

impl Served {
    fn fault(&self) -> Option<Fault> {
        self.certificates.fault(&self.names, Timestamp::now())
    }
}

/// What handlers share.
struct Shared<A> {
    desk: Arc<Desk<A>>,
    served: Served,
    stage: watch::Receiver<Stage>,
}

impl<A> Clone for Shared<A> {
    fn clone(&self) -> Self {
        Self { desk: Arc::clone(&self.desk), served: self.served.clone(), stage: self.stage.clone() }
    }
}

/// Admission, probes and metrics.
pub(crate) fn all<A: Admission>(
    desk: &Arc<Desk<A>>,
    served: &Served,
    stage: &watch::Receiver<Stage>,
) -> Router {
    let admission = Router::new()
        .route("/", post(admit::<A>))
        .route("/admit", post(admit::<A>))
        .route("/decisions", post(decisions::<A>))
        .route("/inputs", post(inputs::<A>))
        .route("/validate", post(validate::<A>))
        .with_state(Arc::clone(desk));
    admission.merge(probes(desk, served, stage))
}

/// Probes and metrics: what may be had without TLS.
pub(crate) fn probes<A: Admission>(
    desk: &Arc<Desk<A>>,
    served: &Served,
    stage: &watch::Receiver<Stage>,
) -> Router {
    let (desk, served) = (Arc::clone(desk), served.clone());
    Router::new()
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(ready::<A>))
        .route("/metrics", get(metrics::<A>))
        .with_state(Shared { desk, served, stage: stage.clone() })
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
    desk.validate(request).await
}

async fn ready<A: Admission>(State(shared): State<Shared<A>>) -> (StatusCode, String) {
    let no = |why: &str| (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n"));
    if *shared.stage.borrow() != Stage::Serving {
        return no("shutting down");
    }
    if !shared.served.certificates.is_ready() {
        return no("there is no certificate to serve with yet");
    }
    let warning = match shared.served.fault() {
        Some(fault) if fault.is_for_everybody() => return no(&fault.to_string()),
        // Whoever registered the webhook under another name knows better than we do.
        Some(fault) => format!("warning: {fault}\n"),
        None => String::new(),
    };
    if shared.desk.admission.is_ready() {
        (StatusCode::OK, format!("ok\n{warning}"))
    } else {
        no("caches are not synced yet")
    }
}

async fn metrics<A: Admission>(State(shared): State<Shared<A>>) -> Response {
    match shared.desk.metrics.text() {
        Ok(text) => ([(header::CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response(),
        Err(_) => (StatusCode::INTERNAL_SERVER_ERROR, "a metric cannot be written\n").into_response(),
    }
}
