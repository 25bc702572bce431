//! What has to be told to whom next, from what is in the ledger alone.
//!
//! Each endpoint hears of a drift in the same order: that it was detected, then that it is resolved. One that has not
//! heard of it when it is resolved is told both. While the parent is snoozed nobody hears of a drift for the first
//! time; one that comes and goes meanwhile is never told.

use jiff::Timestamp;
use kausality_api::{
    drift::{Delivery, DriftState, DriftStatus},
    report::ReportPhase,
};

/// What is next for one endpoint and one drift.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// It knows all there is.
    Nothing,
    /// It is to be told this.
    Tell(ReportPhase),
    /// It is not told before this time, since the parent is snoozed.
    Wait(Timestamp),
    /// The drift came and went while the parent was snoozed: it is recorded that nothing is to be told.
    Silence,
}

/// As much of a drift as decides who is told what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Since when it is over, if it is.
    pub resolved: Option<Timestamp>,
    /// What endpoints have been told.
    pub deliveries: Vec<Delivery>,
}

impl From<&DriftStatus> for Standing {
    fn from(status: &DriftStatus) -> Self {
        let is_over = status.state == DriftState::Resolved;
        let at = status.resolution.as_ref().map_or(status.last_seen, |resolution| resolution.at);
        Self { resolved: is_over.then_some(at), deliveries: status.deliveries.clone() }
    }
}

/// What is next for an endpoint. `snooze` is until when the parent is, or was last, snoozed.
#[must_use]
pub fn next(standing: &Standing, endpoint: &str, snooze: Option<Timestamp>, now: Timestamp) -> Next {
    let told = standing.deliveries.iter().find(|delivery| delivery.endpoint == endpoint);
    let knows = told.is_some_and(|delivery| delivery.detected.is_some());
    let is_done = told.is_some_and(|delivery| delivery.resolved.is_some());
    match standing.resolved {
        Some(_) if is_done => Next::Nothing,
        Some(_) if knows => Next::Tell(ReportPhase::Resolved),
        Some(at) if snooze.is_some_and(|until| at < until) => Next::Silence,
        None if knows => Next::Nothing,
        None => match snooze.filter(|until| now < *until) {
            Some(until) => Next::Wait(until),
            None => Next::Tell(ReportPhase::Detected),
        },
        Some(_) => Next::Tell(ReportPhase::Detected),
    }
}

/// Whether what is next depends on a snooze: only who has not heard of a drift is spared.
#[must_use]
pub fn depends_on_snooze(standing: &Standing, endpoint: &str) -> bool {
    matches!(next(standing, endpoint, None, Timestamp::MAX), Next::Tell(ReportPhase::Detected))
}

/// What is to be recorded of an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// It took this over.
    Told(ReportPhase),
    /// Nothing is to be told to it.
    Silent,
    /// It could not be told, for this reason.
    Failed(String),
}

/// The deliveries with one thing more recorded. Endpoints that are not configured are forgotten.
#[must_use]
pub fn record(
    deliveries: &[Delivery],
    configured: &[&str],
    endpoint: &str,
    record: &Record,
    now: Timestamp,
) -> Vec<Delivery> {
    let is_kept = |delivery: &&Delivery| configured.contains(&delivery.endpoint.as_str());
    let mut kept: Vec<Delivery> = deliveries.iter().filter(is_kept).cloned().collect();
    if !kept.iter().any(|delivery| delivery.endpoint == endpoint) {
        kept.push(Delivery { endpoint: endpoint.to_owned(), ..Delivery::default() });
    }
    for delivery in kept.iter_mut().filter(|delivery| delivery.endpoint == endpoint) {
        delivery.error = None;
        match record {
            Record::Told(ReportPhase::Detected) => delivery.detected = Some(now),
            Record::Told(ReportPhase::Resolved) | Record::Silent => delivery.resolved = Some(now),
            Record::Failed(error) => delivery.error = Some(error.clone()),
        }
    }
    kept
}

#[cfg(test)]
mod tests;
