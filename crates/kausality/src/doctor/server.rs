//! What the API server is asked, and what it says.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use http::header::{ACCEPT, CONTENT_TYPE, DATE};
use jiff::{Timestamp, fmt::rfc2822};
use kube::{Client, client::Body};
use serde_json::Value;

use super::clock::Reading;

/// How long one answer may take.
const DEADLINE: Duration = Duration::from_secs(10);

/// How long a write may take: webhooks are asked in between, each for up to 30 s.
const WRITE_DEADLINE: Duration = Duration::from_secs(35);

/// Metadata alone: whole objects are not needed.
const METADATA: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// What was seen of something.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Seen<T = Value> {
    /// Here it is.
    Found(T),
    /// There certainly is none.
    Absent,
    /// It may be there, but could not be read: why.
    Hidden(String),
}

impl<T> Seen<T> {
    pub(super) fn found(&self) -> Option<&T> {
        match self {
            Self::Found(value) => Some(value),
            Self::Absent | Self::Hidden(_) => None,
        }
    }

    pub(super) fn map<U>(self, change: impl FnOnce(T) -> U) -> Seen<U> {
        match self {
            Self::Found(value) => Seen::Found(change(value)),
            Self::Absent => Seen::Absent,
            Self::Hidden(why) => Seen::Hidden(why),
        }
    }
}

/// Why a request failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The API server says no.
    Status { code: u16, message: String },
    /// It did not answer, or not in JSON.
    Silent(String),
}

impl Refusal {
    pub(super) fn text(&self) -> &str {
        match self {
            Self::Status { message, .. } => message,
            Self::Silent(why) => why,
        }
    }
}

/// The API server.
pub(super) struct Server {
    client: Client,
}

impl Server {
    pub(super) fn new(client: Client) -> Self {
        Self { client }
    }

    /// Somebody without credentials at a URL, and the path there. Whom it belongs to does not matter: nothing is sent
    /// that anybody may not know.
    pub(super) fn stranger(url: &str) -> Result<(Self, String)> {
        let uri: http::Uri = url.parse().with_context(|| format!("{url} is no URL"))?;
        let path = uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        let authority = uri.authority().with_context(|| format!("{url} names no host"))?;
        let mut config = kube::Config::new(format!("https://{authority}").parse()?);
        config.accept_invalid_certs = true;
        config.connect_timeout = Some(DEADLINE);
        Ok((Self::new(Client::try_from(config)?), path))
    }

    /// What version it is, and what time it has.
    pub(super) async fn greet(&self) -> Result<(Value, Reading)> {
        let asked = Timestamp::now();
        let request = http::Request::get("/version").body(Body::empty())?;
        let answer = tokio::time::timeout(DEADLINE, self.client.send(request)).await;
        let answer = answer.with_context(|| format!("no answer within {} s", DEADLINE.as_secs()))??;
        let answered = Timestamp::now();
        let date = answer.headers().get(DATE).and_then(|date| date.to_str().ok());
        let server = date.and_then(|date| rfc2822::DateTimeParser::new().parse_timestamp(date).ok());
        drop(answer);
        match self.read("/version", None).await {
            Ok(version) => Ok((version, Reading { asked, answered, server })),
            Err(refusal) => bail!("{}", refusal.text()),
        }
    }

    /// An object, or whatever is at a path.
    pub(super) async fn get(&self, path: &str) -> Seen {
        seen(self.read(path, None).await)
    }

    /// The objects of a list.
    pub(super) async fn list(&self, path: &str) -> Seen<Vec<Value>> {
        seen(self.read(path, None).await).map(items)
    }

    /// The metadata of the objects of a list.
    pub(super) async fn metadata(&self, path: &str) -> Seen<Vec<Value>> {
        seen(self.read(path, Some(METADATA)).await).map(items)
    }

    /// Sends an object.
    pub(super) async fn post(&self, path: &str, object: &Value) -> Result<Value, Refusal> {
        let request = http::Request::post(path).header(CONTENT_TYPE, "application/json");
        self.ask(request, object.to_string().into_bytes(), WRITE_DEADLINE).await
    }

    async fn read(&self, path: &str, accept: Option<&str>) -> Result<Value, Refusal> {
        let request = http::Request::get(path);
        let request = match accept {
            Some(accept) => request.header(ACCEPT, accept),
            None => request,
        };
        self.ask(request, Vec::new(), DEADLINE).await
    }

    async fn ask(
        &self,
        request: http::request::Builder,
        body: Vec<u8>,
        deadline: Duration,
    ) -> Result<Value, Refusal> {
        let request = request.body(body).map_err(|error| Refusal::Silent(error.to_string()))?;
        match tokio::time::timeout(deadline, self.client.request_text(request)).await {
            Ok(Ok(text)) => {
                serde_json::from_str(&text).map_err(|_| Refusal::Silent("the answer is no JSON".to_owned()))
            }
            Ok(Err(kube::Error::Api(status))) => {
                Err(Refusal::Status { code: status.code, message: status.message.clone() })
            }
            Ok(Err(error)) => Err(Refusal::Silent(format!("{:#}", anyhow::Error::new(error)))),
            Err(_) => Err(Refusal::Silent(format!("no answer within {} s", deadline.as_secs()))),
        }
    }
}

fn seen(answer: Result<Value, Refusal>) -> Seen {
    match answer {
        Ok(value) => Seen::Found(value),
        Err(Refusal::Status { code: 404, .. }) => Seen::Absent,
        Err(refusal) => Seen::Hidden(refusal.text().to_owned()),
    }
}

fn items(mut list: Value) -> Vec<Value> {
    match list["items"].take() {
        Value::Array(items) => items,
        _ => Vec::new(),
    }
}

/// A text in an object; empty, if there is none.
pub(super) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// A number in an object.
pub(super) fn number(object: &Value, pointer: &str) -> Option<i64> {
    object.pointer(pointer).and_then(Value::as_i64)
}

/// A list in an object; empty, if there is none.
pub(super) fn list<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The texts of a list in an object.
pub(super) fn texts<'a>(object: &'a Value, pointer: &str) -> impl Iterator<Item = &'a str> {
    list(object, pointer).iter().filter_map(Value::as_str)
}
