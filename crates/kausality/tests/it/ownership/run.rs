//! A program on its way through the API server, with our expectation beside it.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use http::Request;
use jiff::Timestamp;
use kausality_fields::managed::{decode, encode};
use kube::{Client, client::Body};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use crate::ownership::{
    call::{Call, Meaning},
    compare,
    model::{Expected, Model, Stored, with_times_of},
    program::{Action, Program},
    scale,
};

pub(crate) struct Run {
    pub(crate) program: Program,
    /// What was asked and answered, for whoever has to find out.
    pub(crate) log: Vec<String>,
    pub(crate) failure: Option<String>,
    /// What became of the steps.
    pub(crate) outcomes: BTreeMap<(Action, Outcome), usize>,
    name: String,
    live: Option<Value>,
    /// The second of the last request. The next one waits for another, so that times tell them apart.
    second: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outcome {
    Stored,
    Conflict,
    Refused,
}

/// How the API server refuses to apply what does not fit the type of the object.
const NOT_OF_ITS_TYPE: &str = "failed to create typed patch object";

struct Answer {
    code: u16,
    text: String,
    began: String,
    ended: String,
}

impl Run {
    pub(crate) fn new(program: Program, name: String) -> Self {
        let (log, outcomes) = (Vec::new(), BTreeMap::new());
        Self { program, log, failure: None, outcomes, name, live: None, second: 0 }
    }

    pub(crate) async fn step(&mut self, nth: usize, client: &Client, model: &Model) {
        if self.failure.is_none()
            && nth < self.program.steps.len()
            && let Err(failure) = self.try_step(nth, client, model).await
        {
            self.failure = Some(format!("step {nth}: {failure}"));
        }
    }

    async fn try_step(&mut self, nth: usize, client: &Client, model: &Model) -> Result<(), String> {
        let step = self.program.steps[nth].clone();
        let kind = self.program.kind;
        let call = Call::of(&step, kind, &self.name, self.live.as_ref());
        let answer =
            self.send(client, call.method, &call.path, call.content_type, call.body.to_string()).await?;
        self.log
            .push(format!("{nth}. {} {}\n   {}\n   -> {}", call.method, call.path, call.body, answer.code));

        let accepted = (200..300).contains(&answer.code);
        // The answer to a request for the scale is not the object.
        let text = match call.meaning {
            Meaning::Scale => self.get(client).await?,
            _ => answer.text.clone(),
        };
        let after: Option<Value> = accepted.then(|| parse(&text)).transpose()?;
        let stored = Stored { before: self.live.as_ref(), after: after.as_ref() };
        let expected = model.expect(kind, &call, &step.manager, &stored, &answer.ended);
        let outcome = match (&after, expected) {
            (None, expected) => self.refused(&answer, expected)?,
            (Some(after), Expected::Stored(served)) => {
                let actual = managed_fields(&text)?;
                let decoded = decode(&actual).map_err(|error| format!("{error}: {actual}"))?;
                let entries = with_times_of(served.entries, &decoded, &answer.ended, &answer.began);
                let expected = match call.meaning {
                    Meaning::Scale => scale::encode(&entries),
                    _ => encode(&entries, kind.wire()),
                };
                if expected != actual {
                    return Err(format!("managedFields\n{}", lines(&expected, &actual)));
                }
                let has_status = kind.has_status();
                if matches!(call.meaning, Meaning::Apply { .. })
                    && let Some(place) =
                        compare::difference(&served.object, after, call.subresource, has_status)
                {
                    return Err(format!("the object: {place}\n   stored: {after}"));
                }
                Outcome::Stored
            }
            (Some(_), Expected::Refused(why)) => {
                return Err(format!("the API server accepts it, and we do not: {why}"));
            }
            (Some(_), Expected::Conflicts(conflicts)) => {
                return Err(format!("the API server accepts it, and we see conflicts: {conflicts:?}"));
            }
        };
        if let Some(after) = after {
            self.live = Some(after);
        }
        *self.outcomes.entry((step.action, outcome)).or_default() += 1;
        Ok(())
    }

    fn refused(&mut self, answer: &Answer, expected: Expected) -> Result<Outcome, String> {
        let status: Value = parse(&answer.text)?;
        if let Some(last) = self.log.last_mut() {
            *last += &format!(" {}", status["message"]);
        }
        let causes = status["details"]["causes"].as_array().map_or(&[][..], Vec::as_slice);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let conflicts: BTreeSet<_> = causes
            .iter()
            .filter(|cause| cause["reason"] == "FieldManagerConflict")
            .map(|cause| (text(&cause["message"]), text(&cause["field"])))
            .collect();
        match expected {
            Expected::Conflicts(expected) if expected == conflicts => Ok(Outcome::Conflict),
            Expected::Refused(_) if conflicts.is_empty() => Ok(Outcome::Refused),
            // What is not valid for other reasons than its type is no matter of owners.
            Expected::Stored(_) if conflicts.is_empty() && !answer.text.contains(NOT_OF_ITS_TYPE) => {
                Ok(Outcome::Refused)
            }
            expected => Err(format!("refused\n   ours:   {expected:?}\n   server: {}", answer.text)),
        }
    }

    async fn get(&mut self, client: &Client) -> Result<String, String> {
        let path = format!("{}/{}", self.program.kind.path(), self.name);
        Ok(send(client, "GET", &path, "application/json", String::new()).await?.text)
    }

    async fn send(
        &mut self,
        client: &Client,
        method: &str,
        path: &str,
        content_type: &str,
        body: String,
    ) -> Result<Answer, String> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        if now.as_secs() <= self.second {
            let next = Duration::from_secs(self.second + 1);
            tokio::time::sleep(next.saturating_sub(now)).await;
        }
        let answer = send(client, method, path, content_type, body).await?;
        self.second = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        Ok(answer)
    }
}

async fn send(
    client: &Client,
    method: &str,
    path: &str,
    content_type: &str,
    body: String,
) -> Result<Answer, String> {
    let began = now();
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", content_type)
        .header("accept", "application/json")
        .body(Body::from(body.into_bytes()))
        .map_err(|error| error.to_string())?;
    let response = client.send(request).await.map_err(|error| error.to_string())?;
    let code = response.status().as_u16();
    let bytes = response.into_body().collect_bytes().await.map_err(|error| error.to_string())?;
    let text = String::from_utf8(bytes.to_vec()).map_err(|error| error.to_string())?;
    Ok(Answer { code, text, began, ended: now() })
}

/// The time as the API server writes it.
fn now() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    Timestamp::from_second(i64::try_from(now).unwrap()).unwrap().to_string()
}

fn parse(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| format!("{error}: {text}"))
}

/// The bytes of `metadata.managedFields`.
fn managed_fields(text: &str) -> Result<String, String> {
    #[derive(Deserialize)]
    struct Object<'a> {
        #[serde(borrow)]
        metadata: Metadata<'a>,
    }
    #[derive(Deserialize)]
    struct Metadata<'a> {
        #[serde(borrow, rename = "managedFields")]
        managed_fields: Option<&'a RawValue>,
    }
    let object: Object<'_> = serde_json::from_str(text).map_err(|error| error.to_string())?;
    Ok(object.metadata.managed_fields.map_or("[]", RawValue::get).to_owned())
}

/// Both lists, an entry a line.
fn lines(ours: &str, server: &str) -> String {
    let split = |text: &str| -> Vec<String> {
        let entries: Vec<&RawValue> = serde_json::from_str(text).unwrap_or_default();
        entries.into_iter().map(|entry| entry.get().to_owned()).collect()
    };
    let (ours, server) = (split(ours), split(server));
    let only = |these: &[String], those: &[String], mark: &str| -> String {
        these.iter().filter(|line| !those.contains(line)).map(|line| format!("   {mark} {line}\n")).collect()
    };
    let both = ours.iter().filter(|line| server.contains(line)).count();
    let text = only(&ours, &server, "ours:  ") + &only(&server, &ours, "server:");
    if text.is_empty() {
        format!("   another order: {ours:#?} {server:#?}")
    } else {
        format!("{text}   (and {both} alike)")
    }
}
