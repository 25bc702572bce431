//! Removed in any order, by Helm or by the command, with a webhook that is dead: nothing is left that blocks a write.

use std::time::Duration;

use kausality_testbed::{ControlPlane, Kubelet, eventually};
use serde_json::json;
use tokio::runtime::Handle;

use crate::{
    install::stage::*,
    real::{controller::policy, stage::Webhook},
};

const NAMESPACE: &str = "kausality-system";
const CONTROLLER: &str = "system:serviceaccount:kausality-system:kausality-controller";
const HOOK: &str = "system:serviceaccount:kausality-system:kausality-unregister";

/// The controller of what is installed, for a webhook that is not there. It goes on until it is dropped, as one whose Pod takes its
/// time to end.
async fn in_force(plane: &ControlPlane) -> Webhook {
    let kubeconfig = plane.kubeconfig();
    let arguments = [
        "controller",
        "--kubeconfig",
        kubeconfig.to_str().unwrap(),
        "--as",
        CONTROLLER,
        "--webhook-url",
        "https://127.0.0.1:1",
        "--anchor",
        "kausality-controller",
    ];
    let controller = Webhook::command(plane, "controller.log", &arguments);
    // What Kausality itself is made of is covered, too.
    let covered = json!([
        {"apiGroups": [""], "resources": ["configmaps", "namespaces", "serviceaccounts"]},
        {"apiGroups": ["apps", "batch", "rbac.authorization.k8s.io"], "resources": ["*"]},
    ]);
    let all = policy("all", &json!({"resources": covered, "mode": "enforce"})).to_string();
    must(plane, &["apply", "--server-side", "-f", &file(plane, "policy.json", &all)]);
    eventually(PATIENCE, "writes that fail for want of the webhook", async || {
        let refused = |(done, said): &(bool, String)| !done && said.contains("failed calling webhook");
        let writes = covered_writes(plane, "--dry-run=server");
        if writes.iter().all(refused) { Ok(()) } else { Err(format!("{writes:?}")) }
    })
    .await
    .unwrap();
    controller
}

/// Writes that the policy covers, in a namespace and outside of any.
fn covered_writes(plane: &ControlPlane, how: &str) -> [(bool, String); 2] {
    ["configmap", "clusterrole"].map(|kind| {
        let more: &[&str] =
            if kind == "clusterrole" { &["--verb=get", "--resource=configmaps"] } else { &["-n", "default"] };
        kubectl(plane, &[&["create", kind, "covered", how], more].concat())
    })
}

/// No registration is left, nor put back by a controller that has not ended yet, and writes pass.
async fn unblocked(plane: &ControlPlane, controller: Webhook) {
    let registered = || {
        let kinds = "mutatingwebhookconfigurations,validatingwebhookconfigurations";
        get(plane, &[kinds])["items"].as_array().map_or(0, Vec::len)
    };
    eventually(PATIENCE, "no registration", async || {
        let count = registered();
        if count == 0 { Ok(()) } else { Err(format!("{count} are left")) }
    })
    .await
    .unwrap();
    // API servers learn of it a moment later.
    eventually(Duration::from_secs(5), "writes that pass", async || {
        let writes = covered_writes(plane, "--dry-run=server");
        if writes.iter().all(|(done, _)| *done) { Ok(()) } else { Err(format!("{writes:?}")) }
    })
    .await
    .unwrap();
    // A change of policies has a controller look at everything.
    must(plane, &["delete", "--ignore-not-found", "clusterrole/covered", "configmap/covered"]);
    let (_, _) = kubectl(plane, &["label", "kausality", "all", "again=yes", "--overwrite"]);
    for (done, said) in covered_writes(plane, "--dry-run=none") {
        assert!(done, "{said}");
    }
    must(plane, &["delete", "clusterrole/covered", "configmap/covered"]);
    drop(controller);
    assert_eq!(registered(), 0);
}

/// Arguments for helm on this plane.
fn helm(plane: &Stage, verb: &[&str]) -> (bool, String) {
    let config = plane.kubeconfig();
    let to = ["--namespace", NAMESPACE, "--kubeconfig", config.to_str().unwrap()];
    plane.helm.run(&[verb, &to].concat())
}

#[track_caller]
fn helm_must(plane: &Stage, verb: &[&str]) -> String {
    let (done, said) = helm(plane, verb);
    assert!(done, "helm {verb:?}: {said}");
    said
}

const INSTALL: [&str; 4] = ["install", "kausality", "deploy/chart", "--create-namespace"];

/// `helm uninstall`, whose Job does its work before a kubelet says so. That kubelet.
fn helm_uninstall_with_its_job(plane: &Stage) -> Kubelet {
    let both = || {
        std::thread::scope(|scope| {
            let removal = scope.spawn(|| helm_must(plane, &["uninstall", "kausality"]));
            let job = ["wait", "--for=create", "job/kausality-unregister", "-n", NAMESPACE, "--timeout=60s"];
            must(plane, &job);
            let (code, said) = kausality(plane, &["uninstall", "--registration-only", "--as", HOOK]);
            assert!(code == 0 && said.contains("MutatingWebhookConfiguration kausality: deleted"), "{said}");
            let kubelet = Handle::current().block_on(plane.play_kubelet()).unwrap();
            removal.join().unwrap();
            kubelet
        })
    };
    tokio::task::block_in_place(both)
}

/// The command leaves Helm's to Helm, and Helm removes it: by its Job, or without, with everything that could refuse dead.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_helm_installed_goes_in_any_order() {
    let Some(plane) = stage().await else { return };

    // The command, which refuses and changes nothing; then Helm.
    helm_must(&plane, &INSTALL);
    let controller = in_force(&plane).await;
    let before = get(&plane, &["mutatingwebhookconfiguration", "kausality"])["webhooks"].clone();
    let (code, said) = kausality(&plane, &["uninstall", "--yes"]);
    assert!(code == 2 && said.contains("helm uninstall kausality -n kausality-system"), "{said}");
    assert!(said.contains("--registration-only"), "what helps at once is named: {said}");
    assert_eq!(get(&plane, &["mutatingwebhookconfiguration", "kausality"])["webhooks"], before);
    let _kubelet = helm_uninstall_with_its_job(&plane);
    unblocked(&plane, controller).await;
    let (code, said) = kausality(&plane, &["uninstall", "--keep-crds"]);
    assert!(code == 0, "{said}");

    // Without its Job.
    helm_must(&plane, &INSTALL);
    let controller = in_force(&plane).await;
    helm_must(&plane, &["uninstall", "kausality", "--no-hooks"]);
    unblocked(&plane, controller).await;

    // The registration alone, which is what helps while Helm cannot; then Helm.
    helm_must(&plane, &INSTALL);
    let controller = in_force(&plane).await;
    let (code, said) = kausality(&plane, &["uninstall", "--registration-only"]);
    assert_eq!(code, 0, "{said}");
    helm_must(&plane, &["uninstall", "kausality", "--no-hooks"]);
    unblocked(&plane, controller).await;

    // The namespace, and with it Helm's record: neither would know how to go on, if the command did not notice.
    helm_must(&plane, &INSTALL);
    let controller = in_force(&plane).await;
    must(&plane, &["delete", "namespace", NAMESPACE]);
    let (done, said) = helm(&plane, &["uninstall", "kausality"]);
    assert!(!done && said.contains("not found"), "{said}");
    let (code, said) = kausality(&plane, &["uninstall", "--yes"]);
    assert!(code == 0 && said.contains("Helm has no record of the release kausality"), "{said}");
    unblocked(&plane, controller).await;
    let left = get(&plane, &["clusterroles,clusterrolebindings,priorityclasses,crds"]);
    let left: Vec<&str> = left["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|one| one["metadata"]["name"].as_str())
        .filter(|name| name.contains("kausality"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

/// Helm has no part in what the command installed, neither over it nor against it, and the command removes it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_the_command_installed_goes_in_any_order() {
    let Some(plane) = stage().await else { return };
    let (code, said) = kausality(&plane, &["install", "--wait=false"]);
    assert_eq!(code, 0, "{said}");
    let controller = in_force(&plane).await;
    let (done, said) = helm(&plane, &["uninstall", "kausality"]);
    assert!(!done && said.contains("not found"), "{said}");
    let (done, said) = helm(&plane, &["install", "kausality", "deploy/chart"]);
    assert!(!done && said.contains("invalid ownership metadata"), "{said}");
    let (done, said) = helm(&plane, &["uninstall", "kausality"]);
    assert!(!done && said.contains("not found"), "{said}");
    let (code, said) = kausality(&plane, &["uninstall", "--keep-crds"]);
    assert_eq!(code, 0, "{said}");
    unblocked(&plane, controller).await;

    // Half of it is gone already, and with it all that tells who had installed it.
    let (code, said) = kausality(&plane, &["install", "--wait=false"]);
    assert_eq!(code, 0, "{said}");
    let controller = in_force(&plane).await;
    must(&plane, &["delete", "clusterrolebinding", "kausality-controller"]);
    must(&plane, &["delete", "namespace", NAMESPACE]);
    let (code, said) = kausality(&plane, &["uninstall", "--yes"]);
    assert_eq!(code, 0, "{said}");
    unblocked(&plane, controller).await;
}
