//! The request of a drift, as far as the ledger has it.

use kausality_api::drift::DriftSpec;
use serde_json::{Value, json};

/// An AdmissionReview like the one in which a drift was first seen; none, if the ledger does not hold the objects.
pub(crate) fn review(drift: &DriftSpec) -> Option<Value> {
    let child = &drift.child;
    // Of a `scale`, the ledger holds the Scale: rules are held against the object behind it.
    let object = |object: &Option<Value>| {
        let mut object = object.clone()?;
        let fields = object.as_object_mut()?;
        fields.insert("apiVersion".to_owned(), child.api_version.as_str().into());
        fields.insert("kind".to_owned(), child.kind.as_str().into());
        Some(object)
    };
    let (new, old) = match drift.request.operation.as_str() {
        "CREATE" => (object(&drift.new_object)?, Value::Null),
        "DELETE" => (Value::Null, object(&drift.new_object)?),
        _ => (object(&drift.new_object)?, object(&drift.old_object)?),
    };
    let (group, version) = child.api_version.split_once('/').unwrap_or(("", &child.api_version));
    Some(json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": drift.request.uid,
        "kind": {"group": group, "version": version, "kind": child.kind},
        "resource": {"group": group, "version": version, "resource": ""},
        "name": child.name,
        "namespace": child.namespace,
        "operation": drift.request.operation,
        "userInfo": {"username": drift.request.user, "groups": drift.request.groups},
        "object": new,
        "oldObject": old,
    }}))
}
