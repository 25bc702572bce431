//! What is asked for one level further up.

use jiff::{SignedDuration, Timestamp};
use kausality_api::{annotation::TRACE, trace::Trace};

use crate::{
    facts::{Activity, InputChange, Settings},
    settle::{self, Calm, Settled},
    status::Standing,
    summary::Summary,
};

/// For how long somebody may be about something. What is stuck for longer explains nothing any more.
const HORIZON: SignedDuration = SignedDuration::from_mins(30);

/// What the owner of a parent asks for, as an input of the parent: an intent that is younger than the parent's, and that the
/// owner's controller is still carrying out. A restarted Rollout evicts Pods, and its ReplicaSet, of which nobody asked anything,
/// replaces them.
///
/// `resource` is the plural name of the owner's kind, `below` what was seen below the owner.
#[must_use]
pub fn from_above(
    settings: &Settings,
    parent: &Summary,
    (owner, resource): (&Summary, &str),
    below: &Activity,
    now: Timestamp,
) -> Option<InputChange> {
    let written = owner.intent_written()?;
    let is_younger = written > parent.intent_written()?;
    if !is_younger || now.duration_since(written) >= HORIZON {
        return None;
    }
    let settling = settings.policies.settling(owner.id.group(), resource, settings.quiet_time);
    let calm = Calm { now: Some(now), last_change: below.last, input: None };
    let is_open = matches!(settle::of(owner, settling, calm), Settled::No(_) | Settled::Restless(_))
        && !matches!(owner.status.standing, Standing::Never(_))
        && !owner.deleting;
    let trace = owner.annotation(TRACE).and_then(|text| Trace::decode(text).ok())?;
    is_open.then(|| InputChange { object: owner.id.clone(), at: now, trace: Some(trace), ongoing: true })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::review::Object;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + second).unwrap()
    }

    /// An object whose intent was written at that second, at generation 2.
    fn object(kind: &str, written: i64, status: &Value) -> Summary {
        let trace = json!([{"apiVersion": "v1", "kind": kind, "name": "a", "user": "alice", "timestamp": at(written)}]);
        let object = json!({"apiVersion": "example.com/v1", "kind": kind, "spec": {}, "status": status,
            "metadata": {"name": "a", "namespace": "n", "uid": kind, "generation": 2}});
        let mut summary = Summary::of(&Object::parse(&object.to_string()).unwrap());
        summary.annotate(TRACE, Some(&trace.to_string()));
        summary
    }

    /// Who is found to ask at that second, if anybody.
    fn found(owner: &Summary, parent: &Summary, now: i64) -> Option<String> {
        let input =
            from_above(&Settings::default(), parent, (owner, "owners"), &Activity::default(), at(now))?;
        assert_eq!(input.at, at(now));
        Some(input.trace.unwrap().hops()[0].user.clone())
    }

    #[test]
    fn an_owner_that_is_not_done_with_a_younger_intent_asks() {
        let busy = json!({"observedGeneration": 1});
        let (owner, parent) = (object("Owner", 10, &busy), object("Parent", 5, &json!({})));
        assert_eq!(found(&owner, &parent, 20).as_deref(), Some("alice"));
        // Whatever it asked for before the parent was changed has reached the parent.
        assert_eq!(found(&owner, &object("Parent", 10, &json!({})), 20), None);
        // It is done.
        let done = json!({"observedGeneration": 2});
        assert_eq!(found(&object("Owner", 10, &done), &parent, 20), None);
        // It goes.
        let mut going = owner.clone();
        going.deleting = true;
        assert_eq!(found(&going, &parent, 20), None);
        // It is stuck.
        assert!(found(&owner, &parent, 10 + 1799).is_some());
        assert_eq!(found(&owner, &parent, 10 + 1800), None);
    }

    #[test]
    fn who_acts_on_a_schedule_is_never_done_and_asks_for_nothing() {
        let mut owner = object("Owner", 10, &json!({}));
        owner.status.standing = Standing::Never("a schedule");
        assert_eq!(found(&owner, &object("Parent", 5, &json!({})), 20), None);
    }
}
