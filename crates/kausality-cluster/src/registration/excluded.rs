//! Where and for whom no write waits for the webhook: what a cluster needs to come up, and with it the webhook itself.

use serde_json::{Value, json};

/// The label that names a namespace.
pub const NAMESPACE: &str = "kubernetes.io/metadata.name";

/// The label that takes a namespace out of every policy that does not name it, whatever its value.
pub const LABEL: &str = "kausality.io/exclude";

/// Namespaces in which nothing may wait for a webhook that cannot start without them, and what is there. A policy covers
/// them only if it names them.
pub const NAMESPACES: [(&str, &str); 12] = [
    ("calico-apiserver", "the API of Calico's network policies"),
    ("calico-system", "Calico, by its operator"),
    ("cilium", "Cilium"),
    ("cilium-system", "Cilium"),
    ("kube-flannel", "Flannel"),
    ("kube-node-lease", "the heartbeats of nodes"),
    ("kube-system", "controllers, kube-proxy, names, and most network plugins"),
    ("openshift-multus", "the network plugins of OpenShift"),
    ("openshift-network-operator", "the operator of OpenShift's network"),
    ("openshift-ovn-kubernetes", "the network of OpenShift"),
    ("openshift-sdn", "the network of OpenShift up to 4.14"),
    ("tigera-operator", "the operator of Calico"),
];

/// A condition for writes that may be denied: not those of kubelets, nor the API server's own. A kubelet finishes deletions and
/// mirrors static Pods, an API server brings its own roles up to date, and neither may have to wait for a Pod that it has to
/// start or serve. Not every user has groups.
pub const NOT_OF_NODES: &str = "!(has(request.userInfo.groups) && 'system:nodes' in request.userInfo.groups) \
    && !(has(request.userInfo.username) && request.userInfo.username == 'system:apiserver')";

/// Their names.
pub fn names() -> impl Iterator<Item = &'static str> {
    NAMESPACES.iter().map(|(name, _)| *name)
}

/// A selector of namespaces: not these, and none with the [`LABEL`].
#[must_use]
pub fn selector<'a>(names: impl IntoIterator<Item = &'a str>) -> Value {
    json!({"matchExpressions": requirements(names)})
}

/// What [`selector`] asks for.
#[must_use]
pub fn requirements<'a>(names: impl IntoIterator<Item = &'a str>) -> [Value; 2] {
    let names: Vec<&str> = names.into_iter().collect();
    [
        json!({"key": NAMESPACE, "operator": "NotIn", "values": names}),
        json!({"key": LABEL, "operator": "DoesNotExist"}),
    ]
}
