//! Every part of a review that has no fixed length: twice as much of it may take twice as long, and no more.

use serde_json::{Map, Value, json};

use crate::fuzz::{growth, reviews};

/// A part of an object, with so many items; those of the new object in another order, and each with another value.
struct Dimension {
    name: &'static str,
    put: fn(&mut Value, usize, bool),
}

const DIMENSIONS: &[Dimension] = &[
    Dimension {
        name: "annotations",
        put: |object, items, new| object["metadata"]["annotations"] = map(items, new, |key| key, text),
    },
    Dimension {
        name: "annotations that are equal",
        put: |object, items, _| object["metadata"]["annotations"] = map(items, false, |key| key, text),
    },
    Dimension {
        name: "annotations with our prefix",
        put: |object, items, new| {
            let key = |key| format!("kausality.io/{key}");
            object["metadata"]["annotations"] = map(items, new, key, text);
        },
    },
    Dimension {
        name: "labels for traces",
        put: |object, items, new| {
            let key = |key| format!("kausality.io/trace-{key}");
            object["metadata"]["annotations"] = map(items, new, key, text);
        },
    },
    Dimension {
        name: "approvals",
        put: |object, items, new| {
            let entry = |n: usize| json!({"apiVersion": "v1", "kind": "Pod", "name": format!("p{n}"), "mode": "always"});
            let entries = list(items, new, entry).to_string();
            object["metadata"]["annotations"]["kausality.io/approvals"] = entries.into();
        },
    },
    Dimension {
        name: "rejections that are empty",
        put: |object, items, _| {
            let entries = list(items, false, |_| json!({})).to_string();
            object["metadata"]["annotations"]["kausality.io/rejections"] = entries.into();
        },
    },
    Dimension {
        name: "labels",
        put: |object, items, new| object["metadata"]["labels"] = map(items, new, |key| key, text),
    },
    Dimension {
        name: "managed fields",
        put: |object, items, new| {
            let entry = |n: usize| {
                json!({"manager": format!("m{n}"), "operation": "Apply", "apiVersion": "apps/v1",
                    "time": "2026-01-24T10:30:00Z", "fieldsType": "FieldsV1", "fieldsV1": {
                        "f:metadata": {"f:finalizers": {}, "f:annotations": {"f:kausality.io/mode": {}},
                            "f:ownerReferences": {"k:{\"uid\":\"u\"}": {}}},
                        "f:spec": {"f:replicas": {}}, "f:status": {"f:conditions": {}}}})
            };
            object["metadata"]["managedFields"] = list(items, new, entry);
            object["metadata"]["annotations"]["kausality.io/mode"] = "log".into();
        },
    },
    Dimension {
        name: "fields of one manager",
        put: |object, items, new| {
            let fields = map(items, new, |key| format!("f:{key}"), |_, _| json!({}));
            object["metadata"]["managedFields"] = json!([{"manager": "m", "operation": "Update", "apiVersion": "apps/v1",
                "time": "2026-01-24T10:30:00Z", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": fields}}]);
        },
    },
    Dimension {
        name: "owner references",
        put: |object, items, new| {
            let owner = |n: usize| json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": format!("d{n}"), "uid": format!("u{n}")});
            object["metadata"]["ownerReferences"] = list(items, new, owner);
        },
    },
    Dimension {
        name: "finalizers",
        put: |object, items, new| {
            object["metadata"]["finalizers"] = list(items, new, |n| format!("example.com/{n}").into());
        },
    },
    Dimension {
        name: "a map",
        put: |object, items, new| object["spec"]["map"] = map(items, new, |key| key, text),
    },
    Dimension {
        name: "a list of names",
        put: |object, items, new| object["spec"]["list"] = list(items, new, |n| format!("n{n}").into()),
    },
    Dimension {
        name: "a list with keys",
        put: |object, items, new| {
            let item = |n: usize| json!({"name": format!("n{n}"), "value": if new { n + 1 } else { n }});
            object["spec"]["containers"] = list(items, new, item);
        },
    },
    Dimension {
        name: "a list without keys",
        put: |object, items, new| {
            let item = |n: usize| json!({"a": n % 7, "b": if new { n + 1 } else { n }});
            object["spec"]["items"] = list(items, new, item);
        },
    },
    Dimension {
        name: "a list of items with the same key",
        put: |object, items, new| {
            let item = |n: usize| json!({"name": "n", "value": if new { n + 1 } else { n }});
            object["spec"]["containers"] = list(items, new, item);
        },
    },
    Dimension {
        name: "conditions",
        put: |object, items, new| {
            let item = |n: usize| json!({"type": format!("T{n}"), "status": "True", "observedGeneration": n});
            object["status"]["conditions"] = list(items, new, item);
        },
    },
];

fn text(number: usize, new: bool) -> Value {
    format!("{new}{number}").into()
}

/// So many entries. JSON text keeps their order: an attacker need not sort.
fn map(
    items: usize,
    new: bool,
    key: impl Fn(String) -> String,
    value: impl Fn(usize, bool) -> Value,
) -> Value {
    Value::Object(
        (0..items).map(|n| (key(format!("k{n:07}")), value(n, new))).collect::<Map<String, Value>>(),
    )
}

fn list(items: usize, new: bool, item: impl Fn(usize) -> Value) -> Value {
    let numbers: Box<dyn Iterator<Item = usize>> =
        if new { Box::new((0..items).rev()) } else { Box::new(0..items) };
    Value::Array(numbers.map(item).collect())
}

/// An update of a child that differs in the dimension, and in its replicas.
fn review(dimension: &Dimension, items: usize, sub_resource: &str) -> Vec<u8> {
    let object = |new: bool| {
        let mut object = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "web-1",
                "namespace": "default", "uid": "c", "generation": 3, "resourceVersion": "7", "ownerReferences": [{
                    "apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "u", "controller": true}],
                "annotations": {}},
            "spec": {"replicas": if new { 2 } else { 1 }},
            "status": {"observedGeneration": 3}});
        (dimension.put)(&mut object, items, new);
        object
    };
    let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "1", "operation": "UPDATE", "namespace": "default", "name": "web-1", "subResource": sub_resource,
        "kind": {"group": "apps", "version": "v1", "kind": "ReplicaSet"},
        "resource": {"group": "apps", "version": "v1", "resource": "replicasets"},
        "userInfo": {"username": "system:serviceaccount:kube-system:deployment-controller"},
        "oldObject": object(false), "object": object(true)}});
    review.to_string().into_bytes()
}

#[test]
fn no_part_of_a_review_takes_more_time_than_its_length_explains() {
    for dimension in DIMENSIONS {
        for sub_resource in ["", "status"] {
            let input = |items: usize| review(dimension, items, sub_resource);
            let found = growth::is_superlinear(&input, 400, &reviews::run);
            assert_eq!(found, None, "{} {sub_resource}", dimension.name);
        }
    }
}
