//! The kinds that programs are about, and random objects of them.

use serde_json::{Value, json};

use crate::differential::content::{
    config_map, cron_job, cron_status, daemon_set, daemon_status, deployment, free, job, job_status, lease,
    namespace, pdb, pdb_status, phase, pod, pod_status, replica_set, role, secret, service, service_account,
    service_status, some, stateful_set, widget, widget_status, workload_status,
};
use crate::differential::random::Random;

/// A kind, and what objects of it may have.
pub(crate) struct Kind {
    pub(crate) api: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) plural: &'static str,
    pub(crate) namespaced: bool,
    pub(crate) status: Option<fn(&mut Random) -> Value>,
    /// All but kind and metadata.
    content: fn(&mut Random) -> Value,
}

impl Kind {
    /// Where objects are created.
    pub(crate) fn collection(&self) -> String {
        let root = if self.api.contains('/') { "/apis" } else { "/api" };
        let namespace = if self.namespaced { "/namespaces/$ns" } else { "" };
        format!("{root}/{}{namespace}/{}", self.api, self.plural)
    }

    pub(crate) fn object(&self, name: &str) -> String {
        format!("{}/{}", self.collection(), self.name(name))
    }

    /// Names of what lives in no namespace must be the program's own.
    pub(crate) fn name(&self, name: &str) -> String {
        if self.namespaced { name.to_owned() } else { format!("$ns-{name}") }
    }

    /// A valid object, or nearly so.
    pub(crate) fn generate(&self, random: &mut Random, name: &str) -> Value {
        let mut object = (self.content)(random);
        object["apiVersion"] = self.api.into();
        object["kind"] = self.kind.into();
        object["metadata"] = metadata(random);
        object["metadata"]["name"] = self.name(name).into();
        object
    }
}

const GROUP: &str = "dif.example.com";

pub(crate) const KINDS: [Kind; 18] = [
    plain("v1", "ConfigMap", "configmaps", config_map),
    plain("v1", "Secret", "secrets", secret),
    plain("v1", "ServiceAccount", "serviceaccounts", service_account),
    Kind { status: Some(service_status), ..plain("v1", "Service", "services", service) },
    Kind { status: Some(pod_status), ..plain("v1", "Pod", "pods", pod) },
    Kind { namespaced: false, status: Some(phase), ..plain("v1", "Namespace", "namespaces", namespace) },
    Kind { status: Some(workload_status), ..plain("apps/v1", "Deployment", "deployments", deployment) },
    Kind { status: Some(workload_status), ..plain("apps/v1", "ReplicaSet", "replicasets", replica_set) },
    Kind { status: Some(workload_status), ..plain("apps/v1", "StatefulSet", "statefulsets", stateful_set) },
    Kind { status: Some(daemon_status), ..plain("apps/v1", "DaemonSet", "daemonsets", daemon_set) },
    Kind { status: Some(job_status), ..plain("batch/v1", "Job", "jobs", job) },
    Kind { status: Some(cron_status), ..plain("batch/v1", "CronJob", "cronjobs", cron_job) },
    Kind {
        status: Some(pdb_status),
        ..plain("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets", pdb)
    },
    plain("rbac.authorization.k8s.io/v1", "Role", "roles", role),
    plain("coordination.k8s.io/v1", "Lease", "leases", lease),
    Kind { status: Some(widget_status), ..plain("dif.example.com/v1", "Widget", "widgets", widget) },
    plain("dif.example.com/v1", "Gadget", "gadgets", widget),
    Kind { namespaced: false, ..plain("dif.example.com/v1", "Free", "frees", free) },
];

const fn plain(
    api: &'static str,
    kind: &'static str,
    plural: &'static str,
    content: fn(&mut Random) -> Value,
) -> Kind {
    Kind { api, kind, plural, namespaced: true, status: None, content }
}

/// The definitions of our own kinds.
pub(crate) fn definitions() -> Vec<Value> {
    let widget = widget_schema();
    let subresources = json!({"status": {}, "scale": {"specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas", "labelSelectorPath": ".status.selector"}});
    let free = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
        "spec": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
            "properties": {"known": {"type": "object", "properties": {"a": {"type": "string"}}}}}}});
    vec![
        definition("Widget", "widgets", "Namespaced", &widget, &subresources),
        definition("Gadget", "gadgets", "Namespaced", &widget, &Value::Null),
        definition("Free", "frees", "Cluster", &free, &Value::Null),
    ]
}

fn definition(kind: &str, plural: &str, scope: &str, schema: &Value, subresources: &Value) -> Value {
    let mut version =
        json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
    if !subresources.is_null() {
        version["subresources"] = subresources.clone();
    }
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{GROUP}")},
        "spec": {"group": GROUP, "scope": scope, "names": {"kind": kind, "plural": plural}, "versions": [version]}})
}

fn widget_schema() -> Value {
    let port = json!({"type": "object", "required": ["number"], "properties": {
        "number": {"type": "integer", "format": "int32", "minimum": 1, "maximum": 65535},
        "protocol": {"type": "string", "default": "TCP", "enum": ["TCP", "UDP"]},
        "note": {"type": "string", "nullable": true}}});
    json!({"type": "object", "required": ["spec"], "properties": {
        "spec": {"type": "object", "required": ["size"], "properties": {
            "size": {"type": "integer", "minimum": 0, "exclusiveMaximum": true, "maximum": 100},
            "replicas": {"type": "integer", "format": "int32", "default": 1},
            "ratio": {"type": "number", "multipleOf": 0.5},
            "colour": {"type": "string", "default": "red", "enum": ["red", "green", "blue"]},
            "title": {"type": "string", "pattern": "^[a-z]+$", "minLength": 2, "maxLength": 8},
            "when": {"type": "string", "format": "date-time"},
            "day": {"type": "string", "format": "date"},
            "host": {"type": "string", "format": "ipv4"},
            "link": {"type": "string", "format": "uri"},
            "limit": {"x-kubernetes-int-or-string": true},
            "on": {"type": "boolean", "default": true},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            "map": {"type": "object", "maxProperties": 3, "additionalProperties": {"type": "integer"}},
            "ports": {"type": "array", "maxItems": 3, "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["number", "protocol"], "items": port},
            "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "words": {"type": "array", "minItems": 1, "items": {"type": "string", "maxLength": 5}},
            "choice": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
                "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
            "some": {"type": "integer", "anyOf": [{"minimum": 10}, {"maximum": 2}]},
            "no": {"type": "string", "not": {"enum": ["never"]}},
            "all": {"type": "integer", "allOf": [{"minimum": 1}, {"maximum": 5}]},
            "nested": {"type": "object", "default": {}, "properties": {
                "depth": {"type": "integer", "default": 3}, "maybe": {"type": "string", "nullable": true}}},
            "atom": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {
                "x": {"type": "integer"}, "y": {"type": "integer"}}}}},
        "status": {"type": "object", "properties": {
            "replicas": {"type": "integer"}, "selector": {"type": "string"},
            "phase": {"type": "string", "enum": ["Good", "Bad"]}}}}})
}

fn metadata(random: &mut Random) -> Value {
    let finalizer = *random.pick(&["example.com/hold", "example.com/other", "foregroundDeletion"]);
    let fields = vec![
        ("labels", labels(random)),
        ("annotations", json!({"note": random.pick(&["x", "", "many words"]), "b": "c"})),
    ];
    let mut metadata = some(fields, random, 40);
    if random.chance(12) {
        metadata["finalizers"] = json!([finalizer]);
    }
    if random.chance(5) {
        metadata["ownerReferences"] = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner",
            "uid": "11111111-1111-1111-1111-111111111111", "controller": random.chance(50)}]);
    }
    metadata
}

fn labels(random: &mut Random) -> Value {
    let value = *random.pick(&["a", "b", "", "A_b.c"]);
    some(vec![("app", value.into()), ("example.com/tier", "db".into()), ("x", "y".into())], random, 60)
}
