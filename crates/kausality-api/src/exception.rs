//! `ApprovalPolicy` and `ClusterApprovalPolicy`: changes that pass, or must not, without anybody being asked each time.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::approval::ApprovalMode;

/// How many rules a policy has at most.
pub const MAX_RULES: usize = 64;
/// How many subjects, operations or fields a rule names at most.
pub const MAX_NAMED: usize = 32;
/// How long a field that a rule names is at most, in bytes.
pub const MAX_FIELD: usize = 1024;
/// How long an expression or a pattern is at most, in bytes.
pub const MAX_SOURCE: usize = 4096;

/// Which of the two kinds a policy is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum PolicyKind {
    /// In a namespace, and bound to it.
    ApprovalPolicy,
    /// For the whole cluster.
    ClusterApprovalPolicy,
}

impl PolicyKind {
    /// As it is written.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ApprovalPolicy => "ApprovalPolicy",
            Self::ClusterApprovalPolicy => "ClusterApprovalPolicy",
        }
    }

    /// Names a policy of this kind, for people and in traces.
    #[must_use]
    pub fn reference(self, namespace: &str, name: &str) -> String {
        match self {
            Self::ApprovalPolicy => format!("ApprovalPolicy/{namespace}/{name}"),
            Self::ClusterApprovalPolicy => format!("ClusterApprovalPolicy/{name}"),
        }
    }

    /// Its plural name.
    #[must_use]
    pub fn plural(self) -> &'static str {
        match self {
            Self::ApprovalPolicy => "approvalpolicies",
            Self::ClusterApprovalPolicy => "clusterapprovalpolicies",
        }
    }
}

/// A policy of either kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalPolicy {
    /// `kausality.io/v1alpha1`.
    pub api_version: String,
    /// Which of the two it is.
    pub kind: PolicyKind,
    /// Where it is.
    pub metadata: Metadata,
    /// What it says.
    pub spec: ApprovalPolicySpec,
}

impl ApprovalPolicy {
    /// Names it: `ApprovalPolicy/namespace/name` or `ClusterApprovalPolicy/name`.
    #[must_use]
    pub fn reference(&self) -> String {
        self.kind.reference(&self.metadata.namespace, &self.metadata.name)
    }
}

/// As much of a policy's metadata as matters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metadata {
    /// Its name: by default that of the service account that it is about.
    pub name: String,
    /// Its namespace; empty for a `ClusterApprovalPolicy`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
}

/// What a policy says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovalPolicySpec {
    /// Each holds by itself.
    pub rules: Vec<PolicyRule>,
}

/// Changes that pass, or must not.
///
/// A field that is not known makes the policy void: it may be a restriction, misspelt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PolicyRule {
    /// Whether matching changes pass, or are denied.
    #[serde(default)]
    pub action: Action,
    /// Which changes it is about: by default, drifts.
    #[serde(default = "drifts", skip_serializing_if = "is_drifts")]
    pub causes: Vec<RuleCause>,
    /// The child's apiVersion. `*` stands for anything, here and in the next three.
    pub api_version: String,
    /// The child's kind.
    pub kind: String,
    /// The child's namespace: by default that of the policy, or any for a `ClusterApprovalPolicy`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The child's name.
    #[serde(default = "any")]
    pub name: String,
    /// Who makes the change: by default the service account that has the policy's name and namespace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub subjects: Vec<Subject>,
    /// But not these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub except_subjects: Vec<Subject>,
    /// What is done to the child: by default anything.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operations: Vec<RuleOperation>,
    /// What must hold before the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prereqs: Option<Prereqs>,
    /// What must hold of the change.
    #[serde(default, rename = "match", skip_serializing_if = "Option::is_none")]
    pub matching: Option<Matching>,
    /// For how long a child may be changed once it has been let pass.
    #[serde(default = "always")]
    pub mode: ApprovalMode,
    /// Void from this time on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expiry: Option<Timestamp>,
    /// Why, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Whether it is only told what the rule would do.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
}

/// What a rule does to changes that match.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// They pass.
    #[default]
    Allow,
    /// They are denied, whatever allows them.
    Deny,
}

/// Which changes a rule is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RuleCause {
    /// Changes by the parent's controller that nobody asked for.
    Drift,
    /// Changes of a child by anybody else.
    Origin,
}

/// What is done to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum RuleOperation {
    /// It is created.
    Create,
    /// It is changed, or scaled.
    Update,
    /// It is deleted.
    Delete,
}

impl RuleOperation {
    /// What the API server calls so; whatever else it calls changes an object.
    #[must_use]
    pub fn of(operation: &str) -> Self {
        match operation {
            "CREATE" => Self::Create,
            "DELETE" => Self::Delete,
            _ => Self::Update,
        }
    }

    /// The word that the API server uses.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
        }
    }
}

/// Somebody, as in role bindings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subject {
    /// What they are.
    pub kind: SubjectKind,
    /// Their name; for users and service accounts, `*` stands for anything.
    pub name: String,
    /// Of a service account: by default the policy's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

impl Subject {
    /// The user of this name, who may be a service account.
    #[must_use]
    pub fn of_user(name: &str) -> Self {
        match name.strip_prefix("system:serviceaccount:").and_then(|rest| rest.split_once(':')) {
            Some((namespace, name)) => Self {
                kind: SubjectKind::ServiceAccount,
                name: name.to_owned(),
                namespace: Some(namespace.to_owned()),
            },
            None => Self { kind: SubjectKind::User, name: name.to_owned(), namespace: None },
        }
    }
}

/// What somebody is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SubjectKind {
    /// A user by name.
    User,
    /// Everybody in a group.
    Group,
    /// A service account.
    ServiceAccount,
}

/// What must hold before the change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prereqs {
    /// In CEL, where `object` is the child as it is stored.
    pub cel: String,
}

/// What must hold of the change. All that is there must.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Matching {
    /// In CEL, where `object` is the child as it will be, and `oldObject` as it is stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cel: Option<String>,
    /// A pattern for all that is wanted of the child, as JSON without blanks and with sorted keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regexp: Option<String>,
    /// Only these fields, and what lies below them, change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<String>,
}

impl PolicyRule {
    /// Names a rule within its policy while what it is about stays as it is, whatever its place, its reason and its expiry.
    #[must_use]
    pub fn mark(&self) -> String {
        let rule = Self { reason: None, expiry: None, dry_run: false, ..self.clone() };
        let text = serde_json::to_vec(&rule).unwrap_or_default();
        Sha256::digest(&text).iter().take(5).map(|byte| format!("{byte:02x}")).collect()
    }
}

fn drifts() -> Vec<RuleCause> {
    vec![RuleCause::Drift]
}

fn is_drifts(causes: &[RuleCause]) -> bool {
    causes == [RuleCause::Drift]
}

fn any() -> String {
    "*".to_owned()
}

fn always() -> ApprovalMode {
    ApprovalMode::Always
}

#[cfg(test)]
mod tests;
