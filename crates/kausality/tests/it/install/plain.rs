//! `kausality install` and `kausality uninstall`.

use kausality_api::crd;
use serde_json::{Value, json};

use crate::install::stage::*;

/// What would be applied, by the command.
fn printed(plane: Option<&Stage>, arguments: &[&str]) -> Vec<Value> {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_kausality"))
        .args(["install", "--dry-run"])
        .args(arguments)
        // There need not be a cluster.
        .env("KUBECONFIG", plane.map_or("/nonexistent".into(), |plane| plane.kubeconfig()))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    objects(&String::from_utf8(output.stdout).unwrap())
}

fn without<'a>(objects: &'a [Value], kinds: &[&str]) -> Vec<&'a Value> {
    objects.iter().filter(|object| !kinds.contains(&object["kind"].as_str().unwrap())).collect()
}

/// The command and the chart cannot come apart: the same image and namespace make the same objects.
#[tokio::test]
async fn it_is_what_the_chart_makes() {
    let Some(helm) = Helm::find().await else { return };
    let image = "registry.example.com:5000/team/kausality:1.2.3";
    let made = helm.must(&[
        "template",
        "kausality",
        "deploy/chart",
        "--no-hooks",
        "--namespace",
        "elsewhere",
        "--set",
        "image.repository=registry.example.com:5000/team/kausality,image.tag=1.2.3",
    ]);
    let made = objects(&made);
    for output in ["yaml", "json"] {
        let ours = printed(None, &["--namespace", "elsewhere", "--image", image, "--output", output]);
        assert_eq!(
            without(&ours, &["CustomResourceDefinition", "Namespace"]),
            without(&made, &[]),
            "{output}"
        );
        let kinds: Vec<&str> = ours.iter().map(|object| object["kind"].as_str().unwrap()).collect();
        let [definitions @ .., last] = &kinds[..=crd::all().len()] else { panic!("{kinds:?}") };
        assert!(definitions.iter().all(|kind| *kind == "CustomResourceDefinition"), "{output}: {kinds:?}");
        assert_eq!(*last, "Namespace", "{output}");
    }
    let only = printed(None, &["--crds-only"]);
    let files = crd::all().into_iter().map(|(file, _)| read(&format!("deploy/crds/{file}")));
    let expected: Vec<Value> = files.flat_map(|file| objects(&file)).collect();
    assert_eq!(only, expected);
}

/// From nothing to available, twice, and away; each with what a person can go by.
#[tokio::test(flavor = "multi_thread")]
async fn it_comes_and_goes() {
    let Some(plane) = stage().await else { return };
    let all = printed(Some(&plane), &[]);
    let (code, said) = kausality(&plane, &["uninstall", "--yes"]);
    assert_eq!((code, said.as_str()), (0, "Nothing of Kausality was found.\n"));

    let (code, said) = kausality(&plane, &["install", "--timeout", "1"]);
    assert!(
        code == 2 && said.contains("0 of 2 replicas available") && said.contains("describe pods"),
        "{said}"
    );
    assert_eq!(said.matches(": created").count(), all.len(), "{said}");
    let kubelet = plane.play_kubelet().await.unwrap();
    let (code, said) = kausality(&plane, &["install"]);
    assert!(code == 0 && said.contains("Deployment kausality-webhook: 2 of 2 replicas available"), "{said}");
    assert_eq!(said.matches(": unchanged").count(), all.len(), "{said}");
    let (code, said) = kausality(&plane, &["install", "--image", "example.com/kausality:2", "--wait=false"]);
    assert_eq!((code, said.matches(": changed").count()), (0, 2), "{said}");

    // One cluster, one Kausality.
    let (code, said) = kausality(&plane, &["install", "--namespace", "elsewhere"]);
    assert!(code == 2 && said.contains("give --namespace kausality-system"), "{said}");
    // What somebody else has set is theirs.
    must(&plane, &["scale", "deployment/kausality-webhook", "-n", "kausality-system", "--replicas=5"]);
    let (code, said) = kausality(&plane, &["install", "--wait=false"]);
    assert!(code == 2 && said.contains("--force-conflicts"), "{said}");
    let (code, said) = kausality(&plane, &["install", "--wait=false", "--force-conflicts"]);
    assert_eq!(code, 0, "{said}");
    assert_eq!(
        get(&plane, &["deployment", "kausality-webhook", "-n", "kausality-system"])["spec"]["replicas"],
        2
    );

    let policy = json!({
        "apiVersion": "kausality.io/v1alpha1", "kind": "Kausality", "metadata": {"name": "workloads"},
        "spec": {"resources": [{"apiGroups": ["apps"], "resources": ["*"]}], "mode": "log"},
    });
    must(&plane, &["create", "-f", &file(&plane, "policy.json", &policy.to_string())]);
    let work = controllers_work(&plane);
    for object in &work {
        must(&plane, &["create", "-f", &file(&plane, "work.json", &object.to_string())]);
    }
    // Nobody is there to ask, so nothing happens.
    let (code, said) = kausality(&plane, &["uninstall"]);
    assert!(code == 2 && said.contains("--keep-crds"), "{said}");
    assert!(is_there(&plane, &work[0]));

    let (code, said) = kausality(&plane, &["uninstall", "--keep-crds"]);
    assert_eq!(code, 0, "{said}");
    let position = |text: &str| said.find(text).unwrap_or_else(|| panic!("{text} is not in {said}"));
    let first = ["MutatingWebhookConfiguration kausality: ", "ValidatingWebhookConfiguration kausality: "]
        .map(position);
    assert!(
        first.into_iter().max().unwrap() < position("ClusterRoleBinding kausality-controller: "),
        "{said}"
    );
    let rest: Vec<Value> =
        all.iter().filter(|one| one["kind"] != "CustomResourceDefinition").chain(&work).cloned().collect();
    gone(&plane, &rest).await;
    assert!(is_there(&plane, &policy), "policies are kept");

    let (code, said) = kausality(&plane, &["install", "--wait=false"]);
    assert_eq!(code, 0, "{said}");
    let (code, said) = kausality(&plane, &["uninstall", "--yes"]);
    assert_eq!(code, 0, "{said}");
    gone(&plane, &all).await;
    drop(kubelet);
}

/// Neither touches what Helm installed.
#[tokio::test(flavor = "multi_thread")]
async fn what_helm_installed_is_left_to_helm() {
    let Some(plane) = stage().await else { return };
    let config = plane.kubeconfig();
    plane.helm.must(&[
        "install",
        "drifts",
        "deploy/chart",
        "--namespace",
        "platform",
        "--create-namespace",
        "--kubeconfig",
        config.to_str().unwrap(),
    ]);
    let (code, said) = kausality(&plane, &["install"]);
    assert!(
        code == 2 && said.contains("release drifts in platform") && said.contains("helm upgrade"),
        "{said}"
    );
    let (code, said) = kausality(&plane, &["uninstall", "--yes"]);
    assert!(code == 2 && said.contains("helm uninstall drifts -n platform"), "{said}");
    // And nobody has to say where that is.
    let (_, said) = kausality(&plane, &["doctor"]);
    assert!(said.contains("Secret platform/kausality-webhook-tls"), "{said}");
    let (_, said) = kausality(&plane, &["doctor", "--namespace", "elsewhere"]);
    assert!(said.contains("Secret elsewhere/kausality-webhook-tls"), "{said}");
}
