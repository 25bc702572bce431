//! Drifts that one rule names, and that rule.

use std::collections::BTreeSet;

use jiff::{Timestamp, tz::TimeZone};
use kausality_api::{
    approval::ApprovalMode,
    exception::{Action, MAX_NAMED, Matching, PolicyRule, RuleCause, RuleOperation, Subject},
};
use kausality_core::review::Operation;

use crate::{
    output::count,
    policy::narrow::{self, Narrowed},
    replay::engine::Judged,
};

/// What a rule names. Drifts that differ in any of it need rules of their own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    api_version: String,
    kind: String,
    namespace: String,
    /// The name, or what a generated one looks like.
    name: String,
    operation: &'static str,
    user: String,
}

/// The drifts that a rule is for.
#[derive(Clone, Debug, Default)]
pub(super) struct Group {
    drifts: usize,
    fields: BTreeSet<String>,
    first: Option<Timestamp>,
    last: Option<Timestamp>,
}

impl Group {
    pub(super) fn add(&mut self, judged: &Judged) {
        self.drifts += 1;
        self.fields.extend(judged.fields.iter().map(ToString::to_string));
        self.first = [self.first, judged.at].into_iter().flatten().min();
        self.last = self.last.max(judged.at);
    }

    /// How many drifts of when.
    fn reason(&self) -> String {
        let day = |at: Timestamp| at.to_zoned(TimeZone::UTC).date();
        let drifts = count(self.drifts, "drift");
        match (self.first.map(day), self.last.map(day)) {
            (Some(first), Some(last)) if first == last => format!("{drifts} on {first}"),
            (Some(first), Some(last)) => format!("{drifts} from {first} to {last}"),
            _ => drifts,
        }
    }
}

impl Key {
    /// What names a drift; `None`, if no rule of such a policy can.
    pub(super) fn of(judged: &Judged, home: Option<&str>) -> Option<Self> {
        let key = Self {
            api_version: judged.api_version.clone(),
            kind: judged.kind.clone(),
            namespace: judged.namespace.clone(),
            name: match judged.generate_name.as_str() {
                prefix if !prefix.is_empty() && judged.name.starts_with(prefix) => format!("{prefix}*"),
                _ => judged.name.clone(),
            },
            operation: match judged.operation {
                Operation::Connect => return None,
                operation => operation.as_str(),
            },
            user: judged.user.clone(),
        };
        // A star in somebody's name would stand for anybody.
        let can_be_named = !key.user.is_empty() && !key.user.contains('*') && !key.name.is_empty();
        let account = Subject::of_user(&key.user).namespace;
        let is_of = |home: &str| key.namespace == home || account.as_deref() == Some(home);
        (can_be_named && home.is_none_or(is_of)).then_some(key)
    }

    /// That the rule names more than was changed, and why.
    pub(super) fn widened(&self, group: &Group) -> Option<String> {
        let Narrowed { fields, widened } = self.fields(group);
        if !widened {
            return None;
        }
        let all = match fields.as_slice() {
            [] => "all fields".to_owned(),
            some => format!("all of {}", some.join(", ")),
        };
        let why = match group.fields.len() {
            number @ 0..=MAX_NAMED => {
                format!("some of the {number} fields that changed are too long to name")
            }
            number => format!("{number} fields changed, and a rule names {MAX_NAMED} at most"),
        };
        let (kind, name) = (&self.kind, &self.name);
        Some(format!("Widened: the rule for updates of {kind} {name} is for {all}, since {why}."))
    }

    /// What changed; nothing, where it is created or deleted as a whole: its name says it all.
    fn fields(&self, group: &Group) -> Narrowed {
        match RuleOperation::of(self.operation) {
            RuleOperation::Update => narrow::fields(&group.fields),
            RuleOperation::Create | RuleOperation::Delete => Narrowed { fields: Vec::new(), widened: false },
        }
    }

    /// The rule, in a policy of this namespace or for the whole cluster.
    pub(super) fn rule(&self, group: &Group, home: Option<&str>) -> PolicyRule {
        let operation = RuleOperation::of(self.operation);
        let fields = self.fields(group).fields;
        let namespace = match (self.namespace.as_str(), home) {
            // An object without a namespace is named by its kind; but a policy in one must be told to look beyond it.
            ("", Some(_)) => Some("*".to_owned()),
            ("", None) => None,
            (namespace, _) => Some(namespace.to_owned()),
        };
        PolicyRule {
            action: Action::Allow,
            causes: vec![RuleCause::Drift],
            api_version: self.api_version.clone(),
            kind: self.kind.clone(),
            namespace,
            name: self.name.clone(),
            subjects: vec![Subject::of_user(&self.user)],
            except_subjects: Vec::new(),
            operations: vec![operation],
            prereqs: None,
            matching: (!fields.is_empty()).then(|| Matching { fields, ..Matching::default() }),
            mode: ApprovalMode::Always,
            expiry: None,
            reason: Some(group.reason()),
            dry_run: false,
        }
    }
}
