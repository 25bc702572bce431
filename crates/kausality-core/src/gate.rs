//! The gates: what may stop or pass a change, in the order in which they are asked.

use std::fmt;

use jiff::Timestamp;
use kausality_api::{
    annotation::{APPROVALS, FREEZE, REJECTIONS},
    approval::{Approval, Entries, Entry, Rejection},
    exception::Action,
    freeze::Frozen,
    mode::Mode,
    text::shorten,
    trace::HopApproval,
};

use crate::{
    actor::deletes_for_others,
    cause::Cause,
    change::Change,
    child::Child,
    entries::{self, Subject},
    exceptions::{Asked, Exceptions, Findings, Ruled},
    explain::{Explanation, Rule},
    facts::Exception,
    summary::Summary,
    used,
};

/// Faults of one annotation that are told.
const SHOWN_FAULTS: usize = 5;
/// Characters of a rejection's reason, and of who rejected, that are told.
const MAX_REASON: usize = 1000;
const MAX_NAME: usize = 100;

/// How a change was resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// It needed no gate.
    Passed,
    /// The parent is frozen.
    Frozen,
    /// A rejection matched.
    Rejected,
    /// An approval matched.
    Approved(Used),
    /// A rule of a policy lets it pass.
    Ruled(Ruled),
    /// A rule of a policy forbids it.
    Denied(Ruled),
    /// Something else lets it pass.
    Excepted(Exception),
    /// A drift that nothing lets pass, in log mode.
    Logged,
    /// A drift that nothing lets pass, in enforce mode.
    Blocked,
    /// A child is created for a parent that is gone.
    ParentGone,
    /// The parent could not be read.
    ParentUnreadable,
}

/// The approval that let a drift pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Used {
    /// The approval.
    pub approval: Approval,
    /// Its place in the list on the parent.
    pub place: usize,
}

impl Resolution {
    /// The word for it in outputs and audit entries.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Frozen => "frozen",
            Self::Rejected => "rejected",
            Self::Approved(_) => "approved",
            Self::Ruled(_) => "policy",
            Self::Denied(_) => "denied",
            Self::Excepted(Exception::Upgrade(_)) => "upgrade",
            Self::Excepted(Exception::Used(_)) => "approved",
            Self::Logged => "logged",
            Self::Blocked => "blocked",
            Self::ParentGone => "parent-gone",
            Self::ParentUnreadable => "parent-unreadable",
        }
    }

    /// What the trace records of it.
    pub(crate) fn hop_approval(&self) -> Option<HopApproval> {
        match self {
            Self::Approved(Used { approval, .. }) => Some(hop(approval)),
            Self::Excepted(Exception::Used(approval)) => Some(hop(approval)),
            Self::Ruled(ruled) => Some(HopApproval {
                mode: Some(ruled.mode),
                policy: Some(ruled.policy.clone()),
                by: None,
                reason: ruled.reason.clone(),
            }),
            Self::Excepted(Exception::Upgrade(policy)) => {
                Some(HopApproval { mode: None, policy: Some(policy.clone()), by: None, reason: None })
            }
            _ => None,
        }
    }
}

impl fmt::Display for Resolution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

fn hop(approval: &Approval) -> HopApproval {
    HopApproval {
        mode: Some(approval.mode),
        policy: None,
        by: approval.by.clone(),
        reason: approval.reason.clone(),
    }
}

/// What the gates look at.
pub(crate) struct Passage<'a> {
    pub cause: Cause,
    pub parent: &'a Summary,
    pub child: &'a Child<'a>,
    pub change: &'a Change<'a>,
    pub exceptions: &'a Exceptions,
    pub asked: &'a Asked<'a>,
    pub exception: Option<&'a Exception>,
    pub mode: Mode,
    /// Where the mode comes from, for people.
    pub mode_from: &'a str,
    pub now: Timestamp,
}

/// What the gates say, with what a person should know about it.
pub(crate) struct Outcome {
    pub resolution: Resolution,
    /// Why a change was stopped, for the denial.
    pub reason: String,
    /// Annotations that could not be understood.
    pub faults: Vec<String>,
    /// Rules of policies that are only tried, and matched.
    pub tried: Vec<Ruled>,
    /// The rule that denies a change which is not a drift, unless somebody approves it.
    pub denied_by: Option<Ruled>,
}

impl Outcome {
    fn of(resolution: Resolution) -> Self {
        Self { resolution, reason: String::new(), faults: Vec::new(), tried: Vec::new(), denied_by: None }
    }
}

impl Passage<'_> {
    /// Asks the gates in order.
    pub(crate) fn ask(&self, explanation: &mut Explanation) -> Outcome {
        if self.cause == Cause::Cleanup && self.parent.deleting {
            // A parent that is frozen on its way out: only who deletes for others goes on.
            let is_frozen =
                self.parent.annotation(FREEZE).is_some() && !deletes_for_others(self.asked.request);
            if let Some(outcome) = is_frozen.then(|| self.freeze(explanation)).flatten() {
                return outcome;
            }
            explanation.decided_by(Rule::Cause);
            return Outcome::of(Resolution::Passed);
        }
        if let Some(outcome) = self.freeze(explanation) {
            return outcome;
        }
        let denied = self.exceptions.look(Action::Deny, self.asked);
        let mut tried = denied.tried.clone();
        if let Some(ruled) = self.denial(denied, explanation) {
            let outcome = if self.is_unasked() { None } else { self.lifted(explanation) };
            let outcome = outcome.unwrap_or_else(|| {
                explanation.decided_by(Rule::Policy);
                Outcome {
                    reason: format!("denied by {ruled}"),
                    ..Outcome::of(Resolution::Denied(ruled.clone()))
                }
            });
            let denied_by = (!self.is_unasked()).then_some(ruled);
            return Outcome { tried, denied_by, ..outcome };
        }
        if self.is_unasked()
            && let Some(outcome) = self.rejection(explanation)
        {
            return Outcome { tried, ..outcome };
        }
        if self.cause != Cause::Drift {
            explanation.decided_by(Rule::Cause);
            return Outcome { tried, ..Outcome::of(Resolution::Passed) };
        }
        let mut outcome = self.approval(explanation);
        if outcome.resolution == Resolution::Passed {
            let findings = self.exceptions.look(Action::Allow, self.asked);
            tried.extend(findings.tried.iter().cloned());
            outcome.resolution = self.policy(findings, explanation);
        }
        outcome.tried = tried;
        if outcome.resolution == Resolution::Passed {
            outcome.resolution = self.exception(explanation).unwrap_or_else(|| {
                explanation.saw(Rule::Mode, format!("{} (from {})", self.mode, self.mode_from));
                explanation.decided_by(Rule::Mode);
                match self.mode {
                    Mode::Enforce => Resolution::Blocked,
                    Mode::Log => Resolution::Logged,
                }
            });
        }
        outcome
    }

    /// Whether a controller does it of its own accord: what people forbid of that holds for what it cleans up, too.
    fn is_unasked(&self) -> bool {
        matches!(self.cause, Cause::Drift | Cause::Cleanup)
    }

    fn freeze(&self, explanation: &mut Explanation) -> Option<Outcome> {
        let Some((reason, faults)) = frozen(self.parent.annotation(FREEZE)) else {
            explanation.saw(Rule::Freeze, "the parent is not frozen");
            return None;
        };
        explanation.saw(Rule::Freeze, format!("the parent is frozen {reason}"));
        explanation.decided_by(Rule::Freeze);
        Some(Outcome { reason, faults, ..Outcome::of(Resolution::Frozen) })
    }

    fn rejection(&self, explanation: &mut Explanation) -> Option<Outcome> {
        let Some(entries) = self.parent.annotation(REJECTIONS).map(Entries::<Rejection>::decode) else {
            explanation.saw(Rule::Rejection, "none on the parent");
            return None;
        };
        let faults = faults(REJECTIONS, &entries);
        let mut evidence = Vec::new();
        let matching = entries.valid().find(|(place, entry)| match self.subject().rejection_void(entry) {
            Some(why) => {
                evidence.push(format!("entry {}: {why}", place + 1));
                false
            }
            None => true,
        });
        let reason = match matching {
            Some((_, rejection)) => {
                let by = rejection.by.as_deref().map(|by| format!(" by {}", shorten(by, MAX_NAME)));
                format!("rejected{}: {}", by.unwrap_or_default(), shorten(&rejection.reason, MAX_REASON))
            }
            // What cannot be understood may have been meant for this change.
            None if !faults.is_empty() => {
                format!("rejections that cannot be understood block every drift ({})", faults.join("; "))
            }
            None => {
                explanation.saw_by(Rule::Rejection, "none matches", evidence);
                return None;
            }
        };
        explanation.saw_by(Rule::Rejection, reason.clone(), evidence);
        explanation.decided_by(Rule::Rejection);
        Some(Outcome { reason, faults, ..Outcome::of(Resolution::Rejected) })
    }

    fn approval(&self, explanation: &mut Explanation) -> Outcome {
        let mut outcome = Outcome::of(Resolution::Passed);
        if let Some(approval) = used::given_back(self.parent, self.asked.request, self.now) {
            outcome.resolution = used_up(Exception::Used(Box::new(approval)), explanation);
            return outcome;
        }
        let Some(entries) = self.parent.annotation(APPROVALS).map(Entries::<Approval>::decode) else {
            explanation.saw(Rule::Approval, "none on the parent");
            return outcome;
        };
        outcome.faults = faults(APPROVALS, &entries);
        let mut evidence = outcome.faults.clone();
        let best = entries::best(&entries, &self.subject(), |place, why| {
            evidence.push(format!("entry {}: {why}", place + 1));
        });
        match best {
            Some(used) => {
                let mode = used.approval.mode.as_str();
                let by = used.approval.by.as_deref().map(|by| format!(" by {by}")).unwrap_or_default();
                explanation.saw_by(
                    Rule::Approval,
                    format!("entry {} approves it{by} (mode {mode})", used.place + 1),
                    evidence,
                );
                explanation.decided_by(Rule::Approval);
                outcome.resolution = Resolution::Approved(used);
            }
            None => explanation.saw_by(Rule::Approval, "none is valid for it", evidence),
        }
        outcome
    }

    /// What entries are held against.
    fn subject(&self) -> Subject<'_> {
        Subject {
            child: &self.child.id,
            generation: self.parent.generation,
            change: self.change,
            user: self.asked.request.user(),
            denied: !self.is_unasked(),
            now: self.now,
        }
    }

    /// A rule that forbids the change. It is an order, as a rejection is, and holds in log mode too.
    fn denial(&self, findings: Findings, explanation: &mut Explanation) -> Option<Ruled> {
        let Findings { ruled, evidence, .. } = findings;
        let Some(ruled) = ruled else {
            if !evidence.is_empty() {
                explanation.saw_by(Rule::Policy, "none denies it", evidence);
            }
            return None;
        };
        explanation.saw_by(Rule::Policy, format!("denied by {ruled}"), evidence);
        Some(ruled)
    }

    /// What people say to a change that is not a drift and that a rule denies: nothing, or they reject it, or somebody other
    /// than its author has approved it.
    fn lifted(&self, explanation: &mut Explanation) -> Option<Outcome> {
        if let Some(rejected) = self.rejection(explanation) {
            return Some(rejected);
        }
        let outcome = self.approval(explanation);
        let is_own = |approval: &Approval| approval.by.as_deref() == Some(self.asked.request.user());
        match self.exception {
            _ if outcome.resolution != Resolution::Passed => Some(outcome),
            Some(Exception::Used(approval)) if !is_own(approval) => {
                let resolution = self.exception(explanation)?;
                Some(Outcome { resolution, ..outcome })
            }
            _ => None,
        }
    }

    /// A rule that lets the change pass.
    fn policy(&self, findings: Findings, explanation: &mut Explanation) -> Resolution {
        let Some(ruled) = findings.ruled else {
            explanation.saw_by(Rule::Policy, "none lets it pass", findings.evidence);
            return Resolution::Passed;
        };
        let finding = format!("{ruled} lets it pass (mode {})", ruled.mode.as_str());
        explanation.saw_by(Rule::Policy, finding, findings.evidence);
        explanation.decided_by(Rule::Policy);
        Resolution::Ruled(ruled)
    }

    fn exception(&self, explanation: &mut Explanation) -> Option<Resolution> {
        if let Some(used @ Exception::Used(_)) = self.exception {
            return Some(used_up(used.clone(), explanation));
        }
        match self.exception {
            Some(Exception::Upgrade(name)) => {
                explanation.saw(Rule::Upgrade, format!("{name} lets it pass"));
                explanation.decided_by(Rule::Upgrade);
            }
            _ => explanation.saw(Rule::Upgrade, "none is under way"),
        }
        self.exception.cloned().map(Resolution::Excepted)
    }
}

fn used_up(exception: Exception, explanation: &mut Explanation) -> Resolution {
    explanation.saw(Rule::Approval, "one was used up for this very change a moment ago");
    explanation.decided_by(Rule::Approval);
    Resolution::Excepted(exception)
}

/// Who froze an object, why and since when, and what is wrong with the annotation; nothing, if it is not frozen.
pub(crate) fn frozen(annotation: Option<&str>) -> Option<(String, Vec<String>)> {
    match Frozen::decode(annotation?) {
        Frozen::No => None,
        Frozen::Yes(freeze) => Some((freeze.to_string(), Vec::new())),
        Frozen::Unclear(fault) => Some((
            format!("by an annotation that cannot be understood ({fault})"),
            vec![format!("{FREEZE}: {fault}")],
        )),
    }
}

/// What is wrong with a list of entries: the first few faults, and how many more there are.
fn faults<T: Entry>(annotation: &str, entries: &Entries<T>) -> Vec<String> {
    let mut faults: Vec<String> =
        entries.faults().take(SHOWN_FAULTS).map(|fault| format!("{annotation}: {fault}")).collect();
    let more = entries.faults().skip(SHOWN_FAULTS).count();
    if more > 0 {
        faults.push(format!("{annotation}: {more} more entries cannot be understood"));
    }
    faults
}
