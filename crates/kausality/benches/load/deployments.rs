//! Deployments by the thousand, as a cluster with Kausality has them: made when asked for.

use kausality_api::{annotation::Suffix, identity::UserHash};
use serde_json::{Value, json};

use crate::api::Shelf;

/// Who reconciles them.
pub(crate) const CONTROLLER: &str = "system:serviceaccount:kube-system:deployment-controller";

/// How many namespaces they are in.
const NAMESPACES: usize = 200;

/// A shelf with so many Deployments.
pub(crate) fn shelf(count: usize) -> Shelf {
    // Each is as long as the others, so the text between what differs is written once.
    let template = template().to_string();
    Shelf::new("apps", "v1", "deployments", "Deployment").making(count, move |nth| {
        let Deployment { namespace, name, uid } = Deployment::of(nth);
        template
            .replace("SUFFIX", &Suffix::of("apps", "Deployment", &namespace, &name).to_string())
            .replace("NAMESPACE", &namespace)
            .replace("NAME", &name)
            .replace("UID", &uid)
    })
}

/// The namespaces of all that is made, and those of the recordings.
pub(crate) fn namespaces() -> Shelf {
    let made = (0..NAMESPACES).map(|nth| Deployment::of(nth).namespace);
    let names = made.chain(["default".to_owned(), "kube-system".to_owned()]);
    let namespace = |name: String| {
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "uid": format!("uid-of-{name}"),
            "resourceVersion": "1000000000", "labels": {"kubernetes.io/metadata.name": name}}})
        .to_string()
    };
    Shelf::new("", "v1", "namespaces", "Namespace").cluster_scoped().holding(names.map(namespace).collect())
}

/// What tells one Deployment from another.
pub(crate) struct Deployment {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
}

impl Deployment {
    pub(crate) fn of(nth: usize) -> Self {
        Self {
            namespace: format!("team-{:03}", nth % NAMESPACES),
            name: format!("checkout-service-{nth:06}"),
            uid: format!("{nth:08x}-5c1e-4b7a-9d02-{nth:012x}"),
        }
    }
}

/// A Deployment that is being rolled out: its children may change.
fn template() -> Value {
    let trace = json!([
        {"apiVersion": "example.com/v1", "kind": "Application", "name": "NAME", "uid": "UID", "generation": 7,
            "user": "alice@example.com", "timestamp": "2026-11-15T08:40:07Z", "labels": {"ticket": "SHOP-1234"}},
        {"apiVersion": "apps/v1", "kind": "Deployment", "name": "NAME", "uid": "UID", "generation": 4,
            "user": "system:serviceaccount:delivery:application-controller", "timestamp": "2026-11-15T08:40:08Z"}]);
    let annotations = json!({
        "deployment.kubernetes.io/revision": "4",
        "kausality.io/trace.SUFFIX": trace.to_string(),
        "kausality.io/updaters.SUFFIX": "82jp7",
        "kausality.io/controllers.SUFFIX": UserHash::of(CONTROLLER, "").to_string(),
        "kausality.io/phase.SUFFIX": "initialized",
        "kausality.io/settled.SUFFIX": "0123456789abcdef",
    });
    let container = json!({"name": "app", "image": "registry.example.com/shop/checkout:1.27.3", "imagePullPolicy": "IfNotPresent",
        "ports": [{"containerPort": 8080, "protocol": "TCP"}],
        "env": [{"name": "LOG_LEVEL", "value": "info"}, {"name": "DATABASE", "value": "postgres://db.NAMESPACE:5432/shop"}],
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
        "readinessProbe": {"httpGet": {"path": "/ready", "port": 8080, "scheme": "HTTP"}, "periodSeconds": 10},
        "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"});
    json!({
        "metadata": {"name": "NAME", "namespace": "NAMESPACE", "uid": "UID", "resourceVersion": "1000000000", "generation": 4,
            "creationTimestamp": "2026-10-01T08:00:00Z",
            "labels": {"app.kubernetes.io/name": "NAME", "app.kubernetes.io/part-of": "shop", "team": "NAMESPACE"},
            "annotations": annotations,
            "managedFields": [
                {"manager": "delivery", "operation": "Apply", "apiVersion": "apps/v1", "time": "2026-11-15T08:40:08Z",
                    "fieldsType": "FieldsV1", "fieldsV1": {"f:metadata": {"f:labels": {"f:app.kubernetes.io/name": {}}},
                        "f:spec": {"f:replicas": {}, "f:selector": {}, "f:template": {"f:spec": {"f:containers": {
                            "k:{\"name\":\"app\"}": {".": {}, "f:image": {}, "f:name": {}, "f:env": {}, "f:ports": {}}}}}}}},
                {"manager": "kube-controller-manager", "operation": "Update", "apiVersion": "apps/v1",
                    "time": "2026-11-15T08:40:09Z", "subresource": "status", "fieldsType": "FieldsV1",
                    "fieldsV1": {"f:metadata": {"f:annotations": {"f:deployment.kubernetes.io/revision": {}}},
                        "f:status": {"f:observedGeneration": {}, "f:replicas": {}, "f:conditions": {".": {}}}}}]},
        "spec": {"replicas": 3, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600,
            "selector": {"matchLabels": {"app.kubernetes.io/name": "NAME"}},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
            "template": {"metadata": {"labels": {"app.kubernetes.io/name": "NAME"}},
                "spec": {"containers": [container], "restartPolicy": "Always", "terminationGracePeriodSeconds": 30,
                    "dnsPolicy": "ClusterFirst", "schedulerName": "default-scheduler", "securityContext": {}}}},
        "status": {"observedGeneration": 3, "replicas": 3, "updatedReplicas": 3, "readyReplicas": 3, "availableReplicas": 3,
            "conditions": [{"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable",
                "lastUpdateTime": "2026-11-15T08:40:09Z", "lastTransitionTime": "2026-11-15T08:40:09Z"}]},
    })
}
