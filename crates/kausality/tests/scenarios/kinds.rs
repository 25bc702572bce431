//! The kinds that scenarios speak of, and what they are called in paths.

/// A kind.
#[derive(Debug)]
pub(crate) struct Kind {
    pub name: &'static str,
    pub api_version: &'static str,
    pub plural: &'static str,
    pub namespaced: bool,
}

const fn kind(api_version: &'static str, name: &'static str, plural: &'static str, namespaced: bool) -> Kind {
    Kind { name, api_version, plural, namespaced }
}

static KINDS: &[Kind] = &[
    kind("v1", "Namespace", "namespaces", false),
    kind("v1", "ServiceAccount", "serviceaccounts", true),
    kind("v1", "Event", "events", true),
    kind("v1", "Pod", "pods", true),
    kind("v1", "ConfigMap", "configmaps", true),
    kind("v1", "Secret", "secrets", true),
    kind("apps/v1", "Deployment", "deployments", true),
    kind("apps/v1", "ReplicaSet", "replicasets", true),
    kind("apps/v1", "StatefulSet", "statefulsets", true),
    kind("apps/v1", "DaemonSet", "daemonsets", true),
    kind("apps/v1", "ControllerRevision", "controllerrevisions", true),
    kind("batch/v1", "Job", "jobs", true),
    kind("batch/v1", "CronJob", "cronjobs", true),
    kind("rbac.authorization.k8s.io/v1", "Role", "roles", true),
    kind(
        "admissionregistration.k8s.io/v1",
        "MutatingWebhookConfiguration",
        "mutatingwebhookconfigurations",
        false,
    ),
    kind("apiregistration.k8s.io/v1", "APIService", "apiservices", false),
    kind("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", false),
    kind("kausality.io/v1alpha1", "Kausality", "kausalities", false),
    kind("kausality.io/v1alpha1", "ApprovalPolicy", "approvalpolicies", true),
    kind("kausality.io/v1alpha1", "ClusterApprovalPolicy", "clusterapprovalpolicies", false),
    kind("kausality.io/v1alpha1", "Drift", "drifts", true),
    kind("kausality.io/v1alpha1", "ClusterDrift", "clusterdrifts", false),
    kind("example.com/v1beta1", "BrokenPool", "brokenpools", true),
    kind("example.com/v1", "EKSCluster", "eksclusters", true),
    kind("example.com/v1", "NodePool", "nodepools", true),
    kind("example.com/v1", "LegacyPool", "legacypools", true),
    kind("example.com/v1", "ClusterPool", "clusterpools", false),
];

impl Kind {
    /// The kind of this name.
    pub(crate) fn named(name: &str) -> Result<&'static Self, String> {
        KINDS.iter().find(|kind| kind.name == name).ok_or_else(|| format!("no kind {name:?} is known here"))
    }

    /// The path of its objects in a namespace.
    pub(crate) fn path(&self, namespace: &str) -> String {
        let root = if self.api_version.contains('/') { "apis" } else { "api" };
        let within = if self.namespaced { format!("/namespaces/{namespace}") } else { String::new() };
        format!("/{root}/{}{within}/{}", self.api_version, self.plural)
    }
}

/// An object: its kind, and its name in the namespace of the scenario.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target<'a> {
    pub kind: &'static Kind,
    pub namespace: &'a str,
    pub name: &'a str,
}

impl<'a> Target<'a> {
    /// Reads `Kind/name`.
    pub(crate) fn parse(text: &'a str, namespace: &'a str) -> Result<Self, String> {
        let (kind, name) = text.split_once('/').ok_or_else(|| format!("{text:?} is not Kind/name"))?;
        Ok(Self { kind: Kind::named(kind)?, namespace, name })
    }

    /// Where it is.
    pub(crate) fn path(&self) -> String {
        format!("{}/{}", self.kind.path(self.namespace), self.name)
    }
}
