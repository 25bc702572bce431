//! What happens to Pods by parts of their own: evictions, ephemeral containers, resizes and bindings.

use kausality_testbed::{MASTERS, eventually};
use kube::api::{Api, PostParams};
use serde_json::{Value, json};

use crate::real::{
    controller::{Installation, policy, told},
    stage::*,
};

const REPLICA_SETS: &str = "system:serviceaccount:kube-system:replicaset-controller";

/// The Pods of the Deployment web, by name.
fn pods(plane: &Stage) -> Vec<String> {
    let pods = get(plane, &["pods"])["items"].as_array().cloned().unwrap_or_default();
    pods.iter().map(|pod| pod["metadata"]["name"].as_str().unwrap_or_default().to_owned()).collect()
}

/// Sends a body to a part of a Pod as a user; the message, if that is refused.
async fn send(
    plane: &Stage,
    user: &str,
    method: &str,
    pod: &str,
    part: &str,
    body: &Value,
) -> Result<(), String> {
    let client = plane.client(user, &[MASTERS]).unwrap();
    let request = http::Request::builder()
        .method(method)
        .uri(format!("/api/v1/namespaces/default/pods/{pod}/{part}"))
        .header(
            "content-type",
            match method {
                "PATCH" => "application/strategic-merge-patch+json",
                _ => "application/json",
            },
        )
        .body(serde_json::to_vec(body).unwrap())
        .unwrap();
    client.request::<Value>(request).await.map(|_| ()).map_err(|error| error.to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_of_pods_are_judged() {
    let Some(plane) = stage().await else { return };
    let _kubelet = plane.play_kubelet().await.unwrap();
    let _webhook = Webhook::start_for(&plane, "deployments.apps,replicasets.apps,pods").await;
    must(&plane, "alice", &["create", "deployment", "web", "--image=nginx:1", "--replicas=1"]);
    rolled_out(&plane, "web", 1).await;
    let set = replica_sets(&plane)[0]["metadata"]["name"].as_str().unwrap().to_owned();
    let pod = pods(&plane).remove(0);
    let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": &pod, "namespace": "default"}});
    let debugger = json!({"spec": {"ephemeralContainers": [{"name": "debug", "image": "busybox", "targetContainerName": "nginx"}]}});
    let resized =
        json!({"spec": {"containers": [{"name": "nginx", "resources": {"requests": {"cpu": "10m"}}}]}});

    must(&plane, "dave", &["annotate", "replicaset", &set, "kausality.io/freeze=true"]);
    for (method, part, body) in [
        ("POST", "eviction", &eviction),
        ("PATCH", "ephemeralcontainers", &debugger),
        ("PATCH", "resize", &resized),
    ] {
        let refused = send(&plane, "carol", method, &pod, part, body).await.unwrap_err();
        assert!(refused.contains(&format!("ReplicaSet default/{set} is frozen")), "{part}: {refused}");
    }
    must(&plane, "dave", &["annotate", "replicaset", &set, "kausality.io/freeze-"]);
    send(&plane, "carol", "PATCH", &pod, "ephemeralcontainers", &debugger).await.unwrap();
    assert_eq!(get(&plane, &["pod", &pod])["spec"]["ephemeralContainers"][0]["name"], "debug");
    send(&plane, "carol", "POST", &pod, "eviction", &eviction).await.unwrap();
    let missing = send(&plane, "carol", "POST", "nowhere", "eviction", &eviction).await.unwrap_err();
    assert!(!missing.contains("kausality"), "{missing}");
}

/// Annotations of a Binding end up on its Pod, which nobody reviews then.
#[tokio::test(flavor = "multi_thread")]
async fn a_binding_brings_no_annotations_of_ours() {
    let Some(plane) = stage().await else { return };
    let _webhook = Webhook::start_for(&plane, "pods").await;
    let api: Api<k8s_openapi::api::core::v1::Pod> =
        Api::namespaced(plane.client("alice", &[MASTERS]).unwrap(), "default");
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one"},
        "spec": {"containers": [{"name": "c", "image": "nginx"}]}});
    api.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
    let trace = get(&plane, &["pod", "one"])["metadata"]["annotations"].clone();
    let key =
        trace.as_object().unwrap().keys().find(|key| key.starts_with("kausality.io/trace.")).unwrap().clone();
    let binding = json!({"apiVersion": "v1", "kind": "Binding", "target": {"kind": "Node", "name": "n"},
        "metadata": {"name": "one", "namespace": "default",
            "annotations": {"kausality.io/freeze": "true", &key: "[]", "example.com/own": "kept"}}});
    send(&plane, "scheduler", "POST", "one", "binding", &binding).await.unwrap();

    let annotations = get(&plane, &["pod", "one"])["metadata"]["annotations"].clone();
    assert_eq!(annotations["example.com/own"], "kept");
    assert_eq!(annotations["kausality.io/freeze"], Value::Null);
    assert_eq!(annotations[&key], trace[&key], "the trace is as it was");
}

/// An eviction that a PodDisruptionBudget refuses has used up its approval, and has it when it is tried again.
#[tokio::test(flavor = "multi_thread")]
async fn an_eviction_that_was_put_off_keeps_its_approval() {
    let Some(plane) = stage().await else { return };
    let _kubelet = plane.play_kubelet().await.unwrap();
    let _webhook = Webhook::start_for(&plane, "deployments.apps,replicasets.apps,pods").await;
    must(&plane, "alice", &["create", "deployment", "web", "--image=nginx:1", "--replicas=1"]);
    rolled_out(&plane, "web", 1).await;
    let set = || replica_sets(&plane).remove(0);
    let name = set()["metadata"]["name"].as_str().unwrap().to_owned();
    eventually(PATIENCE, "the mark on the ReplicaSet", async || {
        if annotation(&set(), "settled").is_empty() { Err(format!("{:#}", set())) } else { Ok(()) }
    })
    .await
    .unwrap();
    must(&plane, "alice", &["create", "pdb", "web", "--selector=app=web", "--min-available=1"]);
    let pod = pods(&plane).remove(0);
    let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": &pod, "namespace": "default"}});
    let evict = || send(&plane, REPLICA_SETS, "POST", &pod, "eviction", &eviction);

    let refused = evict().await.unwrap_err();
    assert!(refused.contains("kausality: drift "), "{refused}");
    let approval = format!(
        r#"kausality.io/approvals=[{{"apiVersion":"v1","kind":"Pod","name":"{pod}","generation":{}}}]"#,
        set()["metadata"]["generation"]
    );
    must(&plane, "dave", &["annotate", "replicaset", &name, &approval]);
    // The client tries again by itself where it is told that there are too many requests.
    let let_go = async {
        let used_up = eventually(PATIENCE, "a refusal of the budget", async || {
            let refused = plane
                .audit()
                .unwrap()
                .into_iter()
                .find(|event| event.resource == "pods" && event.code == 429);
            refused.map(|_| ())
        });
        used_up.await.unwrap();
        assert!(set()["metadata"]["annotations"]["kausality.io/approvals"].is_null(), "it is used up");
        must(&plane, "alice", &["delete", "pdb", "web"]);
    };
    let (evicted, ()) = tokio::join!(evict(), let_go);
    evicted.unwrap();
}

/// API servers hold selectors of objects against what is sent, and an Eviction or a Scale has not the labels of its object.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn parts_of_what_a_policy_selects_by_labels_are_judged() {
    let Some(plane) = stage().await else { return };
    let _kubelet = plane.play_kubelet().await.unwrap();
    let installation = Installation::start(&plane).await;
    let _controller = installation.spawn_controller("controller.log", &[]);
    let resources = json!([{"apiGroups": [""], "resources": ["pods"]},
        {"apiGroups": ["apps"], "resources": ["replicasets", "deployments"]}]);
    let labels = json!({"matchLabels": {"app": "web"}});
    let spec = json!({"resources": resources, "mode": "enforce", "objectSelector": labels});
    apply(&plane, "alice", &policy("labelled", &spec));
    told(&plane, "labelled", "Ready", "Configured").await;
    installation.ready().await;
    for (name, is_meant) in [("web", true), ("other", false)] {
        // Nobody may have answered an API server yet that trusts the certificate.
        eventually(PATIENCE, "a Deployment", async || {
            let create = ["create", "deployment", name, "--image=nginx:1", "--replicas=1"];
            let (done, said) = kubectl(&plane, "alice", &create);
            if done { Ok(()) } else { Err(said) }
        })
        .await
        .unwrap();
        must(&plane, "alice", &["rollout", "status", "deployment", name, "--timeout=60s"]);
        let of = |kind: &str| {
            let found = must(&plane, "alice", &["get", kind, "-l", &format!("app={name}"), "-o", "name"]);
            found.trim().rsplit('/').next().unwrap().to_owned()
        };
        let (set, pod) = (of("replicasets"), of("pods"));
        // The other way round, the freeze of the ReplicaSet would be a copy of that of the Deployment.
        for (kind, owner) in [("replicaset", &*set), ("deployment", name)] {
            must(&plane, "dave", &["annotate", kind, owner, "kausality.io/freeze=true"]);
        }
        let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction",
            "metadata": {"name": &pod, "namespace": "default"}});
        let evict = async || send(&plane, "carol", "POST", &pod, "eviction?dryRun=All", &eviction).await;
        let scale = ["scale", "replicaset", &set, "--replicas=2", "--dry-run=server"];
        if !is_meant {
            evict().await.unwrap();
            must(&plane, "carol", &scale);
            continue;
        }
        // Each replica has to see the freezes first.
        eventually(PATIENCE, "an eviction that is refused", async || match evict().await {
            Err(said) if said.contains(&format!("ReplicaSet default/{set} is frozen")) => Ok(()),
            other => Err(format!("{other:?}")),
        })
        .await
        .unwrap();
        eventually(PATIENCE, "a scale that is refused", async || {
            let (done, said) = kubectl(&plane, "carol", &scale);
            if !done && said.contains("Deployment default/web is frozen") { Ok(()) } else { Err(said) }
        })
        .await
        .unwrap();
    }
}
