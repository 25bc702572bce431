//! What is asked for one level further up.

use jiff::{SignedDuration, Timestamp};
use kausality_api::{annotation::TRACE, trace::Trace};

use crate::{
    facts::{Activity, InputChange, Settings},
    settle::{self, Calm, Settled},
    status::Standing,
    summary::Summary,
};

/// For how long after the last step somebody may still be about something.
const HORIZON: SignedDuration = SignedDuration::from_mins(10);

/// What the owner of a parent asks for, as an input of the parent: an intent that is younger than the parent's, and that the
/// owner's controller is still carrying out. A restarted Rollout evicts Pods, and its ReplicaSet, of which nobody asked anything,
/// replaces them.
///
/// `resource` is the plural name of the owner's kind, `below` what was seen below the owner, `last` when the parent's controller
/// last acted.
#[must_use]
pub fn from_above(
    settings: &Settings,
    parent: &Summary,
    (owner, resource): (&Summary, &str),
    (below, last): (&Activity, Option<Timestamp>),
    now: Timestamp,
) -> Option<InputChange> {
    let written = owner.intent_written()?;
    let is_younger = written > parent.intent_written()?;
    let latest = below.last.max(last).map_or(written, |step| step.max(written));
    if !is_younger || now.duration_since(latest) >= HORIZON {
        return None;
    }
    let settling = settings.policies.settling(owner.id.group(), resource, settings.quiet_time);
    let calm = Calm { now: Some(now), last_change: below.last, input: None };
    let is_open = matches!(settle::of(owner, settling, calm), Settled::No(_) | Settled::Restless(_))
        && !matches!(owner.status.standing, Standing::Never(_))
        && !owner.deleting;
    let trace = owner.annotation(TRACE).and_then(|text| Trace::decode(text).ok())?;
    is_open.then(|| InputChange { object: owner.id.clone(), at: now, trace: Some(trace) })
}
