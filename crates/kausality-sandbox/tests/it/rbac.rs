//! The same roles on a real API server and on the sandbox: both must allow the same, for the same reasons.

use std::time::Duration;

use kausality_sandbox::{Sandbox, User};
use kausality_testbed::{MASTERS, eventually, start_or_skip};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

/// What is created on both.
fn objects() -> Vec<(String, Value)> {
    let role = |name: &str, rules: Value| json!({"metadata": {"name": name}, "rules": rules});
    let binding = |name: &str, kind: &str, role: &str, subjects: Value| {
        json!({"metadata": {"name": name}, "subjects": subjects,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role}})
    };
    let subject =
        |kind: &str, name: &str| json!({"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name});
    let robot = json!({"kind": "ServiceAccount", "name": "robot", "namespace": "default"});
    let cluster = |what: &str| format!("{RBAC}/{what}");
    let here = |what: &str| format!("{RBAC}/namespaces/default/{what}");
    let maps = json!([{"verbs": ["get", "update"], "apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["settings"]}]);
    let scaler = json!([{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*/scale"]}]);
    let paths = json!([{"verbs": ["get"], "nonResourceURLs": ["/metrics", "/logs/*"]}]);
    let mut beds =
        role("beds", json!([{"verbs": ["get"], "apiGroups": ["garden.io"], "resources": ["beds"]}]));
    beds["metadata"]["labels"] = json!({"rbac.authorization.k8s.io/aggregate-to-view": "true"});
    vec![
        (cluster("clusterroles"), beds),
        (cluster("clusterroles"), role("scaler", scaler)),
        (cluster("clusterroles"), role("paths", paths)),
        (here("roles"), role("maps", maps)),
        (
            cluster("clusterrolebindings"),
            binding("carol", "ClusterRole", "view", json!([subject("User", "carol")])),
        ),
        (
            cluster("clusterrolebindings"),
            binding("paths", "ClusterRole", "paths", json!([subject("Group", "ops")])),
        ),
        (
            cluster("clusterrolebindings"),
            binding(
                "scalers",
                "ClusterRole",
                "scaler",
                json!([subject("Group", "system:serviceaccounts:default")]),
            ),
        ),
        (here("rolebindings"), binding("alice", "ClusterRole", "edit", json!([subject("User", "alice")]))),
        (here("rolebindings"), binding("dave", "ClusterRole", "admin", json!([subject("User", "dave")]))),
        (here("rolebindings"), binding("maps", "Role", "maps", json!([subject("User", "bob"), robot]))),
        (here("rolebindings"), binding("gone", "Role", "gone", json!([subject("User", "erin")]))),
    ]
}

const USERS: [(&str, &[&str]); 10] = [
    ("root", &[MASTERS]),
    ("alice", &[]),
    ("bob", &["system:authenticated"]),
    ("carol", &["system:authenticated"]),
    ("dave", &[]),
    ("erin", &[]),
    ("otto", &["ops"]),
    ("system:serviceaccount:default:robot", &["system:serviceaccounts", "system:serviceaccounts:default"]),
    ("system:serviceaccount:other:robot", &["system:serviceaccounts", "system:serviceaccounts:other"]),
    ("system:anonymous", &["system:unauthenticated"]),
];

/// Verb, group, resource with subresource, name, namespace.
const ASKED: [(&str, &str, &str, &str, &str); 34] = [
    ("get", "", "pods", "p", "default"),
    ("list", "", "pods", "", "default"),
    ("list", "", "pods", "", ""),
    ("watch", "", "pods", "", "other"),
    ("get", "", "pods/log", "p", "default"),
    ("create", "", "pods/exec", "p", "default"),
    ("create", "", "pods/eviction", "p", "default"),
    ("get", "", "secrets", "s", "default"),
    ("create", "", "secrets", "", "default"),
    ("get", "", "configmaps", "settings", "default"),
    ("get", "", "configmaps", "others", "default"),
    ("update", "", "configmaps", "settings", "default"),
    ("delete", "", "configmaps", "settings", "default"),
    ("list", "", "configmaps", "", "default"),
    ("get", "", "namespaces", "default", "default"),
    ("delete", "", "namespaces", "default", "default"),
    ("list", "", "nodes", "", ""),
    ("impersonate", "", "serviceaccounts", "robot", "default"),
    ("impersonate", "", "users", "alice", ""),
    ("create", "apps", "deployments", "", "default"),
    ("deletecollection", "apps", "deployments", "", "default"),
    ("patch", "apps", "deployments/scale", "web", "default"),
    ("update", "apps", "deployments/scale", "web", "other"),
    ("update", "apps", "deployments/status", "web", "default"),
    ("get", "apps", "deployments/status", "web", "default"),
    ("get", "apps", "controllerrevisions", "r", "default"),
    ("create", "rbac.authorization.k8s.io", "rolebindings", "", "default"),
    ("bind", "rbac.authorization.k8s.io", "clusterroles", "admin", ""),
    ("create", "authorization.k8s.io", "selfsubjectaccessreviews", "", ""),
    ("create", "authorization.k8s.io", "localsubjectaccessreviews", "", "default"),
    ("get", "garden.io", "beds", "b", "default"),
    ("list", "garden.io", "beds", "", "default"),
    ("get", "networking.k8s.io", "ingresses", "i", "default"),
    ("delete", "coordination.k8s.io", "leases", "l", "default"),
];

const PATHS: [(&str, &str); 7] = [
    ("get", "/version"),
    ("get", "/apis/apps"),
    ("get", "/metrics"),
    ("get", "/logs/a/b"),
    ("get", "/logs"),
    ("post", "/apis"),
    ("get", "/healthz/ping"),
];

fn questions() -> Vec<Value> {
    let resources = ASKED.iter().map(|(verb, group, resource, name, namespace)| {
        let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        json!({"resourceAttributes": {"verb": verb, "group": group, "resource": resource, "subresource": subresource,
            "name": name, "namespace": namespace}})
    });
    let paths =
        PATHS.iter().map(|(verb, path)| json!({"nonResourceAttributes": {"verb": verb, "path": path}}));
    resources.chain(paths).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sandbox_allows_what_a_real_api_server_allows() {
    let Some(plane) = start_or_skip().await.unwrap() else { return };
    let sandbox = Sandbox::builder().rbac(true).build();
    let (real, ours) = (plane.admin().unwrap(), sandbox.client(&User::admin("admin")));
    for (path, object) in objects() {
        for client in [&real, &ours] {
            let (code, body) = send(client, "POST", &path, &object).await;
            assert_eq!(code, 201, "{path}: {body}");
        }
    }
    // Roles that are made of others are written a while later, and heard of a while after that.
    let bed = json!({"user": "dave", "resourceAttributes": {"verb": "get", "group": "garden.io", "resource": "beds", "namespace": "default"}});
    let allowed = async || (review(&real, &bed).await["allowed"] == true).then_some(());
    eventually(Duration::from_secs(60), "the aggregation of roles", allowed).await.unwrap();

    let mut different = Vec::new();
    let mut count = 0;
    for (user, groups) in USERS {
        for mut spec in questions() {
            spec["user"] = user.into();
            spec["groups"] = json!(groups);
            let (mut theirs, mut mine) = (review(&real, &spec).await, review(&ours, &spec).await);
            // Some paths are allowed by several bindings: which of them is found first is not said.
            if spec.get("nonResourceAttributes").is_some() {
                (theirs["reason"], mine["reason"]) = (Value::Null, Value::Null);
            }
            count += 1;
            if theirs != mine {
                different.push(format!("{spec}\n  real    {theirs}\n  sandbox {mine}"));
            }
        }
    }
    assert!(different.is_empty(), "{} of {count} differ:\n{}", different.len(), different.join("\n"));
    assert_eq!(count, USERS.len() * (ASKED.len() + PATHS.len()));
}

/// Questions that make no sense are refused in the same way, and those about one namespace answered.
#[tokio::test(flavor = "multi_thread")]
async fn the_sandbox_understands_the_same_questions() {
    let Some(plane) = start_or_skip().await.unwrap() else { return };
    let sandbox = Sandbox::builder().rbac(true).build();
    let (real, ours) = (plane.admin().unwrap(), sandbox.client(&User::admin("testbed:admin")));
    let group = "/apis/authorization.k8s.io/v1";
    let all = format!("{group}/subjectaccessreviews");
    let own = format!("{group}/selfsubjectaccessreviews");
    let here = format!("{group}/namespaces/default/localsubjectaccessreviews");
    let rules = format!("{group}/selfsubjectrulesreviews");
    let pods = json!({"verb": "get", "resource": "pods", "namespace": "default"});
    let path = json!({"verb": "get", "path": "/version"});
    for (at, spec) in [
        (&all, json!({"user": "eve"})),
        (&all, json!({"resourceAttributes": pods})),
        (&all, json!({"user": "eve", "resourceAttributes": pods, "nonResourceAttributes": path})),
        (&own, json!({})),
        (&own, json!({"resourceAttributes": pods})),
        (&here, json!({"user": "eve", "resourceAttributes": pods})),
        (
            &here,
            json!({"user": "eve", "resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "other"}}),
        ),
        (&here, json!({"user": "eve", "nonResourceAttributes": path})),
        (&rules, json!({})),
    ] {
        let body = json!({"spec": spec});
        let (theirs, mine) = (send(&real, "POST", at, &body).await, send(&ours, "POST", at, &body).await);
        let outcome = |(code, body): &(u16, Value)| {
            let causes =
                body.pointer("/details/causes").and_then(Value::as_array).cloned().unwrap_or_default();
            let fields: Vec<_> =
                causes.iter().map(|it| (it["field"].clone(), it["reason"].clone())).collect();
            (*code, body["reason"].clone(), body["status"]["allowed"].clone(), fields)
        };
        assert_eq!(outcome(&theirs), outcome(&mine), "{at} {spec}\n{theirs:?}\n{mine:?}");
    }
}

/// Refusals have the same code, reason and words.
#[tokio::test(flavor = "multi_thread")]
async fn the_sandbox_refuses_as_a_real_api_server_does() {
    let Some(plane) = start_or_skip().await.unwrap() else { return };
    let sandbox = Sandbox::builder().rbac(true).build();
    let real = plane.client("eve", &["dev"]).unwrap();
    let ours = sandbox.client(&User::new("eve", &["dev"]));
    let map = json!({"metadata": {"name": "m"}});
    for (method, path, body) in [
        ("GET", "/api/v1/pods", Value::Null),
        ("GET", "/api/v1/namespaces/default", Value::Null),
        ("GET", "/api/v1/namespaces/default/pods?watch=true", Value::Null),
        ("GET", "/api/v1/namespaces/default/pods?fieldSelector=metadata.name%3Dp", Value::Null),
        ("GET", "/api/v1/namespaces/default/nothings", Value::Null),
        ("GET", "/apis/nothing.io/v1/things/a/status", Value::Null),
        ("POST", "/api/v1/namespaces/default/configmaps", map.clone()),
        ("POST", "/api/v1/namespaces/nowhere/configmaps", map.clone()),
        ("PUT", "/apis/apps/v1/namespaces/default/deployments/web/scale", map),
        ("DELETE", "/api/v1/namespaces/default/configmaps", Value::Null),
        ("DELETE", "/api/v1/nodes/n", Value::Null),
        ("GET", "/metrics", Value::Null),
        ("GET", "/", Value::Null),
    ] {
        let (theirs, mine) = (send(&real, method, path, &body).await, send(&ours, method, path, &body).await);
        assert_eq!(theirs, mine, "{method} {path}");
        assert_eq!(theirs.0, 403, "{method} {path}");
    }
    assert_eq!(send(&ours, "GET", "/apis/apps/v1", &Value::Null).await.0, 200);
}

async fn review(client: &Client, spec: &Value) -> Value {
    let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    let (code, body) = send(client, "POST", path, &json!({"spec": spec})).await;
    assert_eq!(code, 201, "{body}");
    body["status"].clone()
}

async fn send(client: &Client, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let request =
        http::Request::builder().method(method).uri(path).header("content-type", "application/json");
    let response = client.send(request.body(Body::from(body)).unwrap()).await.unwrap();
    let code = response.status().as_u16();
    let body = response.into_body().collect_bytes().await.unwrap();
    (code, serde_json::from_slice(&body).unwrap_or_default())
}
