//! A parent and a drift of its child, for tests.

use kausality_core::{Summary, review::Object};
use serde_json::{Value, json};

use super::Entry;

/// A Garden of generation 5 that wants roses, with these annotations.
pub(crate) fn garden(annotations: &Value) -> Summary {
    parent(annotations, &json!({"flowers": "roses"}))
}

/// A Garden that wants something else.
pub(crate) fn parent(annotations: &Value, spec: &Value) -> Summary {
    let garden = json!({"apiVersion": "garden.io/v1", "kind": "Garden", "spec": spec, "metadata": {
        "name": "south", "namespace": "park", "uid": "uid-south", "generation": 5, "annotations": annotations}});
    Summary::of(&Object::parse(&garden.to_string()).unwrap())
}

/// A drift of a Bed in it, with changes to what is given.
pub(crate) fn drift(changes: &Value) -> Entry {
    let intent = garden(&json!({})).intent.to_string();
    let mut object = json!({
        "apiVersion": "kausality.io/v1alpha1", "kind": "Drift",
        "metadata": {"name": "e675380dcb6f9bf1", "namespace": "park"},
        "spec": {
            "id": "e675380dcb6f9bf1", "parentIntent": intent, "diff": "d1ff",
            "parent": {"apiVersion": "garden.io/v1", "kind": "Garden", "namespace": "park", "name": "south",
                "uid": "uid-south", "generation": 5, "observedGeneration": 5, "controllerManager": "gardener",
                "lifecyclePhase": "Initialized"},
            "child": {"apiVersion": "garden.io/v1", "kind": "Bed", "namespace": "park", "name": "south-1",
                "uid": "uid-south-1", "generation": 2},
            "request": {"user": "system:serviceaccount:garden:gardener", "uid": "r", "operation": "UPDATE",
                "fieldManager": "gardener"},
            "changes": [{"path": "spec.flowers", "old": "\"roses\"", "new": "\"thistles\"",
                "oldOwner": "kubectl", "newOwner": "gardener"}],
            "trace": [{"apiVersion": "garden.io/v1", "kind": "Garden", "name": "south", "generation": 5,
                "user": "alice", "timestamp": "2026-01-24T09:00:00Z", "labels": {"ticket": "OPS-7"}}],
            "summary": {"parent": "Garden/south", "child": "Bed/south-1", "actor": "garden:gardener",
                "change": "spec.flowers: \"roses\" → \"thistles\""},
        },
        "status": {"state": "Blocked", "count": 3, "firstSeen": "2026-01-25T11:00:00Z", "countedAt": "2026-01-25T11:00:00Z",
            "lastSeen": "2026-01-25T11:59:00Z"},
    });
    json_patch::merge(&mut object, changes);
    let drift = serde_json::from_value(object.clone()).unwrap();
    Entry { drift, object }
}

/// When it is, in tests.
pub(crate) fn noon() -> jiff::Timestamp {
    "2026-01-25T12:00:00Z".parse().unwrap()
}
