//! The ledger's entries: a drift that no gate let pass, as an object of the cluster.
//!
//! A `Drift` lies beside its child, a `ClusterDrift` stands for a child that has no namespace; apart from that they are the
//! same. They are records, as Events are: nobody declares anything in them, so their status is no subresource, and an
//! entry is there in one write.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    API_VERSION, GROUP,
    report::{ChildReference, DriftReport, DriftReportSpec, ParentReference, ReportPhase, RequestContext},
    text::shorten,
    trace::Trace,
};

pub mod cause;
mod step;

pub use step::{DriftStep, MAX_EXPLANATION, MAX_STEPS};

/// How many bytes an entry takes at most, as JSON, when it is written: what becomes of it later has room in that.
pub const MAX_ENTRY: usize = 32 * 1024;

/// How many changes of fields an entry holds.
pub const MAX_CHANGES: usize = 100;

/// How many bytes they may take together. The others are only counted.
pub const MAX_CHANGES_BYTES: usize = 12 * 1024;

/// How many bytes the trace of an entry may take. What lies between its origin and its end goes first.
pub const MAX_TRACE: usize = 4 * 1024;

/// How many bytes the value of a field may take in an entry.
pub const MAX_VALUE: usize = 1024;

/// How many open entries a namespace holds.
pub const MAX_OPEN: usize = 500;

/// How many bytes they may take together.
pub const MAX_OPEN_BYTES: usize = 4 * 1024 * 1024;

/// How many of them are about one child: one whose drift is another each time must not take the place of all others.
pub const MAX_OPEN_OF_CHILD: usize = 20;

/// How many entries that are over a namespace holds, whatever their age.
pub const MAX_RESOLVED: usize = 500;

/// How many bytes they may take together.
pub const MAX_RESOLVED_BYTES: usize = 4 * 1024 * 1024;

/// The label with the uid of the parent, by which its drifts are found.
pub const PARENT_UID: &str = "kausality.io/parent-uid";

/// An entry of the ledger.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Drift {
    /// `kausality.io/v1alpha1`.
    pub api_version: String,
    /// `Drift` or `ClusterDrift`.
    pub kind: String,
    /// Its name is its id.
    pub metadata: DriftMetadata,
    /// What happened.
    pub spec: DriftSpec,
    /// What has become of it.
    pub status: DriftStatus,
}

/// As much of an entry's metadata as matters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DriftMetadata {
    /// The id of the drift.
    pub name: String,
    /// The namespace of the child.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// By which it is found.
    #[serde(default, skip_serializing_if = "std::collections::BTreeMap::is_empty")]
    pub labels: std::collections::BTreeMap<String, String>,
    /// Its uid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// The version that was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_version: Option<String>,
    /// When it was entered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub creation_timestamp: Option<Timestamp>,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DriftSpec {
    /// Names the drift by its content.
    pub id: String,
    /// The parent whose intent is unchanged.
    pub parent: ParentReference,
    /// The hash of the parent's intent. With another one the drift is over.
    pub parent_intent: String,
    /// The child that a controller changed, or wanted to.
    pub child: ChildReference,
    /// The request in which it was first seen.
    pub request: RequestContext,
    /// The hash of the change, by which exactly this one can be approved.
    pub diff: String,
    /// What changed, field by field.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<FieldChange>,
    /// How many more changes there are.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_changes: u64,
    /// Who last asked for something of the parent, and how it came to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<Trace>,
    /// The child before, on UPDATE. Values of Secrets are digests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_object: Option<Value>,
    /// The child as the controller wants it; on DELETE, as it is. Absent, as the one before, if both do not fit the entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_object: Option<Value>,
    /// The same in a few words.
    pub summary: DriftSummary,
    /// The rule of a policy that denied it, where it is not a drift: somebody other than the parent's controller acted. An
    /// approval of exactly this change, by somebody else, lets it pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub denied_by: Option<String>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A drift in a few words, for tables.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DriftSummary {
    /// `Deployment/web`.
    pub parent: String,
    /// `ReplicaSet/web-5d4f`.
    pub child: String,
    /// The user, without what all service accounts have in common: `kube-system:deployment-controller`.
    pub actor: String,
    /// The first change, and how many more there are.
    pub change: String,
}

/// One field that changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FieldChange {
    /// Where: `spec.containers[name=web].image`.
    pub path: String,
    /// What was there, as JSON; nothing, if it was not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<String>,
    /// What is to be there, as JSON; nothing, if it is to go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new: Option<String>,
    /// The field managers that owned it, as far as is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_owner: Option<String>,
    /// Those that will.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_owner: Option<String>,
}

/// What has become of a drift.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DriftStatus {
    /// In a word.
    pub state: DriftState,
    /// How often it was seen since then.
    pub count: u64,
    /// When it was first seen. What occurs again after it was over, or under another intent of its parent, begins anew.
    pub first_seen: Timestamp,
    /// When it was last seen, as far as has been written.
    pub last_seen: Timestamp,
    /// When the count was last written, by whichever replica.
    pub counted_at: Timestamp,
    /// How it came to that state: the rules that were looked at when it was last seen, as far as has been written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub explanation: Vec<DriftStep>,
    /// Why it is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolution: Option<DriftResolution>,
    /// What a person decided about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<DriftDecision>,
    /// What endpoints have been told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub deliveries: Vec<Delivery>,
}

/// What has become of a drift, in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum DriftState {
    /// It was denied, for want of an approval.
    Blocked,
    /// It was denied, since somebody rejected it, or a rule of a policy denies such drifts.
    Rejected,
    /// It is not a drift: somebody other than the parent's controller acted, and a rule of a policy denied that, for want of an
    /// approval.
    Denied,
    /// It was let pass with a warning, in log mode.
    Passed,
    /// It is over.
    Resolved,
}

impl DriftState {
    /// The word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Blocked => "Blocked",
            Self::Rejected => "Rejected",
            Self::Denied => "Denied",
            Self::Passed => "Passed",
            Self::Resolved => "Resolved",
        }
    }

    /// Whether it waits for somebody.
    #[must_use]
    pub fn is_open(self) -> bool {
        self != Self::Resolved
    }
}

/// Why a drift is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DriftResolution {
    /// In a word.
    pub reason: ResolutionReason,
    /// When.
    pub at: Timestamp,
    /// By whom, where somebody decided it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// For people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// Why a drift is over, in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ResolutionReason {
    /// The parent's intent is another now.
    ParentChanged,
    /// The parent is gone.
    ParentGone,
    /// An approval covers it.
    Approved,
    /// The child is gone.
    ChildGone,
    /// A change that a policy denied was not tried again.
    Expired,
    /// The child is another meanwhile: the change cannot be made any more as it was seen.
    Superseded,
}

impl ResolutionReason {
    /// The word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ParentChanged => "ParentChanged",
            Self::ParentGone => "ParentGone",
            Self::Approved => "Approved",
            Self::ChildGone => "ChildGone",
            Self::Expired => "Expired",
            Self::Superseded => "Superseded",
        }
    }
}

/// What a person decided about a drift.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DriftDecision {
    /// `approve` or `reject`.
    pub action: String,
    /// How long an approval lasts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<crate::approval::ApprovalMode>,
    /// Who.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// When it was noticed.
    pub at: Timestamp,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What one endpoint has been told of a drift.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Delivery {
    /// The endpoint, by its name.
    pub endpoint: String,
    /// When it took over that the drift was detected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detected: Option<Timestamp>,
    /// When it took over that the drift was resolved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved: Option<Timestamp>,
    /// Why the last attempt failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Drift {
    /// An entry under the name of its id, with its labels.
    #[must_use]
    pub fn new(spec: DriftSpec, status: DriftStatus) -> Self {
        let uid = spec.parent.uid.iter().map(|uid| (PARENT_UID.to_owned(), uid.clone()));
        let metadata = DriftMetadata {
            name: spec.id.clone(),
            namespace: spec.child.namespace.clone(),
            labels: uid.collect(),
            ..DriftMetadata::default()
        };
        let kind = if metadata.namespace.is_empty() { "ClusterDrift" } else { "Drift" };
        Self { api_version: API_VERSION.to_owned(), kind: kind.to_owned(), metadata, spec, status }
    }

    /// The plural name of its kind.
    #[must_use]
    pub fn plural(&self) -> &'static str {
        plural(&self.metadata.namespace)
    }

    /// What endpoints are told of it.
    #[must_use]
    pub fn report(&self, phase: ReportPhase) -> DriftReport {
        let spec = self.spec.clone();
        let child = serde_json::json!({
            "apiVersion": spec.child.api_version, "kind": spec.child.kind,
            "metadata": {"name": spec.child.name, "namespace": spec.child.namespace},
        });
        DriftReport::new(DriftReportSpec {
            id: spec.id,
            phase,
            parent: spec.parent,
            child: spec.child,
            old_object: spec.old_object,
            new_object: spec.new_object.unwrap_or(child),
            request: spec.request,
            denied_by: spec.denied_by,
        })
    }

    /// Whether a rule of a policy denies this drift: no approval lifts that.
    #[must_use]
    pub fn is_barred(&self) -> bool {
        self.spec.denied_by.is_none() && self.status.is_denied_by_rule()
    }

    /// The state of an entry that nobody has decided about.
    #[must_use]
    pub fn undecided(&self) -> DriftState {
        match self.spec.denied_by {
            Some(_) => DriftState::Denied,
            None => DriftState::Blocked,
        }
    }
}

/// The plural name of the kind of entries in a namespace; of those without one, if it is empty.
#[must_use]
pub fn plural(namespace: &str) -> &'static str {
    if namespace.is_empty() { "clusterdrifts" } else { "drifts" }
}

/// The full names of both kinds' definitions.
#[must_use]
pub fn definitions() -> [String; 2] {
    [format!("drifts.{GROUP}"), format!("clusterdrifts.{GROUP}")]
}

/// A user for tables: a service account by its namespace and name.
#[must_use]
pub fn short_user(user: &str) -> String {
    shorten(user.strip_prefix("system:serviceaccount:").unwrap_or(user), 63)
}
