//! Built-in kinds, by their counters.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Conditions, Standing, conditions::ROLLED_OUT, lenient, parse};
use crate::{review::Object, summary};

/// Where an object of a built-in kind stands; `None` for every other kind.
pub(super) fn standing(
    object: &Object<'_>,
    status: Option<&RawValue>,
    conditions: &Conditions,
) -> Option<Standing> {
    let reader: Reader = match (summary::group(&object.api_version), &*object.kind) {
        ("apps", "Deployment") => deployment,
        ("apps", "ReplicaSet") | ("", "ReplicationController") => replica_set,
        ("apps", "StatefulSet") => stateful_set,
        ("apps", "DaemonSet") => daemon_set,
        ("batch", "Job") => job,
        ("batch", "CronJob") => return Some(Standing::Never("a CronJob acts on a schedule")),
        ("keda.sh", "ScaledJob") => {
            return Some(Standing::Never("a ScaledJob acts on the length of a queue"));
        }
        ("", "Pod") => pod,
        ("", "Service") => service,
        ("", "PersistentVolumeClaim") => claim,
        ("apiextensions.k8s.io", "CustomResourceDefinition") => definition,
        _ => return None,
    };
    let Some(status) = status else { return Some(Standing::Busy("there is no status")) };
    let spec = object.intent.field("spec").map(parse).unwrap_or_default();
    let missing = reader(&spec, &parse(status), conditions);
    Some(missing.map_or(Standing::Done, Standing::Busy))
}

/// Whether objects of this kind always have `observedGeneration`: where it is not shown, it is 0.
pub(super) fn counts_generations(object: &Object<'_>) -> bool {
    match summary::group(&object.api_version) {
        "apps" => matches!(&*object.kind, "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet"),
        "" => object.kind == "ReplicationController",
        "policy" => object.kind == "PodDisruptionBudget",
        _ => false,
    }
}

/// Says what is missing.
type Reader = fn(&Spec, &Status, &Conditions) -> Option<&'static str>;

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    #[serde(default, deserialize_with = "lenient")]
    replicas: Option<i64>,
    #[serde(default, deserialize_with = "lenient")]
    paused: bool,
    #[serde(default, deserialize_with = "lenient")]
    progress_deadline_seconds: Option<i64>,
    #[serde(default, deserialize_with = "lenient")]
    update_strategy: Strategy,
    #[serde(default, rename = "type", deserialize_with = "lenient")]
    service_type: String,
}

impl Spec {
    fn wanted(&self) -> i64 {
        self.replicas.unwrap_or(1)
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Strategy {
    #[serde(default, rename = "type", deserialize_with = "lenient")]
    name: String,
    #[serde(default, deserialize_with = "lenient")]
    rolling_update: RollingUpdate,
}

#[derive(Default, Deserialize)]
struct RollingUpdate {
    #[serde(default, deserialize_with = "lenient")]
    partition: i64,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    #[serde(deserialize_with = "lenient")]
    replicas: i64,
    #[serde(deserialize_with = "lenient")]
    updated_replicas: i64,
    #[serde(deserialize_with = "lenient")]
    ready_replicas: i64,
    #[serde(deserialize_with = "lenient")]
    available_replicas: i64,
    #[serde(deserialize_with = "lenient")]
    fully_labeled_replicas: i64,
    #[serde(deserialize_with = "lenient")]
    current_revision: String,
    #[serde(deserialize_with = "lenient")]
    update_revision: String,
    #[serde(deserialize_with = "lenient")]
    desired_number_scheduled: i64,
    #[serde(deserialize_with = "lenient")]
    current_number_scheduled: i64,
    #[serde(deserialize_with = "lenient")]
    updated_number_scheduled: i64,
    #[serde(deserialize_with = "lenient")]
    number_available: i64,
    #[serde(deserialize_with = "lenient")]
    number_misscheduled: i64,
    #[serde(deserialize_with = "lenient")]
    phase: String,
    #[serde(deserialize_with = "lenient")]
    load_balancer: LoadBalancer,
}

#[derive(Default, Deserialize)]
struct LoadBalancer {
    #[serde(default, deserialize_with = "lenient")]
    ingress: Vec<serde::de::IgnoredAny>,
}

/// `progressDeadlineSeconds` of this value means "none", and leaves `Progressing` out.
const NO_DEADLINE: i64 = i32::MAX as i64;

fn deployment(spec: &Spec, status: &Status, conditions: &Conditions) -> Option<&'static str> {
    let wanted = spec.wanted();
    if conditions.is_true("ReplicaFailure") {
        return Some("condition ReplicaFailure is True");
    }
    if status.updated_replicas != wanted {
        return Some("not all replicas are updated");
    }
    if status.replicas != wanted {
        return Some("old replicas are still there");
    }
    if status.available_replicas != wanted {
        return Some("not all replicas are available");
    }
    match conditions.get("Progressing") {
        Some(progressing) if progressing.is_true() && progressing.reason == ROLLED_OUT => None,
        _ if spec.paused => None,
        None if spec.progress_deadline_seconds == Some(NO_DEADLINE) => None,
        _ => Some("Progressing does not say NewReplicaSetAvailable"),
    }
}

fn replica_set(spec: &Spec, status: &Status, conditions: &Conditions) -> Option<&'static str> {
    let wanted = spec.wanted();
    if conditions.is_true("ReplicaFailure") {
        return Some("condition ReplicaFailure is True");
    }
    if status.replicas != wanted {
        return Some("there are more or fewer replicas than wanted");
    }
    if status.fully_labeled_replicas != wanted {
        return Some("not all replicas have the template's labels");
    }
    (status.available_replicas != wanted).then_some("not all replicas are available")
}

fn stateful_set(spec: &Spec, status: &Status, _: &Conditions) -> Option<&'static str> {
    let wanted = spec.wanted();
    if status.replicas != wanted {
        return Some("there are more or fewer replicas than wanted");
    }
    if status.ready_replicas != wanted {
        return Some("not all replicas are ready");
    }
    if spec.update_strategy.name == "OnDelete" {
        return None;
    }
    let partition = spec.update_strategy.rolling_update.partition;
    if partition > 0 {
        let missing = status.updated_replicas < wanted.saturating_sub(partition).max(0);
        return missing.then_some("not all replicas above the partition are updated");
    }
    (status.current_revision != status.update_revision).then_some("the update revision is not current yet")
}

fn daemon_set(spec: &Spec, status: &Status, _: &Conditions) -> Option<&'static str> {
    let wanted = status.desired_number_scheduled;
    if status.current_number_scheduled != wanted || status.number_misscheduled != 0 {
        return Some("not scheduled on just the nodes where it is wanted");
    }
    if status.updated_number_scheduled != wanted && spec.update_strategy.name != "OnDelete" {
        return Some("not all Pods are updated");
    }
    (status.number_available != wanted).then_some("not all Pods are available")
}

fn job(_: &Spec, _: &Status, conditions: &Conditions) -> Option<&'static str> {
    let over = conditions.is_true("Complete") || conditions.is_true("Failed");
    (!over).then_some("neither Complete nor Failed")
}

fn pod(_: &Spec, status: &Status, conditions: &Conditions) -> Option<&'static str> {
    let over = matches!(&*status.phase, "Succeeded" | "Failed");
    (!over && !conditions.is_true("Ready")).then_some("neither Ready nor over")
}

fn service(spec: &Spec, status: &Status, _: &Conditions) -> Option<&'static str> {
    let waiting = spec.service_type == "LoadBalancer" && status.load_balancer.ingress.is_empty();
    waiting.then_some("the load balancer has no address yet")
}

fn claim(_: &Spec, status: &Status, _: &Conditions) -> Option<&'static str> {
    (status.phase != "Bound").then_some("not Bound")
}

fn definition(_: &Spec, _: &Status, conditions: &Conditions) -> Option<&'static str> {
    let served = conditions.is_true("Established") && conditions.is_true("NamesAccepted");
    (!served).then_some("not Established with NamesAccepted")
}
