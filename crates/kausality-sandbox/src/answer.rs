//! What goes back: bodies, codes, warnings.

use std::convert::Infallible;
use std::sync::Arc;

use futures::Stream;
use http::{HeaderValue, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::body::{Bytes, Frame};
use serde::Serialize;

use crate::status::Failure;

/// The body of an answer: whole, or a stream that does not end by itself.
pub type Body = UnsyncBoxBody<Bytes, Infallible>;

/// What a write has to say besides its result.
#[derive(Clone, Debug, Default)]
pub(crate) struct Notes {
    pub(crate) warnings: Vec<String>,
    /// Audit annotations.
    pub(crate) annotations: std::collections::BTreeMap<String, String>,
    /// The name of what was created.
    pub(crate) name: Option<String>,
}

pub(crate) fn json<T: Serialize>(code: u16, value: &T) -> Response<Body> {
    let text = serde_json::to_vec(value).unwrap_or_default();
    whole(code, "application/json", text.into())
}

pub(crate) fn failure(failure: &Failure) -> Response<Body> {
    json(failure.code, &failure.to_value())
}

pub(crate) fn plain(code: u16, text: impl Into<Bytes>) -> Response<Body> {
    whole(code, "text/plain; charset=utf-8", text.into())
}

pub(crate) fn whole(code: u16, content_type: &'static str, text: Bytes) -> Response<Body> {
    answer(code, content_type, Full::new(text).boxed_unsync())
}

/// The body of an answer that has none.
pub(crate) fn nothing() -> Body {
    Full::default().boxed_unsync()
}

/// One JSON object after the other.
pub(crate) fn stream(objects: impl Stream<Item = Bytes> + Send + 'static) -> Response<Body> {
    use futures::StreamExt as _;
    let frames = objects.map(|text| Ok::<_, Infallible>(Frame::data(text)));
    answer(200, "application/json", StreamBody::new(frames).boxed_unsync())
}

fn answer(code: u16, content_type: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    response
}

/// Adds `Warning` headers.
pub(crate) fn warn(response: &mut Response<Body>, warnings: &[String]) {
    for warning in warnings {
        let text: String =
            warning.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
        let text = text.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = HeaderValue::from_bytes(format!("299 - \"{text}\"").as_bytes()) {
            response.headers_mut().append(header::WARNING, value);
        }
    }
}

/// A result and its code.
pub(crate) type Done = Result<(u16, Arc<serde_json::Value>), Failure>;
