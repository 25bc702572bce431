//! Kausality on a real control plane, with real controllers.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

use std::{
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use kausality_testbed::{Component, ControlPlane, MASTERS, eventually, free_port, start_or_skip};
use kube::{
    api::{Api, PostParams},
    core::{ApiResource, DynamicObject, GroupVersionKind},
};
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(60);

/// A webhook process. Ends when dropped.
struct Webhook(Child);

impl Webhook {
    /// One that acts as the administrator.
    fn spawn(plane: &ControlPlane, log: &str, arguments: &[&str]) -> Self {
        let kubeconfig = plane.kubeconfig();
        Self::spawn_as(plane, log, &[&["--kubeconfig", kubeconfig.to_str().unwrap()], arguments].concat())
    }

    /// One that acts as its arguments say.
    fn spawn_as(plane: &ControlPlane, log: &str, arguments: &[&str]) -> Self {
        let log = std::fs::File::create(plane.folder().join(log)).unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_kausality"))
            .args(["webhook", "--default-mode", "enforce"])
            .args(arguments)
            .stderr(Stdio::from(log))
            .spawn()
            .unwrap();
        Self(child)
    }

    /// One that is registered for workloads.
    async fn start(plane: &ControlPlane) -> Self {
        let resources = "deployments.apps,replicasets.apps,statefulsets.apps,daemonsets.apps,jobs.batch";
        let webhook = Self::spawn(
            plane,
            "webhook.log",
            &["--register", "--bind-address", "127.0.0.1:0", "--resources", resources],
        );
        registered(plane).await;
        webhook
    }
}

async fn registered(plane: &ControlPlane) {
    eventually(PATIENCE, "the registration", async || {
        let found = get(plane, &["mutatingwebhookconfiguration", "kausality"]);
        (!found.is_null()).then_some(())
    })
    .await
    .unwrap();
}

impl Drop for Webhook {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What kubectl prints, and whether it succeeded.
fn kubectl(plane: &ControlPlane, user: &str, arguments: &[&str]) -> (bool, String) {
    let output = plane.kubectl(user, &[MASTERS]).args(arguments).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(text).unwrap())
}

#[track_caller]
fn must(plane: &ControlPlane, user: &str, arguments: &[&str]) -> String {
    let (done, text) = kubectl(plane, user, arguments);
    assert!(done, "kubectl {arguments:?} as {user}: {text}");
    text
}

fn get(plane: &ControlPlane, arguments: &[&str]) -> Value {
    let output = plane
        .kubectl("watcher", &[MASTERS])
        .arg("get")
        .args(arguments)
        .args(["-o", "json"])
        .output()
        .unwrap();
    serde_json::from_slice(&output.stdout).unwrap_or_default()
}

fn annotation(object: &Value, name: &str) -> String {
    let key = format!("kausality.io/{name}");
    object["metadata"]["annotations"][key].as_str().unwrap_or_default().to_owned()
}

fn users(object: &Value) -> Vec<String> {
    let trace: Value = serde_json::from_str(&annotation(object, "trace")).unwrap_or_default();
    let hops = trace.as_array().cloned().unwrap_or_default();
    hops.iter().map(|hop| hop["user"].as_str().unwrap().to_owned()).collect()
}

fn replica_sets(plane: &ControlPlane) -> Vec<Value> {
    get(plane, &["replicasets"])["items"].as_array().cloned().unwrap_or_default()
}

async fn rolled_out(plane: &ControlPlane, name: &str, generation: i64) {
    eventually(PATIENCE, "the roll-out", async || {
        let deployment = get(plane, &["deployment", name]);
        let mark = annotation(&deployment, "settled");
        let conditions = deployment["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let done = conditions.iter().any(|condition| condition["reason"] == "NewReplicaSetAvailable");
        let observed = deployment["status"]["observedGeneration"] == generation;
        if done && observed && !mark.is_empty() { Ok(()) } else { Err(format!("{deployment:#}")) }
    })
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rollout_passes_and_a_correction_is_denied_until_it_is_approved() {
    let Some(plane) = start_or_skip().await.unwrap() else { return };
    let _kubelet = plane.play_kubelet().await.unwrap();
    let _webhook = Webhook::start(&plane).await;
    let deployment_controller = "system:serviceaccount:kube-system:deployment-controller";

    must(&plane, "alice", &["create", "deployment", "web", "--image=nginx:1", "--replicas=2"]);
    rolled_out(&plane, "web", 1).await;
    must(&plane, "bob", &["set", "image", "deployment/web", "nginx=nginx:2"]);
    rolled_out(&plane, "web", 2).await;
    let sets = replica_sets(&plane);
    assert_eq!(sets.len(), 2);
    let new = sets.iter().find(|set| set["spec"]["replicas"] == 2).unwrap();
    let name = new["metadata"]["name"].as_str().unwrap();
    assert_eq!(users(new), ["bob", deployment_controller]);

    must(&plane, "carol", &["scale", "replicaset", name, "--replicas=4"]);
    // The controller's correction is denied, and says so on the parent.
    let event = eventually(PATIENCE, "an event on the Deployment", async || {
        let events = get(&plane, &["events"])["items"].as_array().cloned().unwrap_or_default();
        let found = events.into_iter().find(|event| event["reason"] == "DriftDenied");
        found.ok_or("no event yet")
    });
    assert_eq!(event.await.unwrap()["involvedObject"]["name"], "web");
    assert_eq!(get(&plane, &["replicaset", name])["spec"]["replicas"], 4);

    let generation = get(&plane, &["deployment", "web"])["metadata"]["generation"].as_i64().unwrap();
    let approval = format!(
        r#"kausality.io/approvals=[{{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"{name}","generation":{generation}}}]"#
    );
    must(&plane, "dave", &["annotate", "deployment", "web", &approval]);
    eventually(PATIENCE, "the correction", async || {
        let set = get(&plane, &["replicaset", name]);
        if set["spec"]["replicas"] == 2 { Ok(()) } else { Err(format!("{set:#}")) }
    })
    .await
    .unwrap();
    assert_eq!(annotation(&get(&plane, &["deployment", "web"]), "approvals"), "", "it is used up");
    assert_eq!(users(&get(&plane, &["replicaset", name])), ["bob", deployment_controller]);
}

fn user_agent_calls(plane: &ControlPlane, agent: &str) -> Vec<kausality_testbed::AuditEvent> {
    let events = plane.audit().unwrap();
    events.into_iter().filter(|event| event.user_agent.starts_with(agent) && event.verb != "watch").collect()
}

/// No API call on the way of a request that is not drift.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_drift_costs_no_api_call() {
    let Some(plane) = start_or_skip().await.unwrap() else { return };
    let _kubelet = plane.play_kubelet().await.unwrap();
    let _webhook = Webhook::start(&plane).await;
    must(&plane, "alice", &["create", "deployment", "web", "--image=nginx:1", "--replicas=3"]);
    rolled_out(&plane, "web", 1).await;
    let before = user_agent_calls(&plane, "kausality-webhook").len();
    must(&plane, "bob", &["set", "image", "deployment/web", "nginx=nginx:2"]);
    rolled_out(&plane, "web", 2).await;
    must(&plane, "bob", &["delete", "deployment", "web"]);
    eventually(PATIENCE, "the garbage collection", async || {
        let left = replica_sets(&plane).len();
        if left == 0 { Ok(()) } else { Err(format!("{left} ReplicaSets are left")) }
    })
    .await
    .unwrap();
    let calls = user_agent_calls(&plane, "kausality-webhook");
    let since: Vec<String> = calls
        .iter()
        .skip(before)
        .map(|event| format!("{} {} {}", event.verb, event.resource, event.name))
        .collect();
    assert!(since.is_empty(), "{since:?}");
}

const EKS_CONTROLLER: &str = "system:serviceaccount:infra:eks-controller";

fn apply(plane: &ControlPlane, user: &str, manifest: &Value) {
    let file = plane.folder().join("manifest.json");
    std::fs::write(&file, manifest.to_string()).unwrap();
    must(plane, user, &["apply", "--server-side", "-f", file.to_str().unwrap()]);
}

/// The custom resource EKSCluster, and one of it that has settled.
async fn settled_cluster(plane: &ControlPlane) -> Value {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    apply(
        plane,
        "admin",
        &json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "eksclusters.example.com"},
            "spec": {"group": "example.com", "scope": "Namespaced",
                "names": {"kind": "EKSCluster", "plural": "eksclusters", "singular": "ekscluster"},
                "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": schema}}]}}),
    );
    must(
        plane,
        "admin",
        &["wait", "--for=condition=Established", "crd/eksclusters.example.com", "--timeout=30s"],
    );
    apply(
        plane,
        "alice",
        &json!({"apiVersion": "example.com/v1", "kind": "EKSCluster", "metadata": {"name": "prod", "namespace": "default"},
            "spec": {"size": 3}}),
    );
    get(plane, &["eksclusters", "prod"])
}

fn report_ready(plane: &ControlPlane) {
    let status = r#"{"status":{"observedGeneration":1,"conditions":[{"type":"Ready","status":"True"}]}}"#;
    must(
        plane,
        EKS_CONTROLLER,
        &["patch", "eksclusters", "prod", "--subresource=status", "--type=merge", "-p", status],
    );
}

/// Passes connections on to replicas in turn, as a Service does.
async fn balance(replicas: Vec<u16>) -> u16 {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        for replica in replicas.iter().cycle() {
            let (mut from, _) = listener.accept().await.unwrap();
            let replica = *replica;
            tokio::spawn(async move {
                let mut to = tokio::net::TcpStream::connect(("127.0.0.1", replica)).await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut from, &mut to).await;
            });
        }
    });
    port
}

/// A `once` approval lets one mutation pass, whatever the number of replicas and of requests.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_approval_for_once_passes_one_of_a_hundred() {
    let Some(plane) = start_or_skip().await.unwrap() else { return };
    let cluster = settled_cluster(&plane).await;
    let certificate = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let (cert, key) = (plane.folder().join("webhook.pem"), plane.folder().join("webhook.key"));
    std::fs::write(&cert, certificate.cert.pem()).unwrap();
    std::fs::write(&key, certificate.signing_key.serialize_pem()).unwrap();
    let (cert, key) = (cert.to_str().unwrap(), key.to_str().unwrap());
    let ports: Vec<u16> = (0..3).map(|_| free_port().unwrap()).collect();
    let balancer = balance(ports.clone()).await;
    let url = format!("https://127.0.0.1:{balancer}/admit");
    let mut webhooks = Vec::new();
    for (place, port) in ports.iter().enumerate() {
        let address = format!("127.0.0.1:{port}");
        let mut arguments = vec![
            "--bind-address",
            &address,
            "--tls-cert-file",
            cert,
            "--tls-private-key-file",
            key,
            "--resources",
            "configmaps,eksclusters.example.com",
        ];
        if place == 0 {
            arguments.extend(["--register", "--url", &url, "--ca-bundle-file", cert]);
        }
        webhooks.push(Webhook::spawn(&plane, &format!("webhook-{place}.log"), &arguments));
    }
    registered(&plane).await;
    report_ready(&plane);
    eventually(PATIENCE, "the mark on the custom resource", async || {
        let cluster = get(&plane, &["eksclusters", "prod"]);
        if annotation(&cluster, "settled").is_empty() { Err(format!("{cluster:#}")) } else { Ok(()) }
    })
    .await
    .unwrap();

    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "ConfigMap"));
    let client = plane.client(EKS_CONTROLLER, &[MASTERS]).unwrap();
    let api: Api<DynamicObject> = Api::namespaced_with(client, "default", &resource);
    let child: DynamicObject = serde_json::from_value(json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"generateName": "drift-", "ownerReferences": [{"apiVersion": "example.com/v1", "kind": "EKSCluster",
            "name": "prod", "uid": cluster["metadata"]["uid"], "controller": true}]},
        "data": {"unasked": "for"}}))
    .unwrap();
    let approval =
        r#"kausality.io/approvals=[{"apiVersion":"v1","kind":"ConfigMap","name":"drift-","generation":1}]"#;
    for run in 1..=20 {
        must(&plane, "dave", &["annotate", "eksclusters", "prod", approval]);
        let parameters = PostParams::default();
        let attempts = (0..100).map(|_| api.create(&parameters, &child));
        let outcomes = futures::future::join_all(attempts).await;
        let denied =
            outcomes.iter().filter(|outcome| matches!(outcome, Err(kube::Error::Api(it)) if it.code == 403));
        let passed = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
        let other = outcomes
            .iter()
            .filter_map(|outcome| outcome.as_ref().err())
            .find(|error| !matches!(error, kube::Error::Api(it) if it.code == 403));
        assert_eq!((passed, denied.count()), (1, 99), "run {run}: {other:?}");
        assert_eq!(annotation(&get(&plane, &["eksclusters", "prod"]), "approvals"), "");
    }

    // A dry run uses up nothing, and changes nothing.
    must(&plane, "dave", &["annotate", "eksclusters", "prod", approval]);
    let before = get(&plane, &["eksclusters", "prod"])["metadata"]["resourceVersion"].clone();
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    api.create(&dry, &child).await.unwrap();
    assert_eq!(get(&plane, &["eksclusters", "prod"])["metadata"]["resourceVersion"], before);

    // Nobody's write failed because of ours.
    let conflicts: Vec<_> = plane
        .audit()
        .unwrap()
        .into_iter()
        .filter(|event| event.code == 409 && !event.user_agent.starts_with("kausality-webhook"))
        .collect();
    assert!(conflicts.is_empty(), "{conflicts:?}");
}

async fn denial(plane: &ControlPlane, count: usize) {
    eventually(PATIENCE, "a denied correction in the audit log", async || {
        let denied = plane.audit().unwrap().into_iter().filter(|event| {
            event
                .annotations
                .get("drift.kausality.io/resolution")
                .is_some_and(|resolution| resolution == "blocked")
        });
        let denied = denied.count();
        if denied > count { Ok(()) } else { Err(format!("{denied} so far")) }
    })
    .await
    .unwrap();
}

/// Watches cut, the API server and the webhook killed: decisions stay right, and nothing is stuck afterwards.
#[tokio::test(flavor = "multi_thread")]
async fn it_survives_what_happens_at_night() {
    let Some(mut plane) = start_or_skip().await.unwrap() else { return };
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

/// Probes and metrics without TLS.
#[tokio::test(flavor = "multi_thread")]
async fn probes_and_metrics_tell_how_it_is_doing() {
    let Some(plane) = start_or_skip().await.unwrap() else { return };
    let address = format!("127.0.0.1:{}", free_port().unwrap());
    let arguments = [
        "--bind-address",
        "127.0.0.1:0",
        "--health-address",
        &address,
        "--resources",
        "deployments.apps,configmaps",
    ];
    let _webhook = Webhook::spawn(&plane, "webhook.log", &arguments);
    let fetch = |path: &str| {
        use std::io::{Read, Write};
        let mut stream = std::net::TcpStream::connect(&address).ok()?;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        Some(text)
    };
    eventually(PATIENCE, "readiness", async || {
        fetch("/readyz").filter(|text| text.starts_with("HTTP/1.1 200")).map(|_| ())
    })
    .await
    .unwrap();
    let metrics = fetch("/metrics").unwrap();
    for line in [
        r#"kausality_index_synced{group="apps",kind="Deployment"} 1"#,
        r#"kausality_index_outage_seconds{group="",kind="ConfigMap"} 0"#,
        "controller_runtime_webhook_requests_in_flight",
    ] {
        assert!(metrics.contains(line), "{line} is not in\n{metrics}");
    }
}

/// The commands of a page, in the order in which a reader types them.
fn commands(page: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(page);
    let mut inside = false;
    let mut commands = Vec::new();
    for line in std::fs::read_to_string(path).unwrap().lines() {
        match line {
            "```console cluster" => inside = true,
            "```" => inside = false,
            line if inside => commands.push(line.strip_prefix("$ ").expect("a command").to_owned()),
            _ => {}
        }
    }
    commands
}

/// Every command in the documentation of the webhook works, one after the other.
#[tokio::test(flavor = "multi_thread")]
async fn the_documentation_can_be_followed() {
    let Some(plane) = start_or_skip().await.unwrap() else { return };
    let _kubelet = plane.play_kubelet().await.unwrap();
    let commands = commands("webhook.md");
    assert!(commands.len() >= 10, "only {} commands were found", commands.len());
    // The reader is somebody else than the webhook.
    let bin = plane.folder().join("bin");
    std::fs::create_dir(&bin).unwrap();
    let kubectl = plane.kubectl("alice", &[MASTERS]);
    let words = std::iter::once(kubectl.get_program()).chain(kubectl.get_args());
    let words: Vec<String> = words.map(|word| format!("'{}'", word.to_str().unwrap())).collect();
    let script = format!("#!/bin/sh\nexec {} \"$@\"\n", words.join(" "));
    std::fs::write(bin.join("kubectl"), script).unwrap();
    let mut permissions = bin.join("kubectl").metadata().unwrap().permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o755);
    std::fs::set_permissions(bin.join("kubectl"), permissions).unwrap();
    let kausality = Path::new(env!("CARGO_BIN_EXE_kausality")).parent().unwrap();
    let path = format!("{}:{}:{}", bin.display(), kausality.display(), std::env::var("PATH").unwrap());
    let script = format!("set -ex -o pipefail\ntrap 'kill %1; wait' EXIT\n{}", commands.join("\n"));
    let mut reader = Command::new("timeout");
    let output = reader
        .args(["120", "bash", "-c", &script])
        .env("PATH", path)
        .env("KUBECONFIG", plane.kubeconfig())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    assert!(get(&plane, &["mutatingwebhookconfiguration", "kausality"]).is_null(), "{text}");
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
    let Some(plane) = start_or_skip().await.unwrap() else { return };
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
    let Some(plane) = start_or_skip().await.unwrap() else { return };
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
