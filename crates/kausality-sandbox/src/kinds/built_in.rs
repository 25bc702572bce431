//! The table of built-in kinds.

use kausality_fields::schema::TypeRef;
use serde_json::{Value, json};

use super::{Definition, Generation, Scale, Shape, type_of};
use crate::types;

/// A line of the table.
struct Line {
    api: (&'static str, &'static str),
    kind: &'static str,
    plural: &'static str,
    short: &'static [&'static str],
    all: bool,
    namespaced: bool,
    status: bool,
    generation: Generation,
}

const CORE: (&str, &str) = ("", "v1");
const APPS: (&str, &str) = ("apps", "v1");
const BATCH: (&str, &str) = ("batch", "v1");
const RBAC: (&str, &str) = ("rbac.authorization.k8s.io", "v1");
const ADMISSION: (&str, &str) = ("admissionregistration.k8s.io", "v1");
const NETWORKING: (&str, &str) = ("networking.k8s.io", "v1");
const AUTHORIZATION: (&str, &str) = ("authorization.k8s.io", "v1");
const AUTHENTICATION: (&str, &str) = ("authentication.k8s.io", "v1");

/// A namespaced kind without status, generation or other names.
const fn line(api: (&'static str, &'static str), kind: &'static str, plural: &'static str) -> Line {
    Line {
        api,
        kind,
        plural,
        short: &[],
        all: false,
        namespaced: true,
        status: false,
        generation: Generation::None,
    }
}

impl Line {
    const fn short(self, short: &'static [&'static str]) -> Self {
        Self { short, ..self }
    }
    const fn all(self) -> Self {
        Self { all: true, ..self }
    }
    const fn cluster(self) -> Self {
        Self { namespaced: false, ..self }
    }
    const fn status(self) -> Self {
        Self { status: true, ..self }
    }
    const fn generation(self) -> Self {
        Self { generation: Generation::Intent, ..self }
    }
}

const TABLE: [Line; 35] = [
    line(CORE, "Namespace", "namespaces").short(&["ns"]).cluster().status(),
    line(CORE, "Pod", "pods").short(&["po"]).all().status().generation(),
    line(CORE, "ConfigMap", "configmaps").short(&["cm"]),
    line(CORE, "Secret", "secrets"),
    line(CORE, "Service", "services").short(&["svc"]).all().status(),
    line(CORE, "ServiceAccount", "serviceaccounts").short(&["sa"]),
    line(CORE, "Event", "events").short(&["ev"]),
    line(CORE, "Node", "nodes").short(&["no"]).cluster().status(),
    line(CORE, "PersistentVolumeClaim", "persistentvolumeclaims").short(&["pvc"]).status(),
    line(CORE, "PersistentVolume", "persistentvolumes").short(&["pv"]).cluster().status(),
    line(CORE, "Endpoints", "endpoints").short(&["ep"]),
    line(CORE, "ReplicationController", "replicationcontrollers").short(&["rc"]).all().status().generation(),
    line(CORE, "LimitRange", "limitranges").short(&["limits"]),
    line(CORE, "ResourceQuota", "resourcequotas").short(&["quota"]).status(),
    Line {
        generation: Generation::IntentOrAnnotations,
        ..line(APPS, "Deployment", "deployments").short(&["deploy"]).all().status()
    },
    line(APPS, "ReplicaSet", "replicasets").short(&["rs"]).all().status().generation(),
    line(APPS, "StatefulSet", "statefulsets").short(&["sts"]).all().status().generation(),
    line(APPS, "DaemonSet", "daemonsets").short(&["ds"]).all().status().generation(),
    line(APPS, "ControllerRevision", "controllerrevisions"),
    line(BATCH, "Job", "jobs").all().status().generation(),
    line(BATCH, "CronJob", "cronjobs").short(&["cj"]).all().status().generation(),
    line(RBAC, "Role", "roles"),
    line(RBAC, "RoleBinding", "rolebindings"),
    line(RBAC, "ClusterRole", "clusterroles").cluster(),
    line(RBAC, "ClusterRoleBinding", "clusterrolebindings").cluster(),
    line(("coordination.k8s.io", "v1"), "Lease", "leases"),
    line(("events.k8s.io", "v1"), "Event", "events").short(&["ev"]),
    line(("autoscaling", "v2"), "HorizontalPodAutoscaler", "horizontalpodautoscalers")
        .short(&["hpa"])
        .all()
        .status(),
    line(ADMISSION, "MutatingWebhookConfiguration", "mutatingwebhookconfigurations").cluster().generation(),
    line(ADMISSION, "ValidatingWebhookConfiguration", "validatingwebhookconfigurations")
        .cluster()
        .generation(),
    line(("apiextensions.k8s.io", "v1"), "CustomResourceDefinition", "customresourcedefinitions")
        .short(&["crd", "crds"])
        .cluster()
        .status()
        .generation(),
    line(("apiregistration.k8s.io", "v1"), "APIService", "apiservices").cluster().status(),
    line(("policy", "v1"), "PodDisruptionBudget", "poddisruptionbudgets")
        .short(&["pdb"])
        .status()
        .generation(),
    line(NETWORKING, "Ingress", "ingresses").short(&["ing"]).status().generation(),
    line(NETWORKING, "NetworkPolicy", "networkpolicies").short(&["netpol"]).generation(),
];

/// Questions that are answered, and not stored.
const REVIEWS: [Line; 5] = [
    line(AUTHENTICATION, "SelfSubjectReview", "selfsubjectreviews").cluster(),
    line(AUTHORIZATION, "SelfSubjectAccessReview", "selfsubjectaccessreviews").cluster(),
    line(AUTHORIZATION, "SubjectAccessReview", "subjectaccessreviews").cluster(),
    line(AUTHORIZATION, "LocalSubjectAccessReview", "localsubjectaccessreviews"),
    line(AUTHORIZATION, "SelfSubjectRulesReview", "selfsubjectrulesreviews").cluster(),
];

/// Kinds whose updates must say which version they change.
const CONDITIONAL: [&str; 5] = [
    "PodDisruptionBudget",
    "Lease",
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
    "CustomResourceDefinition",
];

/// Kinds that an update creates, beside those of RBAC.
const CREATED_BY_UPDATE: [&str; 5] = ["Lease", "LimitRange", "Event", "Service", "Endpoints"];

/// The built-in kinds.
pub(super) fn definitions() -> impl Iterator<Item = Definition> {
    let stored = TABLE.iter().map(|line| definition(line, false));
    stored.chain(REVIEWS.iter().map(|line| definition(line, true)))
}

fn definition(line: &Line, review: bool) -> Definition {
    let built_in = types::built_in();
    let (group, version) = line.api;
    let of = type_of(&built_in.kinds, group, version, line.kind);
    let name = match &of {
        Some(TypeRef::Named(name, _)) => name.clone(),
        _ => String::new(),
    };
    let of = of.unwrap_or_else(|| TypeRef::Named(String::new(), None));
    let empty = types::decode::decode(&name, json!({}), types::decode::Fill::Zero);
    let mut empty = empty.map_or_else(|_| json!({}), |decoded| decoded.value);
    // Go writes an unset list of containers as null, so that who creates a Pod does not own the list itself.
    for path in ["/spec", "/spec/template/spec", "/spec/jobTemplate/spec/template/spec"] {
        if let Some(spec) = empty.pointer_mut(path).and_then(Value::as_object_mut)
            && (line.kind == "Pod" || path != "/spec")
        {
            spec.insert("containers".to_owned(), Value::Null);
        }
    }
    // An unset selector is a null, too.
    if ["Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"].contains(&line.kind)
        && let Some(spec) = empty.pointer_mut("/spec").and_then(Value::as_object_mut)
    {
        spec.insert("selector".to_owned(), Value::Null);
    }
    let text = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
    Definition {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: line.kind.to_owned(),
        list_kind: format!("{}List", line.kind),
        plural: line.plural.to_owned(),
        singular: line.kind.to_lowercase(),
        short_names: text(line.short),
        categories: if line.all { text(&["all"]) } else { Vec::new() },
        namespaced: line.namespaced,
        status: line.status,
        scale: scale(line.kind),
        generation: line.generation,
        shape: Shape::BuiltIn(name),
        collection: if line.kind == "Event" {
            "/events".to_owned()
        } else {
            format!("{group}/{}", line.plural)
        },
        review,
        unconditional: !CONDITIONAL.contains(&line.kind),
        created_by_update: line.api == RBAC || CREATED_BY_UPDATE.contains(&line.kind),
        kinds: std::sync::Arc::clone(&built_in.kinds),
        of,
        empty,
    }
}

fn scale(kind: &str) -> Option<Scale> {
    ["Deployment", "ReplicaSet", "StatefulSet", "ReplicationController"].contains(&kind).then(|| Scale {
        spec: "/spec/replicas".to_owned(),
        status: "/status/replicas".to_owned(),
        selector: Some("/spec/selector".to_owned()),
    })
}
