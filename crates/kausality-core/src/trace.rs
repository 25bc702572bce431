//! The trace that a change leaves on its object.

use std::collections::BTreeMap;

use jiff::{RoundMode, Timestamp, TimestampRound, Unit};
use kausality_api::{
    annotation::TRACE,
    trace::{Hop, MAX_LABELS, Trace, label},
};

use crate::{
    cause::Cause, child::Child, class::Class, facts::InputChange, gate::Resolution, review::Request,
    summary::Summary,
};

/// What a trace is made from.
pub(crate) struct Source<'a> {
    pub request: &'a Request<'a>,
    pub class: Class,
    pub child: &'a Child<'a>,
    pub parent: Option<&'a Summary>,
    /// What opened the parent, if that was not a change of its own.
    pub input: Option<&'a InputChange>,
    pub cause: Option<Cause>,
    pub resolution: &'a Resolution,
    pub labels: BTreeMap<String, String>,
    pub now: Timestamp,
}

/// The trace of a change that nobody judges: of labels or annotations, or of an object that is only observed.
pub(crate) fn origin(request: &Request<'_>, child: &Child<'_>, class: Class, now: Timestamp) -> Trace {
    let (trace, _) = of(Source {
        request,
        class,
        child,
        parent: None,
        input: None,
        cause: Some(Cause::Origin),
        resolution: &Resolution::Passed,
        labels: child.trace_labels(),
        now,
    });
    trace
}

/// The trace of a change that is allowed, and what is wrong with the parent's if it could not be used.
pub(crate) fn of(source: Source<'_>) -> (Trace, Option<String>) {
    let Source { request, child, .. } = source;
    let drift = matches!(source.resolution, Resolution::Logged);
    let hop = Hop {
        api_version: child.id.api_version.clone(),
        kind: child.id.kind.clone(),
        name: child.id.name.clone(),
        uid: child.uid.clone(),
        generation: child.next_generation(source.class),
        user: request.user().to_owned(),
        timestamp: to_the_second(source.now),
        request_uid: (!request.uid.is_empty()).then(|| request.uid.to_string()),
        labels: source.labels,
        approval: source.resolution.hop_approval(),
        drift,
    };
    let continues = match source.cause {
        Some(Cause::Expected | Cause::Initialization | Cause::Cleanup) => true,
        Some(Cause::Drift) => !drift,
        Some(Cause::Origin) | None => false,
    };
    let carries_out = matches!(source.cause, Some(Cause::Expected | Cause::Initialization));
    // Whichever was changed last opened the parent.
    let later = |input: &&InputChange| {
        source.parent.and_then(Summary::intent_written).is_none_or(|written| input.at > written)
    };
    let input = source.input.filter(|_| carries_out).filter(later);
    if let Some(trace) = input.and_then(|input| input.trace.clone()) {
        return (trace.extended(hop), None);
    }
    let text = match source.parent {
        // What goes since its parent is gone was made for whoever asked for it.
        None if source.cause == Some(Cause::Cleanup) => child.stored(TRACE),
        parent => parent.filter(|_| continues).and_then(|parent| parent.annotation(TRACE)),
    };
    match text.map(Trace::decode) {
        None => (Trace::origin(hop), None),
        Some(Ok(trace)) if trace.hops().is_empty() => (Trace::origin(hop), None),
        Some(Ok(trace)) => (trace.extended(hop), None),
        Some(Err(fault)) => (Trace::origin(hop), Some(format!("{TRACE} on the parent: {fault}"))),
    }
}

fn to_the_second(now: Timestamp) -> Timestamp {
    now.round(TimestampRound::new().smallest(Unit::Second).mode(RoundMode::Floor)).unwrap_or(now)
}

/// The labels that `trace-*` annotations give to a hop: the first ones, if there are more than it takes.
pub(crate) fn labels<'a>(annotations: impl Iterator<Item = (&'a str, &'a str)>) -> BTreeMap<String, String> {
    let labels = annotations.filter_map(|(key, value)| Some((label(key)?.to_owned(), value.to_owned())));
    labels.take(MAX_LABELS).collect()
}
