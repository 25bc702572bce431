//! Requests and facts, generated so that what matters happens often.

use jiff::Timestamp;
use kausality_api::{
    annotation::{CONTROLLERS, PHASE, SETTLED, TRACE, UPDATERS},
    identity::UserHash,
    mode::Mode,
    policy::Kausality,
};
use kausality_core::{Exception, Namespace, Settings, intent::IntentHash, policy::Policies, review::Object};
use proptest::{collection::vec, option, prelude::*, sample::select};
use serde_json::{Value, json};

use crate::{
    sample::{Kin, Sample, ours, set},
    texts,
};

/// The name of the object that requests are about.
pub(crate) const CHILD: &str = "web-5d9";
/// The parent's generation, mostly.
pub(crate) const GENERATION: i64 = 4;
/// The controller, another one, people, the garbage collector, Kausality itself.
pub(crate) const USERS: [&str; 6] = [
    "system:serviceaccount:kube-system:deployment-controller",
    "system:serviceaccount:infra:gadget-controller",
    "alice@example.com",
    "bob",
    "system:serviceaccount:kube-system:generic-garbage-collector",
    OWN,
];
const OWN: &str = "system:serviceaccount:kausality:kausality";

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
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
type Kind = (&'static str, &'static str, &'static str, &'static str);

const CHILDREN: [Kind; 8] = [
    ("apps/v1", "ReplicaSet", "replicasets", "spec"),
    ("apps/v1", "Deployment", "deployments", "spec"),
    ("v1", "Pod", "pods", "spec"),
    ("v1", "ConfigMap", "configmaps", "data"),
    ("v1", "Secret", "secrets", "data"),
    ("rbac.authorization.k8s.io/v1", "Role", "roles", "rules"),
    ("example.com/v1alpha1", "NodePool", "nodepools", "spec"),
    ("example.com/v1alpha1", "Bare", "bares", ""),
];

const PARENTS: [Kind; 6] = [
    ("apps/v1", "Deployment", "deployments", "spec"),
    ("apps/v1", "StatefulSet", "statefulsets", "spec"),
    ("apps/v1", "ReplicaSet", "replicasets", "spec"),
    ("apps/v1", "DaemonSet", "daemonsets", "spec"),
    ("batch/v1", "CronJob", "cronjobs", "spec"),
    ("example.com/v1alpha1", "Cluster", "clusters", "spec"),
];

/// What a client makes of the annotations that it read.
#[derive(Clone, Debug)]
enum Edit {
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
enum State {
    Marked,
    Steady,
    Busy,
    Initializing,
    Unobserved,
    StaleMark,
    Deleting,
}

#[derive(Clone, Debug)]
struct Child {
    kind: Kind,
    old: i64,
    new: i64,
    updaters: Vec<&'static str>,
    stored: Vec<(String, String)>,
    edit: Edit,
    owned: bool,
    deleting: bool,
    generation: Option<i64>,
    status: Value,
}

#[derive(Clone, Debug)]
struct ParentPlan {
    kind: Kind,
    state: State,
    replicas: i64,
    partition: i64,
    controllers: Vec<&'static str>,
    manager: Option<&'static str>,
    generation: Option<i64>,
    annotations: Vec<(String, String)>,
    trace: Option<String>,
}

#[derive(Clone, Debug)]
struct Client {
    act: Act,
    user: &'static str,
    manager: Option<&'static str>,
    dry_run: Option<bool>,
    conflict: bool,
}

/// A request with the facts about it.
pub(crate) fn sample() -> BoxedStrategy<Sample> {
    let kin = prop_oneof![
        16 => Just(0), 1 => Just(1), 1 => Just(2), 1 => Just(3),
    ];
    (client(), child(), parent(), kin, scaled(), namespace(), settings(), exception(), now())
        .prop_map(|(client, child, parent, kin, scaled, namespace, settings, exception, now)| {
            let resource = parent.kind.2.to_owned();
            let above = parent_object(&parent);
            let request = request(&client, &child, &parent, &above);
            let behind = scaled.map(|readable| match readable {
                true => Ok(object(&child, &parent, child.old)),
                false => Err("connection refused".to_owned()),
            });
            let above = with_diff(above, &request, &settings);
            let parent = match kin {
                0 => Kin::Found { object: above, resource },
                1 => Kin::None,
                2 => Kin::Gone,
                _ => Kin::Unreadable("connection refused".to_owned()),
            };
            Sample { request, parent, scaled: behind, namespace, settings, exception, now }
        })
        .boxed()
}

fn client() -> BoxedStrategy<Client> {
    let act = prop_oneof![
        4 => Just(Act::Create), 2 => Just(Act::CreateGenerated), 10 => Just(Act::Update),
        5 => Just(Act::Metadata), 3 => Just(Act::Status), 2 => Just(Act::Scale),
        1 => Just(Act::ScaleSame), 3 => Just(Act::Delete), 1 => Just(Act::Evict), 1 => Just(Act::Connect),
    ];
    let user = prop_oneof![14 => Just(USERS[0]), 6 => select(USERS.to_vec()), 1 => Just("")];
    let manager = select(vec![None, Some("kube-controller-manager"), Some("kubectl")]);
    let dry_run = prop_oneof![3 => Just(None), 6 => Just(Some(false)), 1 => Just(Some(true))];
    (act, user, manager, dry_run, proptest::bool::weighted(0.05))
        .prop_map(|(act, user, manager, dry_run, conflict)| Client { act, user, manager, dry_run, conflict })
        .boxed()
}

fn child() -> BoxedStrategy<Child> {
    let kind = prop_oneof![4 => Just(CHILDREN[0]), 6 => select(CHILDREN.to_vec())];
    let updaters = prop_oneof![
        5 => Just(vec![USERS[0]]),
        2 => Just(vec![USERS[0], USERS[2]]),
        1 => Just(vec![USERS[2]]),
        2 => Just(vec![]),
    ];
    let stored = prop_oneof![3 => Just(vec![]), 2 => vec(prop_oneof![texts::user(), texts::system()], 1..4)];
    let edit = prop_oneof![
        6 => Just(Edit::Keep),
        2 => Just(Edit::Strip),
        3 => Just(Edit::CopyOfParent),
        6 => vec(prop_oneof![3 => texts::user(), 1 => texts::system()], 1..4).prop_map(Edit::Set),
        1 => select(vec!["a", "b"]).prop_map(|value| Edit::Foreign(value.to_owned())),
        1 => Just(Edit::Null),
    ];
    let generation =
        prop_oneof![8 => Just(Some(GENERATION)), 1 => Just(None), 1 => any::<i64>().prop_map(Some)];
    let owned = proptest::bool::weighted(0.85);
    let status = prop_oneof![1 => Just(Value::Null), 4 => (any::<bool>(), 3_i64..6).prop_map(|(ready, observed)| json!({
        "observedGeneration": observed, "replicas": 3, "readyReplicas": 3, "availableReplicas": 3,
        "updatedReplicas": 3, "fullyLabeledReplicas": 3,
        "conditions": [{"type": "Ready", "status": if ready { "True" } else { "False" }}],
    })), 1 => Just(json!({"phase": 7, "conditions": "none"}))];
    (
        kind,
        0_i64..4,
        0_i64..4,
        updaters,
        stored,
        edit,
        owned,
        proptest::bool::weighted(0.06),
        generation,
        status,
    )
        .prop_map(|(kind, old, new, updaters, stored, edit, owned, deleting, generation, status)| Child {
            kind,
            old,
            new,
            updaters,
            stored,
            edit,
            owned,
            deleting,
            generation,
            status,
        })
        .boxed()
}

fn parent() -> BoxedStrategy<ParentPlan> {
    let state = prop_oneof![
        6 => Just(State::Marked), 4 => Just(State::Steady), 2 => Just(State::Busy),
        2 => Just(State::Initializing), 1 => Just(State::Unobserved), 1 => Just(State::StaleMark),
        1 => Just(State::Deleting),
    ];
    let controllers = prop_oneof![
        7 => Just(vec![USERS[0]]), 2 => Just(vec![USERS[1], USERS[0]]), 1 => Just(vec![USERS[1]]), 2 => Just(vec![]),
    ];
    let annotations = prop_oneof![
        2 => Just(vec![]),
        3 => vec(texts::user(), 1..3),
        1 => vec(prop_oneof![3 => texts::user(), 1 => texts::system()], 1..5),
    ];
    let number = || prop_oneof![6 => Just(3_i64), 1 => Just(0), 2 => select(vec![i64::MIN, i64::MAX, -1])];
    let partition = prop_oneof![2 => Just(0_i64), 1 => select(vec![1, i64::MIN, i64::MAX])];
    let generation =
        prop_oneof![12 => Just(Some(GENERATION)), 1 => Just(None), 1 => any::<i64>().prop_map(Some)];
    let manager = select(vec![None, Some("kube-controller-manager")]);
    (
        select(PARENTS.to_vec()),
        state,
        number(),
        partition,
        controllers,
        manager,
        generation,
        annotations,
        option::of(texts::trace()),
    )
        .prop_map(
            |(kind, state, replicas, partition, controllers, manager, generation, annotations, trace)| {
                ParentPlan {
                    kind,
                    state,
                    replicas,
                    partition,
                    controllers,
                    manager,
                    generation,
                    annotations,
                    trace,
                }
            },
        )
        .boxed()
}

fn scaled() -> BoxedStrategy<Option<bool>> {
    prop_oneof![8 => Just(Some(true)), 1 => Just(Some(false)), 1 => Just(None)].boxed()
}

fn namespace() -> BoxedStrategy<Option<Namespace>> {
    let labels = option::of(select(vec!["prod", "dev"]))
        .prop_map(|env| env.map(|env| ("env".to_owned(), env.to_owned())).into_iter().collect());
    option::of((labels, option::of(texts::mode())).prop_map(|(labels, mode)| Namespace { labels, mode }))
        .boxed()
}

fn settings() -> BoxedStrategy<Settings> {
    (select(vec![Mode::Log, Mode::Enforce]), vec(policy(), 0..3), any::<[u8; 4]>())
        .prop_map(|(default_mode, policies, salt)| Settings {
            own_users: [OWN.to_owned()].into(),
            default_mode,
            policies: Policies::new(policies),
            salt: salt.to_vec(),
        })
        .boxed()
}

fn policy() -> BoxedStrategy<Kausality> {
    let rule = (
        select(vec!["", "apps", "example.com", "*"]),
        select(vec!["*", "replicasets", "secrets", "deployments", "clusters"]),
    );
    let spaces = select(vec![
        Value::Null,
        json!({"names": ["shop"]}),
        json!({"selector": {"matchLabels": {"env": "prod"}}}),
        json!({"excluded": ["shop"]}),
    ]);
    let settle = select(vec![Value::Null, json!("observedGeneration"), json!("steady")]);
    let overrides = select(vec![json!([]), json!([{"resources": ["pods"], "mode": "enforce"}])]);
    (rule, spaces, settle, overrides, select(vec!["log", "enforce"]), select(vec!["a", "b", "c"]))
        .prop_map(|((group, resource), namespaces, settle, overrides, mode, name)| {
            serde_json::from_value(json!({
                "apiVersion": "kausality.io/v1alpha1", "kind": "Kausality", "metadata": {"name": name},
                "spec": {
                    "resources": [{"apiGroups": [group], "resources": [resource]}], "namespaces": namespaces,
                    "mode": mode, "settle": settle, "overrides": overrides,
                },
            }))
            .unwrap()
        })
        .boxed()
}

fn exception() -> BoxedStrategy<Option<Exception>> {
    prop_oneof![
        12 => Just(None),
        1 => Just(Some(Exception::Approval("ClusterApprovalPolicy/housekeeping".to_owned()))),
        1 => Just(Some(Exception::Upgrade("UpgradeAllowance/v2".to_owned()))),
    ]
    .boxed()
}

fn now() -> BoxedStrategy<Timestamp> {
    prop_oneof![
        8 => Just("2026-01-24T10:30:00.5Z".parse().unwrap()),
        1 => Just("1901-12-13T20:45:51.999Z".parse().unwrap()),
        1 => (-377_705_023_201_i64..=253_402_207_200).prop_map(|at| Timestamp::from_second(at).unwrap()),
        1 => Just(Timestamp::MIN),
        1 => Just(Timestamp::MAX),
    ]
    .boxed()
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

fn parent_object(plan: &ParentPlan) -> Value {
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
fn object(child: &Child, parent: &ParentPlan, intent: i64) -> Value {
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

fn request(client: &Client, child: &Child, plan: &ParentPlan, parent: &Value) -> Value {
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
fn with_diff(mut parent: Value, request: &Value, settings: &Settings) -> Value {
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
