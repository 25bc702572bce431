//! Why a change counted as drift and what became of it: the engine's rules, as the ledger has them.

use kausality_api::{
    drift::{Drift, DriftState, DriftStep},
    text::{plain, shorten},
};
use kausality_core::explain::Rule;

use crate::{act::ParentName, span};

/// A rule, and what it found.
pub(super) fn step(
    rule: Rule,
    finding: impl Into<String>,
    evidence: impl IntoIterator<Item = String>,
) -> DriftStep {
    let evidence = evidence.into_iter().collect();
    DriftStep { rule: rule.as_str().to_owned(), finding: finding.into(), evidence, decided: false }
}

/// Steps that can be shown.
pub(super) fn shown(mut steps: Vec<DriftStep>) -> Vec<DriftStep> {
    for step in &mut steps {
        let lines = step.evidence.iter_mut().chain([&mut step.rule, &mut step.finding]);
        lines.for_each(|line| *line = plain(line).into_owned());
    }
    steps
}

/// Whether the ledger has what the engine saw.
pub(crate) fn are_recorded(drift: &Drift) -> bool {
    !drift.status.explanation.is_empty()
}

/// The rules as they were looked at when the drift was last seen; where that is not recorded, as far as its entry tells.
pub(crate) fn then(drift: &Drift) -> Vec<DriftStep> {
    if are_recorded(drift) {
        return shown(drift.status.explanation.clone());
    }
    let mut steps = why_drift(drift);
    steps.push(outcome(drift));
    shown(steps)
}

/// What became of it, in a few words.
pub(crate) fn verdict(drift: &Drift) -> String {
    match drift.status.state {
        DriftState::Blocked => "deny: nothing let it pass".to_owned(),
        DriftState::Rejected if drift.is_barred() => "deny: a rule of a policy forbids it".to_owned(),
        DriftState::Rejected => "deny: it was rejected".to_owned(),
        DriftState::Denied => {
            let rule = drift.spec.denied_by.as_deref().unwrap_or("a rule");
            format!("deny: denied by policy ({rule}), and nobody else has approved it")
        }
        DriftState::Passed => "warn: it passed in log mode".to_owned(),
        DriftState::Resolved => {
            let resolution = drift.status.resolution.as_ref();
            let why = resolution.map(|it| format!(" ({}): {}", it.reason.as_str(), it.message));
            format!("none any more: it is resolved{}", why.unwrap_or_default())
        }
    }
}

/// What decided, as the state tells.
fn outcome(drift: &Drift) -> DriftStep {
    let state = drift.status.state;
    let (rule, finding) = match state {
        DriftState::Blocked => (Rule::Mode, "enforce: what nothing lets pass is denied"),
        DriftState::Passed => (Rule::Mode, "log: it passed with a warning"),
        DriftState::Rejected if drift.is_barred() => {
            (Rule::Policy, "a rule denied it, as rules do in every mode")
        }
        DriftState::Denied => (Rule::Policy, "denied by policy, and nobody else has approved it"),
        DriftState::Rejected => (Rule::Rejection, "somebody rejected it, which denies in every mode"),
        DriftState::Resolved => (Rule::Mode, "not recorded"),
    };
    DriftStep { decided: state.is_open(), ..step(rule, finding, []) }
}

/// Why it counts as drift.
fn why_drift(drift: &Drift) -> Vec<DriftStep> {
    let spec = &drift.spec;
    let parent = ParentName::from(&spec.parent);
    let what = match spec.request.operation.as_str() {
        "CREATE" => "creates",
        "DELETE" => "deletes",
        _ => "changes the intent of",
    };
    let (kind, name) = (&spec.child.kind, &spec.child.name);
    let manager = spec.request.field_manager.iter();
    let manager = manager.map(|manager| format!("the request is by field manager {manager}"));
    let writer = spec.parent.controller_manager.iter();
    let writer = writer.map(|manager| format!("{manager} writes the status of {parent}"));
    let settled = match (spec.parent.observed_generation, spec.parent.generation) {
        (Some(observed), Some(generation)) => {
            format!("yes: its controller has seen generation {observed} of {generation}")
        }
        _ => "yes: it has been seen in steady state".to_owned(),
    };
    let origin = spec.trace.as_ref().and_then(|trace| trace.hops().first());
    let origin = origin.map(|hop| {
        let at = span::to_second(hop.timestamp);
        format!("{} last asked for something, at {at}, and nobody since", shorten(&hop.user, 100))
    });
    let intent = format!("its intent is unchanged ({})", spec.parent_intent);
    let (actor, cause) = match spec.denied_by {
        None => ("the parent's controller", "Drift: a controller changes a child, and nobody asked for it"),
        Some(_) => ("not the parent's controller", "Origin: not a drift"),
    };
    let actor = format!("{actor}: {}", spec.request.user);
    vec![
        step(Rule::Class, format!("{} {what} {kind} {name}", spec.request.operation), []),
        step(Rule::Parent, parent.to_string(), []),
        step(Rule::Actor, actor, manager.chain(writer)),
        step(Rule::Phase, spec.parent.lifecycle_phase.as_str(), []),
        step(Rule::Settled, settled, [intent]),
        step(Rule::Cause, cause, origin),
    ]
}
