//! The rule that a drift calls for.

use jiff::Timestamp;
use kausality_api::{
    approval::ApprovalMode,
    drift::DriftSpec,
    exception::{Action, MAX_NAMED, Matching, PolicyRule, RuleCause, RuleOperation, Subject},
};

use crate::policy::narrow::{self, Narrowed};

/// What is said where no fields can be named.
const TOO_MANY: &str = "it changes too many fields to name them all: say --any-field";

/// What the rules should be like.
pub(super) struct Wish<'a> {
    pub any_name: bool,
    pub any_field: bool,
    pub cel: Option<&'a str>,
    pub mode: ApprovalMode,
    pub expires: Option<Timestamp>,
    pub reason: Option<&'a str>,
    /// Whether they go into a policy for the whole cluster.
    pub cluster: bool,
}

impl Wish<'_> {
    /// The narrowest rule for a drift, as far as nobody wishes otherwise.
    pub(super) fn rule(&self, drift: &DriftSpec) -> Result<PolicyRule, String> {
        if let Some(rule) = &drift.denied_by {
            return Err(format!(
                "it is denied by {rule}, and no other rule lifts that: name the user in exceptSubjects of that rule, or \
                 approve it"
            ));
        }
        let user = &drift.request.user;
        if user.is_empty() || user.contains('*') {
            return Err("no rule can name who caused it".to_owned());
        }
        let operation = RuleOperation::of(&drift.request.operation);
        let namespace = Some(drift.child.namespace.clone()).filter(|it| self.cluster && !it.is_empty());
        Ok(PolicyRule {
            action: Action::Allow,
            causes: vec![RuleCause::Drift],
            api_version: drift.child.api_version.clone(),
            kind: drift.child.kind.clone(),
            namespace,
            name: if self.any_name { "*".to_owned() } else { drift.child.name.clone() },
            subjects: vec![Subject::of_user(user)],
            except_subjects: Vec::new(),
            operations: vec![operation],
            prereqs: None,
            matching: self.matching(drift)?,
            mode: self.mode,
            expiry: self.expires,
            reason: Some(self.reason.map_or_else(|| format!("as drift {}", drift.id), ToOwned::to_owned)),
            dry_run: false,
        })
    }

    /// That the rule for a drift is for more fields than it changes, and why.
    pub(super) fn widened(&self, drift: &DriftSpec) -> Option<String> {
        let Narrowed { fields, .. } = self.fields(drift).filter(|narrowed| narrowed.widened)?;
        let why = match drift.changes.len() {
            0..=MAX_NAMED => "some of those that it changes are too long to name".to_owned(),
            number => format!("it changes {number} fields, and a rule names {MAX_NAMED} at most"),
        };
        let (child, fields) = (&drift.summary.child, fields.join(", "));
        Some(format!("The rule for {child} is widened to all of {fields}: {why}."))
    }

    /// The fields to name, where any are.
    fn fields(&self, drift: &DriftSpec) -> Option<Narrowed> {
        let wants_fields =
            RuleOperation::of(&drift.request.operation) == RuleOperation::Update && !self.any_field;
        wants_fields
            .then(|| narrow::fields(&drift.changes.iter().map(|change| change.path.clone()).collect()))
    }

    fn matching(&self, drift: &DriftSpec) -> Result<Option<Matching>, String> {
        if drift.more_changes > 0 && self.fields(drift).is_some() {
            return Err(TOO_MANY.to_owned());
        }
        let fields = match self.fields(drift) {
            Some(Narrowed { fields, .. }) if fields.is_empty() && !drift.changes.is_empty() => {
                return Err(TOO_MANY.to_owned());
            }
            Some(narrowed) => narrowed.fields,
            None => Vec::new(),
        };
        let matching = Matching { cel: self.cel.map(ToOwned::to_owned), regexp: None, fields };
        Ok((matching != Matching::default()).then_some(matching))
    }
}

/// Whether two rules differ in nothing but their reasons.
pub(super) fn says_the_same(one: &PolicyRule, two: &PolicyRule) -> bool {
    PolicyRule { reason: None, ..one.clone() } == PolicyRule { reason: None, ..two.clone() }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{except::fixture::wish, ledger::fixture::drift};

    /// What the rule for a drift of so many fields names, and what is said of it.
    fn fields(number: usize, place: &str) -> (Result<Vec<String>, String>, Option<String>) {
        let changes: Vec<Value> = (0..number).map(|at| json!({"path": format!("{place}f{at}")})).collect();
        let drift = drift(&json!({"spec": {"changes": changes}})).drift.spec;
        let matching = wish().rule(&drift).map(|rule| rule.matching.unwrap_or_default().fields);
        (matching, wish().widened(&drift))
    }

    #[test]
    fn a_rule_names_no_more_fields_than_it_may() {
        let (named, note) = fields(32, "spec.soil.");
        assert_eq!((named.unwrap().len(), note), (32, None));
        let (named, note) = fields(33, "spec.soil.");
        let said = "The rule for Bed/south-1 is widened to all of spec.soil: it changes 33 fields, and a rule names 32 at most.";
        assert_eq!((named, note.as_deref()), (Ok(vec!["spec.soil".to_owned()]), Some(said)));
        assert_eq!(fields(33, "").0, Err(TOO_MANY.to_owned()), "they have nothing in common");
    }
}
