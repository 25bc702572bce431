//! What must work: rollouts, corrections, approvals, and at which price.

use std::time::{Duration, Instant};

use kausality_testbed::{AuditEvent, ControlPlane, MASTERS, eventually, free_port};
use kube::{
    api::{Api, PostParams},
    core::{ApiResource, DynamicObject, GroupVersionKind},
};
use serde_json::{Value, json};

use crate::real::stage::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_rollout_passes_and_a_correction_is_denied_until_it_is_approved() {
    let Some(plane) = stage().await else { return };
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

/// How long a Deployment is left alone.
const IDLE: Duration = Duration::from_secs(60);

/// Its controller copies all annotations to ReplicaSets, ours among them. Once that is done, nobody writes, as without us.
#[tokio::test(flavor = "multi_thread")]
async fn an_idle_deployment_is_left_alone() {
    let Some(plane) = stage().await else { return };
    let _kubelet = plane.play_kubelet().await.unwrap();
    let _webhook = Webhook::start(&plane).await;
    must(&plane, "alice", &["create", "deployment", "web", "--image=nginx:1", "--replicas=2"]);
    rolled_out(&plane, "web", 1).await;
    let writes = || {
        let of_workloads = |event: &AuditEvent| {
            let writes = matches!(event.verb.as_str(), "create" | "update" | "patch" | "delete");
            writes && matches!(event.resource.as_str(), "deployments" | "replicasets" | "pods")
        };
        plane.audit().unwrap().into_iter().filter(of_workloads).collect::<Vec<AuditEvent>>()
    };
    let (mut before, mut since) = (writes().len(), Instant::now());
    eventually(PATIENCE, "a pause", async || {
        let now = writes().len();
        if now != before {
            (before, since) = (now, Instant::now());
        }
        (since.elapsed() >= Duration::from_secs(5)).then_some(())
    })
    .await
    .unwrap();
    tokio::time::sleep(IDLE).await;
    let after = writes();
    assert_eq!(after.len(), before, "{:#?}", &after[before..]);
}

fn user_agent_calls(plane: &ControlPlane, agent: &str) -> Vec<AuditEvent> {
    let events = plane.audit().unwrap();
    events.into_iter().filter(|event| event.user_agent.starts_with(agent) && event.verb != "watch").collect()
}

/// No API call on the way of a request that is not drift, also where a watch lags behind: what is certain to come is
/// waited for.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_drift_costs_no_api_call() {
    let Some(plane) = stage().await else { return };
    let _kubelet = plane.play_kubelet().await.unwrap();
    let _webhook = Webhook::start(&plane).await;
    // The audit log is written after the answer.
    let before = eventually(PATIENCE, "the registration in the audit log", async || {
        let calls = user_agent_calls(&plane, "kausality-webhook");
        calls.iter().any(|call| call.resource == "mutatingwebhookconfigurations").then_some(calls.len())
    });
    let (before, started) = (before.await.unwrap(), Instant::now());
    must(&plane, "alice", &["create", "deployment", "web", "--image=nginx:1", "--replicas=3"]);
    must(&plane, "alice", &["create", "job", "once", "--image=busybox"]);
    rolled_out(&plane, "web", 1).await;
    must(&plane, "bob", &["set", "image", "deployment/web", "nginx=nginx:2"]);
    rolled_out(&plane, "web", 2).await;
    must(&plane, "bob", &["set", "image", "deployment/web", "nginx=nginx:3"]);
    rolled_out(&plane, "web", 3).await;
    // What changes neither intent nor annotations of ours does not even reach the webhook.
    let label = || {
        must(&plane, "bob", &["label", "--overwrite", "deployment", "web", "colour=red"]);
        let metrics = must(&plane, "watcher", &["get", "--raw", "/metrics"]);
        let counts = metrics.lines().filter(|line| line.starts_with("apiserver_admission_match_condition"));
        counts.map(ToOwned::to_owned).collect::<Vec<String>>()
    };
    let counts = label();
    let excluded = |line: &String| line.contains("exclusions_total{") && line.contains("drift.kausality.io");
    assert!(counts.iter().any(excluded), "{counts:#?}");
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
    let reviewed = plane.audit().unwrap().iter().filter(|event| is_reviewed(event)).count();
    assert!(reviewed > 50, "{reviewed} requests were reviewed");
    // What is served is learned anew every minute, by two calls; nothing else is asked.
    let refreshes = 2 * (started.elapsed().as_secs() as usize / 60 + 1);
    let (learned, since): (Vec<String>, Vec<String>) =
        since.into_iter().partition(|call| call.trim_end() == "get");
    assert!(learned.len() <= refreshes, "{} calls to learn what is served", learned.len());
    assert_eq!(since, Vec::<String>::new(), "{reviewed} requests were reviewed");
}

fn is_reviewed(event: &AuditEvent) -> bool {
    ["drift", "drift-plain", "status"]
        .iter()
        .any(|it| event.annotations.contains_key(&format!("{it}.kausality.io/decision")))
}

pub(crate) const EKS_CONTROLLER: &str = "system:serviceaccount:infra:eks-controller";

/// The custom resource EKSCluster, and one of it that has settled.
pub(crate) async fn settled_cluster(plane: &ControlPlane) -> Value {
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

/// Its controller reports that it is ready, and that is kept.
pub(crate) async fn report_ready(plane: &ControlPlane) {
    let status = r#"{"status":{"observedGeneration":1,"conditions":[{"type":"Ready","status":"True"}]}}"#;
    must(
        plane,
        EKS_CONTROLLER,
        &["patch", "eksclusters", "prod", "--subresource=status", "--type=merge", "-p", status],
    );
    eventually(PATIENCE, "the mark on the custom resource", async || {
        let cluster = get(plane, &["eksclusters", "prod"]);
        if annotation(&cluster, "settled").is_empty() { Err(format!("{cluster:#}")) } else { Ok(()) }
    })
    .await
    .unwrap();
}

/// What a patch of a custom resource's status cannot carry is written later: once per new fact, and never again.
#[tokio::test(flavor = "multi_thread")]
async fn custom_resources_cost_one_write_per_new_fact() {
    let Some(plane) = stage().await else { return };
    settled_cluster(&plane).await;
    let _webhook = Webhook::start_for(&plane, "eksclusters.example.com").await;
    report_ready(&plane).await;
    let controllers = || annotation(&get(&plane, &["eksclusters", "prod"]), "controllers");
    let before = (controllers(), user_agent_calls(&plane, "kausality-webhook").len());
    let write_status = |user: &str, nodes: usize| {
        // Who reports a phase reports as controllers do.
        let status = format!(r#"{{"status":{{"nodes":{nodes},"phase":"Of{nodes}"}}}}"#);
        must(
            &plane,
            user,
            &["patch", "eksclusters", "prod", "--subresource=status", "--type=merge", "-p", &status],
        );
    };
    (0..10).for_each(|nodes| write_status(EKS_CONTROLLER, nodes));
    write_status("system:serviceaccount:infra:node-counter", 10);
    eventually(PATIENCE, "the second controller on record", async || {
        let now = controllers();
        if now.len() > before.0.len() { Ok(()) } else { Err(now) }
    })
    .await
    .unwrap();
    let calls = user_agent_calls(&plane, "kausality-webhook");
    let about_objects = calls.iter().skip(before.1).filter(|call| !call.resource.is_empty());
    let since: Vec<&str> = about_objects.map(|call| call.verb.as_str()).collect();
    assert_eq!(since, ["patch"], "eleven status updates, one new fact");
}

/// A resource that is not served, since its operator is gone or has yet to come, keeps no other from being watched.
#[tokio::test(flavor = "multi_thread")]
async fn a_resource_that_is_not_served_harms_no_other() {
    let Some(plane) = stage().await else { return };
    let _webhook = Webhook::start_for(&plane, "configmaps,eksclusters.example.com").await;
    let watched =
        || get(&plane, &["mutatingwebhookconfiguration", "kausality"])["webhooks"][0]["rules"].to_string();
    assert!(watched().contains("configmaps") && !watched().contains("eksclusters"), "{}", watched());
    must(&plane, "alice", &["create", "configmap", "works"]);
    assert_eq!(users(&get(&plane, &["configmap", "works"])), ["alice"]);

    settled_cluster(&plane).await;
    eventually(PATIENCE, "the registration for the new kind", async || {
        if watched().contains("eksclusters") { Ok(()) } else { Err(watched()) }
    })
    .await
    .unwrap();
}

/// An operator that reads, thinks and writes without end meets no conflict with what we record for later.
#[tokio::test(flavor = "multi_thread")]
async fn a_busy_operator_meets_no_conflict() {
    let Some(plane) = stage().await else { return };
    settled_cluster(&plane).await;
    let _webhook = Webhook::start_for(&plane, "eksclusters.example.com").await;
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "EKSCluster"));
    let client = plane.client(EKS_CONTROLLER, &[MASTERS]).unwrap();
    let api: Api<DynamicObject> = Api::namespaced_with(client, "default", &resource);
    let mut thinking = tokio::time::interval(std::time::Duration::from_millis(400));
    for round in 0..15 {
        let mut cluster = api.get("prod").await.unwrap();
        thinking.tick().await;
        cluster.data["status"] = json!({"round": round, "observedGeneration": 1,
            "conditions": [{"type": "Ready", "status": "True"}]});
        let name = cluster.metadata.name.clone().unwrap();
        let written = api.replace_status(&name, &PostParams::default(), &cluster).await;
        assert!(written.is_ok(), "round {round}: {written:?}");
    }
    eventually(PATIENCE, "the record once it is quiet", async || {
        let controllers = annotation(&get(&plane, &["eksclusters", "prod"]), "controllers");
        if controllers.is_empty() { Err("none yet") } else { Ok(()) }
    })
    .await
    .unwrap();
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
    let Some(plane) = stage().await else { return };
    let cluster = settled_cluster(&plane).await;
    let certificate = rcgen::generate_simple_self_signed(["0.0.0.0".to_owned()]).unwrap();
    let (cert, key) = (plane.folder().join("webhook.pem"), plane.folder().join("webhook.key"));
    std::fs::write(&cert, certificate.cert.pem()).unwrap();
    std::fs::write(&key, certificate.signing_key.serialize_pem()).unwrap();
    let (cert, key) = (cert.to_str().unwrap(), key.to_str().unwrap());
    let ports: Vec<u16> = (0..3).map(|_| free_port().unwrap()).collect();
    let balancer = balance(ports.clone()).await;
    // To this address the API server speaks HTTP/1.1, as to a Service: so all replicas get something to do.
    let url = format!("https://0.0.0.0:{balancer}/admit");
    let mut webhooks = Vec::new();
    let mut probes = Vec::new();
    for (place, port) in ports.iter().enumerate() {
        let address = format!("127.0.0.1:{port}");
        let probe = format!("127.0.0.1:{}", free_port().unwrap());
        probes.push(probe.clone());
        let mut arguments = vec![
            "--bind-address",
            &address,
            "--health-address",
            &probe,
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
    report_ready(&plane).await;

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
        let passed = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
        assert_eq!(passed, 1, "run {run}");
        // All others were denied: as drift, or, on a machine that is too busy, since nobody answered in time.
        for error in outcomes.into_iter().filter_map(Result::err) {
            let kube::Error::Api(status) = &error else { panic!("run {run}: {error}") };
            assert!([403, 500].contains(&status.code), "run {run}: {error}");
        }
        assert_eq!(annotation(&get(&plane, &["eksclusters", "prod"]), "approvals"), "");
    }

    for probe in &probes {
        let metrics = fetch(probe, "/metrics").await.unwrap();
        let denied = |line: &&str| line.starts_with("kausality_decisions_total") && line.contains("deny");
        assert!(metrics.lines().any(|line| denied(&line)), "{probe} has denied nothing:\n{metrics}");
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
        .filter(|event| ["eksclusters", "configmaps"].contains(&event.resource.as_str()))
        .filter(|event| event.code == 409 && !event.user_agent.starts_with("kausality-webhook"))
        .collect();
    assert!(conflicts.is_empty(), "{conflicts:?}");
}
