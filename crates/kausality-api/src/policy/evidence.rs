//! How objects of a kind show in their status how far their controller has got, as a policy says.

use serde::{Deserialize, Serialize};

use crate::exception::MAX_SOURCE;

/// How many conditions or phases a rule names at most.
pub const MAX_EVIDENCE: usize = 32;

/// How long the type of a condition and its reason are at most, and a phase.
pub const MAX_WORD: usize = 316;

/// How parents show in their status how far their controller has got. What is left out shows as usual.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatusRules {
    /// That they have been set up for the first time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initialized: Option<Evidence>,
    /// That their controller has finished with their present intent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled: Option<Evidence>,
}

/// What a status must show. All that is named must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    /// Conditions, each of which must be there with this status.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<ConditionEvidence>,
    /// Values of `status.phase`, or of `status.state` where there is no phase; one of them must be it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<String>,
    /// An expression in CEL over `object`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cel: Option<String>,
}

/// A condition that must be there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConditionEvidence {
    /// Its type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its status.
    #[serde(default)]
    pub status: ConditionStatus,
    /// Its reason; any, if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The status of a condition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ConditionStatus {
    /// `True`.
    #[default]
    True,
    /// `False`.
    False,
    /// `Unknown`.
    Unknown,
}

impl ConditionStatus {
    /// As conditions have it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

impl StatusRules {
    pub(super) fn fault(&self) -> Option<String> {
        if self.initialized.is_none() && self.settled.is_none() {
            return Some("spec.status must have initialized or settled".to_owned());
        }
        self.each().find_map(|(place, evidence)| evidence.fault(place))
    }

    /// Each of the rules, with its place in the policy.
    pub fn each(&self) -> impl Iterator<Item = (&'static str, &Evidence)> {
        let rules = [("spec.status.initialized", &self.initialized), ("spec.status.settled", &self.settled)];
        rules.into_iter().filter_map(|(place, evidence)| Some((place, evidence.as_ref()?)))
    }
}

impl Evidence {
    fn fault(&self, place: &str) -> Option<String> {
        let Self { conditions, phases, cel } = self;
        if conditions.is_empty() && phases.is_empty() && cel.is_none() {
            return Some(format!("{place} must have conditions, phases or cel"));
        }
        if conditions.len().max(phases.len()) > MAX_EVIDENCE {
            return Some(format!("{place} has more than {MAX_EVIDENCE} conditions or phases"));
        }
        let is_word = |text: &str| !text.is_empty() && text.len() <= MAX_WORD;
        let bad = |condition: &ConditionEvidence| {
            !is_word(&condition.kind) || condition.reason.as_deref().is_some_and(|reason| !is_word(reason))
        };
        if let Some(number) = conditions.iter().position(bad) {
            return Some(format!(
                "{place}.conditions[{number}]: type and reason have 1 to {MAX_WORD} characters"
            ));
        }
        if let Some(number) = phases.iter().position(|phase| !is_word(phase)) {
            return Some(format!("{place}.phases[{number}]: a phase has 1 to {MAX_WORD} characters"));
        }
        let long = cel.as_ref().is_some_and(|source| source.len() > MAX_SOURCE);
        long.then(|| format!("{place}.cel: longer than {MAX_SOURCE} bytes"))
    }
}
