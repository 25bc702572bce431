//! The ReplicaSets of a Deployment: what they are made of, and what is copied onto them.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Value, json};

use super::{
    super::{DEPLOYMENTS, Time, hash, object},
    Limits, REVISION,
};

/// The label that tells the Pods of different templates apart.
const HASH: &str = "pod-template-hash";
/// The annotation with the number of replicas that the Deployment wanted when the ReplicaSet was last scaled.
pub(super) const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
/// The annotation with the most that it might have had.
pub(super) const MOST: &str = "deployment.kubernetes.io/max-replicas";
/// The annotation with the revisions that a ReplicaSet stood for before.
const HISTORY: &str = "deployment.kubernetes.io/revision-history";

/// Annotations that are not copied to ReplicaSets.
const KEPT: [&str; 6] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    REVISION,
    HISTORY,
    DESIRED,
    MOST,
    "deprecated.deployment.rollback.to",
];

/// A ReplicaSet, as the cache showed it.
#[derive(Clone, Debug)]
pub(super) struct Set {
    pub(super) object: Arc<Value>,
    /// How many Pods it wants.
    pub(super) replicas: i64,
    pub(super) created: Time,
}

impl Set {
    pub(super) fn new(object: Arc<Value>) -> Self {
        let replicas = object::int_or(&object["spec"]["replicas"], 1);
        Self { replicas, created: object::created(&object), object }
    }

    pub(super) fn name(&self) -> &str {
        object::name(&self.object)
    }

    /// A counter in its status.
    pub(super) fn status(&self, counter: &str) -> i64 {
        object::int(&self.object["status"][counter])
    }

    pub(super) fn available(&self) -> i64 {
        self.status("availableReplicas")
    }

    /// The last revision it stood for.
    pub(super) fn revision(&self) -> i64 {
        self.number(REVISION).unwrap_or_default()
    }

    /// A number in its annotations.
    pub(super) fn number(&self, annotation: &str) -> Option<i64> {
        object::annotation(&self.object, annotation)?.parse().ok()
    }

    /// Whether its template is the Deployment's, the label aside that it was given.
    pub(super) fn has_template_of(&self, deployment: &Value) -> bool {
        let (mine, theirs) = (&self.object["spec"]["template"], &deployment["spec"]["template"]);
        let same = |field| texts(mine, field) == texts(theirs, field);
        mine["spec"] == theirs["spec"] && same("labels") && same("annotations")
    }
}

fn texts<'a>(template: &'a Value, field: &str) -> BTreeMap<&'a String, &'a Value> {
    template["metadata"][field].as_object().into_iter().flatten().filter(|(key, _)| *key != HASH).collect()
}

/// A ReplicaSet for the Deployment's present template.
pub(super) fn create(deployment: &Value, replicas: i64, revision: i64, limits: Limits) -> Value {
    let mut template = deployment["spec"]["template"].clone();
    let hash = hash::short(&json!([template, deployment["status"]["collisionCount"]]));
    object::entry(object::entry(&mut template, "metadata"), "labels")[HASH] = json!(hash);
    let mut selector = deployment["spec"]["selector"].clone();
    object::entry(&mut selector, "matchLabels")[HASH] = json!(hash);
    let mut set = json!({
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": format!("{}-{hash}", object::name(deployment)),
            "namespace": object::namespace(deployment),
            "labels": template["metadata"]["labels"],
            "ownerReferences": object::owned_by(&DEPLOYMENTS, deployment),
        },
        "spec": { "replicas": replicas, "selector": selector, "template": template },
    });
    let min_ready = object::int(&deployment["spec"]["minReadySeconds"]);
    object::count(&mut set["spec"], "minReadySeconds", min_ready);
    copy_annotations(deployment, &mut set);
    set_revision(&mut set, revision);
    set_limits(&mut set, limits);
    set
}

/// Copies the Deployment's annotations. Those that it has lost stay. Says whether anything changed.
pub(super) fn copy_annotations(deployment: &Value, set: &mut Value) -> bool {
    let mut changed = false;
    for (key, value) in deployment["metadata"]["annotations"].as_object().into_iter().flatten() {
        let value = object::text(value);
        if !KEPT.contains(&key.as_str()) && object::annotation(set, key) != Some(value) {
            object::annotate(set, key, value.to_owned());
            changed = true;
        }
    }
    changed
}

/// Gives a ReplicaSet a later revision, and keeps the one it had. Says whether anything changed.
pub(super) fn set_revision(set: &mut Value, revision: i64) -> bool {
    let held = object::annotation(set, REVISION).map(str::to_owned);
    if held.as_deref().and_then(|held| held.parse().ok()).is_some_and(|held: i64| held >= revision) {
        return false;
    }
    if let Some(held) = held {
        let history = object::annotation(set, HISTORY).filter(|history| !history.is_empty());
        let history = history.map_or(held.clone(), |history| format!("{history},{held}"));
        object::annotate(set, HISTORY, history);
    }
    object::annotate(set, REVISION, revision.to_string());
    true
}

/// Notes for which size of the Deployment the ReplicaSet was scaled.
pub(super) fn set_limits(set: &mut Value, limits: Limits) {
    object::annotate(set, DESIRED, limits.replicas.to_string());
    object::annotate(set, MOST, limits.most().to_string());
}
