//! The controller and two replicas of the webhook, each with the rights that ship and no more.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use kausality_testbed::{AuditEvent, ControlPlane, eventually, free_port};
use serde_json::{Value, json};

use crate::real::{
    replicas::{Place, balance},
    stage::*,
};

const CONTROLLER: &str = "system:serviceaccount:kausality-system:kausality-controller";
pub(crate) const WEBHOOK: &str = "system:serviceaccount:kausality-system:kausality-webhook";

/// Kausality as it is installed, but for where its processes run.
pub(crate) struct Installation {
    folder: PathBuf,
    kubeconfig: PathBuf,
    url: String,
    /// More arguments for the webhooks.
    more: Vec<String>,
    places: Arc<Mutex<Vec<Place>>>,
    running: Vec<Webhook>,
    /// How many webhooks have been started.
    started: usize,
}

impl Installation {
    /// Definitions, rights, and two replicas of the webhook behind one address; no controller.
    pub(crate) async fn start(plane: &ControlPlane) -> Self {
        Self::start_with(plane, &[]).await
    }

    /// The same, with more arguments for the webhooks.
    pub(crate) async fn start_with(plane: &ControlPlane, more: &[&str]) -> Self {
        Self::start_under(plane, "deploy/crds", more).await
    }

    /// The same, under other definitions than those that ship.
    pub(crate) async fn start_under(plane: &ControlPlane, definitions: &str, more: &[&str]) -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for path in [definitions, "deploy/manifests"] {
            must(plane, "admin", &["apply", "--server-side", "-f", root.join(path).to_str().unwrap()]);
        }
        must(plane, "admin", &["wait", "--for=condition=Established", "crd/kausalities.kausality.io"]);
        let mut all = Self {
            folder: plane.folder().to_owned(),
            kubeconfig: plane.kubeconfig(),
            url: String::new(),
            more: more.iter().map(|&argument| argument.to_owned()).collect(),
            places: Arc::default(),
            running: Vec::new(),
            started: 0,
        };
        for _ in 0..2 {
            all.spawn_webhook();
        }
        // Not a loopback address: the API server talks to it as it does to a Service.
        all.url = format!("https://0.0.0.0:{}", balance(all.places.clone()).await);
        all
    }

    fn spawn_webhook(&mut self) {
        let address = || format!("127.0.0.1:{}", free_port().unwrap());
        let place = Place { admission: address(), health: address() };
        let arguments = [
            "webhook",
            "--quiet-time",
            "0s",
            "--kubeconfig",
            self.kubeconfig.to_str().unwrap(),
            "--as",
            WEBHOOK,
            "--bind-address",
            &place.admission,
            "--health-address",
            &place.health,
            "--tls-secret",
            "kausality-system/kausality-webhook-tls",
        ];
        let arguments: Vec<&str> =
            arguments.into_iter().chain(self.more.iter().map(String::as_str)).collect();
        let log = format!("webhook-{}.log", self.started);
        self.running.push(Webhook::command_in(&self.folder, &log, &arguments));
        self.places.lock().unwrap().push(place);
        self.started += 1;
    }

    /// Replaces the oldest webhook as a rolling update does: it goes when the new one is ready.
    pub(crate) async fn replace_webhook(&mut self) {
        self.spawn_webhook();
        self.ready().await;
        self.running.remove(0).terminate().await;
        self.places.lock().unwrap().remove(0);
    }

    /// Tells all webhooks to stop.
    pub(crate) async fn stop(&mut self) {
        for webhook in &mut self.running {
            webhook.terminate().await;
        }
    }

    /// Where logs are.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The webhooks that run.
    pub(crate) fn webhooks(&self) -> impl Iterator<Item = u32> {
        self.running.iter().map(|webhook| webhook.0.id())
    }

    pub(crate) fn places(&self) -> Vec<Place> {
        self.places.lock().unwrap().clone()
    }

    /// One more controller.
    pub(crate) fn spawn_controller(&self, log: &str, more: &[&str]) -> Webhook {
        let arguments = [
            "controller",
            "--kubeconfig",
            self.kubeconfig.to_str().unwrap(),
            "--as",
            CONTROLLER,
            "--webhook-url",
            &self.url,
            "--anchor",
            "kausality-controller",
        ];
        Webhook::command_in(&self.folder, log, &[&arguments, more].concat())
    }

    /// Waits until all replicas want to be asked.
    pub(crate) async fn ready(&self) {
        for place in self.places() {
            let ready = async || is_ready(&place.health).await.then_some(());
            eventually(PATIENCE, "a replica that is ready", ready).await.unwrap();
        }
    }
}

pub(crate) fn policy(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "kausality.io/v1alpha1", "kind": "Kausality", "metadata": {"name": name}, "spec": spec})
}

/// Waits until a condition of a policy has this reason. Its message.
pub(crate) async fn told(plane: &ControlPlane, policy: &str, kind: &str, reason: &str) -> String {
    eventually(PATIENCE, format!("{kind} of {policy}: {reason}"), async || {
        let policy = get(plane, &["kausality", policy]);
        let conditions = policy["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let current =
            |condition: &&Value| condition["observedGeneration"] == policy["metadata"]["generation"];
        let found = conditions.iter().filter(current).find(|condition| condition["type"] == kind);
        let found = found.filter(|condition| condition["reason"] == reason);
        found.map(|condition| condition["message"].as_str().unwrap().to_owned()).ok_or(format!("{policy:#}"))
    })
    .await
    .unwrap()
}

pub(crate) fn configuration(plane: &ControlPlane) -> Value {
    get(plane, &["mutatingwebhookconfiguration", "kausality"])
}

/// The resources that a webhook is asked about.
fn watched(configuration: &Value, webhook: &str) -> Vec<String> {
    let webhooks = configuration["webhooks"].as_array().cloned().unwrap_or_default();
    let found = webhooks.into_iter().find(|found| found["name"] == webhook).unwrap_or_default();
    let rules = found["rules"].as_array().cloned().unwrap_or_default();
    let resources = rules.iter().filter_map(|rule| rule["resources"].as_array()).flatten();
    resources.map(|resource| resource.as_str().unwrap().to_owned()).collect()
}

/// Waits until somebody's mischief is undone, and tells how long it took.
async fn repaired(plane: &ControlPlane, what: &str, before: &Value, mischief: &[&str]) -> Duration {
    let resource = if what.contains("role") {
        ["clusterrole", "kausality:policy:workloads"]
    } else {
        ["mutatingwebhookconfiguration", "kausality"]
    };
    let field = if what.contains("role") { "rules" } else { "webhooks" };
    must(plane, "mallory", mischief);
    let begun = Instant::now();
    eventually(Duration::from_secs(15), what, async || {
        let now = get(plane, &resource);
        let owned = now["metadata"]["ownerReferences"] == before["metadata"]["ownerReferences"];
        if now[field] == before[field] && owned { Ok(()) } else { Err(format!("{now:#}")) }
    })
    .await
    .unwrap();
    begun.elapsed()
}

pub(crate) fn definition(group: &str, plural: &str, kind: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase()},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "x-kubernetes-preserve-unknown-fields": true}}}],
        },
    })
}

fn refused<'a>(events: &'a [AuditEvent], user: &'a str) -> impl Iterator<Item = String> + 'a {
    let refused = events.iter().filter(move |event| event.user == user && event.code == 403);
    refused.map(|event| format!("{} {} {}", event.verb, event.resource, event.name))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_policy_is_registered_granted_and_kept() {
    let Some(plane) = stage().await else { return };
    let _kubelet = plane.play_kubelet().await.unwrap();
    let installation = Installation::start(&plane).await;
    let _controller = installation.spawn_controller("controller.log", &[]);
    installation.ready().await;
    assert!(configuration(&plane).is_null(), "there is no policy yet");

    let workloads = json!([{"apiGroups": ["apps"], "resources": ["deployments", "replicasets", "gizmos"]}]);
    apply(&plane, "alice", &policy("workloads", &json!({"resources": workloads, "mode": "enforce"})));
    let message = told(&plane, "workloads", "WebhookConfigured", "SomeNotServed").await;
    assert!(message.contains("gizmos.apps"), "{message}");
    told(&plane, "workloads", "Ready", "SomeNotServed").await;

    // A drift is denied, by replicas that have no more rights than the policy needs.
    must(&plane, "alice", &["create", "deployment", "web", "--image=nginx:1", "--replicas=2"]);
    rolled_out(&plane, "web", 1).await;
    let sets = replica_sets(&plane);
    must(
        &plane,
        "carol",
        &["scale", "replicaset", sets[0]["metadata"]["name"].as_str().unwrap(), "--replicas=4"],
    );
    let denied = |event: &AuditEvent| {
        let resolution = event.annotations.get("workloads.drift.kausality.io/resolution");
        resolution.is_some_and(|resolution| resolution == "blocked")
    };
    let blocked = async || plane.audit().unwrap().iter().any(denied).then_some(());
    eventually(PATIENCE, "a denied correction", blocked).await.unwrap();

    let events = plane.audit().unwrap();
    assert_eq!(refused(&events, WEBHOOK).collect::<Vec<_>>(), [""; 0]);

    // Whatever others do to it, it is repaired.
    let before = configuration(&plane);
    let role = get(&plane, &["clusterrole", "kausality:policy:workloads"]);
    let patch = |path: &str, value: &str| {
        format!(r#"[{{"op": "add", "path": "/webhooks/0/{path}", "value": {value}}}]"#)
    };
    let open = patch("failurePolicy", r#""Ignore""#);
    let never = patch("matchConditions/-", r#"{"name": "never", "expression": "false"}"#);
    let name = ["mutatingwebhookconfiguration", "kausality"];
    let edit = |patch: &'static str| {
        ["patch", "clusterrole", "kausality:policy:workloads", "--type=merge", "-p", patch]
    };
    for (what, before, mischief) in [
        ("a changed failurePolicy", &before, [&["patch"], &name[..], &["--type=json", "-p", &open]].concat()),
        (
            "a condition that never holds",
            &before,
            [&["patch"], &name[..], &["--type=json", "-p", &never]].concat(),
        ),
        ("a deleted configuration", &before, [&["delete"], &name[..]].concat()),
        ("a role without rules", &role, edit(r#"{"rules": []}"#).to_vec()),
        ("a deleted role", &role, vec!["delete", "clusterrole", "kausality:policy:workloads"]),
    ] {
        let took = repaired(&plane, what, before, &mischief).await;
        println!("{what}: repaired after {took:?}");
    }

    // What cannot be understood is refused where it is written.
    let file = plane.folder().join("bad.json");
    let selector = json!({"matchLabels": {"a b": "c"}});
    let bad = policy("bad", &json!({"resources": workloads, "mode": "log", "objectSelector": selector}));
    std::fs::write(&file, bad.to_string()).unwrap();
    let (accepted, said) = kubectl(&plane, "alice", &["apply", "-f", file.to_str().unwrap()]);
    assert!(!accepted && said.contains("spec.objectSelector.matchLabels"), "{said}");

    // The last policy goes, and everything with it.
    must(&plane, "alice", &["delete", "kausality", "workloads"]);
    eventually(PATIENCE, "no configuration and no role", async || {
        let role = get(&plane, &["clusterrole", "kausality:policy:workloads"]);
        (configuration(&plane).is_null() && role.is_null()).then_some(())
    })
    .await
    .unwrap();
    let events = plane.audit().unwrap();
    assert_eq!(refused(&events, CONTROLLER).collect::<Vec<_>>(), [""; 0]);
}

/// `*` follows new definitions; a parent whose kind no policy names is asked for, and granted; and when the anchor goes,
/// everything does.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_is_served_and_who_is_a_parent_is_learned() {
    let Some(plane) = stage().await else { return };
    let installation = Installation::start(&plane).await;
    let _controller = installation.spawn_controller("controller.log", &[]);
    let resources = json!([{"apiGroups": ["example.com"], "resources": ["*"], "excluded": ["secretives"]}]);
    // A part of it is enforced: who is asked, and whether an answer is needed, is decided by a condition.
    let overrides = json!([{"resources": ["widgets"], "namespaces": ["prod"], "mode": "enforce"}]);
    apply(
        &plane,
        "alice",
        &policy("examples", &json!({"resources": resources, "mode": "log", "overrides": overrides})),
    );
    told(&plane, "examples", "Ready", "NothingServed").await;
    for (group, plural, kind) in [
        ("example.com", "widgets", "Widget"),
        ("example.com", "secretives", "Secretive"),
        ("factory.example.org", "makers", "Maker"),
    ] {
        apply(&plane, "admin", &definition(group, plural, kind));
    }
    told(&plane, "examples", "Ready", "Configured").await;
    installation.ready().await;
    for webhook in ["examples.drift.kausality.io", "examples.drift-log.kausality.io"] {
        let found = watched(&configuration(&plane), webhook);
        assert_eq!(found, ["widgets", "widgets/scale"], "{webhook}");
    }
    must(&plane, "alice", &["create", "namespace", "prod"]);
    for (namespace, webhook) in
        [("default", "examples.drift-log.kausality.io"), ("prod", "examples.drift.kausality.io")]
    {
        let user = format!("maker-in-{namespace}");
        apply(
            &plane,
            &user,
            &json!({"apiVersion": "example.com/v1", "kind": "Widget",
            "metadata": {"name": "alone", "namespace": namespace}}),
        );
        let asked = eventually(PATIENCE, "a review in the audit log", async || {
            let events = plane.audit().unwrap().into_iter();
            let mut created = events.filter(|event| event.user == user && event.resource == "widgets");
            let created = created.find(|event| event.verb == "patch" || event.verb == "create")?;
            let asked = created.annotations.into_keys().filter(|key| key.ends_with(".kausality.io/decision"));
            Some(asked.collect::<Vec<_>>()).filter(|asked| !asked.is_empty())
        });
        assert_eq!(asked.await.unwrap(), [format!("{webhook}/decision")]);
    }

    let makers = || {
        let role = get(&plane, &["clusterrole", "kausality:policy:examples"]);
        role["rules"].to_string().contains("makers")
    };
    assert!(!makers(), "nobody has asked for it");
    apply(
        &plane,
        "alice",
        &json!({"apiVersion": "factory.example.org/v1", "kind": "Maker",
        "metadata": {"name": "maker", "namespace": "default"}}),
    );
    let uid = get(&plane, &["maker", "maker"])["metadata"]["uid"].clone();
    let make = |number: usize| {
        let child = json!({"apiVersion": "example.com/v1", "kind": "Widget", "spec": {"number": number},
            "metadata": {"name": format!("widget-{number}"), "namespace": "default", "ownerReferences": [{
                "apiVersion": "factory.example.org/v1", "kind": "Maker", "name": "maker", "uid": uid, "controller": true}]}});
        let file = plane.folder().join("widget.json");
        std::fs::write(&file, child.to_string()).unwrap();
        must(&plane, "maker", &["create", "-f", file.to_str().unwrap()])
    };
    let said = make(0);
    assert!(said.contains("makers.factory.example.org"), "the missing rule is named: {said}");
    eventually(PATIENCE, "the right to read makers", async || makers().then_some(())).await.unwrap();
    let status = get(&plane, &["kausality", "examples"])["status"]["parents"].clone();
    assert_eq!(status, json!([{"apiGroup": "factory.example.org", "kind": "Maker", "resource": "makers"}]));
    let mut number = 0;
    eventually(PATIENCE, "a parent that is read", async || {
        number += 1;
        let said = make(number);
        if said.contains("Warning") { Err(said) } else { Ok(()) }
    })
    .await
    .unwrap();
    let events = plane.audit().unwrap();
    assert_eq!(refused(&events, CONTROLLER).collect::<Vec<_>>(), [""; 0]);
    assert!(refused(&events, WEBHOOK).all(|call| call.contains("makers")));

    must(&plane, "admin", &["delete", "clusterrole", "kausality-controller"]);
    eventually(PATIENCE, "everything to be gone", async || {
        let left = [
            configuration(&plane),
            get(&plane, &["validatingwebhookconfiguration", "kausality"]),
            get(&plane, &["clusterrole", "kausality:policy:examples"]),
            get(&plane, &["secret", "kausality-webhook-tls", "-n", "kausality-system"]),
        ];
        if left.iter().all(Value::is_null) { Ok(()) } else { Err(format!("{left:#?}")) }
    })
    .await
    .unwrap();
}

/// Whoever deletes the namespace, and uninstalls nothing, must not be left with a registration that refuses every write: a
/// controller takes it away at once, and where none runs, Kubernetes does when the namespace is gone.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_registration_goes_with_the_namespace() {
    let Some(plane) = stage().await else { return };
    let installation = Installation::start(&plane).await;
    let apps = json!([{"apiGroups": ["apps"], "resources": ["deployments"]}]);
    apply(&plane, "alice", &policy("workloads", &json!({"resources": apps, "mode": "enforce"})));
    let controller = installation.spawn_controller("controller.log", &[]);
    told(&plane, "workloads", "Ready", "Configured").await;
    let anchor = get(&plane, &["clusterrole", "kausality-controller"]);
    let namespace = || get(&plane, &["namespace", "kausality-system"]);
    let owners = json!([{"apiVersion": "v1", "kind": "Namespace", "name": "kausality-system",
        "uid": namespace()["metadata"]["uid"]}]);
    assert_eq!(anchor["metadata"]["ownerReferences"], owners);

    // Something keeps the namespace from going.
    let held = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "held", "namespace": "kausality-system", "finalizers": ["example.com/held"]}});
    apply(&plane, "alice", &held);
    let delete = ["delete", "namespace", "kausality-system", "--wait=false"];
    let away = async |what: &str| {
        let begun = Instant::now();
        let look = async || configuration(&plane).is_null().then_some(());
        eventually(PATIENCE, "the end of the registration", look).await.unwrap();
        println!("{what}: the registration was gone after {:?}", begun.elapsed());
    };
    must(&plane, "alice", &delete);
    away("with a controller").await;
    assert!(!namespace().is_null());
    let validating = get(&plane, &["validatingwebhookconfiguration", "kausality"]);
    assert!(validating.is_null(), "{validating:#}");

    drop(controller);
    let free = r#"{"metadata": {"finalizers": null}}"#;
    must(
        &plane,
        "alice",
        &["patch", "configmap", "held", "-n", "kausality-system", "--type=merge", "-p", free],
    );
    let all_gone = async || {
        eventually(PATIENCE, "the end of namespace and anchor", async || {
            let anchor = get(&plane, &["clusterrole", "kausality-controller"]);
            (namespace().is_null() && anchor.is_null()).then_some(())
        })
        .await
        .unwrap();
    };
    all_gone().await;

    // Installed once more, and nobody is there to see it go.
    let manifests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/manifests");
    must(&plane, "admin", &["apply", "--server-side", "-f", manifests.to_str().unwrap()]);
    let controller = installation.spawn_controller("controller-2.log", &[]);
    eventually(PATIENCE, "the registration", async || (!configuration(&plane).is_null()).then_some(()))
        .await
        .unwrap();
    drop(controller);
    must(&plane, "alice", &delete);
    away("without a controller").await;
    all_gone().await;
    let events = plane.audit().unwrap();
    let refused: Vec<String> = refused(&events, CONTROLLER).filter(|call| !call.contains("leases")).collect();
    assert_eq!(refused, [""; 0]);
}
