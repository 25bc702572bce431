//! What a request changes, field by field; read only when a rule asks.

use std::cell::OnceCell;

use kausality_api::{
    phase::Phase,
    report::{ChildReference, DriftReport, DriftReportSpec, ParentReference, ReportPhase, RequestContext},
};
use kausality_fields::{Diff, Redaction};
use sha2::{Digest, Sha256};

use crate::{
    child::Child,
    managers,
    review::{Operation, Review, Values},
    summary::{ObjectId, Summary},
};

/// The change that a request makes.
pub(crate) struct Change<'a> {
    review: &'a Review<'a>,
    redaction: Redaction,
    read: OnceCell<(Values, Diff)>,
}

impl<'a> Change<'a> {
    pub(crate) fn new(review: &'a Review<'a>, salt: &[u8]) -> Self {
        Self { review, redaction: Redaction::new(salt), read: OnceCell::new() }
    }

    fn read(&self) -> &(Values, Diff) {
        self.read.get_or_init(|| {
            let values = self.review.values();
            let diff =
                kausality_fields::intent(values.old_object.as_ref(), values.object.as_ref(), &self.redaction);
            (values, diff)
        })
    }

    /// The fields that change.
    pub(crate) fn diff(&self) -> &Diff {
        &self.read().1
    }

    /// Whether all that changes lies in `fields`. A change that the diff does not show, as of the order of a
    /// list, lies nowhere.
    pub(crate) fn is_within(&self, fields: &[String]) -> bool {
        !self.diff().is_empty()
            && self.diff().changes.iter().all(|change| {
                let path = change.path.to_string();
                fields.iter().any(|field| {
                    path.strip_prefix(field.as_str())
                        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
                })
            })
    }

    /// The drift that this change is, for the ledger and for reports.
    pub(crate) fn drift(&self, parent: &Summary, phase: Phase, child: &Child<'_>, snoozed: bool) -> Drift {
        let request = &self.review.request;
        let (values, diff) = self.read();
        let shown = |object: &Option<_>| {
            object.as_ref().map(|object| kausality_fields::redact(object, &self.redaction))
        };
        let old_object = shown(&values.old_object);
        let (old_object, new_object) = match request.operation {
            Operation::Delete => (None, old_object),
            _ => (old_object, shown(&values.object)),
        };
        let id = id(&parent.id, &child.id, &diff.hash());
        let report = DriftReport::new(DriftReportSpec {
            id,
            phase: ReportPhase::Detected,
            parent: ParentReference {
                api_version: parent.id.api_version.clone(),
                kind: parent.id.kind.clone(),
                namespace: parent.id.namespace.clone(),
                name: parent.id.name.clone(),
                uid: (!parent.uid.is_empty()).then(|| parent.uid.clone()),
                generation: parent.generation,
                observed_generation: parent.observed_generation(),
                controller_manager: parent.status_managers.first().cloned(),
                lifecycle_phase: phase,
            },
            child: ChildReference {
                api_version: child.id.api_version.clone(),
                kind: child.id.kind.clone(),
                namespace: child.id.namespace.clone(),
                name: child.id.name.clone(),
                uid: child.uid.clone(),
                generation: child.generation,
            },
            old_object,
            new_object: new_object.unwrap_or_default(),
            request: RequestContext {
                user: request.user().to_owned(),
                groups: request.user_info.groups.iter().flatten().map(ToString::to_string).collect(),
                uid: request.uid.to_string(),
                field_manager: managers::of_request(request),
                operation: request.operation.as_str().to_owned(),
                dry_run: request.is_dry_run(),
            },
        });
        Drift { report, diff: diff.clone(), snoozed }
    }
}

/// A drift that no gate let pass.
#[derive(Clone, Debug)]
pub struct Drift {
    /// What endpoints are told.
    pub report: DriftReport,
    /// The fields that changed.
    pub diff: Diff,
    /// Whether nobody wants to be told now.
    pub snoozed: bool,
}

impl Drift {
    /// Names the drift by its content.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.report.spec.id
    }
}

/// Names a drift: the same parent, child and change have the same name, in every replica.
fn id(parent: &ObjectId, child: &ObjectId, diff: &str) -> String {
    let mut hash = Sha256::new();
    for object in [parent, child] {
        for part in [object.group(), &object.kind, &object.namespace, &object.name] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
    }
    hash.update(diff);
    hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}
