//! Why a change counts as drift, and why it was stopped: the engine's rules, told from the ledger and from what the
//! parent says now.

use jiff::Timestamp;
use kausality_api::{
    annotation::FREEZE,
    drift::{Drift, DriftState},
    freeze::Frozen,
    text::{plain, shorten},
};
use kausality_core::{
    Summary,
    explain::Rule,
    standing::{Standing, Standpoint},
};
use serde::Serialize;

use super::Ledger;
use crate::{
    act::{Live, ParentName},
    span,
};

/// The parent of a drift, as it is now.
#[derive(Debug)]
pub(crate) enum ParentView {
    /// It is there, with the intent that it had.
    Same(Box<Summary>),
    /// It is there, and wants something else.
    Changed(Box<Summary>),
    /// It is gone, or another has its name.
    Gone,
    /// It cannot be read, and why.
    Unreadable(String),
}

impl ParentView {
    /// Looks at the parent of a drift.
    pub(crate) async fn of(ledger: &Ledger, drift: &Drift) -> Self {
        let parent = ParentName::from(&drift.spec.parent);
        let summary = match Live::read(&ledger.client, &ledger.kinds, &parent).await {
            Ok(Some(live)) => live.summary,
            Ok(None) => return Self::Gone,
            Err(error) => return Self::Unreadable(format!("{error:#}")),
        };
        match &drift.spec.parent.uid {
            Some(uid) if *uid != summary.uid => Self::Gone,
            _ if summary.intent.to_string() != drift.spec.parent_intent => Self::Changed(summary.into()),
            _ => Self::Same(summary.into()),
        }
    }

    /// What it says now.
    pub(crate) fn summary(&self) -> Option<&Summary> {
        match self {
            Self::Same(summary) | Self::Changed(summary) => Some(summary),
            Self::Gone | Self::Unreadable(_) => None,
        }
    }
}

/// One rule, and what it found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Step {
    pub(crate) rule: &'static str,
    pub(crate) finding: String,
    pub(crate) evidence: Vec<String>,
    pub(crate) decided: bool,
}

impl Step {
    fn new(rule: Rule, finding: impl Into<String>) -> Self {
        Self { rule: rule.as_str(), finding: finding.into(), evidence: Vec::new(), decided: false }
    }

    fn with(mut self, evidence: impl IntoIterator<Item = String>) -> Self {
        self.evidence.extend(evidence);
        self
    }

    fn decided(self, decided: bool) -> Self {
        Self { decided, ..self }
    }
}

/// The rules in the order in which they are asked, each with what it found.
pub(crate) fn steps(drift: &Drift, parent: &ParentView, now: Timestamp) -> Vec<Step> {
    let mut steps = why_drift(drift);
    steps.extend(gates(drift, parent, now));
    for step in &mut steps {
        step.finding = plain(&step.finding).into_owned();
        step.evidence.iter_mut().for_each(|line| *line = plain(line).into_owned());
    }
    steps
}

/// Why it counts as drift.
pub(crate) fn why_drift(drift: &Drift) -> Vec<Step> {
    let spec = &drift.spec;
    let parent = ParentName::from(&spec.parent);
    let what = match spec.request.operation.as_str() {
        "CREATE" => "creates",
        "DELETE" => "deletes",
        _ => "changes the intent of",
    };
    let (kind, name) = (&spec.child.kind, &spec.child.name);
    let writer = spec.parent.controller_manager.iter();
    let writer = writer.map(|manager| format!("{manager} writes the status of {parent}"));
    let manager =
        spec.request.field_manager.iter().map(|manager| format!("the request is by field manager {manager}"));
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
    vec![
        Step::new(Rule::Class, format!("{} {what} {kind} {name}", spec.request.operation)),
        Step::new(Rule::Parent, parent.to_string()),
        Step::new(Rule::Actor, format!("the parent's controller: {}", spec.request.user))
            .with(manager)
            .with(writer),
        Step::new(Rule::Phase, spec.parent.lifecycle_phase.as_str()),
        Step::new(Rule::Settled, settled).with([intent]),
        Step::new(Rule::Cause, "Drift: a controller changes a child, and nobody asked for it").with(origin),
    ]
}

/// What the gates say: as of now, for what they said then is not recorded.
fn gates(drift: &Drift, parent: &ParentView, now: Timestamp) -> Vec<Step> {
    let state = drift.status.state;
    let mut steps = Vec::new();
    match parent.summary() {
        Some(summary) => {
            let standing = Standing::of(&drift.spec, summary, now);
            steps.push(freeze(summary));
            steps.push(rejection(&standing).decided(state == DriftState::Rejected));
            steps.push(approval(&standing));
        }
        None => {
            let why = match parent {
                ParentView::Unreadable(why) => format!("the parent cannot be read: {why}"),
                _ => "the parent is gone".to_owned(),
            };
            steps.push(Step::new(Rule::Parent, why));
        }
    }
    let mode = match state {
        DriftState::Blocked => "enforce: what nothing lets pass is denied",
        DriftState::Passed => "log: it passed with a warning",
        DriftState::Rejected => "not asked: a rejection denies in every mode",
        DriftState::Resolved => "not recorded",
    };
    steps
        .push(Step::new(Rule::Mode, mode).decided(matches!(state, DriftState::Blocked | DriftState::Passed)));
    steps
}

fn freeze(parent: &Summary) -> Step {
    let finding = match parent.annotation(FREEZE).map(Frozen::decode) {
        None | Some(Frozen::No) => "the parent is not frozen".to_owned(),
        Some(Frozen::Yes(freeze)) => format!("the parent is frozen {freeze}"),
        Some(Frozen::Unclear(fault)) => {
            format!("the parent is frozen by what cannot be understood ({fault})")
        }
    };
    Step::new(Rule::Freeze, finding)
}

fn rejection(standing: &Standing) -> Step {
    let finding = match (standing.rejection(), standing.rejection_faults.first()) {
        (Some(rejection), _) => {
            let by =
                rejection.by.as_deref().map(|by| format!(" by {}", shorten(by, 100))).unwrap_or_default();
            format!("rejected{by}: {}", shorten(&rejection.reason, 1000))
        }
        (None, Some(fault)) => format!("entries that cannot be understood block every drift ({fault})"),
        (None, None) if standing.rejections.is_empty() => "none on the parent".to_owned(),
        (None, None) => "none matches".to_owned(),
    };
    Step::new(Rule::Rejection, finding).with(void(&standing.rejections))
}

fn approval(standing: &Standing) -> Step {
    let finding = match standing.approval() {
        Some(approval) => {
            let by = approval.by.as_deref().map(|by| format!(" by {}", shorten(by, 100))).unwrap_or_default();
            let why = approval.reason.as_deref().map(|why| format!(": {}", shorten(why, 1000)));
            format!("approved ({}){by}{}", approval.mode.as_str(), why.unwrap_or_default())
        }
        None if standing.approvals.is_empty() => "none on the parent".to_owned(),
        None => "none that holds".to_owned(),
    };
    let faults = standing.approval_faults.iter().map(|fault| format!("void: {fault}"));
    Step::new(Rule::Approval, finding).with(void(&standing.approvals)).with(faults)
}

fn void<T>(standpoints: &[Standpoint<T>]) -> Vec<String> {
    let void = |standpoint: &Standpoint<T>| {
        let why = standpoint.void.as_deref()?;
        Some(format!("entry {}: {why}", standpoint.place + 1))
    };
    standpoints.iter().filter_map(void).collect()
}
