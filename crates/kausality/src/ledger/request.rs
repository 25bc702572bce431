//! The request of a drift, as far as the ledger has it.

use kausality_api::drift::DriftSpec;
use serde_json::{Value, json};

/// The object and the old object of the request, if the ledger has them.
pub(crate) fn objects(drift: &DriftSpec) -> Option<(Value, Value)> {
    let new = drift.new_object.clone().map(|object| named(object, drift))?;
    match drift.request.operation.as_str() {
        "CREATE" => Some((new, Value::Null)),
        "DELETE" => Some((Value::Null, new)),
        _ => Some((new, named(drift.old_object.clone()?, drift))),
    }
}

/// Of what was scaled, the ledger holds the Scale; rules are about the object behind it.
fn named(mut object: Value, drift: &DriftSpec) -> Value {
    if let Some(fields) = object.as_object_mut() {
        fields.insert("apiVersion".to_owned(), drift.child.api_version.as_str().into());
        fields.insert("kind".to_owned(), drift.child.kind.as_str().into());
    }
    object
}

/// The request of a drift, as far as the ledger has it: of objects that it lacks, the names alone.
pub(crate) fn review(drift: &DriftSpec) -> Value {
    let child = &drift.child;
    let stub = || named(json!({"metadata": {"name": child.name, "namespace": child.namespace}}), drift);
    let (object, old_object) = objects(drift).unwrap_or_else(|| (stub(), stub()));
    let (group, version) = child.api_version.split_once('/').unwrap_or(("", &child.api_version));
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": drift.request.uid,
        "kind": {"group": group, "version": version, "kind": child.kind},
        "resource": {"group": group, "version": version, "resource": ""},
        "name": child.name,
        "namespace": child.namespace,
        "operation": drift.request.operation,
        "userInfo": {"username": drift.request.user, "groups": drift.request.groups},
        "object": object,
        "oldObject": old_object,
    }})
}
