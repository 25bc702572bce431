//! `kausality up`, run as a person would.

use std::{
    io::{BufRead, BufReader, Lines, Write as _},
    path::Path,
    process::{Child, ChildStdout, Command, Stdio},
    time::Duration,
};

use kausality_api::annotation::Suffix;
use kausality_testbed::eventually;
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
    core::{ApiResource, DynamicObject, GroupVersionKind},
};
use serde_json::{Value, json};

fn up(kubeconfig: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kausality"));
    command.args(["up", "--write-kubeconfig"]).arg(kubeconfig);
    command
}

#[test]
fn the_kubeconfig_goes_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    let mut running = up(&kubeconfig).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(running.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().starts_with("Talk to it")), "it runs");
    let own = Command::new(env!("CARGO_BIN_EXE_kausality"))
        .args(["own", "namespace/default", "--kubeconfig"])
        .arg(&kubeconfig)
        .output()
        .unwrap();
    let text = String::from_utf8([own.stdout, own.stderr].concat()).unwrap();
    assert!(text.contains("Namespace default"), "{text}");
    assert!(Command::new("kill").arg(running.id().to_string()).status().unwrap().success());
    assert!(running.wait().unwrap().success());
    assert!(!kubeconfig.exists());
}

#[test]
fn a_file_that_is_there_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let mine = folder.path().join("config");
    std::fs::write(&mine, "mine").unwrap();
    let output = up(&mine).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("exists already: remove it if it is an old one, or name another"), "{text}");
    assert_eq!(std::fs::read_to_string(&mine).unwrap(), "mine");
}

/// A terminal that is closed ends it as well.
#[test]
#[cfg(target_os = "linux")]
fn the_kubeconfig_goes_with_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    // These tests may themselves run under `nohup`.
    let mut command = Command::new("env");
    command.arg("--default-signal=HUP").arg(env!("CARGO_BIN_EXE_kausality"));
    command.args(["up", "--write-kubeconfig"]).arg(&kubeconfig);
    let mut running = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(running.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().starts_with("Talk to it")), "it runs");
    assert!(kubeconfig.exists());
    assert!(Command::new("kill").args(["-HUP", &running.id().to_string()]).status().unwrap().success());
    assert!(running.wait().unwrap().success());
    assert!(!kubeconfig.exists());
}

/// Who says `nohup` wants it to outlive the terminal.
#[test]
#[cfg(target_os = "linux")]
fn a_hangup_that_is_ignored_ends_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    let mut command = Command::new("nohup");
    command.arg(env!("CARGO_BIN_EXE_kausality")).args(["up", "--write-kubeconfig"]).arg(&kubeconfig);
    let mut running = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(running.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().starts_with("Talk to it")), "it runs");
    let signal = |name: &str| {
        let kill = Command::new("kill").args([name, &running.id().to_string()]).status().unwrap();
        assert!(kill.success());
    };
    signal("-HUP");
    let own = Command::new(env!("CARGO_BIN_EXE_kausality"))
        .args(["own", "namespace/default", "--kubeconfig"])
        .arg(&kubeconfig)
        .output()
        .unwrap();
    let text = String::from_utf8([own.stdout, own.stderr].concat()).unwrap();
    assert!(text.contains("Namespace default"), "it still answers: {text}");
    signal("-TERM");
    assert!(running.wait().unwrap().success());
}

#[test]
fn an_address_in_use_is_told_once() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    let output = up(&kubeconfig).args(["--bind-address", &address]).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains(&format!("cannot listen on {address}")), "{text}");
    assert_eq!(text.matches("in use").count(), 1, "{text}");
    assert!(!kubeconfig.exists());
}

#[test]
fn a_demo_nobody_watches_ends_with_what_to_try() {
    let program = env!("CARGO_BIN_EXE_kausality");
    let output = Command::new(program).arg("demo").output().unwrap();
    let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert!(output.status.success(), "{text}");
    let scaled = text.lines().find_map(|line| line.strip_prefix("carol $ kubectl scale ")).unwrap();
    let (set, _) = scaled.split_once(' ').unwrap();
    assert!(text.contains(", with an approval of dave"), "{text}");
    let (_, to_try) = text.split_once("Your turn").unwrap();
    assert!(to_try.contains(&format!("kubectl scale {set} --replicas=4 --as carol")), "{text}");
    assert!(to_try.contains(&format!("{program} own deployment/shop")), "{text}");
}

/// A story is told on a terminal only if it can be played with afterwards.
#[test]
#[cfg(target_os = "linux")]
fn a_demo_without_a_kubeconfig_does_not_begin() {
    let folder = tempfile::tempdir().unwrap();
    let mine = folder.path().join("config");
    std::fs::write(&mine, "mine").unwrap();
    let demo = format!("{} demo --write-kubeconfig {}", env!("CARGO_BIN_EXE_kausality"), mine.display());
    let output = Command::new("script").args(["-qec", &demo, "/dev/null"]).stdin(Stdio::null()).output();
    let Ok(output) = output else {
        let line = "\n==> SKIPPED: there is no `script`, which gives a terminal to a program.\n";
        std::io::stderr().write_all(line.as_bytes()).unwrap();
        return;
    };
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("exists already"), "{text}");
    assert!(!text.contains("Alice"), "{text}");
    assert_eq!(std::fs::read_to_string(&mine).unwrap(), "mine");
}

const PATIENCE: Duration = Duration::from_secs(60);

/// A control plane that runs. Ends when dropped.
struct Running {
    child: Child,
    /// It would end if nobody listened.
    _said: Lines<BufReader<ChildStdout>>,
}

impl Running {
    fn start(kubeconfig: &Path, arguments: &[&str]) -> Self {
        let mut child = up(kubeconfig)
            .args(["--quiet-time", "0s"])
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(said.any(|line| line.unwrap().starts_with("Talk to it")), "it runs");
        Self { child, _said: said }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A client of somebody, in a group.
async fn client(kubeconfig: &Path, user: &str, group: &str) -> Client {
    let read = Kubeconfig::read_from(kubeconfig).unwrap();
    let mut config = kube::Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await.unwrap();
    config.auth_info.impersonate = Some(user.to_owned());
    config.auth_info.impersonate_groups = Some(vec![group.to_owned()]);
    Client::try_from(config).unwrap()
}

fn api(client: &Client, group: &str, kind: &str) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind));
    Api::namespaced_with(client.clone(), "default", &resource)
}

fn shop() -> DynamicObject {
    let shop = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "shop"}, "spec": {
        "replicas": 3, "selector": {"matchLabels": {"app": "shop"}},
        "template": {"metadata": {"labels": {"app": "shop"}},
            "spec": {"containers": [{"name": "shop", "image": "shop:1"}]}}}});
    serde_json::from_value(shop).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drift_is_denied_until_it_is_approved_whichever_way_kausality_is_asked() {
    for way in ["library", "webhook"] {
        let folder = tempfile::tempdir().unwrap();
        let kubeconfig = folder.path().join("kubeconfig");
        let _running = Running::start(&kubeconfig, &["--admission", way]);
        let alice = client(&kubeconfig, "alice", "system:masters").await;
        let (deployments, sets) = (api(&alice, "apps", "Deployment"), api(&alice, "apps", "ReplicaSet"));
        let registered: Api<DynamicObject> = Api::all_with(
            alice.clone(),
            &ApiResource::from_gvk(&GroupVersionKind::gvk(
                "admissionregistration.k8s.io",
                "v1",
                "MutatingWebhookConfiguration",
            )),
        );
        let registered = registered.list(&ListParams::default()).await.unwrap().items.len();
        assert_eq!(registered, usize::from(way == "webhook"), "{way}");

        deployments.create(&PostParams::default(), &shop()).await.unwrap();
        eventually(PATIENCE, "the roll-out", async || {
            let shop = deployments.get("shop").await.unwrap();
            let settled = shop
                .metadata
                .annotations
                .unwrap_or_default()
                .keys()
                .any(|key| key.starts_with("kausality.io/settled."));
            (settled && shop.data["status"]["availableReplicas"] == 3).then_some(())
        })
        .await
        .unwrap();
        let set = sets.list(&ListParams::default()).await.unwrap().items.remove(0).metadata.name.unwrap();
        let five = Patch::Merge(json!({"spec": {"replicas": 5}}));
        sets.patch(&set, &PatchParams::default(), &five).await.unwrap();
        let denied = eventually(PATIENCE, "the denial", async || {
            let events = api(&alice, "", "Event").list(&ListParams::default()).await.unwrap().items;
            events.iter().find(|event| event.data["reason"] == "DriftDenied").map(|event| event.data.clone())
        })
        .await
        .unwrap();
        assert_eq!(denied["involvedObject"]["name"], "shop", "{way}");
        assert_eq!(sets.get(&set).await.unwrap().data["spec"]["replicas"], 5, "{way}");

        let generation = deployments.get("shop").await.unwrap().metadata.generation.unwrap();
        let approval = json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": set,
            "generation": generation, "mode": "once"}]);
        let approve = json!({"metadata": {"annotations": {"kausality.io/approvals": approval.to_string()}}});
        deployments.patch("shop", &PatchParams::default(), &Patch::Merge(approve)).await.unwrap();
        eventually(PATIENCE, "the correction", async || {
            (sets.get(&set).await.unwrap().data["spec"]["replicas"] == 3).then_some(())
        })
        .await
        .unwrap();
    }
}

/// Beside a webhook, too, custom resources are looked at once they are defined.
#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_follows_what_is_defined() {
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    let _running = Running::start(&kubeconfig, &["--admission", "webhook"]);
    let alice = client(&kubeconfig, "alice", "system:masters").await;
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "beds.garden.io"}, "spec": {"group": "garden.io", "scope": "Namespaced",
            "names": {"plural": "beds", "kind": "Bed"}, "versions": [{"name": "v1", "served": true, "storage": true,
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}});
    post(&alice, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition).await;
    eventually(PATIENCE, "a trace on a custom resource", async || {
        let bed = json!({"apiVersion": "garden.io/v1", "kind": "Bed", "metadata": {"generateName": "bed-"}, "spec": {}});
        let bed = post(&alice, "/apis/garden.io/v1/namespaces/default/beds", &bed).await;
        bed["metadata"]["annotations"].get(Suffix::of_object(&bed).key("kausality.io/trace")).cloned()
    })
    .await
    .unwrap();
}

/// Without its registration nobody would ask the webhook, and nobody would notice.
#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_is_registered_again_when_somebody_takes_its_registration_away_or_empties_it() {
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    let _running = Running::start(&kubeconfig, &["--admission", "webhook"]);
    let alice = client(&kubeconfig, "alice", "system:masters").await;
    let configuration =
        GroupVersionKind::gvk("admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration");
    let registered: Api<DynamicObject> = Api::all_with(alice.clone(), &ApiResource::from_gvk(&configuration));
    let first = registered.get("kausality").await.unwrap();

    registered.delete("kausality", &DeleteParams::default()).await.unwrap();
    let second = eventually(PATIENCE, "the registration", async || {
        registered.get_opt("kausality").await.unwrap().filter(|it| it.metadata.uid != first.metadata.uid)
    })
    .await
    .unwrap();
    assert_eq!(second.data["webhooks"], first.data["webhooks"]);

    let none = Patch::Merge(json!({"webhooks": []}));
    registered.patch("kausality", &PatchParams::default(), &none).await.unwrap();
    eventually(PATIENCE, "the webhook", async || {
        let now = registered.get("kausality").await.unwrap();
        (now.data["webhooks"] == first.data["webhooks"]).then_some(())
    })
    .await
    .unwrap();
    let shop = api(&alice, "apps", "Deployment").create(&PostParams::default(), &shop()).await.unwrap();
    assert!(shop.metadata.annotations.unwrap().keys().any(|key| key.starts_with("kausality.io/trace.")));
}

async fn post(client: &Client, path: &str, body: &Value) -> Value {
    let request = http::Request::post(path).header("content-type", "application/json");
    client.request(request.body(body.to_string().into_bytes()).unwrap()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn with_rbac_users_may_do_what_roles_allow_and_controllers_do_their_work() {
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    let _running = Running::start(&kubeconfig, &["--admission", "webhook", "--rbac"]);
    let bob = client(&kubeconfig, "bob", "dev").await;
    let refused = api(&bob, "apps", "Deployment").create(&PostParams::default(), &shop()).await.unwrap_err();
    let message = "deployments.apps is forbidden: User \"bob\" cannot create resource \"deployments\" in API group \"apps\" \
        in the namespace \"default\"";
    assert!(refused.to_string().contains(message), "{refused}");

    let admin = client(&kubeconfig, "root", "system:masters").await;
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": "dev"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
        "name": "edit"}, "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "dev"}]});
    post(&admin, "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings", &binding).await;
    let deployments = api(&bob, "apps", "Deployment");
    deployments.create(&PostParams::default(), &shop()).await.unwrap();
    eventually(PATIENCE, "the roll-out", async || {
        (deployments.get("shop").await.unwrap().data["status"]["availableReplicas"] == 3).then_some(())
    })
    .await
    .unwrap();
}

/// What is not watched may own what is: nobody decides there in the name of another.
#[tokio::test(flavor = "multi_thread")]
async fn decisions_are_signed_on_what_is_not_watched() {
    for way in ["library", "webhook"] {
        let folder = tempfile::tempdir().unwrap();
        let kubeconfig = folder.path().join("kubeconfig");
        let _running = Running::start(&kubeconfig, &["--admission", way]);
        let mallory = client(&kubeconfig, "mallory", "dev").await;
        let approvals = json!([{"apiVersion": "v1", "kind": "*", "name": "*", "by": "alice"}]).to_string();
        let accounts = api(&mallory, "", "ServiceAccount");
        let owner = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "owner",
            "annotations": {"kausality.io/approvals": approvals, Suffix::of("", "ServiceAccount", "default", "owner").key("kausality.io/settled"): "forged"}}});
        let owner = serde_json::from_value(owner).unwrap();
        let stored = accounts.create(&PostParams::default(), &owner).await.unwrap();
        let annotations = stored.metadata.annotations.unwrap();
        let approvals: Value = serde_json::from_str(&annotations["kausality.io/approvals"]).unwrap();
        assert_eq!(approvals[0]["by"].as_str(), Some("mallory"), "{way}");
        assert!(!annotations.values().any(|value| value == "forged"), "{way}: {annotations:?}");
    }
}

/// Issue 19: both showed what Kausality keeps in annotations of the objects that it looks at.
#[tokio::test(flavor = "multi_thread")]
async fn plans_and_diffs_are_about_what_people_write() {
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    let _running = Running::start(&kubeconfig, &[]);
    let alice = client(&kubeconfig, "alice", "system:masters").await;
    let deployments = api(&alice, "apps", "Deployment");
    let mut declared = serde_json::to_value(shop()).unwrap();
    declared["metadata"]["annotations"] = json!({"kausality.io/mode": "log"});
    let said = |command: &str, declared: &Value, options: &[&str]| {
        let manifest = folder.path().join("manifest.json");
        std::fs::write(&manifest, declared.to_string()).unwrap();
        let mut command = {
            let mut kausality = Command::new(env!("CARGO_BIN_EXE_kausality"));
            kausality.args([command, "--manager", "ci", "-o", "json", "-f"]);
            kausality
        };
        command.arg(manifest).args(options).arg("--kubeconfig").arg(&kubeconfig);
        let output = command.output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let document: Value =
            serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}{:?}", output.stderr));
        let fields = document["objects"][0]["fields"].as_array().unwrap();
        let paths = fields.iter().map(|field| field["path"].as_str().unwrap().to_owned());
        let ours: Vec<String> = paths.filter(|path| path.contains("kausality.io")).collect();
        (output.status.code().unwrap(), ours)
    };
    let mode = vec![r#"metadata.annotations["kausality.io/mode"]"#.to_owned()];
    assert_eq!(said("plan", &declared, &[]), (1, mode.clone()), "it is to be created");

    let apply = PatchParams::apply("ci");
    deployments.patch("shop", &apply, &Patch::Apply(&declared)).await.unwrap();
    let mut found = deployments.get("shop").await.unwrap().metadata.annotations.unwrap();
    found.retain(|key, _| key.starts_with("kausality.io/"));
    assert!(found.keys().any(|key| key.starts_with("kausality.io/trace.")), "{found:?}");
    assert_eq!(said("plan", &declared, &[]), (0, vec![]), "it is as planned");
    assert_eq!(said("diff", &declared, &["--all"]), (0, vec![]));

    // Who applies what a cluster gave them comes to own all of it, and lets go of it later.
    let mut exported = declared.clone();
    exported["metadata"]["annotations"] = json!(found);
    deployments.patch("shop", &apply, &Patch::Apply(&exported)).await.unwrap();
    assert_eq!(said("diff", &declared, &["--all"]), (0, vec![]));
    assert_eq!(said("plan", &declared, &[]), (0, vec![]));
    deployments.patch("shop", &apply, &Patch::Apply(&declared)).await.unwrap();

    let mut other = declared.clone();
    other["metadata"]["annotations"] = json!({"kausality.io/mode": "enforce"});
    other["spec"]["replicas"] = json!(4);
    assert_eq!(said("plan", &other, &[]), (1, mode.clone()), "it is to be changed");
    assert_eq!(said("diff", &other, &["--all"]), (1, mode));
}
