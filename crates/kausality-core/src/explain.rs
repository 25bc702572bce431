//! The explanation of a decision: the rules that were looked at, in order, and what each saw.

use std::{borrow::Cow, collections::BTreeMap, fmt};

use kausality_api::{
    drift::{DriftStep, MAX_EXPLANATION, MAX_STEPS},
    text::{plain, shorten},
};

/// Characters of a line that is recorded: the longest name of a policy fits.
const MAX_LINE: usize = 512;

/// Stands for evidence that is not recorded.
const LEFT_OUT: &str = "…";

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
    /// Whether the object's own controller acts.
    Reconciler,
    /// Whether something else changed that the parent's controller acts on.
    Input,
    /// What else changed shortly before: a hint, which decides nothing.
    Hint,
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
            Self::Reconciler => "reconciler",
            Self::Input => "input",
            Self::Hint => "hint",
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

impl FromIterator<Step> for Explanation {
    fn from_iter<T: IntoIterator<Item = Step>>(steps: T) -> Self {
        Self { steps: steps.into_iter().collect() }
    }
}

impl Explanation {
    /// Whether a rule was looked at.
    pub(crate) fn saw_rule(&self, rule: Rule) -> bool {
        self.steps.iter().any(|step| step.rule == rule)
    }

    pub(crate) fn saw(&mut self, rule: Rule, finding: impl Into<String>) {
        self.saw_by(rule, finding, Vec::new());
    }

    pub(crate) fn saw_by(&mut self, rule: Rule, finding: impl Into<String>, evidence: Vec<String>) {
        let evidence = evidence.into_iter().map(made_plain).collect();
        let finding = made_plain(finding.into());
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

    /// What the ledger records of it. Where there is no room for all, what decided comes first, then what rules found, then
    /// what they looked at.
    #[must_use]
    pub fn recorded(&self) -> Vec<DriftStep> {
        let ranked = || {
            let of = |decided| self.steps.iter().enumerate().filter(move |(_, step)| step.decided == decided);
            of(true).chain(of(false)).take(MAX_STEPS)
        };
        let mut room = MAX_EXPLANATION.saturating_sub(MAX_STEPS * LEFT_OUT.len());
        let mut take = |text: &str| {
            let line = shorten(text, MAX_LINE);
            room = room.checked_sub(line.len())?;
            Some(line)
        };
        let mut recorded: BTreeMap<usize, DriftStep> = BTreeMap::new();
        for (place, step) in ranked() {
            let (Some(rule), Some(finding)) = (take(step.rule.as_str()), take(&step.finding)) else {
                continue;
            };
            recorded.insert(place, DriftStep { rule, finding, evidence: Vec::new(), decided: step.decided });
        }
        for (place, step) in ranked() {
            let Some(known) = recorded.get_mut(&place) else { continue };
            known.evidence = step.evidence.iter().map_while(|line| take(line)).collect();
            if known.evidence.len() < step.evidence.len() {
                known.evidence.push(LEFT_OUT.to_owned());
            }
        }
        recorded.into_values().collect()
    }
}

/// The same text, unless it has control characters.
fn made_plain(text: String) -> String {
    match plain(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(plain) => plain,
    }
}

#[cfg(test)]
mod tests;
