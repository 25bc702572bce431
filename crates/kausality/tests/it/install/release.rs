//! The life of a release.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::install::stage::*;

const HERE: [&str; 2] = ["--namespace", "kausality-system"];

/// Installed with a policy in one go, upgraded, and removed: nothing stays but the definitions, which hold what people
/// wrote.
#[tokio::test(flavor = "multi_thread")]
async fn a_release_comes_changes_and_goes() {
    let Some(plane) = stage().await else { return };
    // Helm waits for the Job before an upgrade.
    let _kubelet = plane.play_kubelet().await.unwrap();
    let config = plane.kubeconfig();
    let helm = |verb: &[&str], more: &[&str]| {
        let to = ["--kubeconfig", config.to_str().unwrap()];
        plane.helm.must(&[verb, &HERE[..], &to, more].concat())
    };
    let policy = r#"policies=[{"name": "workloads", "spec": {"resources": [{"apiGroups": ["apps"], "resources": ["*"]}], "mode": "log"}}]"#;
    helm(&["install", "kausality", "deploy/chart"], &["--create-namespace", "--set-json", policy]);
    let made = objects(&plane.helm.template(&["--no-hooks", "--set-json", policy]));
    for object in &made {
        assert!(is_there(&plane, object), "{object}");
    }
    assert_eq!(get(&plane, &["kausality", "workloads"])["spec"]["mode"], "log");
    let before = get(&plane, &["clusterrole", "kausality-controller"])["metadata"]["uid"].clone();

    helm(&["upgrade", "kausality", "deploy/chart"], &["--reuse-values", "--set", "webhook.replicas=3"]);
    let webhook = get(&plane, &["deployment", "kausality-webhook", "-n", "kausality-system"]);
    assert_eq!(webhook["spec"]["replicas"], 3);
    // The registration hangs on this object: another would take it away for a moment.
    assert_eq!(get(&plane, &["clusterrole", "kausality-controller"])["metadata"]["uid"], before);
    let hooks: BTreeSet<String> = plane
        .audit()
        .unwrap()
        .into_iter()
        .filter(|event| event.name == "kausality-crds" && matches!(event.verb.as_str(), "create" | "patch"))
        .map(|event| event.resource)
        .collect();
    let expected = ["clusterrolebindings", "clusterroles", "jobs", "networkpolicies", "serviceaccounts"];
    assert_eq!(hooks.iter().map(String::as_str).collect::<Vec<_>>(), expected, "what ran before the upgrade");

    let work = controllers_work(&plane);
    for object in &work {
        must(&plane, &["create", "-f", &file(&plane, "work.json", &object.to_string())]);
    }
    helm(&["uninstall", "kausality"], &[]);
    let hooks = objects(&plane.helm.template(&["--show-only", "templates/crds-upgrade.yaml"]));
    gone(&plane, &[made, hooks, work].concat()).await;
    let left = get(&plane, &["all,secrets,configmaps,leases", "-n", "kausality-system"]);
    let left: Vec<&Value> = left["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["metadata"]["name"] != "kube-root-ca.crt" && one["kind"] != "Pod")
        .collect();
    assert!(left.is_empty(), "{left:#?}");
    assert!(!get(&plane, &["crd", "kausalities.kausality.io"]).is_null());
}
