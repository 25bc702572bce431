//! What a request changes, field by field; read only when a rule asks.

use std::cell::{Cell, OnceCell};

use kausality_api::{
    annotation::TRACE,
    drift::MAX_VALUE,
    phase::Phase,
    report::{ChildReference, DriftReport, DriftReportSpec, ParentReference, ReportPhase, RequestContext},
    text::shorten,
    trace::Trace,
};
use kausality_fields::{Diff, Leaf, Path, Redaction, Step, attribution::Handover};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::{
    child::Child,
    class,
    exceptions::Ruled,
    intent::IntentHash,
    managers,
    review::{Object, Operation, Review, Values},
    settle::Seen,
    summary::{ObjectId, Summary},
};

/// How many times a field that changes is held against one that an entry or a rule names: there may be thousands of either.
const MAX_COMPARED: usize = 1 << 24;

/// The change that a request makes.
pub(crate) struct Change<'a> {
    review: &'a Review<'a>,
    redaction: Redaction,
    read: OnceCell<Read>,
    hash: OnceCell<String>,
    /// How many comparisons are left.
    left: Cell<usize>,
}

/// The objects in full, the fields that change, and the lists whose order does.
struct Read {
    values: Values,
    diff: Diff,
    orders: Vec<Path>,
}

impl<'a> Change<'a> {
    pub(crate) fn new(review: &'a Review<'a>, redaction: Redaction) -> Self {
        Self {
            review,
            redaction,
            read: OnceCell::new(),
            hash: OnceCell::new(),
            left: Cell::new(MAX_COMPARED),
        }
    }

    fn read(&self) -> &Read {
        self.read.get_or_init(|| {
            let values = self.review.values();
            let (old, new) = (values.old_object.as_ref(), values.object.as_ref());
            let (mut diff, orders) = kausality_fields::intent_and_orders(old, new, &self.redaction);
            let request = &self.review.request;
            if class::changes_controller(request) || class::adopts(request) {
                diff.changes.extend(self.of_metadata(&values, "ownerReferences"));
            }
            if diff.is_empty() && class::same_intent(request) {
                diff.changes.extend(self.of_metadata(&values, "labels"));
            }
            if diff.is_empty() {
                diff.changes.extend(self.hidden(&orders));
            }
            Read { values, diff, orders }
        })
    }

    /// What changes in a part of the metadata.
    fn of_metadata(&self, values: &Values, part: &str) -> Vec<kausality_fields::Change> {
        let of = |object: &Option<Value>| {
            object.as_ref().map(|object| serde_json::json!({"metadata": {part: object["metadata"][part]}}))
        };
        let (old, new) = (of(&values.old_object), of(&values.object));
        kausality_fields::object(old.as_ref(), new.as_ref(), &self.redaction).changes
    }

    /// A change that shows in no field, as of the order of a list or far down in a deep object, must still not be
    /// taken for another one.
    fn hidden(&self, orders: &[Path]) -> Vec<kausality_fields::Change> {
        let request = &self.review.request;
        let digest = |object: &Option<Object<'_>>| {
            object.as_ref().map(|object| {
                let mut hash = Sha256::new_with_prefix(self.redaction.salt());
                hash.update(object.intent.hash().to_string());
                let digest: String =
                    hash.finalize().iter().take(6).map(|byte| format!("{byte:02x}")).collect();
                Leaf::Redacted(digest)
            })
        };
        let object = request.object.as_ref().or(request.old_object.as_ref());
        let first = object.and_then(|object| object.intent.first());
        let first = first.map(|field| [Step::Field(field.0.to_string())].into_iter().collect());
        let paths = if orders.is_empty() { first.into_iter().collect() } else { orders.to_vec() };
        let change = |path| kausality_fields::Change {
            path,
            old: digest(&request.old_object),
            new: digest(&request.object),
        };
        paths.into_iter().map(change).collect()
    }

    /// The objects, in full.
    pub(crate) fn values(&self) -> &Values {
        &self.read().values
    }

    /// The request without its objects.
    pub(crate) fn request(&self) -> Value {
        self.review.request_alone()
    }

    /// The fields that change.
    pub(crate) fn diff(&self) -> &Diff {
        &self.read().diff
    }

    /// Names exactly this change.
    pub(crate) fn hash(&self) -> &str {
        self.hash.get_or_init(|| self.diff().hash())
    }

    /// Whether everything that changes may be held against so many fields.
    pub(crate) fn can_compare(&self, fields: usize) -> bool {
        let paths = self.diff().changes.len() + self.orders().len();
        let left = self.left.get().checked_sub(paths.saturating_mul(fields));
        self.left.set(left.unwrap_or_default());
        left.is_some()
    }

    /// The lists whose items come in another order.
    pub(crate) fn orders(&self) -> &[Path] {
        &self.read().orders
    }

    /// The drift that this change is, for the ledger and for reports; or another change, which this rule denies.
    pub(crate) fn drift(
        &self,
        parent: &Summary,
        phase: Phase,
        child: &Child<'_>,
        denied_by: Option<&Ruled>,
        snoozed: bool,
    ) -> Drift {
        let request = &self.review.request;
        let Read { values, diff, .. } = self.read();
        let (old, new) = (values.old_object.as_ref(), values.object.as_ref());
        let shown = kausality_fields::redact_both(old, new, &self.redaction);
        let (old_object, new_object) = match request.operation {
            Operation::Delete => (None, shown.0),
            _ => shown,
        };
        let id = self.id(parent, child, denied_by.is_none());
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
            new_object: new_object.unwrap_or_else(|| stub(&child.id)),
            request: RequestContext {
                user: request.user().to_owned(),
                groups: request.user_info.groups.iter().flatten().map(ToString::to_string).collect(),
                uid: request.uid.to_string(),
                field_manager: managers::of_request(request),
                operation: request.operation.as_str().to_owned(),
                dry_run: request.is_dry_run(),
            },
            denied_by: denied_by.map(|ruled| shorten(&ruled.to_string(), MAX_VALUE)),
        });
        let owners = managers::of_fields(request, diff.changes.iter().map(|change| &change.path));
        let parent_trace = parent.annotation(TRACE).and_then(|text| Trace::decode(text).ok());
        Drift { report, diff: diff.clone(), owners, parent_intent: parent.intent, parent_trace, snoozed }
    }
}

/// Stands for an object that is too deep to be read whole.
fn stub(id: &ObjectId) -> Value {
    serde_json::json!({
        "apiVersion": id.api_version, "kind": id.kind, "metadata": {"name": id.name, "namespace": id.namespace},
    })
}

/// A drift that no gate let pass, or a change by somebody else that a rule of a policy denied.
#[derive(Clone, Debug)]
pub struct Drift {
    /// What endpoints are told.
    pub report: DriftReport,
    /// The fields that changed.
    pub diff: Diff,
    /// Who owned each of them, and who would: a line each, in the same order; none if that cannot be told.
    pub owners: Vec<Handover>,
    /// The intent that the parent has.
    pub parent_intent: IntentHash,
    /// Who last asked for something of the parent.
    pub parent_trace: Option<Trace>,
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

impl Change<'_> {
    /// The id of the drift that this change is. The same change by somebody else is none, and has another.
    pub(crate) fn id(&self, parent: &Summary, child: &Child<'_>, is_drift: bool) -> String {
        let who = (!is_drift).then(|| self.review.request.user());
        id(&parent.id, &child.id, self.hash(), who)
    }
}

/// Names a drift: the same parent, child and change have the same name, in every replica. Other changes are named by who makes
/// them, too: nobody approves their own.
fn id(parent: &ObjectId, child: &ObjectId, diff: &str, who: Option<&str>) -> String {
    let mut hash = Sha256::new();
    for object in [parent, child] {
        for part in [object.group(), &object.kind, &object.namespace, &object.name] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
    }
    hash.update(diff);
    if let Some(who) = who {
        hash.update("denied:");
        hash.update(who);
    }
    hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The hash of the change from one spec to another.
    fn hash(old: &str, new: &str) -> String {
        let review = format!(
            r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{"uid":"u","operation":"UPDATE",
            "kind":{{"kind":"A"}},"resource":{{"resource":"as"}},"object":{{"spec":{new}}},"oldObject":{{"spec":{old}}}}}}}"#
        );
        let review = Review::parse(review.as_bytes()).unwrap();
        let change = Change::new(&review, Redaction::new("salt"));
        assert!(!change.diff().is_empty(), "{old} / {new}");
        change.diff().hash()
    }

    #[test]
    fn what_takes_too_long_to_compare_lies_within_nothing_and_touches_everything() {
        let review = r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u",
            "operation":"UPDATE","kind":{"kind":"A"},"resource":{"resource":"as"},
            "object":{"spec":{"a":1}},"oldObject":{"spec":{"a":2}}}}"#;
        let review = Review::parse(review.as_bytes()).unwrap();
        let change = Change::new(&review, Redaction::new("salt"));
        let [spec, data] = ["spec", "data"].map(|field| [kausality_fields::parse_path(field).unwrap()]);
        assert_eq!((change.lies_within(&spec), change.touches(&data)), (true, false));
        assert!(!change.can_compare(MAX_COMPARED));
        assert_eq!((change.lies_within(&spec), change.touches(&data)), (false, true));
    }

    #[test]
    fn what_shows_in_no_field_is_still_one_change_and_no_other() {
        let list = |names: &[&str]| {
            let items: Vec<String> = names.iter().map(|name| format!(r#"{{"name":"{name}"}}"#)).collect();
            format!(r#"{{"containers":[{}]}}"#, items.join(","))
        };
        let abc = list(&["a", "b", "c"]);
        let (bac, cba) = (list(&["b", "a", "c"]), list(&["c", "b", "a"]));
        assert_ne!(hash(&abc, &bac), hash(&abc, &cba));
        assert_eq!(hash(&abc, &bac), hash(&abc, &bac));

        let deep = |leaf: u8| format!("{}{leaf}{}", "[".repeat(500), "]".repeat(500));
        assert_ne!(hash(&deep(1), &deep(2)), hash(&deep(1), &deep(3)));
    }
}
