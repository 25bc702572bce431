//! What is known about a policy: whether it is in force, and what it needs.

use std::fmt;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

/// The status of a `Kausality` policy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KausalityStatus {
    /// The generation of the policy that the conditions speak of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Whether the policy is in force, and why not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// The kinds of parents that the policy does not have reviewed. Kausality is to be granted to read them, and who decides
    /// about drifts on them is to be reviewed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parents: Vec<ParentKind>,
    /// The kinds of parents that cannot be judged: nothing in their status shows when their controllers are done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unjudged: Vec<UnjudgedKind>,
}

/// For how long it is believed that a kind cannot be judged after that was last seen.
const UNJUDGED_FOR: SignedDuration = SignedDuration::from_hours(24);

/// A kind of parents that cannot be judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UnjudgedKind {
    /// The API group; `""` is the core group.
    pub api_group: String,
    /// The kind.
    pub kind: String,
    /// The plural name, by which policies know it.
    pub resource: String,
    /// When a controller last changed a child of such a parent, to the hour or so.
    pub last_seen: Timestamp,
}

impl UnjudgedKind {
    /// Whether that was seen lately.
    #[must_use]
    pub fn is_recent(&self, now: Timestamp) -> bool {
        now.duration_since(self.last_seen) < UNJUDGED_FOR
    }
}

/// As `PlainApp (example.com)`.
impl fmt::Display for UnjudgedKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.kind)?;
        if self.api_group.is_empty() { Ok(()) } else { write!(f, " ({})", self.api_group) }
    }
}

/// A condition, as Kubernetes writes them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// What it is about.
    #[serde(rename = "type")]
    pub kind: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// Why, in a word.
    pub reason: String,
    /// Why, for a person.
    pub message: String,
    /// When the status last became another.
    pub last_transition_time: Timestamp,
    /// The generation of the policy that it speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

/// The kind of a parent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ParentKind {
    /// The API group; `""` is the core group.
    pub api_group: String,
    /// The kind.
    pub kind: String,
    /// The plural name, by which roles know it.
    pub resource: String,
}

/// The status of an `ApprovalPolicy` or `ClusterApprovalPolicy`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ApprovalPolicyStatus {
    /// The generation of the policy that the conditions speak of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Whether its rules hold, and why not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// How often its rules have matched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matches: Option<u64>,
    /// When one last did, as far as has been written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_matched: Option<Timestamp>,
    /// What is known of each rule that has matched.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<RuleStatus>,
}

/// What is known of a rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RuleStatus {
    /// Its place in the policy.
    pub rule: u64,
    /// What it is about, as [a digest](crate::exception::PolicyRule::mark): its count follows it to another place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<String>,
    /// How often it has matched.
    pub matches: u64,
    /// When it last did, as far as has been written.
    pub last_matched: Timestamp,
}
