//! What people and the platform team write: clusters, pools, a class, and the kinds of the providers that we play.

use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

/// Where all clusters are.
pub(super) const NAMESPACE: &str = "team";

const CORE: &str = "cluster.x-k8s.io";
const BOOTSTRAP: &str = "bootstrap.cluster.x-k8s.io";
const CONTROL_PLANE: &str = "controlplane.cluster.x-k8s.io";
const INFRASTRUCTURE: &str = "infrastructure.cluster.x-k8s.io";

/// The version of Kubernetes that clusters begin with.
const VERSION: &str = "v1.35.0";

pub(super) fn clusters() -> ApiResource {
    core("Cluster", "clusters")
}

pub(super) fn classes() -> ApiResource {
    core("ClusterClass", "clusterclasses")
}

pub(super) fn machine_deployments() -> ApiResource {
    core("MachineDeployment", "machinedeployments")
}

pub(super) fn machine_sets() -> ApiResource {
    core("MachineSet", "machinesets")
}

pub(super) fn machines() -> ApiResource {
    core("Machine", "machines")
}

pub(super) fn health_checks() -> ApiResource {
    core("MachineHealthCheck", "machinehealthchecks")
}

fn core(name: &str, plural: &str) -> ApiResource {
    kind(CORE, "v1beta2", name, plural)
}

fn kind(group: &str, version: &str, kind: &str, plural: &str) -> ApiResource {
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural)
}

fn object(api_version: String, kind: &str, name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": api_version, "kind": kind,
        "metadata": { "name": name, "namespace": NAMESPACE }, "spec": spec,
    })
}

fn played(group: &str, kind: &str, name: &str, spec: Value) -> Value {
    object(format!("{group}/v1"), kind, name, spec)
}

fn reference(group: &str, kind: &str, name: &str) -> Value {
    json!({ "apiGroup": group, "kind": kind, "name": name })
}

/// A template of infrastructure machines.
pub(super) fn machine_template(name: &str, size: i64) -> Value {
    played(
        INFRASTRUCTURE,
        "PlayedMachineTemplate",
        name,
        json!({ "template": { "spec": { "size": size, "disk": size } } }),
    )
}

fn bootstrap_template(name: &str) -> Value {
    let join = json!({ "nodeRegistration": { "kubeletExtraArgs": [{ "name": "v", "value": "1" }] } });
    let spec = json!({ "template": { "spec": { "joinConfiguration": join } } });
    object(format!("{BOOTSTRAP}/v1beta2"), "KubeadmConfigTemplate", name, spec)
}

/// A Cluster alone.
pub(super) fn cluster(name: &str) -> Value {
    let spec = json!({
        "infrastructureRef": reference(INFRASTRUCTURE, "PlayedCluster", name),
        "controlPlaneRef": reference(CONTROL_PLANE, "PlayedControlPlane", name),
    });
    object(format!("{CORE}/v1beta2"), "Cluster", name, spec)
}

/// A Cluster with all that belongs to it, and a pool of Machines of the same name.
pub(super) fn cluster_with_pool(name: &str, replicas: i64) -> Vec<Value> {
    let labels = json!({ "cluster.x-k8s.io/cluster-name": name, "pool": name });
    let pool = json!({
        "clusterName": name, "replicas": replicas, "selector": { "matchLabels": labels },
        "template": {
            "metadata": { "labels": labels },
            "spec": {
                "clusterName": name, "version": VERSION,
                "bootstrap": { "configRef": reference(BOOTSTRAP, "KubeadmConfigTemplate", name) },
                "infrastructureRef": reference(INFRASTRUCTURE, "PlayedMachineTemplate", name),
            },
        },
    });
    vec![
        bootstrap_template(name),
        machine_template(name, 1),
        played(INFRASTRUCTURE, "PlayedCluster", name, json!({})),
        played(CONTROL_PLANE, "PlayedControlPlane", name, json!({ "version": VERSION })),
        cluster(name),
        object(format!("{CORE}/v1beta2"), "MachineDeployment", name, pool),
    ]
}

/// A check that finds Machines of a pool broken whose Node is not ready.
pub(super) fn health_check(name: &str) -> Value {
    let broken = json!({ "type": "Ready", "status": "False", "timeoutSeconds": 1 });
    let spec = json!({
        "clusterName": name, "selector": { "matchLabels": { "pool": name } },
        "checks": { "unhealthyNodeConditions": [broken] },
    });
    object(format!("{CORE}/v1beta2"), "MachineHealthCheck", name, spec)
}

/// A class of Clusters, with a variable for the size of Machines, but not for their disks.
pub(super) fn class(name: &str) -> Vec<Value> {
    let template = |group: &str, version: &str, kind: &str| json!({ "templateRef": { "apiVersion": format!("{group}/{version}"), "kind": kind, "name": name } });
    let selector = json!({
        "apiVersion": format!("{INFRASTRUCTURE}/v1"), "kind": "PlayedMachineTemplate",
        "matchResources": { "machineDeploymentClass": { "names": ["worker"] } },
    });
    let patch =
        json!({ "op": "add", "path": "/spec/template/spec/size", "valueFrom": { "variable": "size" } });
    let spec = json!({
        "infrastructure": template(INFRASTRUCTURE, "v1", "PlayedClusterTemplate"),
        "controlPlane": template(CONTROL_PLANE, "v1", "PlayedControlPlaneTemplate"),
        "workers": { "machineDeployments": [{
            "class": "worker",
            "bootstrap": template(BOOTSTRAP, "v1beta2", "KubeadmConfigTemplate"),
            "infrastructure": template(INFRASTRUCTURE, "v1", "PlayedMachineTemplate"),
        }] },
        "variables": [{ "name": "size", "required": true, "schema": { "openAPIV3Schema": { "type": "integer" } } }],
        "patches": [{ "name": "size", "definitions": [{ "selector": selector, "jsonPatches": [patch] }] }],
    });
    let empty = json!({ "template": { "spec": {} } });
    vec![
        played(INFRASTRUCTURE, "PlayedClusterTemplate", name, empty.clone()),
        played(CONTROL_PLANE, "PlayedControlPlaneTemplate", name, empty),
        bootstrap_template(name),
        machine_template(name, 0),
        object(format!("{CORE}/v1beta2"), "ClusterClass", name, spec),
    ]
}

/// A Cluster of a class, with one pool.
pub(super) fn classed_cluster(name: &str, class: &str, replicas: i64) -> Value {
    let topology = json!({
        "classRef": { "name": class }, "version": VERSION,
        "variables": [{ "name": "size", "value": 1 }],
        "workers": { "machineDeployments": [{ "class": "worker", "name": "pool", "replicas": replicas }] },
    });
    object(format!("{CORE}/v1beta2"), "Cluster", name, json!({ "topology": topology }))
}

/// The CustomResourceDefinitions of the providers that we play.
pub(super) fn definitions() -> Value {
    let infrastructure = ["PlayedCluster", "PlayedClusterTemplate", "PlayedMachine", "PlayedMachineTemplate"];
    let control_plane = ["PlayedControlPlane", "PlayedControlPlaneTemplate"];
    let of = |group: &'static str| move |kind: &'static str| definition(group, kind);
    list(
        infrastructure
            .into_iter()
            .map(of(INFRASTRUCTURE))
            .chain(control_plane.into_iter().map(of(CONTROL_PLANE)))
            .collect(),
    )
}

fn definition(group: &str, kind: &str) -> Value {
    let singular = kind.to_lowercase();
    let anything = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{singular}s.{group}"), "labels": { "cluster.x-k8s.io/v1beta2": "v1" } },
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {
                "kind": kind, "singular": singular, "plural": format!("{singular}s"),
                "listKind": format!("{kind}List"),
            },
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": {
                    "type": "object", "properties": { "spec": anything, "status": anything },
                } },
            }],
        },
    })
}

/// Namespaces, and ServiceAccounts that may do everything.
pub(super) fn accounts(accounts: &[(&str, &str)]) -> Value {
    let namespace =
        |name: &str| json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
    let mut items = vec![namespace(NAMESPACE)];
    for (index, (place, name)) in accounts.iter().enumerate() {
        if !accounts[..index].iter().any(|(other, _)| other == place) {
            items.push(namespace(place));
        }
        let metadata = json!({ "name": name, "namespace": place });
        items.push(json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata }));
        items.push(json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": { "name": name },
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin",
            },
            "subjects": [{ "kind": "ServiceAccount", "name": name, "namespace": place }],
        }));
    }
    list(items)
}

fn list(items: Vec<Value>) -> Value {
    json!({ "apiVersion": "v1", "kind": "List", "items": items })
}
