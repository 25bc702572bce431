//! A rule in plain words.

use kausality_api::{
    approval::ApprovalMode,
    exception::{Action, ApprovalPolicy, PolicyKind, PolicyRule, RuleCause, Subject, SubjectKind},
};
use serde::Serialize;

/// What a rule says. What it leaves open is said, too.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Words {
    /// What becomes of changes that match.
    pub does: String,
    /// By whom.
    who: String,
    /// Of what.
    what: String,
    /// In which namespaces.
    #[serde(rename = "where")]
    place: String,
    /// What must hold.
    #[serde(rename = "if")]
    conditions: Vec<String>,
    /// For how long.
    lasts: String,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl Words {
    pub(super) fn of(policy: &ApprovalPolicy, rule: &PolicyRule) -> Self {
        Self {
            does: does(rule),
            who: who(policy, rule),
            what: what(rule),
            place: place(policy, rule),
            conditions: conditions(rule),
            lasts: lasts(rule),
            reason: rule.reason.clone(),
        }
    }

    /// All but what it does, each with its name.
    pub(super) fn lines(&self) -> Vec<(&'static str, String)> {
        let mut lines =
            vec![("who", self.who.clone()), ("what", self.what.clone()), ("where", self.place.clone())];
        for (number, condition) in self.conditions.iter().enumerate() {
            lines.push((if number == 0 { "if" } else { "and" }, condition.clone()));
        }
        lines.push(("lasts", self.lasts.clone()));
        lines.extend(self.reason.clone().map(|reason| ("reason", reason)));
        lines
    }
}

fn does(rule: &PolicyRule) -> String {
    let causes: Vec<&str> = (rule.causes.iter())
        .map(|cause| match cause {
            RuleCause::Drift => "drifts",
            RuleCause::Origin => "changes by others than the controller",
        })
        .collect();
    let causes = causes.join(" and ");
    match (rule.action, rule.dry_run) {
        (Action::Allow, false) => format!("lets {causes} pass"),
        (Action::Allow, true) => format!("is only tried: it would let {causes} pass"),
        (Action::Deny, false) => format!("denies {causes}, whatever allows them"),
        (Action::Deny, true) => format!("is only tried: it would deny {causes}"),
    }
}

fn who(policy: &ApprovalPolicy, rule: &PolicyRule) -> String {
    let home = policy.metadata.namespace.as_str();
    let all =
        |subjects: &[Subject]| subjects.iter().map(|it| subject(it, home)).collect::<Vec<_>>().join(", or ");
    let who = match rule.subjects.is_empty() {
        true => format!("service account {} of namespace {home}", policy.metadata.name),
        false => all(&rule.subjects),
    };
    match rule.except_subjects.is_empty() {
        true => who,
        false => format!("{who}; but not {}", all(&rule.except_subjects)),
    }
}

fn subject(Subject { kind, name, namespace }: &Subject, home: &str) -> String {
    match (kind, name.as_str()) {
        (SubjectKind::User, "*") => "any user".to_owned(),
        (SubjectKind::User, name) => format!("user {name}"),
        (SubjectKind::Group, "system:authenticated") => "everybody".to_owned(),
        (SubjectKind::Group, name) => format!("anybody in group {name}"),
        (SubjectKind::ServiceAccount, name) => {
            let namespace = match namespace.as_deref().unwrap_or(home) {
                "*" => "any namespace".to_owned(),
                namespace => format!("namespace {namespace}"),
            };
            let account = if name == "*" {
                "any service account".to_owned()
            } else {
                format!("service account {name}")
            };
            format!("{account} of {namespace}")
        }
    }
}

fn what(rule: &PolicyRule) -> String {
    let operations: Vec<&str> = rule.operations.iter().map(|operation| operation.as_str()).collect();
    let operations = match operations.as_slice() {
        [] => "CREATE, UPDATE or DELETE".to_owned(),
        some => some.join(" or "),
    };
    let kind = match (rule.kind.as_str(), rule.api_version.as_str()) {
        ("*", "*") => "of anything".to_owned(),
        ("*", api_version) => format!("of any kind in {api_version}"),
        (kind, "*") => format!("of {kind} of any group"),
        (kind, api_version) => format!("of {kind} ({api_version})"),
    };
    match rule.name.as_str() {
        "*" => format!("{operations} {kind}"),
        name => format!("{operations} {kind} {}", named(name)),
    }
}

fn named(name: &str) -> String {
    if name.contains('*') { format!("with a name like {name}") } else { format!("with the name {name}") }
}

fn place(policy: &ApprovalPolicy, rule: &PolicyRule) -> String {
    let own = match policy.kind {
        PolicyKind::ApprovalPolicy => policy.metadata.namespace.as_str(),
        PolicyKind::ClusterApprovalPolicy => "*",
    };
    match rule.namespace.as_deref().unwrap_or(own) {
        "*" => "anywhere".to_owned(),
        name if name.contains('*') => format!("in namespaces like {name}"),
        name => format!("in namespace {name}"),
    }
}

fn conditions(rule: &PolicyRule) -> Vec<String> {
    let mut conditions = Vec::new();
    if let Some(prereqs) = &rule.prereqs {
        conditions.push(format!("before the change, it holds that {}", prereqs.cel.trim()));
    }
    let Some(matching) = &rule.matching else { return conditions };
    if let Some(cel) = &matching.cel {
        conditions.push(format!("of the change, it holds that {}", cel.trim()));
    }
    if !matching.fields.is_empty() {
        let fields = matching.fields.join(", ");
        conditions.push(match (rule.action, matching.fields.len()) {
            (Action::Allow, _) => format!("nothing changes but {fields}"),
            (Action::Deny, 1) => format!("{fields} changes"),
            (Action::Deny, _) => format!("any of {fields} changes"),
        });
    }
    if let Some(regexp) = &matching.regexp {
        conditions.push(format!("all that is wanted of the object looks like {regexp}"));
    }
    conditions
}

fn lasts(rule: &PolicyRule) -> String {
    let mode = match rule.mode {
        ApprovalMode::Always => "always",
        ApprovalMode::Once => "once for each object",
        ApprovalMode::Generation => "for each object while its parent's generation stays as it is",
    };
    match rule.expiry {
        Some(expiry) => format!("{mode}, until {expiry}"),
        None => mode.to_owned(),
    }
}

#[cfg(test)]
mod tests;
