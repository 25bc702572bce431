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
    kind("example.com/v1", "ShardedPool", "shardedpools", true),
    kind("example.com/v1", "ClusterPool", "clusterpools", false),
    kind("cert-manager.io/v1", "Certificate", "certificates", true),
    kind("cert-manager.io/v1", "CertificateRequest", "certificaterequests", true),
    kind("acme.cert-manager.io/v1", "Order", "orders", true),
    kind("acme.cert-manager.io/v1", "Challenge", "challenges", true),
    kind("cluster.x-k8s.io/v1beta2", "MachineDeployment", "machinedeployments", true),
    kind("cluster.x-k8s.io/v1beta2", "MachineSet", "machinesets", true),
    kind("cluster.x-k8s.io/v1beta2", "Machine", "machines", true),
    kind("controlplane.cluster.x-k8s.io/v1beta2", "KubeadmControlPlane", "kubeadmcontrolplanes", true),
    kind("pkg.crossplane.io/v1", "Provider", "providers", false),
    kind("pkg.crossplane.io/v1", "ProviderRevision", "providerrevisions", false),
    kind(
        "apiextensions.crossplane.io/v1alpha1",
        "ManagedResourceDefinition",
        "managedresourcedefinitions",
        false,
    ),
    kind("aws.m.example.com/v1", "Database", "databases", true),
    kind("argoproj.io/v1alpha1", "ApplicationSet", "applicationsets", true),
    kind("argoproj.io/v1alpha1", "Application", "applications", true),
    kind("source.extensions.fluxcd.io/v1beta1", "ArtifactGenerator", "artifactgenerators", true),
    kind("source.toolkit.fluxcd.io/v1", "ExternalArtifact", "externalartifacts", true),
    kind("flagger.app/v1beta1", "Canary", "canaries", true),
    kind("networking.istio.io/v1", "VirtualService", "virtualservices", true),
    kind("gateway.networking.k8s.io/v1", "HTTPRoute", "httproutes", true),
];

impl Kind {
    /// The kind of this name.
    pub(crate) fn named(name: &str) -> Result<&'static Self, String> {
        KINDS.iter().find(|kind| kind.name == name).ok_or_else(|| format!("no kind {name:?} is known here"))
    }

    /// Whether a rule, whose kinds may have a `*` before or after, is about kinds that are in no namespace.
    pub(crate) fn without_namespace(api_version: &str, name: &str) -> bool {
        let (group, tail) = (api_version.trim_end_matches('*'), name.trim_start_matches('*'));
        let named = |kind: &&Self| kind.api_version.starts_with(group) && kind.name.ends_with(tail);
        !group.is_empty() && !tail.is_empty() && KINDS.iter().find(named).is_some_and(|kind| !kind.namespaced)
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
