//! The `DriftReport` that is sent to notification endpoints, and their answer.
//!
//! A report is transient, like an admission review: it has no metadata, and nothing stores it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{API_VERSION, phase::Phase};

/// What is sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DriftReport {
    /// `kausality.io/v1alpha1`.
    pub api_version: String,
    /// `DriftReport`.
    pub kind: String,
    /// The drift.
    pub spec: DriftReportSpec,
}

/// A drift, as endpoints see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DriftReportSpec {
    /// Names the drift by its content: the same parent, child and change have the same id.
    pub id: String,
    /// Whether it appeared or went away.
    pub phase: ReportPhase,
    /// The parent whose intent is unchanged.
    pub parent: ParentReference,
    /// The child that a controller changed.
    pub child: ChildReference,
    /// The child before, on UPDATE.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_object: Option<Value>,
    /// The child as the controller wants it; on DELETE, as it is.
    pub new_object: Value,
    /// The request.
    pub request: RequestContext,
    /// The rule of a policy that denied it, where it is not a drift: somebody other than the parent's controller acted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub denied_by: Option<String>,
}

/// Whether a drift appeared or went away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReportPhase {
    /// It was seen.
    Detected,
    /// It is over: the parent's intent changed, it was approved, the child is gone, or has been changed by others.
    Resolved,
}

/// The parent, with what the judgement rested on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ParentReference {
    /// Its apiVersion.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its namespace, unless it is cluster-scoped.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// Its generation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,
    /// The generation its controller has acted on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The field manager that writes its status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub controller_manager: Option<String>,
    /// Its lifecycle phase.
    pub lifecycle_phase: Phase,
}

/// The child.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChildReference {
    /// Its apiVersion.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its namespace, unless it is cluster-scoped.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Its name; its `generateName` while it has none.
    pub name: String,
    /// Its uid, once it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
    /// Its generation before the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,
}

/// The admission request in which the drift was seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestContext {
    /// Who sent it.
    pub user: String,
    /// The groups they are in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// Its uid.
    pub uid: String,
    /// The field manager, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_manager: Option<String>,
    /// CREATE, UPDATE or DELETE.
    pub operation: String,
    /// Whether it was a trial.
    #[serde(default)]
    pub dry_run: bool,
}

impl DriftReport {
    /// Wraps a drift for sending.
    #[must_use]
    pub fn new(spec: DriftReportSpec) -> Self {
        Self { api_version: API_VERSION.to_owned(), kind: "DriftReport".to_owned(), spec }
    }
}

/// What an endpoint answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DriftReportResponse {
    /// `kausality.io/v1alpha1`.
    pub api_version: String,
    /// `DriftReportResponse`.
    pub kind: String,
    /// Whether the report has been taken over.
    pub acknowledged: bool,
    /// Why not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl DriftReportResponse {
    /// The answer of an endpoint that has taken the report over.
    #[must_use]
    pub fn acknowledged() -> Self {
        Self {
            api_version: API_VERSION.to_owned(),
            kind: "DriftReportResponse".to_owned(),
            acknowledged: true,
            error: None,
        }
    }

    /// The answer of an endpoint that could not take it.
    #[must_use]
    pub fn failed(error: impl Into<String>) -> Self {
        Self { acknowledged: false, error: Some(error.into()), ..Self::acknowledged() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> DriftReport {
        DriftReport::new(DriftReportSpec {
            id: "a1b2c3d4e5f67890".into(),
            phase: ReportPhase::Detected,
            parent: ParentReference {
                api_version: "example.com/v1alpha1".into(),
                kind: "EKSCluster".into(),
                namespace: "infra".into(),
                name: "prod".into(),
                uid: None,
                generation: Some(5),
                observed_generation: Some(5),
                controller_manager: Some("eks-controller".into()),
                lifecycle_phase: Phase::Initialized,
            },
            child: ChildReference {
                api_version: "v1".into(),
                kind: "ConfigMap".into(),
                namespace: "infra".into(),
                name: "cluster-config".into(),
                uid: Some("abc-123-def".into()),
                generation: Some(3),
            },
            old_object: Some(serde_json::json!({"data": {"version": "1.30"}})),
            new_object: serde_json::json!({"data": {"version": "1.31"}}),
            request: RequestContext {
                user: "system:serviceaccount:infra:eks-controller".into(),
                groups: vec!["system:serviceaccounts".into(), "system:serviceaccounts:infra".into()],
                uid: "abc-123".into(),
                field_manager: Some("eks-controller".into()),
                operation: "UPDATE".into(),
                dry_run: false,
            },
            denied_by: None,
        })
    }

    #[test]
    fn the_format_is_golden() {
        insta::assert_json_snapshot!("drift-report", report());
        let text = serde_json::to_string(&report()).unwrap();
        assert_eq!(serde_json::from_str::<DriftReport>(&text).unwrap(), report());
    }

    #[test]
    fn the_answer_is_golden() {
        insta::assert_json_snapshot!("drift-report-acknowledged", DriftReportResponse::acknowledged());
        insta::assert_json_snapshot!("drift-report-failed", DriftReportResponse::failed("queue is full"));
    }
}
