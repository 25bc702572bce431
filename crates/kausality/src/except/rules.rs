//! The rule that a drift calls for.

use jiff::Timestamp;
use kausality_api::{
    approval::ApprovalMode,
    drift::DriftSpec,
    exception::{Action, Matching, PolicyRule, RuleCause, RuleOperation, Subject},
};

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
            matching: self.matching(drift, operation)?,
            mode: self.mode,
            expiry: self.expires,
            reason: Some(self.reason.map_or_else(|| format!("as drift {}", drift.id), ToOwned::to_owned)),
            dry_run: false,
        })
    }

    fn matching(&self, drift: &DriftSpec, operation: RuleOperation) -> Result<Option<Matching>, String> {
        let wants_fields = operation == RuleOperation::Update && !self.any_field;
        if wants_fields && drift.more_changes > 0 {
            return Err("it changes too many fields to name them all: say --any-field".to_owned());
        }
        let fields = match wants_fields {
            true => drift.changes.iter().map(|change| change.path.clone()).collect(),
            false => Vec::new(),
        };
        let matching = Matching { cel: self.cel.map(ToOwned::to_owned), regexp: None, fields };
        Ok((matching != Matching::default()).then_some(matching))
    }
}

/// Whether two rules differ in nothing but their reasons.
pub(super) fn says_the_same(one: &PolicyRule, two: &PolicyRule) -> bool {
    PolicyRule { reason: None, ..one.clone() } == PolicyRule { reason: None, ..two.clone() }
}
