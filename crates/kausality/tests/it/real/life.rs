//! Much life in little time: objects, drifts, decisions and policies come and go while every part is restarted in turn and
//! certificates are replaced. Nothing legitimate is refused, memory stays flat, logs hold no errors, and nothing is left.
//!
//! `KAUSALITY_LIFE_SECONDS` says how long; `make life` makes it half an hour.

mod parts;
mod watch;
mod workers;
mod world;

use std::{sync::Arc, time::Duration};

use kausality_testbed::{ControlPlane, eventually};
use serde_json::{Value, json};

use crate::{
    install::stage::kausality,
    real::{
        controller::{Installation, configuration, policy, told},
        stage::*,
    },
};
use parts::Parts;
use world::World;

/// How long it is in `make test`.
const SHORT: u64 = 40;

/// How long it may take until all is over that is to be over.
const ENDING: Duration = Duration::from_secs(180);

/// Where somebody meddles with what controllers own, or an operator drifts. Elsewhere nothing is drift.
const DRIFTING: &str = "drifting";

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn much_life_in_little_time() {
    let Some(mut plane) = stage().await else { return };
    let seconds = std::env::var("KAUSALITY_LIFE_SECONDS").ok().map(|text| text.parse().unwrap());
    let length = Duration::from_secs(seconds.unwrap_or(SHORT));
    let _kubelet = plane.play_kubelet().await.unwrap();
    let mut installation = Installation::start(&plane).await;
    let mut parts = Parts::start(&mut installation);
    furnish(&plane).await;
    parts.ready().await;
    told(&plane, "life", "Ready", "Configured").await;

    let world = Arc::new(World::new(plane.kubeconfig()));
    let workers = workers::live(&plane, &world);
    let memory = watch::Memory::start(length);
    let turns = async {
        parts.take_turns(&mut plane, &world, &memory, length).await;
        world.stop();
    };
    futures::future::join(workers, turns).await;

    println!("{}", world.account());
    parts.ready().await;
    println!("{} entries are over", the_ledger_ends_empty(&plane).await);
    let (memory, grown) = memory.stop();
    println!("{}", memory.join("\n"));
    let started = parts.stop().await;
    println!("{started} processes of ours were started");
    let (warnings, unexplained) = watch::read_logs(plane.folder(), &world);
    println!("{}", warnings.join("\n"));
    nothing_is_left(&plane).await;

    let refused = world.refused();
    assert!(refused.is_empty(), "{} legitimate writes were refused: {refused:#?}", refused.len());
    assert!(unexplained.is_empty(), "{unexplained:#?}");
    assert!(grown.is_empty(), "{grown:#?}");
    for what in ["written", "drift", "frozen", "approved", "rejected"] {
        assert!(world.count(what) > 0, "nothing was {what}: {}", world.account());
    }
}

/// A kind of somebody, and a policy for it and for workloads.
async fn furnish(plane: &ControlPlane) {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "stacks.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"kind": "Stack", "plural": "stacks", "singular": "stack"},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": schema}}],
        },
    });
    apply(plane, "admin", &definition);
    must(plane, "admin", &["wait", "--for=condition=Established", "crd/stacks.example.com"]);
    let resources = json!([
        {"apiGroups": ["apps"], "resources": ["deployments", "replicasets"]},
        {"apiGroups": ["example.com"], "resources": ["*"]},
        {"apiGroups": [""], "resources": ["configmaps"]},
    ]);
    let life = json!({"resources": resources, "mode": "enforce", "quietTime": "2s"});
    apply(plane, "alice", &policy("life", &life));
    for namespace in workers::namespaces() {
        must(plane, "alice", &["create", "namespace", &namespace]);
    }
}

/// Every drift is over, and none was about an object that nobody meddled with. How many entries there are.
async fn the_ledger_ends_empty(plane: &ControlPlane) -> usize {
    let entries = || {
        let found = get(plane, &["drifts,clusterdrifts", "-A"]);
        found["items"].as_array().cloned().unwrap_or_default()
    };
    eventually(ENDING, "the end of all drifts", async || {
        let open: Vec<Value> =
            entries().into_iter().filter(|entry| entry["status"]["state"] != "Resolved").collect();
        if open.is_empty() { Ok(()) } else { Err(format!("{open:#?}")) }
    })
    .await
    .unwrap();
    let entries = entries();
    let false_ones: Vec<&Value> =
        entries.iter().filter(|entry| entry["metadata"]["namespace"] != DRIFTING).collect();
    assert!(false_ones.is_empty(), "{false_ones:#?}");
    entries.len()
}

/// The command removes all that is there; what the policies of the story led to is part of it.
async fn nothing_is_left(plane: &ControlPlane) {
    for namespace in workers::namespaces() {
        let kinds = "deployments,replicasets,pods,stacks,services";
        let left = get(plane, &[kinds, "-n", &namespace])["items"].as_array().cloned().unwrap_or_default();
        assert!(left.is_empty(), "{left:#?}");
    }
    let (code, said) = kausality(plane, &["uninstall", "--yes"]);
    assert_eq!(code, 0, "{said}");
    assert!(configuration(plane).is_null());
    let kinds =
        "clusterroles,clusterrolebindings,mutatingwebhookconfigurations,validatingwebhookconfigurations";
    let left = get(plane, &[kinds]);
    let names = left["items"].as_array().unwrap().iter().filter_map(|one| one["metadata"]["name"].as_str());
    let left: Vec<&str> = names.filter(|name| name.contains("kausality")).collect();
    assert!(left.is_empty(), "{left:?}");
}
