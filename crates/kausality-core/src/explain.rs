//! The explanation of a decision: the rules that were looked at, in order, and what each saw.

use std::fmt;

use kausality_api::text::plain;

/// A rule of the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// What sort of request it is.
    Class,
    /// Whether the object is on its way out.
    Deletion,
    /// Which parent it has.
    Parent,
    /// Who acts.
    Actor,
    /// The parent's phase.
    Phase,
    /// Whether the parent is settled.
    Settled,
    /// What caused the change.
    Cause,
    /// Whether the parent is frozen.
    Freeze,
    /// Whether a rejection matches.
    Rejection,
    /// Whether an approval matches.
    Approval,
    /// Whether a policy approves.
    Policy,
    /// Whether an upgrade is under way.
    Upgrade,
    /// Log or enforce.
    Mode,
    /// What becomes of Kausality's annotations.
    Annotations,
    /// Whether whoever decides about drifts may do so.
    Authorization,
}

impl Rule {
    /// The word for it in outputs and audit entries.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Class => "class",
            Self::Deletion => "deletion",
            Self::Parent => "parent",
            Self::Actor => "actor",
            Self::Phase => "phase",
            Self::Settled => "settled",
            Self::Cause => "cause",
            Self::Freeze => "freeze",
            Self::Rejection => "rejection",
            Self::Approval => "approval",
            Self::Policy => "policy",
            Self::Upgrade => "upgrade",
            Self::Mode => "mode",
            Self::Annotations => "annotations",
            Self::Authorization => "authorization",
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// One rule that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The rule.
    pub rule: Rule,
    /// What it found.
    pub finding: String,
    /// What it looked at to find that.
    pub evidence: Vec<String>,
    /// Whether the decision rests on it.
    pub decided: bool,
}

/// The rules that were looked at, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Explanation {
    steps: Vec<Step>,
}

impl Explanation {
    pub(crate) fn saw(&mut self, rule: Rule, finding: impl Into<String>) {
        self.saw_by(rule, finding, Vec::new());
    }

    pub(crate) fn saw_by(&mut self, rule: Rule, finding: impl Into<String>, evidence: Vec<String>) {
        let evidence = evidence.iter().map(|text| plain(text).into_owned()).collect();
        let finding = plain(&finding.into()).into_owned();
        self.steps.push(Step { rule, finding, evidence, decided: false });
    }

    /// Marks the last step of `rule` as the one that the decision rests on.
    pub(crate) fn decided_by(&mut self, rule: Rule) {
        if let Some(step) = self.steps.iter_mut().rev().find(|step| step.rule == rule) {
            step.decided = true;
        }
    }

    /// Marks the last step of `rule`, and no other, as the one that the decision rests on.
    pub(crate) fn decides_alone(&mut self, rule: Rule) {
        self.steps.iter_mut().for_each(|step| step.decided = false);
        self.decided_by(rule);
    }

    /// The steps, in order.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The rule that the decision rests on.
    #[must_use]
    pub fn deciding(&self) -> Option<Rule> {
        self.steps.iter().find(|step| step.decided).map(|step| step.rule)
    }
}
