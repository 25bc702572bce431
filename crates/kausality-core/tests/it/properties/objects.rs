//! From plans to objects: what the API server would send, and what it would have stored.

use kausality_api::{
    annotation::{CONTROLLERS, PHASE, SETTLED, TRACE, UPDATERS},
    identity::UserHash,
};
use kausality_core::{Settings, intent::IntentHash, review::Object};
use serde_json::{Value, json};

use crate::properties::{
    sample::{ours, set},
    world::{CHILD, GENERATION},
};

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    Create,
    CreateGenerated,
    Update,
    Metadata,
    Status,
    Scale,
    ScaleSame,
    Delete,
    Evict,
    Connect,
}

/// A kind: apiVersion, kind, resource, and the field that holds its intent.
pub(crate) type Kind = (&'static str, &'static str, &'static str, &'static str);

/// What a client makes of the annotations that it read.
#[derive(Clone, Debug)]
pub(crate) enum Edit {
    Keep,
    /// As a client does that builds the object anew.
    Strip,
    /// As deployment-controller does.
    CopyOfParent,
    Set(Vec<(String, String)>),
    Foreign(String),
    Null,
}

/// How far a parent has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Marked,
    Steady,
    Busy,
    Initializing,
    Unobserved,
    StaleMark,
    Deleting,
}

#[derive(Clone, Debug)]
pub(crate) struct Child {
    pub kind: Kind,
    pub old: i64,
    pub new: i64,
    pub updaters: Vec<&'static str>,
    pub stored: Vec<(String, String)>,
    pub edit: Edit,
    pub owned: bool,
    pub deleting: bool,
    pub generation: Option<i64>,
    pub status: Value,
}

#[derive(Clone, Debug)]
pub(crate) struct ParentPlan {
    pub kind: Kind,
    pub state: State,
    pub replicas: i64,
    pub partition: i64,
    pub controllers: Vec<&'static str>,
    pub manager: Option<&'static str>,
    pub generation: Option<i64>,
    pub annotations: Vec<(String, String)>,
    pub trace: Option<String>,
}

#[derive(Clone, Debug)]
pub(crate) struct Client {
    pub act: Act,
    pub user: &'static str,
    pub manager: Option<&'static str>,
    pub dry_run: Option<bool>,
    pub conflict: bool,
}

fn hashes(users: &[&str]) -> Option<String> {
    let hashes: Vec<_> = users.iter().map(|user| UserHash::of(user, "").to_string()).collect();
    (!hashes.is_empty()).then(|| hashes.join(","))
}

fn owned_fields(manager: &str, subresource: &str, time: &str) -> Value {
    json!({
        "manager": manager, "operation": "Update", "subresource": subresource, "time": time,
        "fieldsType": "FieldsV1", "fieldsV1": {"f:status": {"f:observedGeneration": {}}},
    })
}

pub(crate) fn parent_object(plan: &ParentPlan) -> Value {
    let (api_version, kind, ..) = plan.kind;
    let ParentPlan { replicas, partition, state, .. } = plan;
    let observed = match state {
        State::Steady => plan.generation,
        State::Unobserved => None,
        _ => Some(GENERATION - 1),
    };
    let done = *state == State::Steady;
    let mut object = json!({
        "apiVersion": api_version, "kind": kind,
        "metadata": {
            "name": "web", "namespace": "shop", "uid": "parent-uid", "resourceVersion": "100",
            "generation": plan.generation, "annotations": {},
        },
        "spec": {
            "replicas": replicas,
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}},
        },
        "status": {
            "observedGeneration": observed, "replicas": replicas, "readyReplicas": replicas,
            "updatedReplicas": replicas, "availableReplicas": replicas, "fullyLabeledReplicas": replicas,
            "currentRevision": "1", "updateRevision": if done { "1" } else { "2" },
            "conditions": [
                {"type": "Progressing", "status": "True", "reason": if done { "NewReplicaSetAvailable" } else { "" }},
            ],
        },
    });
    if *state == State::Deleting {
        object["metadata"]["deletionTimestamp"] = json!("2026-01-24T10:00:00Z");
    }
    if let Some(manager) = plan.manager {
        object["metadata"]["managedFields"] =
            json!([owned_fields(manager, "status", "2026-01-01T00:00:00Z")]);
    }
    for (key, value) in &plan.annotations {
        set(&mut object, key, Some(value));
    }
    if let Some(controllers) = hashes(&plan.controllers) {
        set(&mut object, CONTROLLERS, Some(&controllers));
    }
    if matches!(state, State::Marked | State::Busy | State::Unobserved | State::StaleMark) {
        set(&mut object, PHASE, Some("initialized"));
    }
    if *state == State::Marked {
        let text = object.to_string();
        let hash = IntentHash::of(&Object::parse(&text).unwrap().intent).to_string();
        set(&mut object, SETTLED, Some(&hash));
    }
    if *state == State::StaleMark {
        set(&mut object, SETTLED, Some("0123456789abcdef"));
    }
    if let Some(trace) = &plan.trace {
        set(&mut object, TRACE, Some(trace));
    }
    object
}

/// The child as it is stored, at one of its intents.
pub(crate) fn object(child: &Child, parent: &ParentPlan, intent: i64) -> Value {
    let (api_version, kind, _, field) = child.kind;
    let mut object = json!({
        "apiVersion": api_version, "kind": kind,
        "metadata": {
            "name": CHILD, "namespace": "shop", "uid": "child-uid", "resourceVersion": "50",
            "generation": child.generation, "labels": {"app": "web"},
        },
    });
    if child.owned {
        object["metadata"]["ownerReferences"] = json!([
            {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "n"},
            {"apiVersion": parent.kind.0, "kind": parent.kind.1, "name": "web", "uid": "parent-uid", "controller": true},
        ]);
    }
    if child.deleting {
        object["metadata"]["deletionTimestamp"] = json!("2026-01-24T10:00:00Z");
    }
    match field {
        "" => {}
        "data" => object["data"] = json!({"password": secret(intent)}),
        "rules" => object["rules"] = json!([{"verbs": ["get"], "resources": [format!("r{intent}")]}]),
        _ => object["spec"] = json!({"replicas": intent, "template": {"image": format!("web:{intent}")}}),
    }
    if !child.status.is_null() {
        object["status"] = child.status.clone();
    }
    for (key, value) in &child.stored {
        set(&mut object, key, Some(value));
    }
    if let Some(updaters) = hashes(&child.updaters) {
        set(&mut object, UPDATERS, Some(&updaters));
    }
    if kind == "Secret" {
        let copy = json!({"data": {"password": secret(intent)}}).to_string();
        set(&mut object, "kubectl.kubernetes.io/last-applied-configuration", Some(&copy));
    }
    object
}

/// What every value of a generated Secret has in it.
pub(crate) const SECRET: &str = "c3VwZXJzZWNyZXQ";

fn secret(intent: i64) -> String {
    format!("{SECRET}{intent}")
}

fn edited(mut object: Value, edit: &Edit, parent: &Value) -> Value {
    match edit {
        Edit::Keep => {}
        Edit::Strip => object["metadata"]["annotations"] = json!({}),
        Edit::Null => object["metadata"]["annotations"] = Value::Null,
        Edit::Foreign(value) => {
            for key in ["example.com/note", "kausality.io/note"] {
                set(&mut object, key, Some(value));
            }
        }
        Edit::CopyOfParent => {
            for (key, value) in ours(parent) {
                set(&mut object, &key, Some(&value));
            }
        }
        Edit::Set(annotations) => {
            for (key, value) in annotations {
                set(&mut object, key, Some(value));
            }
        }
    }
    object
}

pub(crate) fn request(client: &Client, child: &Child, plan: &ParentPlan, parent: &Value) -> Value {
    let (api_version, kind, resource, field) = child.kind;
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let changed = if field.is_empty() || child.new == child.old { child.old + 1 } else { child.new };
    let old = object(child, plan, child.old);
    let scale = |replicas: i64| {
        json!({
            "apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"replicas": replicas},
            "metadata": {"name": CHILD, "namespace": "shop", "uid": "child-uid", "resourceVersion": "50"},
        })
    };
    let create = || {
        let mut object = edited(object(child, plan, child.new), &child.edit, parent);
        for field in ["uid", "resourceVersion", "generation", "deletionTimestamp"] {
            object["metadata"].as_object_mut().unwrap().remove(field);
        }
        if client.act == Act::CreateGenerated {
            object["metadata"].as_object_mut().unwrap().remove("name");
            object["metadata"]["generateName"] = json!("web-");
        }
        object
    };
    let with_status = || {
        let mut object = edited(object(child, plan, child.new), &child.edit, parent);
        object["status"] = json!({"observedGeneration": child.new + 2, "replicas": child.old});
        object
    };
    let (operation, subresource, old, new) = match client.act {
        Act::Create | Act::CreateGenerated => ("CREATE", "", Value::Null, create()),
        Act::Update => ("UPDATE", "", old, edited(object(child, plan, changed), &child.edit, parent)),
        Act::Metadata => ("UPDATE", "", old.clone(), edited(old, &child.edit, parent)),
        Act::Status => ("UPDATE", "status", old, with_status()),
        Act::Scale => ("UPDATE", "scale", scale(child.old), scale(child.old + 1)),
        Act::ScaleSame => ("UPDATE", "scale", scale(child.old), scale(child.old)),
        Act::Delete => ("DELETE", "", old, Value::Null),
        Act::Evict => ("CREATE", "eviction", Value::Null, create()),
        Act::Connect => ("CONNECT", "exec", Value::Null, json!({"kind": "PodExecOptions"})),
    };
    let mut request = json!({
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002", "operation": operation, "subResource": subresource,
        "kind": {"group": group, "version": version, "kind": kind},
        "resource": {"group": group, "version": version, "resource": resource},
        "namespace": "shop", "name": CHILD, "object": new, "oldObject": old,
        "userInfo": {"username": client.user, "uid": "user-uid", "groups": ["system:authenticated"]},
        "dryRun": client.dry_run, "options": {"fieldManager": client.manager},
    });
    if client.conflict && !request["object"].is_null() {
        request["object"]["metadata"]["resourceVersion"] = json!("49");
    }
    if client.manager.is_none() && client.act == Act::Update {
        let entry = owned_fields("kube-controller-manager", "", "2026-01-24T10:30:00Z");
        request["object"]["metadata"]["managedFields"] = json!([entry]);
    }
    request
}

/// Puts the hash of the very change that is made where approvals and rejections of the parent ask for it.
pub(crate) fn with_diff(mut parent: Value, request: &Value, settings: &Settings) -> Value {
    let side = |name: &str| Some(&request[name]).filter(|object| object.is_object());
    let redaction = kausality_fields::Redaction::new(settings.salt.clone());
    let hash = kausality_fields::intent(side("oldObject"), side("object"), &redaction).hash();
    for (key, value) in ours(&parent) {
        if value.contains("$diff") {
            set(&mut parent, &key, Some(&value.replace("$diff", &hash)));
        }
    }
    parent
}
