//! The controller of Argo Rollouts, with the rights that its manifests give it.

use kausality_testbed::{ControlPlane, MASTERS, Peer, Program};
use serde_json::json;

use crate::stage::{apply, must};

/// The name of its namespace, ServiceAccount and ClusterRole, as in its manifests.
const NAME: &str = "argo-rollouts";

/// Who it is to the API server.
pub(super) const USER: &str = "system:serviceaccount:argo-rollouts:argo-rollouts";

const DEFINITIONS: [&str; 5] =
    ["rollout", "experiment", "analysis-run", "analysis-template", "cluster-analysis-template"];

/// Installs its CustomResourceDefinitions, its ServiceAccount and its role.
pub(super) fn install(plane: &ControlPlane, peer: &Peer) {
    let admin = |arguments: &[&str]| must(plane, "admin", &[MASTERS], arguments);
    for definition in DEFINITIONS {
        let file = peer.file("crds").join(format!("{definition}-crd.yaml"));
        admin(&["create", "-f", file.to_str().unwrap()]);
    }
    admin(&["wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"]);
    admin(&["create", "namespace", NAME]);
    admin(&["create", "serviceaccount", NAME, "--namespace", NAME]);
    let role = peer.file("role").join("argo-rollouts-clusterrole.yaml");
    admin(&["create", "-f", role.to_str().unwrap()]);
    apply(
        plane,
        &json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": NAME},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": NAME},
            "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": NAME}]}),
    );
}

/// Starts it as its ServiceAccount.
pub(super) async fn start(plane: &ControlPlane, peer: &Peer) -> Program {
    let kubeconfig = plane.service_account_kubeconfig(NAME, NAME).await.unwrap();
    let arguments = [
        "--kubeconfig",
        kubeconfig.to_str().unwrap(),
        // Renewing its Lease would count as writes.
        "--leader-elect=false",
        // It would listen on all addresses, and has no flag to change that. With an invalid port, it logs an error and
        // does not listen.
        "--metricsPort=-1",
        "--healthzPort=-1",
    ];
    plane.run(&peer.file("rollouts-controller"), &arguments).unwrap()
}
