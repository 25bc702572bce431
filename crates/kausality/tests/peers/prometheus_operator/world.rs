//! A control plane with prometheus-operator and, where wanted, Kausality.

use std::cell::RefCell;

use kausality_testbed::{
    Component, ControlPlane, Kubelet, MASTERS, Peer, Program, eventually, start_or_skip,
};
use serde_json::{Value, json};

use super::controller;
use crate::log::Log;
use crate::stage::{PATIENCE, Webhook, get, must};

pub(super) const NAMESPACE: &str = "monitoring";

/// What Kausality watches: what people write for the operator, what it makes of that, and Pods. The Service is left out: all
/// of a namespace share one, and nothing controls it.
const RESOURCES: [(&str, &str); 8] = [
    ("monitoring.coreos.com", "prometheuses"),
    ("monitoring.coreos.com", "alertmanagers"),
    ("monitoring.coreos.com", "servicemonitors"),
    ("monitoring.coreos.com", "prometheusrules"),
    ("apps", "statefulsets"),
    ("", "secrets"),
    ("", "configmaps"),
    ("", "pods"),
];

/// Whether Kausality is there, and what it does about drift.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kausality {
    Absent,
    Logs,
    Enforces,
}

/// Dropped in this order.
pub(super) struct World {
    _webhook: Option<Webhook>,
    operator: RefCell<Option<Program>>,
    _kubelet: Kubelet,
    peer: Peer,
    pub(super) plane: ControlPlane,
}

impl World {
    /// `None` where there is no control plane.
    pub(super) async fn start(peer: &Peer, kausality: Kausality) -> Option<Self> {
        let mut plane = start_or_skip().await.unwrap()?;
        controller::install(&plane, peer);
        // The garbage collector looks for new kinds every 30 s: this way it knows them from the start.
        plane.restart(Component::ControllerManager).await.unwrap();
        let kubelet = plane.play_kubelet().await.unwrap();
        must(&plane, "admin", &[MASTERS], &["create", "namespace", NAMESPACE]);
        let operator = controller::start(&plane, peer, "v1").await;
        let webhook = match kausality {
            Kausality::Absent => None,
            Kausality::Logs => Some(Webhook::start_in("log", &plane, &resources()).await),
            Kausality::Enforces => Some(Webhook::start_in("enforce", &plane, &resources()).await),
        };
        let operator = RefCell::new(Some(operator));
        let world = Self { _webhook: webhook, operator, _kubelet: kubelet, peer: peer.clone(), plane };
        if kausality != Kausality::Absent {
            world.is_reviewed().await;
        }
        Some(world)
    }

    /// Waits until the API server asks Kausality.
    async fn is_reviewed(&self) {
        let probe = ["create", "configmap", "probe", "--dry-run=server", "-o", "json", "-n", NAMESPACE];
        eventually(PATIENCE, "an answer of the webhook", async || {
            let answer = must(&self.plane, "probe", &[MASTERS], &probe);
            if answer.contains("kausality.io/trace") { Ok(()) } else { Err(answer) }
        })
        .await
        .unwrap();
    }

    /// The calls from now on.
    pub(super) fn log(&self) -> Log {
        Log::new(self.plane.audit_tail().unwrap(), is_watched)
    }

    /// A person uses kubectl.
    #[track_caller]
    pub(super) fn by(&self, user: &str, arguments: &[&str]) {
        must(&self.plane, user, &[MASTERS], &[&["--namespace", NAMESPACE], arguments].concat());
    }

    /// A person creates something.
    #[track_caller]
    pub(super) fn create(&self, user: &str, manifest: &Value) {
        let file = self.plane.folder().join("manifest.json");
        std::fs::write(&file, manifest.to_string()).unwrap();
        self.by(user, &["create", "-f", file.to_str().unwrap()]);
    }

    /// A person changes fields of something.
    #[track_caller]
    pub(super) fn patch(&self, user: &str, what: &str, patch: &Value) {
        self.by(user, &["patch", what, "--type=merge", "-p", &patch.to_string()]);
    }

    pub(super) fn get(&self, what: &str) -> Value {
        get(&self.plane, &["--namespace", NAMESPACE, what])
    }

    /// Waits until a Prometheus or Alertmanager says that all its Pods are there, for its present generation.
    pub(super) async fn is_ready(&self, what: &str) {
        eventually(PATIENCE, format_args!("{what} to be ready"), async || {
            let object = self.get(what);
            let (generation, replicas) = (&object["metadata"]["generation"], &object["spec"]["replicas"]);
            let status = &object["status"];
            let conditions = status["conditions"].as_array().cloned().unwrap_or_default();
            let is_true = |name: &str| {
                conditions.iter().any(|condition| {
                    condition["type"] == name
                        && condition["status"] == "True"
                        && condition["observedGeneration"] == *generation
                })
            };
            let all = ["replicas", "updatedReplicas", "availableReplicas"];
            let counted = all.iter().all(|count| status[*count] == *replicas);
            if counted && is_true("Available") && is_true("Reconciled") {
                Ok(())
            } else {
                Err(format!("{object:#}"))
            }
        })
        .await
        .unwrap();
    }

    /// Waits until an object is as somebody expects it.
    pub(super) async fn until(&self, what: &str, expected: impl Fn(&Value) -> bool) {
        eventually(PATIENCE, format_args!("{what} to be as expected"), async || {
            let object = self.get(what);
            if expected(&object) { Ok(()) } else { Err(format!("{object:#}")) }
        })
        .await
        .unwrap();
    }

    /// Waits until nothing is left of this kind.
    pub(super) async fn is_gone(&self, kinds: &str) {
        eventually(PATIENCE, format_args!("{kinds} to be gone"), async || {
            let left = get(&self.plane, &[kinds, "--namespace", NAMESPACE]);
            if left["items"] == json!([]) { Ok(()) } else { Err(format!("{left:#}")) }
        })
        .await
        .unwrap();
    }

    /// Replaces the operator by one that runs another reloader beside each Prometheus, as its next version would.
    pub(super) async fn upgrade(&self, reloader: &str) {
        self.operator.replace(None);
        let operator = controller::start(&self.plane, &self.peer, reloader).await;
        self.operator.replace(Some(operator));
    }

    /// Fails if the operator has ended.
    pub(super) fn runs(&self) {
        self.operator.borrow_mut().as_mut().unwrap().is_running().unwrap();
    }
}

fn resources() -> String {
    let named = RESOURCES.map(|(group, resource)| match group {
        "" => resource.to_owned(),
        group => format!("{resource}.{group}"),
    });
    named.join(",")
}

/// Whether a resource is one that Kausality watches.
fn is_watched(group: &str, resource: &str) -> bool {
    RESOURCES.contains(&(group, resource))
}
