//! A kubelet that runs nothing: Pods are ready as soon as they are on a node, and end as soon as they are told to.

use serde_json::{Value, json};

use super::{
    Action, Cache, Change, Controller, Delete, Key, NAMESPACES, NODES, Outcome, PODS, Time, Watched, Write,
    object,
};
use crate::discovery::VERSION;

/// The kubelet of the sandbox, for all nodes there are; one it registers itself. Pods that restart always are ready at
/// once; all others, those of Jobs, succeed at once.
/// A Pod with the annotation `sandbox.kausality.io/outcome` does what that says: `pending` (it never starts), `unready`
/// (it runs and is never ready), `failed`.
#[derive(Debug, Default)]
pub struct Kubelet {}

/// The node that it registers.
const NODE: &str = "sandbox";
/// The annotation with what becomes of a Pod.
const OUTCOME: &str = "sandbox.kausality.io/outcome";

impl Controller for Kubelet {
    fn name(&self) -> &str {
        "kubelet"
    }

    fn user(&self) -> String {
        "system:node:sandbox".to_owned()
    }

    fn watches(&self) -> Watched {
        Watched::These(vec![PODS.clone(), NODES.clone(), NAMESPACES.clone()])
    }

    fn keys(&mut self, cache: &Cache, change: &Change) -> Vec<Key> {
        let open = |pod: &Value| object::deleting(pod) || waits(pod);
        let pods = change.after.iter().filter(|pod| change.resource == PODS && open(pod));
        let mut keys: Vec<_> = pods.map(|pod| PODS.key_of(pod)).collect();
        // There are namespaces wherever there is a control plane: this is how it sees that it has begun.
        let node = NODES.key("", NODE);
        if cache.at(&node).is_none() {
            keys.push(node);
        }
        keys
    }

    fn sync(&mut self, cache: &Cache, key: &Key, now: Time) -> Outcome {
        if key.resource == NODES {
            let registered = cache.at(key).is_some();
            return Outcome::writes(if registered { vec![] } else { vec![Write::create(&NODES, node(now))] });
        }
        let Some(pod) = cache.at(key) else { return Outcome::default() };
        if object::deleting(pod) {
            return Outcome::writes(end(pod).into_iter().collect());
        }
        if !waits(pod) {
            return Outcome::default();
        }
        let outcome = object::annotation(pod, OUTCOME).unwrap_or_default();
        let always = matches!(object::text(&pod["spec"]["restartPolicy"]), "" | "Always");
        let (phase, ready) = match outcome {
            "pending" => return Outcome::default(),
            "unready" => ("Running", false),
            "failed" => ("Failed", false),
            _ if always => ("Running", true),
            _ => ("Succeeded", false),
        };
        let patch =
            json!({ "metadata": { "uid": object::uid(pod) }, "status": status(pod, phase, ready, now) });
        Outcome::writes(vec![Write::patch_status(&PODS, pod, patch)])
    }
}

/// Whether it is on a node and has not been started.
fn waits(pod: &Value) -> bool {
    pod["spec"]["nodeName"].is_string() && matches!(object::text(&pod["status"]["phase"]), "" | "Pending")
}

fn node(now: Time) -> Value {
    let now = now.rfc3339();
    let condition = |kind: &str, status: &str, reason: &str, message: &str| {
        json!({
            "type": kind, "status": status, "reason": reason, "message": message,
            "lastHeartbeatTime": now, "lastTransitionTime": now,
        })
    };
    // It runs nothing, so there is room for all.
    let room = json!({ "cpu": "1k", "memory": "1Ti", "pods": "1M" });
    let (os, architecture) = (std::env::consts::OS, std::env::consts::ARCH);
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": { "name": NODE, "labels": {
            "kubernetes.io/arch": architecture, "kubernetes.io/hostname": NODE, "kubernetes.io/os": os,
        } },
        "status": {
            "addresses": [
                { "type": "InternalIP", "address": "127.0.0.1" },
                { "type": "Hostname", "address": NODE },
            ],
            "allocatable": room,
            "capacity": room,
            "conditions": [
                condition("MemoryPressure", "False", "KubeletHasSufficientMemory",
                    "kubelet has sufficient memory available"),
                condition("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
                condition("PIDPressure", "False", "KubeletHasSufficientPID",
                    "kubelet has sufficient PID available"),
                condition("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
            ],
            "nodeInfo": {
                "architecture": architecture, "bootID": NODE, "containerRuntimeVersion": "sandbox://none",
                "kernelVersion": "none", "kubeProxyVersion": "", "kubeletVersion": VERSION, "machineID": NODE,
                "operatingSystem": os, "osImage": "Kausality sandbox", "systemUUID": NODE,
            },
        },
    })
}

/// Ends a Pod that was given time to end. One without has been told already, and waits for its finalizers.
fn end(pod: &Value) -> Option<Write> {
    if pod["metadata"]["deletionGracePeriodSeconds"] == 0 {
        return None;
    }
    let uid = Some(object::uid(pod).to_owned());
    let delete = Delete { uid, grace_period_seconds: Some(0), ..Delete::default() };
    Some(Write { key: PODS.key_of(pod), action: Action::Delete(delete) })
}

fn status(pod: &Value, phase: &str, ready: bool, now: Time) -> Value {
    let now = now.rfc3339();
    let condition = |kind: &str, holds: bool| {
        let status = if holds { "True" } else { "False" };
        json!({ "type": kind, "status": status, "lastProbeTime": null, "lastTransitionTime": now })
    };
    let state = match phase {
        "Running" => json!({ "running": { "startedAt": now } }),
        "Succeeded" => json!({ "terminated": { "exitCode": 0, "reason": "Completed", "finishedAt": now } }),
        _ => json!({ "terminated": { "exitCode": 1, "reason": "Error", "finishedAt": now } }),
    };
    let container = |container: &Value| {
        json!({
            "name": container["name"], "image": container["image"], "imageID": container["image"], "ready": ready,
            "started": phase == "Running", "restartCount": 0, "state": state, "lastState": {},
        })
    };
    let containers: Vec<_> = object::items(&pod["spec"]["containers"]).iter().map(container).collect();
    json!({
        "phase": phase,
        "startTime": now,
        "conditions": [
            condition("Initialized", true),
            condition("Ready", ready),
            condition("ContainersReady", ready),
            condition("PodScheduled", true),
        ],
        "containerStatuses": containers,
    })
}
