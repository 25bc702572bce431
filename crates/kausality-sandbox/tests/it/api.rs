//! The API in process, as a `kube::Client` sees it.

use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _};
use http::{Method, Request};
use http_body_util::BodyExt as _;
use hyper::body::Bytes;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod};
use kausality_sandbox::controllers::Time;
use kausality_sandbox::{Sandbox, User, VirtualClock};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::runtime::{WatchStreamExt as _, watcher};
use serde_json::{Value, json};

fn map(name: &str, value: &str) -> ConfigMap {
    let map = json!({"metadata": {"name": name, "labels": {"value": value}}, "data": {"key": value}});
    serde_json::from_value(map).unwrap()
}

fn sandbox() -> (Sandbox, Api<ConfigMap>) {
    let sandbox = Sandbox::builder().seed(7).build();
    let maps = Api::namespaced(sandbox.client(&User::admin("alice")), "default");
    (sandbox, maps)
}

fn code(error: kube::Error) -> (u16, String) {
    match error {
        kube::Error::Api(status) => (status.code, status.reason.clone()),
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn objects_live_and_die() {
    let (_sandbox, maps) = sandbox();
    let created = maps.create(&PostParams::default(), &map("a", "1")).await.unwrap();
    assert!(created.metadata.uid.is_some() && created.metadata.creation_timestamp.is_some());
    assert_eq!(
        code(maps.create(&PostParams::default(), &map("a", "1")).await.unwrap_err()),
        (409, "AlreadyExists".into())
    );

    let mut stale = map("a", "2");
    stale.metadata.resource_version = Some("1".to_owned());
    assert_eq!(
        code(maps.replace("a", &PostParams::default(), &stale).await.unwrap_err()),
        (409, "Conflict".into())
    );
    stale.metadata.resource_version = created.metadata.resource_version.clone();
    let replaced = maps.replace("a", &PostParams::default(), &stale).await.unwrap();
    assert_ne!(replaced.metadata.resource_version, created.metadata.resource_version);
    assert_eq!(replaced.metadata.uid, created.metadata.uid);
    let same = maps.replace("a", &PostParams::default(), &replaced).await.unwrap();
    assert_eq!(same.metadata.resource_version, replaced.metadata.resource_version, "nothing changed");

    maps.delete("a", &DeleteParams::default()).await.unwrap();
    assert_eq!(code(maps.get("a").await.unwrap_err()), (404, "NotFound".into()));
}

#[tokio::test]
async fn the_same_seed_has_the_same_results() {
    let run = async || {
        let clock = VirtualClock::new(Time(1_800_000_000_000));
        let sandbox = Sandbox::builder().seed(3).clock(clock).build();
        let maps: Api<ConfigMap> = Api::namespaced(sandbox.client(&User::admin("alice")), "default");
        let mut map = map("", "1");
        map.metadata.name = None;
        map.metadata.generate_name = Some("m-".to_owned());
        serde_json::to_string(&maps.create(&PostParams::default(), &map).await.unwrap()).unwrap()
    };
    assert_eq!(run().await, run().await);
}

#[tokio::test]
async fn lists_come_in_pages_that_do_not_change() {
    let (sandbox, maps) = sandbox();
    for name in ["a", "b", "c"] {
        maps.create(&PostParams::default(), &map(name, "1")).await.unwrap();
    }
    let first = maps.list(&ListParams::default().limit(2)).await.unwrap();
    assert_eq!(first.metadata.remaining_item_count, Some(1));
    let more = first.metadata.continue_.unwrap();
    maps.delete("c", &DeleteParams::default()).await.unwrap();
    let rest = maps.list(&ListParams::default().limit(2).continue_token(&more)).await.unwrap();
    assert_eq!(rest.items[0].metadata.name.as_deref(), Some("c"), "it was there when the list began");
    let selected =
        maps.list(&ListParams::default().labels("value=1").fields("metadata.name=b")).await.unwrap();
    assert_eq!(selected.items.len(), 1);
    sandbox.compact();
    let expired = maps.list(&ListParams::default().continue_token(&more)).await.unwrap_err();
    assert_eq!(code(expired), (410, "Expired".into()));
}

#[tokio::test]
async fn watches_see_what_happens_and_are_told_what_is_forgotten() {
    let (sandbox, maps) = sandbox();
    let start = maps.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
    let select = WatchParams::default().labels("value=1");
    let mut watch = maps.watch(&select, &start).await.unwrap().boxed();
    maps.create(&PostParams::default(), &map("a", "1")).await.unwrap();
    let patch = |value: &str| Patch::Merge(json!({"metadata": {"labels": {"value": value}}}));
    maps.patch("a", &PatchParams::default(), &patch("2")).await.unwrap();
    maps.patch("a", &PatchParams::default(), &patch("1")).await.unwrap();
    maps.delete("a", &DeleteParams::default()).await.unwrap();
    let mut seen = Vec::new();
    while seen.len() < 4 {
        seen.push(match watch.try_next().await.unwrap().unwrap() {
            WatchEvent::Added(_) => "added",
            WatchEvent::Modified(_) => "modified",
            WatchEvent::Deleted(_) => "deleted",
            WatchEvent::Bookmark(_) => "bookmark",
            WatchEvent::Error(_) => "error",
        });
    }
    assert_eq!(seen, ["added", "deleted", "added", "deleted"], "out of sight is as good as gone");

    sandbox.compact();
    maps.create(&PostParams::default(), &map("b", "1")).await.unwrap();
    let refused = maps.watch(&select, &start).await.err().map(code);
    assert_eq!(refused, Some((410, "Expired".into())));
}

#[tokio::test]
async fn a_reflector_works_by_lists_and_by_streams() {
    for config in [watcher::Config::default(), watcher::Config::default().streaming_lists()] {
        let (_sandbox, maps) = sandbox();
        maps.create(&PostParams::default(), &map("a", "1")).await.unwrap();
        let mut applied = watcher(maps.clone(), config).applied_objects().boxed();
        assert_eq!(applied.try_next().await.unwrap().unwrap().metadata.name.as_deref(), Some("a"));
        maps.create(&PostParams::default(), &map("b", "1")).await.unwrap();
        let next = tokio::time::timeout(Duration::from_secs(5), applied.try_next()).await.unwrap();
        assert_eq!(next.unwrap().unwrap().metadata.name.as_deref(), Some("b"));
    }
}

#[tokio::test]
async fn a_watch_that_wants_bookmarks_gets_them_as_time_goes_by() {
    let clock = VirtualClock::new(Time(1_800_000_000_000));
    let sandbox = Sandbox::builder().clock(clock.clone()).build();
    let maps: Api<ConfigMap> = Api::namespaced(sandbox.client(&User::admin("alice")), "default");
    let mut watch = maps.watch(&WatchParams::default().timeout(90), "1").await.unwrap().boxed();
    let next = tokio::spawn(async move { (watch.try_next().await.unwrap(), watch) });
    tokio::task::yield_now().await;
    clock.set(Time(1_800_000_000_000).after_seconds(61));
    let (bookmark, mut watch) = next.await.unwrap();
    assert!(matches!(bookmark, Some(WatchEvent::Bookmark(_))), "{bookmark:?}");
    let end = tokio::spawn(async move { while watch.try_next().await.unwrap().is_some() {} });
    tokio::task::yield_now().await;
    clock.set(Time(1_800_000_000_000).after_seconds(91));
    tokio::time::timeout(Duration::from_secs(5), end).await.unwrap().unwrap();
}

#[tokio::test]
async fn patches_of_one_object_at_once_all_count() {
    let (_sandbox, maps) = sandbox();
    maps.create(&PostParams::default(), &map("a", "1")).await.unwrap();
    let patches = (0..20).map(|nth| {
        let maps = maps.clone();
        tokio::spawn(async move {
            let patch = Patch::Merge(json!({"data": {format!("k{nth}"): "v"}}));
            maps.patch("a", &PatchParams::default(), &patch).await.unwrap();
        })
    });
    futures::future::try_join_all(patches).await.unwrap();
    assert_eq!(maps.get("a").await.unwrap().data.unwrap().len(), 21);
}

#[tokio::test]
async fn a_dry_run_leaves_no_trace() {
    let (_sandbox, maps) = sandbox();
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    maps.create(&dry, &map("a", "1")).await.unwrap();
    assert_eq!(code(maps.get("a").await.unwrap_err()).0, 404);
    maps.create(&PostParams::default(), &map("a", "1")).await.unwrap();
    let dry = DeleteParams { dry_run: true, ..DeleteParams::default() };
    maps.delete("a", &dry).await.unwrap();
    maps.get("a").await.unwrap();
}

#[tokio::test]
async fn finalizers_hold_objects_and_pods_take_their_time() {
    let (sandbox, maps) = sandbox();
    let mut held = map("a", "1");
    held.metadata.finalizers = Some(vec!["a.io/b".to_owned()]);
    maps.create(&PostParams::default(), &held).await.unwrap();
    maps.delete("a", &DeleteParams::default()).await.unwrap();
    assert!(maps.get("a").await.unwrap().metadata.deletion_timestamp.is_some());
    let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    maps.patch("a", &PatchParams::default(), &free).await.unwrap();
    assert_eq!(code(maps.get("a").await.unwrap_err()).0, 404);

    let pods: Api<Pod> = Api::namespaced(sandbox.client(&User::admin("alice")), "default");
    let pod = json!({"metadata": {"name": "p"}, "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}});
    pods.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
    pods.delete("p", &DeleteParams::default()).await.unwrap();
    assert_eq!(pods.get("p").await.unwrap().metadata.deletion_grace_period_seconds, Some(30));
    pods.delete("p", &DeleteParams::default().grace_period(0)).await.unwrap();
    assert_eq!(code(pods.get("p").await.unwrap_err()).0, 404);
}

#[tokio::test]
async fn namespaces_end_when_they_are_let_go() {
    let (sandbox, _) = sandbox();
    let client = sandbox.client(&User::admin("alice"));
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let shop = serde_json::from_value(json!({"metadata": {"name": "shop"}})).unwrap();
    namespaces.create(&PostParams::default(), &shop).await.unwrap();
    namespaces.delete("shop", &DeleteParams::default()).await.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "shop");
    assert_eq!(
        code(maps.create(&PostParams::default(), &map("a", "1")).await.unwrap_err()),
        (403, "Forbidden".into())
    );
    let mut shop: Value = serde_json::to_value(namespaces.get("shop").await.unwrap()).unwrap();
    assert_eq!(shop["status"]["phase"], "Terminating");
    shop["spec"]["finalizers"] = json!([]);
    let request =
        http::Request::put("/api/v1/namespaces/shop/finalize").body(shop.to_string().into_bytes()).unwrap();
    client.request::<Value>(request).await.unwrap();
    assert_eq!(
        code(maps.create(&PostParams::default(), &map("a", "1")).await.unwrap_err()),
        (404, "NotFound".into())
    );
}

/// Facts 10 and 11, and who owns what.
#[tokio::test]
async fn server_side_apply_keeps_owners_and_generations() {
    let (sandbox, _) = sandbox();
    let deployments: Api<Deployment> = Api::namespaced(sandbox.client(&User::admin("alice")), "default");
    let web = |replicas: i32| {
        Patch::Apply(
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}},
            "spec": {"containers": [{"name": "c", "image": "i:1"}]}}}}),
        )
    };
    let created = deployments.patch("web", &PatchParams::apply("one"), &web(1)).await.unwrap();
    assert_eq!(created.metadata.generation, Some(1));
    let again = deployments.patch("web", &PatchParams::apply("one"), &web(1)).await.unwrap();
    assert_eq!(again.metadata.resource_version, created.metadata.resource_version);
    let refused = deployments.patch("web", &PatchParams::apply("two"), &web(2)).await.unwrap_err();
    assert!(refused.to_string().contains("conflict with \"one\": .spec.replicas"), "{refused}");
    let forced = deployments.patch("web", &PatchParams::apply("two").force(), &web(2)).await.unwrap();
    assert_eq!((forced.metadata.generation, forced.metadata.managed_fields.unwrap().len()), (Some(2), 2));
    let annotate = Patch::Merge(json!({"metadata": {"annotations": {"a": "b"}}}));
    let annotated = deployments.patch("web", &PatchParams::default(), &annotate).await.unwrap();
    assert_eq!(annotated.metadata.generation, Some(3), "annotations of a Deployment count");
    let five = Patch::Merge(json!({"spec": {"replicas": 5}}));
    let scaled = deployments.patch_scale("web", &PatchParams::default(), &five).await;
    assert_eq!(scaled.unwrap().spec.unwrap().replicas, Some(5));
}

/// As a real aggregator answers for a service that is not there.
#[tokio::test]
async fn what_another_server_would_serve_is_unavailable() {
    let sandbox = Sandbox::default();
    let send = async |method: &str, path: &str, accept: &str, body: Value| {
        let request = http::Request::builder().method(method).uri(path).header("accept", accept);
        let mut request = request.body(body.to_string().into_bytes().into()).unwrap();
        request.extensions_mut().insert(User::admin("alice"));
        let answer = sandbox.handle(request).await;
        let code = answer.status().as_u16();
        let body = http_body_util::BodyExt::collect(answer.into_body()).await.unwrap().to_bytes();
        (code, String::from_utf8_lossy(&body).into_owned())
    };
    let (plain, services) = ("application/json", "/apis/apiregistration.k8s.io/v1/apiservices");
    let service = json!({"metadata": {"name": "v1.strict.example.com"}, "spec": {"group": "strict.example.com",
        "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1, "service": {"name": "a", "namespace": "b"}}});
    let things = "/apis/strict.example.com/v1/namespaces/default/things/x";
    assert_eq!(send("GET", things, plain, Value::Null).await.0, 404);
    assert_eq!(send("POST", services, plain, service).await.0, 201);
    let unavailable = (503, "service unavailable\n".to_owned());
    assert_eq!(send("GET", things, plain, Value::Null).await, unavailable);
    assert_eq!(send("GET", "/apis/strict.example.com/v1", plain, Value::Null).await, unavailable);
    assert_eq!(send("GET", "/apis/strict.example.com", plain, Value::Null).await.0, 200);
    let aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let (_, all) = send("GET", "/apis", aggregated, Value::Null).await;
    let all: Value = serde_json::from_str(&all).unwrap();
    let group = |it: &&Value| it["metadata"]["name"] == "strict.example.com";
    let group = all["items"].as_array().unwrap().iter().find(group).unwrap();
    assert_eq!(group["versions"], json!([{"version": "v1", "freshness": "Stale"}]));
    assert_eq!(send("DELETE", &format!("{services}/v1.strict.example.com"), plain, Value::Null).await.0, 200);
    assert_eq!(send("GET", things, plain, Value::Null).await.0, 404);
}

/// Issue 19: annotations of more than 256 KiB were taken.
#[tokio::test]
async fn annotations_are_limited_however_they_are_written() {
    let (_sandbox, maps) = sandbox();
    let long = |value: usize| {
        let mut long = map("long", "1");
        long.metadata.annotations = Some([("a".to_owned(), "x".repeat(value))].into());
        long
    };
    let told = |error: kube::Error| match error {
        kube::Error::Api(status) => (status.code, status.message.clone()),
        other => panic!("{other}"),
    };
    let (most, more, name) = (long((256 << 10) - 1), long(256 << 10), "long");
    let refused =
        r#"ConfigMap "long" is invalid: metadata.annotations: Too long: may not be more than 262144 bytes"#;
    let refused = (422, refused.to_owned());
    let (create, patched) = (PostParams::default(), PatchParams::default());
    let applied = PatchParams::apply("me").force();
    let apply = |object: &ConfigMap| Patch::Apply(object.clone());
    assert_eq!(told(maps.create(&create, &more).await.unwrap_err()), refused);
    assert_eq!(told(maps.patch(name, &applied, &apply(&more)).await.unwrap_err()), refused);
    maps.create(&create, &most).await.unwrap();
    let patch = json!({"metadata": {"annotations": {"b": ""}}});
    assert_eq!(told(maps.replace(name, &create, &more).await.unwrap_err()), refused);
    assert_eq!(told(maps.patch(name, &applied, &apply(&more)).await.unwrap_err()), refused);
    assert_eq!(told(maps.patch(name, &patched, &Patch::Merge(&patch)).await.unwrap_err()), refused);
    assert_eq!(told(maps.patch(name, &patched, &Patch::Strategic(&patch)).await.unwrap_err()), refused);
    maps.patch(name, &applied, &apply(&most)).await.unwrap();
}

/// Issue 19: answers to HEAD had a body.
#[tokio::test]
async fn an_answer_to_head_has_no_body() {
    let sandbox = Sandbox::default();
    let ask = async |method: Method, path: &str| {
        let request = Request::builder().method(method).uri(path).extension(User::admin("alice"));
        let answer = sandbox.handle(request.body(Bytes::new()).unwrap()).await;
        let (parts, body) = answer.into_parts();
        (
            parts.status.as_u16(),
            parts.headers["content-type"].clone(),
            body.collect().await.unwrap().to_bytes(),
        )
    };
    let definition = json!({"metadata": {"name": "beds.garden.io"}, "spec": {"group": "garden.io", "scope": "Cluster",
        "names": {"plural": "beds", "kind": "Bed"}, "versions": [{"name": "v1", "served": true, "storage": true,
        "schema": {"openAPIV3Schema": {"type": "object"}}}]}});
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let request = Request::post(definitions).extension(User::admin("alice"));
    let answer = sandbox.handle(request.body(definition.to_string().into()).unwrap()).await;
    assert_eq!(answer.status(), 201);
    for path in ["/healthz", "/apis/garden.io/v1/beds", "/apis/garden.io/v1/beds/nope", "/nope", "/apis"] {
        let (get, head) = (ask(Method::GET, path).await, ask(Method::HEAD, path).await);
        assert_eq!((head.0, &head.1), (get.0, &get.1), "{path}");
        assert!(!get.2.is_empty() && head.2.is_empty(), "{path}: {head:?}");
    }
    // As on a real API server.
    let (code, _, body) = ask(Method::HEAD, "/api/v1/namespaces").await;
    assert_eq!((code, body.len()), (405, 0));
}
