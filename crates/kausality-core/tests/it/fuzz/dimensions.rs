//! Every part of a review that has no fixed length: twice as much of it may take twice as long, and no more.

use kausality_api::annotation::{Suffix, WRITERS};
use kausality_core::written::Written;
use serde_json::{Map, Value, json};

use crate::fuzz::{growth, reviews};

/// How many items there are at first.
const ITEMS: usize = 400;

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
        name: "fields beside the spec",
        put: |object, items, new| {
            let fields = map(items, new, |key| key, text);
            object.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        },
    },
    Dimension {
        name: "fields beside the spec that are equal",
        put: |object, items, _| {
            let fields = map(items, false, |key| key, text);
            object.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        },
    },
    Dimension {
        name: "labels for traces, and who wrote them",
        put: |object, items, new| {
            let key = |key| format!("kausality.io/trace-{key}");
            let mut annotations = map(items, new, key, text);
            let record: Vec<String> = (0..items).map(|n| format!("trace-k{n:07}=p00000000")).collect();
            let suffix = Suffix::of_object(object);
            annotations[suffix.key(WRITERS)] = record.join(",").into();
            object["metadata"]["annotations"] = annotations;
        },
    },
    Dimension {
        name: "labels for traces, and their owners",
        put: |object, items, new| {
            let key = |key| format!("kausality.io/trace-{key}");
            object["metadata"]["annotations"] = map(items, new, key, text);
            let key = |key| format!("f:kausality.io/trace-{key}");
            let fields = json!({"f:metadata": {"f:annotations": map(items, new, key, |_, _| json!({}))}});
            object["metadata"]["managedFields"] = json!([{"manager": "m", "operation": "Update",
                "apiVersion": "apps/v1", "time": "2026-01-24T10:30:00Z", "fieldsType": "FieldsV1", "fieldsV1": fields}]);
        },
    },
    Dimension {
        name: "values of a Secret, and annotations",
        put: |object, items, new| {
            object["metadata"]["annotations"] = map(items, new, |key| key, text);
            object["stringData"] = map(items, new, |key| key, |n, new| format!("value {n} {new}").into());
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

/// What a review is about.
struct Shape {
    api_version: &'static str,
    kind: &'static str,
    resource: &'static str,
    sub_resource: &'static str,
    /// Whether the replicas change, beside what the dimension does.
    changes: bool,
}

/// Kinds by which rules tell apart what is asked for, each with a change of its own and without.
const SHAPES: &[Shape] = &[
    Shape {
        api_version: "apps/v1",
        kind: "ReplicaSet",
        resource: "replicasets",
        sub_resource: "",
        changes: true,
    },
    Shape {
        api_version: "apps/v1",
        kind: "ReplicaSet",
        resource: "replicasets",
        sub_resource: "status",
        changes: false,
    },
    Shape {
        api_version: "apps/v1",
        kind: "Deployment",
        resource: "deployments",
        sub_resource: "",
        changes: false,
    },
    Shape {
        api_version: "networking.k8s.io/v1",
        kind: "Ingress",
        resource: "ingresses",
        sub_resource: "",
        changes: false,
    },
    Shape { api_version: "v1", kind: "Secret", resource: "secrets", sub_resource: "", changes: true },
    Shape {
        api_version: "example.com/v1",
        kind: "Widget",
        resource: "widgets",
        sub_resource: "",
        changes: true,
    },
    Shape {
        api_version: "example.com/v1",
        kind: "Widget",
        resource: "widgets",
        sub_resource: "",
        changes: false,
    },
];

/// An update of a child that differs in the dimension.
fn review(put: fn(&mut Value, usize, bool), items: usize, shape: &Shape) -> Value {
    let Shape { api_version, kind, resource, sub_resource, changes } = shape;
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let object = |new: bool| {
        let mut object = json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "web-1",
                "namespace": "default", "uid": "c", "generation": 3, "resourceVersion": "7", "ownerReferences": [{
                    "apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "u", "controller": true}],
                "annotations": {}},
            "spec": {"replicas": if new && *changes { 2 } else { 1 }},
            "status": {"observedGeneration": 3}});
        put(&mut object, items, new);
        object
    };
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "1", "operation": "UPDATE", "namespace": "default", "name": "web-1", "subResource": sub_resource,
        "kind": {"group": group, "version": version, "kind": kind},
        "resource": {"group": group, "version": version, "resource": resource},
        "userInfo": {"username": "system:serviceaccount:kube-system:deployment-controller"},
        "oldObject": object(false), "object": object(true)}})
}

/// What takes more time than its length explains, if it does.
fn check(
    name: &str,
    items: usize,
    input: &dyn Fn(usize) -> Value,
    run: &dyn Fn(&[u8]) -> String,
) -> Option<String> {
    let input = |items: usize| input(items).to_string().into_bytes();
    growth::is_superlinear(&input, items, run).map(|found| format!("{name}: {found}\n"))
}

/// `KAUSALITY_DIMENSION=substring` measures those whose name contains it.
#[test]
fn no_part_of_a_review_takes_more_time_than_its_length_explains() {
    let (mut found, chosen) = (String::new(), std::env::var("KAUSALITY_DIMENSION").unwrap_or_default());
    for dimension in DIMENSIONS {
        for shape in SHAPES {
            let Shape { kind, sub_resource, changes, .. } = shape;
            let name = format!("{} of a {kind} {sub_resource} {changes}", dimension.name);
            if name.contains(&chosen) {
                let input = |items: usize| review(dimension.put, items, shape);
                found.extend(check(&name, ITEMS, &input, &reviews::run));
            }
        }
    }
    assert_eq!(found, "");
}

#[test]
fn groups_of_a_user_take_no_more_time_than_their_length_explains() {
    let input = |items: usize| {
        let mut review = review(|_, _, _| {}, 0, &SHAPES[0]);
        review["request"]["userInfo"]["groups"] = list(items, false, |n| format!("g{n}").into());
        review
    };
    assert_eq!(check("groups", ITEMS, &input, &reviews::run), None);
}

/// A policy that a controller writes anew.
fn policy(put: &dyn Fn(&mut Value)) -> Value {
    let policy = |action: &str| {
        let mut policy = json!({"apiVersion": "kausality.io/v1alpha1", "kind": "ClusterApprovalPolicy",
            "metadata": {"name": "p"}, "spec": {"rules": [{"action": action, "apiVersion": "v1", "kind": "Pod",
                "match": {"cel": "object.metadata.name.startsWith('a')"},
                "subjects": [{"kind": "Group", "name": "nobody"}]}]}});
        put(&mut policy);
        policy
    };
    json!({"request": {"uid": "1", "userInfo": {"username": "system:serviceaccount:a:b"},
        "oldObject": policy("deny"), "object": policy("allow")}})
}

#[test]
fn no_part_of_a_policy_takes_more_time_than_its_length_explains() {
    let run = |input: &[u8]| format!("{:?}", Written::parse(input).map(|written| written.fault()).ok());
    let rules = |items: usize| {
        policy(&|policy| {
            let rule = policy["spec"]["rules"][0].clone();
            policy["spec"]["rules"] = list(items, false, |n| {
                let mut rule = rule.clone();
                rule["name"] = format!("n{n}").into();
                rule
            });
        })
    };
    assert_eq!(check("rules", 8, &rules, &run), None);
    let subjects = |items: usize| {
        policy(&|policy| {
            let subject = |n: usize| json!({"kind": "Group", "name": format!("g{n}")});
            policy["spec"]["rules"][0]["subjects"] = list(items, false, subject);
        })
    };
    assert_eq!(check("subjects", ITEMS, &subjects, &run), None);
    let groups = |items: usize| {
        let mut review = subjects(items);
        review["request"]["userInfo"]["groups"] = list(items, false, |n| format!("h{n}").into());
        review
    };
    assert_eq!(check("groups and subjects", ITEMS, &groups, &run), None);
    let fields = |items: usize| {
        policy(&|policy| {
            policy["spec"]["rules"][0]["match"]["fields"] =
                list(items, false, |n| format!("spec.f{n}").into());
        })
    };
    assert_eq!(check("fields", ITEMS, &fields, &run), None);
}
