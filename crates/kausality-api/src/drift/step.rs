//! How an entry came to its state: the rules that were looked at, in order, and what each saw then.

use serde::{Deserialize, Serialize};

use super::{DriftState, DriftStatus};

/// How many rules an entry tells of.
pub const MAX_STEPS: usize = 32;

/// How many bytes of text they may take together.
pub const MAX_EXPLANATION: usize = 4096;

/// One rule, and what it found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DriftStep {
    /// The rule, in a word: `settled`, `policy`, `mode`.
    pub rule: String,
    /// What it found.
    pub finding: String,
    /// What it looked at to find that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<String>,
    /// Whether the decision rests on it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub decided: bool,
}

impl DriftStatus {
    /// What the decision rests on; nothing, in entries that do not say.
    #[must_use]
    pub fn deciding(&self) -> Option<&DriftStep> {
        self.explanation.iter().find(|step| step.decided)
    }

    /// Whether a rule of a policy has the last word.
    #[must_use]
    pub(super) fn is_denied_by_rule(&self) -> bool {
        let by_rule = match self.deciding() {
            Some(step) => step.rule == "policy",
            // Older entries tell only what people did.
            None => self.decision.as_ref().is_none_or(|decision| decision.action != "reject"),
        };
        self.state == DriftState::Rejected && by_rule
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn status(more: &Value) -> DriftStatus {
        let at = "2026-01-25T11:00:00Z";
        let mut status =
            json!({"state": "Rejected", "count": 1, "firstSeen": at, "lastSeen": at, "countedAt": at});
        let (Value::Object(all), Value::Object(more)) = (&mut status, more) else { unreachable!() };
        all.extend(more.clone());
        serde_json::from_value(status).unwrap()
    }

    #[test]
    fn a_rule_denied_what_rests_on_one() {
        let by = |rule: &str| json!([{"rule": "cause", "finding": "Drift"}, {"rule": rule, "finding": "f", "decided": true}]);
        let reject = json!({"action": "reject", "at": "2026-01-25T11:00:00Z"});
        let denied = |more: Value| status(&more).is_denied_by_rule();
        assert!(denied(json!({"explanation": by("policy")})));
        assert!(
            denied(json!({"explanation": by("policy"), "decision": reject})),
            "somebody rejected it, too"
        );
        assert!(!denied(json!({"explanation": by("rejection")})), "nobody has looked at the rejection yet");
        assert!(!denied(json!({"explanation": by("policy"), "state": "Resolved"})));
        // Older entries.
        assert!(denied(json!({})));
        assert!(!denied(json!({"decision": reject})));
        assert!(!denied(json!({"state": "Blocked"})));
    }
}
