//! What happens at night: watches cut, caches stalled, processes killed, rights missing, clocks wrong.

use std::{
    path::Path,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use jiff::Timestamp;
use kausality_testbed::{AuditEvent, Component, ControlPlane, MASTERS, eventually};
use kube::{
    api::{Api, Patch, PatchParams},
    core::{ApiResource, DynamicObject, GroupVersionKind},
};
use serde_json::{Value, json};

use crate::real::stage::*;

/// Watches cut, the API server and the webhook killed: decisions stay right, and nothing is stuck afterwards.
#[tokio::test(flavor = "multi_thread")]
async fn it_survives_what_happens_at_night() {
    let Some(mut plane) = stage().await else { return };
    let _kubelet = plane.play_kubelet().await.unwrap();
    let mut webhook = Webhook::start(&plane).await;
    must(&plane, "alice", &["create", "deployment", "web", "--image=nginx:1", "--replicas=2"]);
    rolled_out(&plane, "web", 1).await;

    // Every watch is cut: a rollout still passes, a correction is still denied.
    plane.restart(Component::ApiServer).await.unwrap();
    eventually(PATIENCE, "an update after the API server's restart", async || {
        let (done, text) = kubectl(&plane, "bob", &["set", "image", "deployment/web", "nginx=nginx:2"]);
        if done { Ok(()) } else { Err(text) }
    })
    .await
    .unwrap();
    rolled_out(&plane, "web", 2).await;
    let sets = replica_sets(&plane);
    let current = sets.iter().find(|set| set["spec"]["replicas"] == 2).unwrap();
    let name = current["metadata"]["name"].as_str().unwrap().to_owned();
    must(&plane, "carol", &["scale", "replicaset", &name, "--replicas=3"]);
    denial(&plane, 0).await;
    assert_eq!(get(&plane, &["replicaset", &name])["spec"]["replicas"], 3);

    // The webhook is killed: in enforce mode nothing changes without it.
    webhook.0.kill().unwrap();
    webhook.0.wait().unwrap();
    let (done, text) = kubectl(&plane, "bob", &["set", "image", "deployment/web", "nginx=nginx:3"]);
    assert!(!done && text.contains("failed calling webhook"), "{text}");
    // Another one takes over with what the cluster knows: the rollout passes, and ends the drift too.
    let mut webhook = Webhook::start(&plane).await;
    eventually(PATIENCE, "an update with the new webhook", async || {
        let (done, text) = kubectl(&plane, "bob", &["set", "image", "deployment/web", "nginx=nginx:3"]);
        if done { Ok(()) } else { Err(text) }
    })
    .await
    .unwrap();
    rolled_out(&plane, "web", 3).await;
    assert_eq!(users(&get(&plane, &["deployment", "web"])), ["bob"]);

    // Told to stop, it takes its registration back before it goes.
    let pid = webhook.0.id().to_string();
    assert!(Command::new("kill").arg(&pid).status().unwrap().success());
    assert!(webhook.0.wait().unwrap().success());
    assert!(get(&plane, &["mutatingwebhookconfiguration", "kausality"]).is_null());
}

/// Scales a Deployment again and again until told to stop. What the API server answered to those that failed; `done` counts
/// the others.
async fn scale(api: Api<DynamicObject>, name: &str, done: &AtomicUsize, stop: &AtomicBool) -> Vec<String> {
    let mut pace = tokio::time::interval(Duration::from_millis(150));
    let mut failures = Vec::new();
    for replicas in (1..=3).cycle() {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        pace.tick().await;
        let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
        match api.patch(name, &PatchParams::default(), &patch).await {
            Ok(_) => _ = done.fetch_add(1, Ordering::Relaxed),
            Err(kube::Error::Api(status)) => failures.push(status.message),
            // Nobody was there.
            Err(_) => {}
        }
    }
    failures
}

/// The API server is killed under load, twice: of all that it answers, to people and controllers, nothing has failed for
/// want of the webhook, and nothing was denied.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_restart_of_the_api_server_fails_no_request() {
    let Some(mut plane) = stage().await else { return };
    let _kubelet = plane.play_kubelet().await.unwrap();
    let _webhook = Webhook::start(&plane).await;
    let registration = get(&plane, &["mutatingwebhookconfiguration", "kausality"]);
    assert_eq!(registration["webhooks"][0]["failurePolicy"], "Fail");
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("apps", "v1", "Deployment"));
    let (done, stop) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let mut writers = Vec::new();
    for name in ["one", "two", "three", "four"] {
        must(&plane, "alice", &["create", "deployment", name, "--image=nginx:1", "--replicas=1"]);
        let client = plane.client(&format!("writer-{name}"), &[MASTERS]).unwrap();
        let api: Api<DynamicObject> = Api::namespaced_with(client, "default", &resource);
        let (done, stop) = (done.clone(), stop.clone());
        writers.push(tokio::spawn(async move { scale(api, name, &done, &stop).await }));
    }
    for round in 0..3 {
        let enough = done.load(Ordering::Relaxed) + 50;
        let goes_on = async || (done.load(Ordering::Relaxed) >= enough).then_some(());
        eventually(PATIENCE, "50 writes more", goes_on).await.unwrap();
        if round < 2 {
            plane.restart(Component::ApiServer).await.unwrap();
        }
    }
    stop.store(true, Ordering::Relaxed);
    let mut answered = Vec::new();
    for writer in writers {
        answered.extend(writer.await.unwrap());
    }
    let reviewed = |event: &AuditEvent| ["deployments", "replicasets"].contains(&event.resource.as_str());
    let events = plane.audit().unwrap().into_iter().filter(reviewed);
    let refused = events.filter(|event| event.code >= 400).filter_map(|event| event.response);
    answered.extend(refused.map(|response| response["message"].as_str().unwrap_or_default().to_owned()));
    let ours: Vec<_> =
        answered.iter().filter(|text| text.contains("webhook") || text.contains("kausality")).collect();
    assert!(ours.is_empty(), "{ours:#?}");
    println!("{} writes; other failures: {answered:#?}", done.load(Ordering::Relaxed));
}

/// A kubeconfig like the administrator's, changed by `change`.
fn kubeconfig(plane: &ControlPlane, name: &str, change: impl Fn(&mut Value)) -> String {
    let text = std::fs::read_to_string(plane.kubeconfig()).unwrap();
    let mut config: Value = serde_saphyr::from_str(&text).unwrap();
    change(&mut config);
    let file = plane.folder().join(name);
    std::fs::write(&file, config.to_string()).unwrap();
    file.to_str().unwrap().to_owned()
}

/// A parent that may not be read: 500 in enforce mode, with what to do; and all is well once it may.
#[tokio::test(flavor = "multi_thread")]
async fn a_parent_that_may_not_be_read_is_an_error_not_a_guess() {
    let Some(plane) = stage().await else { return };
    let _kubelet = plane.play_kubelet().await.unwrap();
    let role = |name: &str, group: &str, resources: &[&str]| {
        apply(
            &plane,
            "admin",
            &json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name},
                "rules": [{"apiGroups": [group], "resources": resources, "verbs": ["*"]}]}),
        );
        must(
            &plane,
            "admin",
            &["create", "clusterrolebinding", name, "--clusterrole", name, "--user", "kausality"],
        );
    };
    role("namespaces", "", &["namespaces", "events"]);
    role("replicasets", "apps", &["replicasets"]);
    role("registration", "admissionregistration.k8s.io", &["mutatingwebhookconfigurations"]);
    let own = kubeconfig(&plane, "webhook.kubeconfig", |config| {
        config["users"][0]["user"]["as"] = json!("kausality");
    });
    let arguments = [
        "--register",
        "--bind-address",
        "127.0.0.1:0",
        "--resources",
        "replicasets.apps",
        "--kubeconfig",
        &own,
    ];
    let _webhook = Webhook::spawn_as(&plane, "webhook.log", &arguments);
    registered(&plane).await;

    must(&plane, "alice", &["create", "deployment", "web", "--image=nginx:1", "--replicas=1"]);
    let denied = eventually(PATIENCE, "a denied ReplicaSet", async || {
        let events = plane.audit().unwrap();
        events
            .into_iter()
            .find(|event| event.resource == "replicasets" && event.verb == "create" && event.code == 500)
    });
    let denied = denied.await.unwrap();
    let message = denied.response.unwrap()["message"].as_str().unwrap().to_owned();
    assert!(message.contains("the owner of ReplicaSet default/web-"), "{message}");
    assert!(message.contains("check that Kausality may read the owner's kind"), "{message}");

    role("deployments", "apps", &["deployments"]);
    must(&plane, "alice", &["rollout", "status", "deployment/web", "--timeout=60s"]);
}

/// Passes connections on to the API server, until those that exist are made to hang.
struct Stall {
    port: u16,
    stalled: tokio::sync::watch::Sender<u64>,
}

impl Stall {
    async fn before(url: &str) -> Self {
        let target = url.trim_start_matches("https://").to_owned();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let stalled = tokio::sync::watch::Sender::new(0);
        let sender = stalled.clone();
        tokio::spawn(async move {
            loop {
                let (mut from, _) = listener.accept().await.unwrap();
                let mut stalled = sender.subscribe();
                let target = target.clone();
                tokio::spawn(async move {
                    let Ok(mut to) = tokio::net::TcpStream::connect(&target).await else { return };
                    tokio::select! {
                        _ = tokio::io::copy_bidirectional(&mut from, &mut to) => {}
                        // The connection stays open, and nothing comes through it.
                        _ = stalled.changed() => std::future::pending().await,
                    }
                });
            }
        });
        Self { port, stalled }
    }

    fn stall(&self) {
        self.stalled.send_modify(|count| *count += 1);
    }
}

/// A cache that has stopped without knowing it: a legitimate change is never blocked by what it remembers.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_stalled_cache_blocks_nothing_legitimate() {
    let Some(plane) = stage().await else { return };
    let _kubelet = plane.play_kubelet().await.unwrap();
    let stall = Stall::before(plane.url()).await;
    let own = kubeconfig(&plane, "webhook.kubeconfig", |config| {
        config["clusters"][0]["cluster"]["server"] = json!(format!("https://127.0.0.1:{}", stall.port));
    });
    let resources = "deployments.apps,replicasets.apps";
    let arguments =
        ["--register", "--bind-address", "127.0.0.1:0", "--resources", resources, "--kubeconfig", &own];
    let _webhook = Webhook::spawn_as(&plane, "webhook.log", &arguments);
    registered(&plane).await;
    must(&plane, "alice", &["create", "deployment", "web", "--image=nginx:1", "--replicas=2"]);
    rolled_out(&plane, "web", 1).await;

    stall.stall();
    must(&plane, "bob", &["set", "image", "deployment/web", "nginx=nginx:2"]);
    rolled_out(&plane, "web", 2).await;
    let sets = replica_sets(&plane);
    let current = sets.iter().find(|set| set["spec"]["replicas"] == 2).unwrap();
    assert_eq!(users(current), ["bob", "system:serviceaccount:kube-system:deployment-controller"]);
    let forbidden: Vec<_> = plane.audit().unwrap().into_iter().filter(|event| event.code == 403).collect();
    assert!(forbidden.is_empty(), "{forbidden:?}");

    let name = current["metadata"]["name"].as_str().unwrap().to_owned();
    must(&plane, "carol", &["scale", "replicaset", &name, "--replicas=3"]);
    denial(&plane, 0).await;
}

/// Killed in the middle of many requests: none of them is half done, and the next webhook takes over.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_webhook_killed_mid_request_leaves_nothing_stuck() {
    let Some(plane) = stage().await else { return };
    let mut webhook = Webhook::start(&plane).await;
    must(&plane, "alice", &["create", "deployment", "web", "--image=nginx:0", "--replicas=1"]);
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("apps", "v1", "Deployment"));
    let api: Api<DynamicObject> =
        Api::namespaced_with(plane.client("bob", &[MASTERS]).unwrap(), "default", &resource);
    let write = async |n: usize| {
        let patch = json!({"spec": {"minReadySeconds": n}});
        api.patch("web", &PatchParams::default(), &Patch::Merge(patch)).await
    };
    let (first_done, mut signal) = tokio::sync::watch::channel(false);
    let writes = futures::future::join_all((1..=60).map(async |n| {
        let outcome = write(n).await;
        let _ = first_done.send(true);
        outcome
    }));
    let kill = async {
        signal.changed().await.unwrap();
        webhook.0.kill().unwrap();
        webhook.0.wait().unwrap();
    };
    let (outcomes, ()) = futures::future::join(writes, kill).await;
    let failed: Vec<String> =
        outcomes.iter().filter_map(|outcome| outcome.as_ref().err().map(ToString::to_string)).collect();
    assert!((1..60).contains(&failed.len()), "some were answered, and some not: {}", failed.len());
    for error in &failed {
        assert!(error.contains("failed calling webhook"), "{error}");
    }

    let _webhook = Webhook::start(&plane).await;
    eventually(PATIENCE, "a write with the new webhook", async || write(99).await.map(|_| ())).await.unwrap();
    let deployment = get(&plane, &["deployment", "web"]);
    assert_eq!(deployment["spec"]["minReadySeconds"], 99);
    assert_eq!(users(&deployment), ["bob"]);
}

/// A clock that is two hours fast: traces show it, approvals end earlier, and nothing else changes.
#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_clock_changes_times_and_nothing_else() {
    let libraries = [
        "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1",
        "/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1",
    ];
    let Some(library) = libraries.into_iter().find(|library| Path::new(library).exists()) else {
        return without_libfaketime("a_wrong_clock_changes_times_and_nothing_else");
    };
    let Some(plane) = stage().await else { return };
    let _kubelet = plane.play_kubelet().await.unwrap();
    let kubeconfig = plane.kubeconfig();
    let _webhook = Webhook::spawn_with(
        &plane,
        "webhook.log",
        &[
            "--kubeconfig",
            kubeconfig.to_str().unwrap(),
            "--register",
            "--bind-address",
            "127.0.0.1:0",
            "--resources",
            "deployments.apps,replicasets.apps",
        ],
        &[("LD_PRELOAD", library), ("FAKETIME", "+2h")],
    );
    registered(&plane).await;
    must(&plane, "alice", &["create", "deployment", "web", "--image=nginx:1", "--replicas=1"]);
    rolled_out(&plane, "web", 1).await;
    let deployment = get(&plane, &["deployment", "web"]);
    let created: Timestamp = deployment["metadata"]["creationTimestamp"].as_str().unwrap().parse().unwrap();
    let trace: Value = serde_json::from_str(&annotation(&deployment, "trace")).unwrap();
    let traced: Timestamp = trace[0]["timestamp"].as_str().unwrap().parse().unwrap();
    assert!(traced.duration_since(created).as_hours() >= 1, "{created} {traced}");

    must(&plane, "bob", &["set", "image", "deployment/web", "nginx=nginx:2"]);
    rolled_out(&plane, "web", 2).await;
    let sets = replica_sets(&plane);
    let name = sets.iter().find(|set| set["spec"]["replicas"] == 1).unwrap()["metadata"]["name"]
        .as_str()
        .unwrap()
        .to_owned();
    must(&plane, "carol", &["scale", "replicaset", &name, "--replicas=3"]);
    denial(&plane, 0).await;
    assert_eq!(get(&plane, &["replicaset", &name])["spec"]["replicas"], 3);

    // Of approvals, the webhook's clock says whether they have ended: one that ended an hour ago, one that seems to
    // have, one that has not.
    let controller = "system:serviceaccount:kube-system:deployment-controller";
    let approve = |hours: i64| {
        let expires = Timestamp::now() + jiff::SignedDuration::from_hours(hours);
        let entry = json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "mode": "always",
            "expires": expires}]);
        let approval = format!("kausality.io/approvals={entry}");
        must(&plane, "dave", &["annotate", "--overwrite", "deployment", "web", &approval]);
    };
    for hours in [-1, 1] {
        approve(hours);
        let (done, text) = kubectl(&plane, controller, &["scale", "replicaset", &name, "--replicas=1"]);
        assert!(
            !done && text.contains("although nobody changed Deployment default/web"),
            "{hours} h: {text}"
        );
    }
    assert_eq!(get(&plane, &["replicaset", &name])["spec"]["replicas"], 3);
    approve(4);
    eventually(PATIENCE, "the correction", async || {
        let set = get(&plane, &["replicaset", &name]);
        if set["spec"]["replicas"] == 1 { Ok(()) } else { Err(format!("{set:#}")) }
    })
    .await
    .unwrap();
}

/// Where every test must run, this one fails; elsewhere it says loudly that it does not.
fn without_libfaketime(test: &str) {
    let required =
        std::env::var("REQUIRE_CONTROL_PLANE").is_ok_and(|value| !["", "0"].contains(&value.as_str()));
    assert!(!required, "libfaketime is missing (apt-get install faketime), and REQUIRE_CONTROL_PLANE is set");
    let reason = format!("\n==> SKIPPED {test}: libfaketime is missing (apt-get install faketime)\n");
    // Not with eprintln!, which cargo test shows only for tests that fail.
    std::io::Write::write_all(&mut std::io::stderr(), reason.as_bytes()).unwrap();
}
