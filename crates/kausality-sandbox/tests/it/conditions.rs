//! `matchConditions` on a real API server and on the sandbox: both must ask a webhook about the same requests.
//!
//! The webhook behind them is never there. With `failurePolicy: Fail` a request that matches fails because nobody
//! answers, one that does not match passes, and one whose conditions cannot be told is forbidden; with `Ignore`, one that
//! passes tells nothing. So every expression is tried with `Fail`, and those that fail are tried with `Ignore`, too.

use std::time::Duration;

use kausality_sandbox::{Sandbox, User};
use kausality_testbed::{Component, MASTERS, eventually, start_or_skip};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

const CONFIGURATIONS: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const PATIENCE: Duration = Duration::from_secs(30);

/// Conditions of one webhook, separated by `;;`.
const CONDITIONS: &[&str] = &[
    "true",
    "request.operation == 'CREATE'",
    "request.operation in ['UPDATE', 'DELETE']",
    "request.operation != 'DELETE' && object.spec.replicas > 2",
    "has(request.subResource)",
    "request.subResource == 'scale'",
    "has(request.subResource) && request.subResource == 'scale' && object.spec.replicas == 5",
    "request.userInfo.username.startsWith('con') && 'system:masters' in request.userInfo.groups",
    "request.userInfo.groups.exists(g, g.endsWith(':nobody'))",
    "request.resource.group == 'apps' && request.kind.kind.matches('^Dep.*t$')",
    "request.namespace == 'default' && request.name == 'web'",
    "request.dryRun",
    "oldObject == null || object == null",
    "oldObject != null && object != null && object.spec != oldObject.spec",
    "object.metadata.labels['tier'] == 'front'",
    "has(object.metadata.labels) && 'tier' in object.metadata.labels",
    "object.?metadata.?labels[?'tier'].orValue('none') == 'front'",
    "object.spec.template.spec.containers.all(c, c.image.contains(':'))",
    "object.spec.template.spec.containers.exists_one(c, c.name == 'app')",
    "object.spec.template.spec.containers.map(c, c.image.split(':')[0]).filter(i, i == 'shop').size() == 1",
    "object.spec.replicas + 1 == 4 || object.spec.replicas * 2 == 2",
    "object.spec.missing.deeper == 1",
    "object.spec.missing == 1 || request.operation == 'CREATE'",
    "object.spec.missing == 1 && request.operation == 'UPDATE'",
    "object.spec.missing == 1;;request.operation == 'CREATE'",
    "request.operation == 'CREATE';;object.spec.missing == 1",
    "object.spec.replicas > 'a'",
    "int(object.spec.template.spec.containers[0].image.split(':')[1]) >= 2",
    "object.spec.template.spec.containers[3].name == 'x'",
    "object.metadata.name.upperAscii() == 'WEB' ? object.spec.replicas == 1 : false",
    "request.options.kind == 'CreateOptions'",
    "type(object.spec.replicas) == int",
    "size(object.metadata.annotations) > 0",
];

/// What does not compile.
const NONSENSE: &[&str] = &[
    "1 +",
    "",
    "objekt.spec == 1",
    "request.verb == 'create'",
    "request.operation == 1",
    "request.operation",
    "object.spec",
    "object.spec.replicas",
    "request.dryRun && 'x'",
    "request.operation.exists(x, true)",
    "[1, 'a'].size() == 2",
    "nothing(object)",
    "object.spec.nothing()",
    "request.?verb.hasValue()",
    "request.subResource == null",
    "'a' in request.userInfo",
    "object.spec ? true : 1",
];

/// Requests: what is done, of what type, with what body. Those that write for good do so on both, whoever is asked.
fn requests() -> Vec<(&'static str, String, &'static str, Value)> {
    let merge = "application/merge-patch+json";
    let deployment = |name: &str, image: &str, replicas: i64| {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}},
            "spec": {"containers": [{"name": "app", "image": image}]}}}})
    };
    let dry = |path: &str| format!("{DEPLOYMENTS}{path}?dryRun=All");
    let json = "application/json";
    vec![
        ("POST", dry(""), json, deployment("new", "shop:1", 3)),
        ("PATCH", dry("/web"), merge, json!({"spec": {"replicas": 3}})),
        ("PATCH", dry("/web"), merge, json!({"metadata": {"labels": {"tier": "front"}}})),
        ("PATCH", dry("/web"), merge, json!({"metadata": {"annotations": {"x": "y"}}})),
        ("PATCH", dry("/web/scale"), merge, json!({"spec": {"replicas": 5}})),
        ("PATCH", dry("/web/status"), merge, json!({"status": {"replicas": 1}})),
        ("DELETE", dry("/web"), json, Value::Null),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sandbox_matches_as_a_real_api_server_does() {
    let Some(plane) = start_or_skip().await.unwrap() else { return };
    plane.pause(Component::ControllerManager).unwrap();
    let real = plane.client("conny", &[MASTERS]).unwrap();
    let sandbox = Sandbox::default();
    let ours = sandbox.client(&User::admin("conny"));
    let web = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {
        "replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "app", "image": "shop:2"}]}}}});
    for client in [&real, &ours] {
        assert_eq!(send(client, "POST", DEPLOYMENTS, "application/json", &web).await.0, 201);
    }

    let mut different = Vec::new();
    let (mut asked, mut passed, mut unknown) = (0, 0, 0);
    for conditions in CONDITIONS {
        for policy in ["Fail", "Ignore"] {
            let (expected, found) =
                (register(&real, conditions, policy).await, register(&ours, conditions, policy).await);
            assert_eq!((expected, found), (201, 201), "{conditions}");
            effective(&real, policy).await;
            for (method, path, kind, body) in requests() {
                let theirs = send(&real, method, &path, kind, &body).await;
                let mine = send(&ours, method, &path, kind, &body).await;
                match theirs.0 {
                    403 => unknown += 1,
                    500 => asked += 1,
                    _ => passed += 1,
                }
                let theirs = (theirs.0, beginning(&theirs.1));
                let mine = (mine.0, beginning(&mine.1));
                if theirs != mine {
                    different.push(format!("{policy} {conditions}\n  {method} {path} {body}\n  real    {theirs:?}\n  sandbox {mine:?}"));
                }
            }
            unregister(&real).await;
            unregister(&ours).await;
        }
    }
    plane.resume(Component::ControllerManager).unwrap();
    let all = format!("{asked} asked, {passed} passed, {unknown} that cannot be told");
    assert!(different.is_empty(), "{} differ of {all}:\n{}", different.len(), different.join("\n"));
    assert!(asked > 50 && passed > 50 && unknown > 10, "{all}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_compile_is_refused_by_both() {
    let Some(plane) = start_or_skip().await.unwrap() else { return };
    let real = plane.client("conny", &[MASTERS]).unwrap();
    let ours = Sandbox::default().client(&User::admin("conny"));
    let mut different = Vec::new();
    for source in NONSENSE {
        let body = configuration(source, "Fail");
        let theirs = send(&real, "POST", CONFIGURATIONS, "application/json", &body).await;
        let mine = send(&ours, "POST", CONFIGURATIONS, "application/json", &body).await;
        let fields = |it: &(u16, Value)| {
            let causes = it.1.pointer("/details/causes").cloned().unwrap_or_default();
            let causes = causes.as_array().cloned().unwrap_or_default();
            (it.0, causes.iter().map(|it| (it["field"].clone(), it["reason"].clone())).collect::<Vec<_>>())
        };
        if fields(&theirs) != fields(&mine) || theirs.0 != 422 {
            different.push(format!("{source}\n  real    {theirs:?}\n  sandbox {mine:?}"));
        }
    }
    assert!(different.is_empty(), "{} differ:\n{}", different.len(), different.join("\n"));
}

fn configuration(conditions: &str, policy: &str) -> Value {
    let conditions = conditions.split(";;").enumerate();
    let conditions: Vec<_> =
        conditions.map(|(nth, source)| json!({"name": format!("c{nth}"), "expression": source})).collect();
    // Nobody listens there.
    let client = json!({"url": "https://127.0.0.1:1/"});
    let rule = |groups: &str, resources: Value| json!([{"apiGroups": [groups], "apiVersions": ["v1"], "resources": resources, "operations": ["*"]}]);
    let common = json!({"sideEffects": "None", "admissionReviewVersions": ["v1"], "clientConfig": client});
    let mut tested = common.clone();
    tested["name"] = "tested.example.com".into();
    tested["matchConditions"] = conditions.into();
    tested["failurePolicy"] = policy.into();
    tested["rules"] = rule("apps", json!(["deployments", "deployments/*"]));
    // Tells when the API server has heard of the configuration.
    let mut probe = common;
    probe["name"] = "probe.example.com".into();
    probe["failurePolicy"] = "Fail".into();
    probe["rules"] = rule("", json!(["configmaps"]));
    probe["matchConditions"] =
        json!([{"name": "probe", "expression": format!("object.data.policy == '{policy}'")}]);
    json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "conditions"}, "webhooks": [tested, probe]})
}

async fn register(client: &Client, conditions: &str, policy: &str) -> u16 {
    send(client, "POST", CONFIGURATIONS, "application/json", &configuration(conditions, policy)).await.0
}

async fn unregister(client: &Client) {
    let path = format!("{CONFIGURATIONS}/conditions");
    assert_eq!(send(client, "DELETE", &path, "application/json", &Value::Null).await.0, 200);
    eventually(PATIENCE, "the end of the configuration", async || {
        (probe(client, "Fail").await == 201 && probe(client, "Ignore").await == 201).then_some(())
    })
    .await
    .unwrap();
}

/// An API server hears of configurations a while after they are written.
async fn effective(client: &Client, policy: &str) {
    eventually(PATIENCE, "the configuration", async || (probe(client, policy).await == 500).then_some(()))
        .await
        .unwrap();
}

async fn probe(client: &Client, policy: &str) -> u16 {
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "probe-"}, "data": {"policy": policy}});
    let path = "/api/v1/namespaces/default/configmaps?dryRun=All";
    send(client, "POST", path, "application/json", &map).await.0
}

async fn send(client: &Client, method: &str, path: &str, kind: &str, body: &Value) -> (u16, Value) {
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let request = http::Request::builder().method(method).uri(path).header("content-type", kind);
    let response = client.send(request.body(Body::from(body)).unwrap()).await.unwrap();
    let code = response.status().as_u16();
    let body = response.into_body().collect_bytes().await.unwrap();
    (code, serde_json::from_slice(&body).unwrap_or_default())
}

/// Of a refusal: as far as the words are the API server's own, and not those of a library.
fn beginning(body: &Value) -> String {
    let message = body["message"].as_str().unwrap_or_default();
    let ends = ["resulted in error: ", "failed to call webhook: "];
    let end = ends.iter().filter_map(|end| message.find(end).map(|at| at + end.len())).min();
    message[..end.unwrap_or(message.len())].to_owned()
}
