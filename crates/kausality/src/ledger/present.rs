//! What stands about a drift now: its parent, the gates, and the rules of approval policies.

use jiff::Timestamp;
use kausality_api::{
    annotation::{FREEZE, SNOOZE},
    drift::{Drift, DriftStep},
    freeze::Frozen,
    snooze::Snooze,
    text::shorten,
};
use kausality_core::{
    Summary,
    explain::Rule,
    standing::{Standing, Standpoint},
};

use super::{
    Ledger,
    reasons::{shown, step},
    rules,
};
use crate::act::{Live, ParentName};

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
            _ if kausality_core::ledger::parent_changed(&drift.spec, &summary) => {
                Self::Changed(summary.into())
            }
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

/// What stands about a drift now.
#[derive(Debug)]
pub(crate) struct Present {
    pub(crate) parent: ParentView,
    /// What rules of policies say.
    pub(crate) policy: DriftStep,
}

impl Present {
    /// Looks at the parent of a drift, and at the policies.
    pub(crate) async fn of(ledger: &Ledger, drift: &Drift, now: Timestamp) -> Self {
        let parent = ParentView::of(ledger, drift).await;
        let whole = parent.summary().and_then(|summary| summary.whole.as_deref());
        let policy = rules::step(ledger, drift, whole, now).await;
        Self { parent, policy }
    }

    /// The gates, each with what it says now.
    pub(crate) fn steps(&self, drift: &Drift, now: Timestamp) -> Vec<DriftStep> {
        let mut steps = Vec::new();
        let parent = match &self.parent {
            ParentView::Same(_) => None,
            ParentView::Changed(_) => Some("its intent has changed since: the drift is over".to_owned()),
            ParentView::Gone => Some("it is gone: the drift is over".to_owned()),
            ParentView::Unreadable(why) => Some(format!("it cannot be read: {why}")),
        };
        steps.extend(parent.map(|finding| step(Rule::Parent, finding, [])));
        if let Some(summary) = self.parent.summary() {
            let standing = Standing::of(&drift.spec, summary, now);
            steps.push(freeze(summary));
            steps.push(rejection(&standing));
            steps.push(approval(&standing));
            steps.extend(snooze(summary, now));
        }
        steps.push(self.policy.clone());
        shown(steps)
    }
}

fn snooze(parent: &Summary, now: Timestamp) -> Option<DriftStep> {
    let snooze = Snooze::decode(parent.annotation(SNOOZE)?).ok().filter(|snooze| snooze.is_active(now))?;
    let finding = format!("nobody is told until {}", snooze.expiry);
    Some(DriftStep { rule: "snooze".to_owned(), finding, ..DriftStep::default() })
}

fn freeze(parent: &Summary) -> DriftStep {
    let finding = match parent.annotation(FREEZE).map(Frozen::decode) {
        None | Some(Frozen::No) => "the parent is not frozen".to_owned(),
        Some(Frozen::Yes(freeze)) => format!("the parent is frozen {freeze}"),
        Some(Frozen::Unclear(fault)) => {
            format!("the parent is frozen by what cannot be understood ({fault})")
        }
    };
    step(Rule::Freeze, finding, [])
}

fn rejection(standing: &Standing) -> DriftStep {
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
    step(Rule::Rejection, finding, void(&standing.rejections))
}

fn approval(standing: &Standing) -> DriftStep {
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
    step(Rule::Approval, finding, void(&standing.approvals).into_iter().chain(faults))
}

fn void<T>(standpoints: &[Standpoint<T>]) -> Vec<String> {
    let void = |standpoint: &Standpoint<T>| {
        let why = standpoint.void.as_deref()?;
        Some(format!("entry {}: {why}", standpoint.place + 1))
    };
    standpoints.iter().filter_map(void).collect()
}
