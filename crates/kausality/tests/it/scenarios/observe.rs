//! Whether what is seen is what is expected. Gives what is not, for people.

use std::collections::BTreeMap;

use kausality_api::annotation::{Suffix, TRACE};
use serde_json::Value;

use crate::scenarios::{
    format::{Calls, EventLike, Has, HopLike, Outcome},
    kinds::Kind,
    plane::{Answer, Audited},
    value::{self, annotation, as_text, differences},
};

/// What is wrong with an answer.
pub(crate) fn answer(answer: &Answer, expected: &Outcome) -> Vec<String> {
    let mut wrong = Vec::new();
    match &expected.denied {
        None if !answer.is_allowed() => {
            wrong.push(format!("expected it to be allowed, got {}: {}", answer.code, answer.message()));
        }
        Some(_) if answer.is_allowed() => {
            wrong.push(format!("expected it to be denied, but it was allowed: {}", answer.body));
        }
        Some(denied) => {
            if denied.code != answer.code {
                wrong.push(format!(
                    "expected code {}, got {}: {}",
                    denied.code,
                    answer.code,
                    answer.message()
                ));
            }
            for text in denied.text.iter().filter(|text| !answer.message().contains(text.as_str())) {
                wrong.push(format!("expected the message to contain {text:?}, got {:?}", answer.message()));
            }
        }
        None => {}
    }
    if let Some(expected) = &expected.warnings {
        let seen = &answer.warnings;
        for text in expected.iter().filter(|text| !seen.iter().any(|warning| warning.contains(text.as_str())))
        {
            wrong.push(format!("expected a warning with {text:?}, got {seen:?}"));
        }
        if expected.is_empty() && seen.iter().any(|warning| warning.contains("kausality")) {
            wrong.push(format!("expected no warning, got {seen:?}"));
        }
    }
    wrong
}

/// What Kausality said of a call, other than expected.
pub(crate) fn said(call: &Audited, expected: &BTreeMap<String, Value>) -> Vec<String> {
    let wrong = expected.iter().filter_map(|(key, wanted)| {
        let wanted = (!wanted.is_null()).then(|| as_text(wanted));
        let seen = call.said(key);
        let there = wanted.as_deref() == Some("present") && seen.is_some();
        (!there && seen != wanted.as_deref())
            .then(|| format!("audit entry {key} is {seen:?}, expected {wanted:?}"))
    });
    wrong.collect()
}

/// Whether a call is one of these.
pub(crate) fn is_among(call: &Audited, calls: &Calls) -> bool {
    let plural = calls.kind.as_deref().map(|kind| Kind::named(kind).map_or("", |kind| kind.plural));
    let is = |wanted: Option<&str>, seen: &str| wanted.is_none_or(|wanted| wanted == seen);
    is(calls.user.as_deref().map(value::user).as_deref(), &call.user)
        && is(calls.verb.as_deref(), &call.verb)
        && is(plural, &call.resource)
        && is(calls.name.as_deref(), &call.name)
        && is(calls.subresource.as_deref(), &call.subresource)
        && calls.code.is_none_or(|code| code == call.code)
        && said(call, &calls.said).is_empty()
}

/// What is wrong with an object, and with the events on it.
pub(crate) fn object(object: Option<&Value>, events: &[Value], has: &Has) -> Vec<String> {
    let Some(object) = object else {
        return if has.exists == Some(false) { Vec::new() } else { vec!["it does not exist".to_owned()] };
    };
    if has.exists == Some(false) {
        return vec![format!("it exists: {object}")];
    }
    let mut wrong = differences(object, &has.fields);
    for (key, wanted) in &has.annotations {
        let seen =
            object["metadata"]["annotations"][Suffix::of_object(object).key(&annotation(key))].as_str();
        let holds = match (wanted.as_str(), seen) {
            (Some("present"), seen) => seen.is_some(),
            (Some("absent"), seen) => seen.is_none(),
            (Some(wanted), seen) => seen == Some(wanted),
            (None, Some(seen)) => serde_json::from_str::<Value>(seen).is_ok_and(|seen| seen == *wanted),
            (None, None) => false,
        };
        if !holds {
            wrong.push(format!("annotation {key} is {seen:?}, expected {wanted}"));
        }
    }
    if let Some(expected) = &has.trace {
        wrong.extend(trace(object, expected));
    }
    if let Some(expected) = &has.events {
        wrong.extend(events_on(events, expected));
    }
    wrong
}

fn trace(object: &Value, expected: &[HopLike]) -> Vec<String> {
    let key = Suffix::of_object(object).key(TRACE);
    let text = object["metadata"]["annotations"][key].as_str().unwrap_or("[]");
    let hops: Vec<Value> = serde_json::from_str(text).unwrap_or_default();
    if hops.len() != expected.len() {
        return vec![format!("expected a trace of {} hops, got {text}", expected.len())];
    }
    let mut wrong = Vec::new();
    for (number, (hop, HopLike(wanted))) in hops.iter().zip(expected).enumerate() {
        let mut is = |key: &str, wanted: &Value| {
            if hop[key] != *wanted {
                wrong.push(format!(
                    "hop {} of the trace: {key} is {}, expected {wanted}",
                    number + 1,
                    hop[key]
                ));
            }
        };
        is("user", &value::user(&wanted.user).into());
        is("drift", &if wanted.drift { true.into() } else { Value::Null });
        for (key, wanted) in [("kind", &wanted.kind), ("name", &wanted.name)] {
            wanted.iter().for_each(|wanted| is(key, &wanted.clone().into()));
        }
        wanted.generation.iter().for_each(|wanted| is("generation", wanted));
        wanted.labels.iter().for_each(|wanted| is("labels", wanted));
        is("approval", wanted.approval.as_ref().unwrap_or(&Value::Null));
    }
    wrong
}

fn events_on(events: &[Value], expected: &[EventLike]) -> Vec<String> {
    let texts: Vec<String> =
        events.iter().map(|event| format!("{}: {}", event["reason"], event["message"])).collect();
    if expected.is_empty() && !events.is_empty() {
        return vec![format!("expected no event, got {texts:?}")];
    }
    let fits = |event: &Value, wanted: &EventLike| {
        let message = event["message"].as_str().unwrap_or_default();
        event["reason"] == wanted.reason && wanted.text.iter().all(|text| message.contains(text.as_str()))
    };
    let is_wrong = |wanted: &&EventLike| events.iter().any(|event| fits(event, wanted)) == wanted.absent;
    let wrong = expected.iter().filter(is_wrong).map(|wanted| {
        let article = if wanted.absent { "no" } else { "an" };
        format!("expected {article} event {} {:?}, got {texts:?}", wanted.reason, wanted.text)
    });
    wrong.collect()
}
