//! Requests and facts, generated so that what matters happens often.

use std::sync::Arc;

use jiff::Timestamp;
use kausality_api::{mode::Mode, policy::Kausality};
use kausality_core::{
    Exception, Namespace, Settings,
    exceptions::{self, Exceptions},
    policy::Policies,
};
use proptest::{collection::vec, option, prelude::*, sample::select};
use serde_json::{Value, json};

use crate::properties::{
    objects::{Act, Child, Client, Edit, Kind, ParentPlan, State, object, parent_object, request, with_diff},
    sample::{Kin, Sample},
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
    (select(vec![Mode::Log, Mode::Enforce]), vec(policy(), 0..3), any::<[u8; 4]>(), exceptions())
        .prop_map(|(default_mode, policies, salt, exceptions)| Settings {
            exceptions,
            own_users: [OWN.to_owned()].into(),
            default_mode,
            policies: Policies::new(policies),
            salt: salt.to_vec(),
            ..Settings::default()
        })
        .boxed()
}

/// Mostly none; else one rule about everything that everybody does.
fn exceptions() -> BoxedStrategy<Arc<Exceptions>> {
    let with = |says: Value| {
        let mut rule = json!({"apiVersion": "*", "kind": "*", "subjects": [{"kind": "User", "name": "*"}]});
        says.as_object().unwrap().iter().for_each(|(key, value)| rule[key] = value.clone());
        let policy = json!({"apiVersion": "kausality.io/v1alpha1", "kind": "ClusterApprovalPolicy",
            "metadata": {"name": "p"}, "spec": {"rules": [rule]}});
        let compiled = exceptions::compile(&serde_json::from_value(policy).unwrap()).unwrap();
        Just(Arc::new(Exceptions::new([&compiled])))
    };
    prop_oneof![
        20 => Just(Arc::default()),
        1 => with(json!({})),
        1 => with(json!({"mode": "once"})),
        1 => with(json!({"match": {"cel": "object.metadata.name.size() < 5"}})),
        1 => with(json!({"action": "deny", "causes": ["drift", "origin"]})),
    ]
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
