//! Which binaries there are, and how each is built.

use crate::programs::{Binary, Module, Set, Value};

/// The variables that tell a binary of Kubernetes its version. Without them clients cannot parse the version of the API
/// server, and a chart sees an empty `.Capabilities.KubeVersion.Minor`.
pub(crate) const STAMPS: &[(&str, Value)] = &[
    ("k8s.io/component-base/version.gitVersion", Value::Version),
    ("k8s.io/component-base/version.gitMajor", Value::Major),
    ("k8s.io/component-base/version.gitMinor", Value::Minor),
    ("k8s.io/component-base/version.gitTreeState", Value::Text("clean")),
    ("k8s.io/client-go/pkg/version.gitVersion", Value::Version),
    ("k8s.io/client-go/pkg/version.gitMajor", Value::Major),
    ("k8s.io/client-go/pkg/version.gitMinor", Value::Minor),
    ("k8s.io/client-go/pkg/version.gitTreeState", Value::Text("clean")),
];

static KUBERNETES: Module =
    Module { folder: "control-plane/kubernetes", pins: "k8s.io/kubernetes", stamps: STAMPS, edits: &[] };

// It has its version in its source.
static ETCD_MODULE: Module =
    Module { folder: "control-plane/etcd", pins: "go.etcd.io/etcd/server/v3", stamps: &[], edits: &[] };

static HELM_MODULE: Module = Module {
    folder: "control-plane/helm",
    pins: "helm.sh/helm/v4",
    stamps: &[("helm.sh/helm/v4/internal/version.version", Value::Version)],
    edits: &[],
};

const APISERVER: Binary =
    Binary { name: "kube-apiserver", module: &KUBERNETES, package: "k8s.io/kubernetes/cmd/kube-apiserver" };

const CONTROLLER_MANAGER: Binary = Binary {
    name: "kube-controller-manager",
    module: &KUBERNETES,
    package: "k8s.io/kubernetes/cmd/kube-controller-manager",
};

const KUBECTL: Binary =
    Binary { name: "kubectl", module: &KUBERNETES, package: "k8s.io/kubernetes/cmd/kubectl" };

const ETCD: Binary = Binary { name: "etcd", module: &ETCD_MODULE, package: "go.etcd.io/etcd/server/v3" };

/// What installs our chart.
pub(super) const HELM: Binary =
    Binary { name: "helm", module: &HELM_MODULE, package: "helm.sh/helm/v4/cmd/helm" };

/// The control plane itself, and the client to it: what `KUBEBUILDER_ASSETS` must hold to be of use.
pub(super) const CONTROL_PLANE: [Binary; 4] = [APISERVER, CONTROLLER_MANAGER, KUBECTL, ETCD];

/// All that tests run.
pub(super) static ALL: Set = Set {
    name: "control-plane",
    binaries: &[APISERVER, CONTROLLER_MANAGER, KUBECTL, ETCD, HELM],
    copies: &[],
    steps: &[],
};

/// What is left to build where `KUBEBUILDER_ASSETS` holds the control plane.
pub(super) static HELM_ALONE: Set = Set { name: "control-plane", binaries: &[HELM], copies: &[], steps: &[] };

#[cfg(test)]
mod tests;
