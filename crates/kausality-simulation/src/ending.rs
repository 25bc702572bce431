//! How every simulation must end: when nothing goes wrong any more, everything comes to be as people want it.

use std::{sync::Arc, time::Duration};

use http::Method;
use kausality_sandbox::Sandbox;
use serde_json::{Value, json};

use crate::{
    OPERATOR,
    oracle::{Oracle, Steady, Version},
    people::{Kind, People, url},
    replicas::Replicas,
};

/// How long it may take.
const PATIENCE: Duration = Duration::from_secs(1800);

/// Another number of replicas than anybody ever set: a Deployment whose ReplicaSet somebody has scaled by hand to just what
/// the Deployment comes to want takes that for a change of scale that is under way, for ever, and rolls nothing out. So
/// does a real one.
const FINAL_SIZE: u64 = 4;

/// How often it is looked.
const LOOK: Duration = Duration::from_secs(5);

/// How often all must be as it should be, one look after the other, with nothing written between.
const REST: u32 = 4;

/// Waits until all is as it should be, and says so if that never happens.
pub(crate) async fn converges(
    people: &People,
    replicas: &Arc<Replicas>,
    oracle: &Arc<Oracle>,
    sandbox: &Sandbox,
    version: u64,
) {
    oracle.note("the faults are over");
    if replicas.len() == 0 {
        replicas.start();
    }
    // Connections that have died without a word are found out within their term.
    tokio::time::sleep(Duration::from_secs(60)).await;
    if !replicas.are_ready() {
        return oracle.violation("a replica is not ready although nothing is wrong");
    }
    oracle.calm();
    sandbox.compact();
    for root in &people.roots {
        people.release(*root).await;
    }
    for nested in people.list("deployments").await {
        let name = nested["metadata"]["name"].as_str().unwrap_or_default();
        let none = json!({"metadata": {"annotations": {"kausality.io/freeze": null, "kausality.io/rejections": null}}});
        people.send("alice", Method::PATCH, &url("deployments", name), &none).await;
    }
    // Something must be left to look at.
    for root in &people.roots {
        people.create(*root).await;
    }
    tokio::time::sleep(Duration::from_secs(60)).await;
    // Whatever nobody owns: also what was orphaned.
    for (kind, resource) in [(Kind::Stack, "stacks"), (Kind::Deployment, "deployments")] {
        for object in people.list(resource).await {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            if object["metadata"]["ownerReferences"].is_null() {
                let code = people.change("alice", kind, &url(resource, name), "final", FINAL_SIZE).await;
                if code != 200 {
                    oracle.violation(format_args!("{name} cannot be changed any more: {code}"));
                }
            }
        }
    }
    let looks = PATIENCE.as_secs() / LOOK.as_secs();
    let (mut left, mut rest, mut writes) = (String::new(), 0, 0);
    for _ in 0..looks {
        tokio::time::sleep(LOOK).await;
        if oracle.is_violated() {
            return;
        }
        let before = std::mem::replace(&mut writes, oracle.writes());
        left = unfinished(people, oracle, version).await.unwrap_or_else(|| "it is written to".to_owned());
        rest = if left == "it is written to" && before == writes { rest + 1 } else { 0 };
        if rest == REST {
            return;
        }
    }
    oracle.violation(format_args!("it does not come to rest: {left}"));
}

/// What is not yet as it should be.
async fn unfinished(people: &People, oracle: &Oracle, version: u64) -> Option<String> {
    let stacks = people.list("stacks").await;
    let deployments = people.list("deployments").await;
    for object in stacks.iter().chain(&deployments) {
        if let Some(why) = undone(object, oracle) {
            let metadata = &object["metadata"];
            return Some(format!("{} {} {why}", object["kind"], metadata["name"]));
        }
    }
    for root in people.roots.iter().filter(|root| root.kind == Kind::Stack) {
        let named = |suffix: &str| json!(format!("{root}{suffix}"));
        let Some(stack) = stacks.iter().find(|stack| stack["metadata"]["name"] == named("")) else {
            continue;
        };
        let settings = people.list("configmaps").await;
        let settings = settings.iter().find(|child| child["metadata"]["name"] == named("-settings"));
        let Some(settings) = settings else { return Some(format!("the ConfigMap of {root} is missing")) };
        // One that was orphaned before belongs to nobody, and is in the way of nobody else's.
        let is_owned = |child: &Value| !child["metadata"]["ownerReferences"].is_null();
        let wanted = json!({"color": stack["spec"]["color"], "size": format!("size {}", stack["spec"]["size"]),
            "version": format!("version {version}")});
        if is_owned(settings) && settings["data"] != wanted {
            return Some(format!("the ConfigMap of {root} is not as it wants it: {}", settings["data"]));
        }
        let web = deployments.iter().find(|child| child["metadata"]["name"] == named("-web"));
        let Some(web) = web else { return Some(format!("the Deployment of {root} is missing")) };
        let image = &web["spec"]["template"]["spec"]["containers"][0]["image"];
        let right =
            web["spec"]["replicas"] == stack["spec"]["size"] && *image == json!(format!("web:{version}"));
        if is_owned(web) && !right {
            return Some(format!("the Deployment of {root} is not as it wants it"));
        }
    }
    for resource in ["configmaps", "deployments", "replicasets"] {
        for object in people.list(resource).await {
            let owner = &object["metadata"]["ownerReferences"][0]["uid"];
            if owner.as_str().is_some_and(|owner| oracle.current(owner).is_none()) {
                return Some(format!("{} {} has lost its owner", object["kind"], object["metadata"]["name"]));
            }
        }
    }
    None
}

/// What an object still lacks.
fn undone(object: &Value, oracle: &Oracle) -> Option<&'static str> {
    let now = oracle.current(object["metadata"]["uid"].as_str().unwrap_or_default())?;
    let Version { steady, .. } = now;
    let controller = if now.kind == "Stack" {
        OPERATOR
    } else {
        "system:serviceaccount:kube-system:deployment-controller"
    };
    if now.is_mute() {
        // Its operator had nothing to do, and so nothing to say. Its children tell whether that is right.
        None
    } else if steady != Steady::Surely {
        Some("is not done")
    } else if !now.is_marked() {
        Some("is not marked as settled")
    } else if !now.is_controlled_by(controller) {
        Some("does not know its controller")
    } else {
        None
    }
}
