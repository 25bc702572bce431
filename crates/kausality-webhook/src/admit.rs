//! One admission request: from its HTTP form to a decision, and back.

use std::{
    panic::AssertUnwindSafe,
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use axum::{
    body::{Body, Bytes},
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use futures::FutureExt;
use kausality_api::text::shorten;
use kausality_core::{cause::Cause, review::BadReview};
use serde::Deserialize;

use crate::{
    admission::{Admission, Question, Reply},
    body::{Intake, Refused},
    clients::{Clients, Denied, Peer},
    connection::capacity::Usage,
    deadline::deadline,
    metrics::Metrics,
    processors::{Processors, Queued},
    response,
    seldom::Seldom,
    validate,
};

/// Characters of a reason that an HTTP error gives: it may quote what could not be read.
const MAX_REASON: usize = 500;

/// What is left of the time for a request to write the answer.
const RETURN: Duration = Duration::from_millis(250);

/// How long the review of somebody who may not post it is read on, so that the answer is seen.
const FAREWELL: Duration = Duration::from_secs(1);

/// From how many bytes on a review is not decided by the task that reads and answers it.
const LARGE_REVIEW: usize = 64 * 1024;

/// Takes requests to whom decides them.
#[derive(Debug)]
pub(crate) struct Desk<A> {
    pub(crate) admission: Arc<A>,
    pub(crate) metrics: Metrics,
    intake: Intake,
    processors: Processors,
    clients: Clients,
    /// The time for a request, unless the API server waits for less.
    deadline: Duration,
    refusals: Seldom,
}

/// Why there is no decision. An HTTP error, so that the webhook's `failurePolicy` says what happens.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Denied(#[from] Denied),
    #[error("reviews come as plain JSON, not as {0:?}")]
    Encoding(String),
    #[error(transparent)]
    Refused(#[from] Refused),
    #[error(transparent)]
    Bad(#[from] BadReview),
    #[error("no decision within {0:?}")]
    Late(Duration),
    #[error("other large reviews have kept all processors busy for {0:?}; try again")]
    Crowded(Duration),
    #[error("the decision failed because of a bug in Kausality; its log has a line about it")]
    Panicked,
    #[error("the answer cannot be written: {0}")]
    Unwritable(#[from] serde_json::Error),
}

impl<A: Admission> Desk<A> {
    pub(crate) fn new(
        admission: A,
        metrics: Metrics,
        intake: Intake,
        clients: Clients,
        deadline: Duration,
    ) -> Self {
        Self {
            admission: Arc::new(admission),
            metrics,
            intake,
            processors: Processors::default(),
            clients,
            deadline,
            refusals: Seldom::default(),
        }
    }

    /// Answers a review of a policy.
    pub(crate) async fn validate(&self, request: axum::extract::Request) -> Response {
        self.validated(request).await.unwrap_or_else(|failure| {
            self.note(&failure, "");
            failure.into_response()
        })
    }

    async fn validated(&self, request: axum::extract::Request) -> Result<Response, Failure> {
        let request = self.receive(request).await?;
        let time = deadline(request.uri().query(), self.deadline);
        let queued = Queued::default();
        let work = async {
            let (review, share) = self.intake.read(request.into_body()).await?;
            let admission = Arc::clone(&self.admission);
            // Whatever its size: a few words may take long to compile.
            let answer = self.processors.run(&queued, async move {
                let _share = share;
                validate::answer(&review, |policy| admission.room_for(policy))
            });
            answer.await.ok_or(Failure::Panicked)
        };
        in_time(time, &queued, work).await
    }

    /// Lets a request in if whoever sent it may post reviews.
    async fn receive(&self, request: axum::extract::Request) -> Result<axum::extract::Request, Failure> {
        let peer = request.extensions().get::<Arc<Peer>>();
        match self.clients.check(peer.map(AsRef::as_ref), request.headers()) {
            Ok(()) => {
                if let Some(usage) = request.extensions().get::<Arc<Usage>>() {
                    usage.know();
                }
                Ok(request)
            }
            Err(denied) => {
                _ = tokio::time::timeout(FAREWELL, self.intake.discard(request.into_body())).await;
                Err(denied.into())
            }
        }
    }

    /// Answers one request.
    pub(crate) async fn answer(&self, question: Question, request: axum::extract::Request) -> Response {
        let observation = self.metrics.begin();
        let review = OnceLock::new();
        let response = match self.outcome(question, request, observation.started, &review).await {
            Ok(answer) => ([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], answer)
                .into_response(),
            Err(failure) => {
                self.note(&failure, &review.get().map(uid).unwrap_or_default());
                failure.into_response()
            }
        };
        observation.end(response.status().as_u16());
        response
    }

    /// Decides a request; leaves its body in `review`, whatever becomes of it.
    async fn outcome(
        &self,
        question: Question,
        request: axum::extract::Request,
        started: Instant,
        review: &OnceLock<Bytes>,
    ) -> Result<Vec<u8>, Failure> {
        let request = self.receive(request).await?;
        check_encoding(request.headers())?;
        let time = deadline(request.uri().query(), self.deadline);
        let queued = Queued::default();
        // Whatever a panic left half done is the admission's own; this side keeps nothing between requests.
        let decided = self.decide(question, request.into_body(), (started, started + time), review, &queued);
        let work =
            AssertUnwindSafe(decided).catch_unwind().map(|done| done.unwrap_or(Err(Failure::Panicked)));
        in_time(time, &queued, work).await
    }

    async fn decide(
        &self,
        question: Question,
        body: Body,
        (started, until): (Instant, Instant),
        read: &OnceLock<Bytes>,
        queued: &Queued,
    ) -> Result<Vec<u8>, Failure> {
        let (review, share) = self.intake.read(body).await?;
        let review = read.get_or_init(|| review).clone();
        let until = until - RETURN.min(until - started);
        let (reply, answer) = if review.len() > LARGE_REVIEW {
            let admission = Arc::clone(&self.admission);
            let work = async move {
                let _share = share;
                ask(&*admission, question, review, until).await
            };
            self.processors.run(queued, work).await.ok_or(Failure::Panicked)??
        } else {
            ask(&*self.admission, question, review, until).await?
        };
        self.metrics.decided(&reply.decision);
        log(&reply, started);
        Ok(answer)
    }

    /// Logs and counts a failure. The payload of a panic and the details of a parser may quote objects, so
    /// neither is logged.
    fn note(&self, failure: &Failure, uid: &str) {
        match failure {
            Failure::Denied(denied) => {
                self.metrics.client_refused(denied.reason());
                if self.refusals.is_due() {
                    tracing::warn!(error = %denied, "refused a review: its client may not post any");
                }
            }
            Failure::Panicked => {
                self.metrics.panicked();
                tracing::error!(uid, "a decision panicked");
            }
            Failure::Bad(bad) => {
                self.metrics.bad_review();
                match bad {
                    BadReview::NotJson(error) => tracing::info!(
                        uid, category = ?error.classify(), line = error.line(), column = error.column(),
                        "not an AdmissionReview"
                    ),
                    bad => tracing::info!(uid, error = %bad, "not an AdmissionReview"),
                }
            }
            Failure::Late(_)
            | Failure::Crowded(_)
            | Failure::Unwritable(_)
            | Failure::Refused(Refused::Busy) => {
                tracing::warn!(uid, error = %failure, "no decision");
            }
            Failure::Encoding(_) | Failure::Refused(_) => {
                tracing::info!(uid, error = %failure, "no decision")
            }
        }
    }
}

/// A decision, and the answer that says it.
async fn ask<A: Admission>(
    admission: &A,
    question: Question,
    review: Bytes,
    until: Instant,
) -> Result<(Reply, Vec<u8>), Failure> {
    let reply = match question {
        Question::All => admission.decide(review, until).await?,
        Question::Inputs => admission.observe(review, until).await?,
        Question::Decisions => admission.decisions(review, until).await?,
    };
    let answer = response::encode(&reply.subject.uid, &reply.decision)?;
    Ok((reply, answer))
}

/// What comes of work in so much time.
async fn in_time<T>(
    time: Duration,
    queued: &Queued,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    match tokio::time::timeout(time, work).await {
        Ok(done) => done,
        Err(_elapsed) if queued.is_waiting() => Err(Failure::Crowded(time)),
        Err(_elapsed) => Err(Failure::Late(time)),
    }
}

/// The uid of the request in a body, as far as there is one.
fn uid(body: &Bytes) -> String {
    #[derive(Deserialize)]
    struct Review {
        request: Request,
    }
    #[derive(Deserialize)]
    struct Request {
        uid: String,
    }
    let review = serde_json::from_slice::<Review>(body);
    review.map(|review| shorten(&review.request.uid, 64)).unwrap_or_default()
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let status = match &self {
            Self::Denied(Denied::Name { .. }) => StatusCode::FORBIDDEN,
            Self::Denied(_) => StatusCode::UNAUTHORIZED,
            Self::Encoding(_) => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Refused(Refused::TooLarge { .. }) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Refused(Refused::Busy) | Self::Crowded(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Refused(Refused::Broken(_)) | Self::Bad(_) => StatusCode::BAD_REQUEST,
            Self::Late(_) => StatusCode::GATEWAY_TIMEOUT,
            Self::Panicked | Self::Unwritable(_) => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let text = format!("kausality: {}\n", shorten(&self.to_string(), MAX_REASON));
        let mut response = (status, text).into_response();
        if status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if status == StatusCode::SERVICE_UNAVAILABLE {
            // client-go, and so the API server, tries again only if told when.
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}

/// Refuses what says that it is something else than JSON. Whether it is JSON, the parser finds out.
fn check_encoding(headers: &HeaderMap) -> Result<(), Failure> {
    let of = |name| headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).to_lowercase());
    if let Some(content) = of(header::CONTENT_TYPE)
        && ["protobuf", "yaml", "cbor"].iter().any(|other| content.contains(other))
    {
        return Err(Failure::Encoding(content));
    }
    match of(header::CONTENT_ENCODING) {
        Some(encoding) if encoding != "identity" => Err(Failure::Encoding(encoding)),
        _ => Ok(()),
    }
}

/// One line per decision: what somebody may want to know later is `info`, the rest is `debug`.
fn log(reply: &Reply, started: Instant) {
    let (subject, decision) = (&reply.subject, &reply.decision);
    macro_rules! decided {
        ($level:ident) => {
            tracing::$level!(
                uid = subject.uid.as_str(),
                operation = subject.operation,
                kind = subject.kind.as_str(),
                subresource = subject.subresource.as_str(),
                namespace = subject.namespace.as_str(),
                name = subject.name.as_str(),
                user = subject.user.as_str(),
                cause = decision.cause.map(Cause::as_str),
                verdict = decision.verdict.as_str(),
                resolution = decision.resolution.as_str(),
                latency_us = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX),
                "decided"
            )
        };
    }
    if decision.cause == Some(Cause::Drift) || !decision.verdict.is_allowed() {
        decided!(info);
    } else {
        decided!(debug);
    }
}

#[cfg(test)]
mod tests;
