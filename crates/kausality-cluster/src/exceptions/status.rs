//! What there is to say about a policy.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kausality_api::{
    exception::PolicyKind,
    status::{ApprovalPolicyStatus, Condition, RuleStatus},
};
use kausality_core::exceptions;

use super::Held;
use crate::events::{Events, Notice};

/// Characters of what is wrong with a policy that are told.
const MAX_MESSAGE: usize = 8000;

/// Matches of a policy's rules, by their marks: how many, and when the last was.
#[derive(Clone, Debug, Default)]
pub(super) struct Sightings(BTreeMap<String, (u64, Timestamp)>);

impl Sightings {
    pub(super) fn add(&mut self, mark: &str, now: Timestamp) {
        let (count, last) = self.0.entry(mark.to_owned()).or_insert((0, now));
        *count += 1;
        *last = now.max(*last);
    }

    /// What has been written is not counted again.
    pub(super) fn forget(&mut self, written: &Self) {
        for (rule, (count, _)) in &written.0 {
            if let Some((left, _)) = self.0.get_mut(rule) {
                *left = left.saturating_sub(*count);
            }
        }
        self.0.retain(|_, (count, _)| *count > 0);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Held {
    /// Where the rule with this mark is.
    fn place(&self, mark: &str) -> Option<u64> {
        self.marks.iter().position(|it| it == mark).map(|place| place as u64)
    }

    /// What is known of its rules, each where it is now. One that is not there any more is forgotten.
    fn rules(&self) -> Vec<RuleStatus> {
        // Earlier versions told the place alone.
        let by_place = |place: u64| {
            let is_current = self.status.observed_generation == self.generation;
            self.marks.get(usize::try_from(place).ok()?).filter(|_| is_current).cloned()
        };
        let here = |known: &RuleStatus| {
            let mark = known.mark.clone().or_else(|| by_place(known.rule))?;
            Some(RuleStatus { rule: self.place(&mark)?, mark: Some(mark), ..known.clone() })
        };
        self.status.rules.iter().filter_map(here).collect()
    }

    pub(super) fn reference(&self) -> String {
        self.kind.reference(&self.namespace, &self.name)
    }

    pub(super) fn is_clusterwide(&self) -> bool {
        self.kind == PolicyKind::ClusterApprovalPolicy
    }
}

/// The status that a policy should have, if it is not the one it has.
pub(super) fn next(
    held: &Held,
    seen: &Sightings,
    unserved: &[String],
    now: Timestamp,
) -> Option<ApprovalPolicyStatus> {
    let mut status = held.status.clone();
    status.observed_generation = held.generation;
    set(&mut status, compiled(held), held.generation, now);
    set(&mut status, kinds(unserved), held.generation, now);
    set(&mut status, expired(held, now), held.generation, now);
    status.rules = held.rules();
    for (mark, (count, last)) in &seen.0 {
        status.matches = Some(status.matches.unwrap_or_default() + count);
        status.last_matched = status.last_matched.max(Some(*last));
        let Some(place) = held.place(mark) else { continue };
        match status.rules.iter_mut().find(|known| known.rule == place) {
            Some(known) => {
                known.matches += count;
                known.last_matched = known.last_matched.max(*last);
            }
            None => status.rules.push(RuleStatus {
                rule: place,
                mark: Some(mark.clone()),
                matches: *count,
                last_matched: *last,
            }),
        }
    }
    status.rules.sort_by_key(|known| known.rule);
    (status != held.status).then_some(status)
}

/// Whether something holds of a policy, and why.
struct Finding {
    kind: &'static str,
    holds: bool,
    reason: &'static str,
    message: String,
}

fn compiled(held: &Held) -> Finding {
    let (holds, reason, message) = match &held.rules.compiled {
        Ok(_) => (true, "Compiled", "all rules hold".to_owned()),
        Err(faults) => (false, "Invalid", format!("no rule that allows holds: {}", exceptions::told(faults))),
    };
    Finding { kind: "Compiled", holds, reason, message: kausality_api::text::shorten(&message, MAX_MESSAGE) }
}

fn kinds(unserved: &[String]) -> Finding {
    let (holds, reason, message) = match unserved {
        [] => (true, "Served", "all kinds that rules name are served".to_owned()),
        unserved => (false, "UnknownKind", unserved.join("\n")),
    };
    Finding { kind: "KindsServed", holds, reason, message }
}

fn expired(held: &Held, now: Timestamp) -> Finding {
    let rules = held.policy.iter().flat_map(|policy| &policy.spec.rules).enumerate();
    let over: Vec<String> = rules
        .filter_map(|(place, rule)| {
            let expiry = rule.expiry.filter(|expiry| now >= *expiry)?;
            Some(format!("spec.rules[{place}] expired at {expiry}"))
        })
        .collect();
    match over.is_empty() {
        true => Finding {
            kind: "Expired",
            holds: false,
            reason: "InForce",
            message: "no rule has expired".to_owned(),
        },
        false => Finding { kind: "Expired", holds: true, reason: "Expired", message: over.join("\n") },
    }
}

fn set(status: &mut ApprovalPolicyStatus, finding: Finding, generation: Option<i64>, now: Timestamp) {
    let word = if finding.holds { "True" } else { "False" };
    let known = status.conditions.iter().position(|condition| condition.kind == finding.kind);
    let since = known
        .and_then(|place| status.conditions.get(place))
        .filter(|condition| condition.status == word)
        .map_or(now, |condition| condition.last_transition_time);
    let condition = Condition {
        kind: finding.kind.to_owned(),
        status: word.to_owned(),
        reason: finding.reason.to_owned(),
        message: finding.message,
        last_transition_time: since,
        observed_generation: generation,
    };
    match known.and_then(|place| status.conditions.get_mut(place)) {
        Some(known) => *known = condition,
        None => status.conditions.push(condition),
    }
}

/// Tells of what has become of a policy, in events.
pub(super) fn announce(events: &Events, held: &Held, status: &ApprovalPolicyStatus) {
    for (kind, bad) in [("Compiled", "False"), ("KindsServed", "False"), ("Expired", "True")] {
        let of = |status: &ApprovalPolicyStatus| {
            status.conditions.iter().find(|condition| condition.kind == kind).cloned()
        };
        let Some(condition) = of(status).filter(|condition| condition.status == bad) else { continue };
        if of(&held.status).is_some_and(|before| before.status == bad && before.message == condition.message)
        {
            continue;
        }
        events.notify(&Notice {
            kind: held.kind.as_str(),
            namespace: &held.namespace,
            name: &held.name,
            uid: &held.uid,
            reason: &condition.reason,
            note: &condition.message,
        });
    }
}

#[cfg(test)]
mod tests;
