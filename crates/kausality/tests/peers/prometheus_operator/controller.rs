//! The controller of prometheus-operator, with the rights that its manifests give it.

use std::fs;

use kausality_testbed::{ControlPlane, MASTERS, Peer, Program, free_port};
use serde_json::json;

use crate::stage::{apply, must};

/// The name of its ServiceAccount and ClusterRole, as in its manifests.
const NAME: &str = "prometheus-operator";

const NAMESPACE: &str = "operators";

/// Who it is to the API server.
pub(super) const USER: &str = "system:serviceaccount:operators:prometheus-operator";

/// Installs its CustomResourceDefinitions, its ServiceAccount and its role.
pub(super) fn install(plane: &ControlPlane, peer: &Peer) {
    let admin = |arguments: &[&str]| must(plane, "admin", &[MASTERS], arguments);
    for entry in fs::read_dir(peer.file("crds")).unwrap() {
        // Too long for the annotation of a client-side apply.
        admin(&["create", "-f", entry.unwrap().path().to_str().unwrap()]);
    }
    admin(&["wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"]);
    admin(&["create", "namespace", NAMESPACE]);
    admin(&["create", "serviceaccount", NAME, "--namespace", NAMESPACE]);
    let role = peer.file("role").join("prometheus-operator-cluster-role.yaml");
    admin(&["create", "-f", role.to_str().unwrap()]);
    apply(
        plane,
        &json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": NAME},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": NAME},
            "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": NAMESPACE}]}),
    );
}

/// Starts it as its ServiceAccount. Every Prometheus runs the reloader of this version beside it.
pub(super) async fn start(plane: &ControlPlane, peer: &Peer, reloader: &str) -> Program {
    let kubeconfig = plane.service_account_kubeconfig(NAMESPACE, NAME).await.unwrap();
    let arguments = [
        &format!("--web.listen-address=127.0.0.1:{}", free_port().unwrap()),
        &format!("--prometheus-config-reloader=reloader:{reloader}"),
    ];
    let env = [("KUBECONFIG", kubeconfig.to_str().unwrap())];
    plane.run_with(&env, &peer.file("operator"), &arguments.map(String::as_str)).unwrap()
}
