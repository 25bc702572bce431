//! Where the tests play: gardens with beds in them, and drifts of beds.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use jiff::{SignedDuration, Timestamp};
use kausality_api::{
    annotation::{SETTLED, Suffix},
    drift::Drift,
};
use kausality_core::{Summary, review::Object};
use kausality_sandbox::{Sandbox, Served, User};
use kube::Client;
use serde_json::{Value, json};

/// A control plane with definitions, and somebody who may do all.
pub(crate) struct Stage {
    pub(crate) client: Client,
    kubeconfig: PathBuf,
    _folder: Option<tempfile::TempDir>,
    served: Option<Served>,
}

/// What a command said.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
    command: String,
}

impl Said {
    /// Everything, with times and ids of this run taken out.
    pub(crate) fn transcript(&self) -> String {
        let mut text = format!("$ {}\n{}", self.command, self.out);
        for line in self.err.lines() {
            text += &format!("! {line}\n");
        }
        if self.code != 0 {
            text += &format!("exits with {}\n", self.code);
        }
        timeless(&text)
    }

    /// The document on standard output.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn yaml(&self) -> Value {
        serde_saphyr::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// Timestamps, uids and ages of seconds differ from run to run.
fn timeless(text: &str) -> String {
    let is_like = |text: &str, shape: &str| {
        text.len() == shape.len()
            && text.chars().zip(shape.chars()).all(|(c, s)| match s {
                '0' => c.is_ascii_digit(),
                'x' => c.is_ascii_hexdigit(),
                s => c == s,
            })
    };
    let shapes = [("0000-00-00T00:00:00Z", "<time>"), ("xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx", "<uid>")];
    let mut timeless = String::new();
    let mut rest = text;
    'next: while let Some(first) = rest.chars().next() {
        for (shape, name) in shapes {
            if rest.get(..shape.len()).is_some_and(|text| is_like(text, shape)) {
                timeless += name;
                rest = &rest[shape.len()..];
                continue 'next;
            }
        }
        timeless.push(first);
        rest = &rest[first.len_utf8()..];
    }
    timeless
}

/// Whether an object is marked as settled.
pub(crate) fn settled(object: &Value) -> Option<()> {
    object["metadata"]["annotations"].get(Suffix::of_object(object).key(SETTLED)).map(|_| ())
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

impl Stage {
    /// A sandbox where nobody but the roles says who may do what.
    pub(crate) async fn new() -> Self {
        Self::on(&Sandbox::builder().rbac(true).seed(7).build()).await
    }

    /// This sandbox, over the network.
    pub(crate) async fn on(sandbox: &Sandbox) -> Self {
        let served = sandbox.serve("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let kubeconfig = folder.path().join("kubeconfig");
        let alice = User::admin("alice");
        std::fs::write(&kubeconfig, served.kubeconfig(&alice)).unwrap();
        let client = sandbox.client(&alice);
        let stage = Self { client, kubeconfig, _folder: Some(folder), served: Some(served) };
        stage.furnish().await;
        stage
    }

    /// Another control plane.
    pub(crate) async fn at(client: Client, kubeconfig: &Path) -> Self {
        let stage = Self { client, kubeconfig: kubeconfig.to_owned(), _folder: None, served: None };
        stage.furnish().await;
        stage
    }

    /// The definitions of Kausality and of gardens, and two namespaces.
    async fn furnish(&self) {
        for file in root().join("deploy/crds").read_dir().unwrap() {
            let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
            self.define(&serde_saphyr::from_str(&text).unwrap()).await;
        }
        for (kind, plural, scope) in
            [("Garden", "gardens", "Namespaced"), ("Bed", "beds", "Namespaced"), ("Park", "parks", "Cluster")]
        {
            let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
            self.define(&json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {"name": format!("{plural}.garden.io")},
                "spec": {"group": "garden.io", "scope": scope,
                    "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind},
                    "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                        "schema": {"openAPIV3Schema": schema}}]}}))
                .await;
        }
        for name in ["park", "other"] {
            self.post("/api/v1/namespaces", &json!({"metadata": {"name": name}})).await;
        }
        // A definition is served a moment after it is there.
        kausality_testbed::eventually(PATIENCE, "the definitions", async || {
            let groups = ["garden.io/v1", "kausality.io/v1alpha1"];
            let mut served = 0;
            for group in groups {
                let path = format!("/apis/{group}");
                let Ok(list) = self.call("GET", &path, &Value::Null).await else { return None };
                served += list["resources"].as_array().map_or(0, |all| {
                    all.iter().filter(|one| !one["name"].as_str().unwrap_or_default().contains('/')).count()
                });
            }
            (served == 3 + kausality_api::crd::all().len()).then_some(())
        })
        .await
        .unwrap();
    }

    async fn define(&self, definition: &Value) {
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        match self.call("POST", path, definition).await {
            // Kausality may have defined its own kinds.
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            defined => _ = defined.unwrap(),
        }
    }

    pub(crate) async fn call(&self, method: &str, path: &str, body: &Value) -> Result<Value, kube::Error> {
        let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let request = http::Request::builder().method(method).uri(path).header("content-type", kind);
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        self.client.request(request.body(body).unwrap()).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Value {
        self.call("POST", path, body).await.unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        self.call("GET", path, &Value::Null).await.unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    pub(crate) async fn patch(&self, path: &str, body: &Value) -> Value {
        self.call("PATCH", path, body).await.unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// A garden of this name in the park, with these annotations.
    pub(crate) async fn garden(&self, name: &str, annotations: &Value) -> Value {
        let garden = json!({"apiVersion": "garden.io/v1", "kind": "Garden",
            "metadata": {"name": name, "annotations": annotations}, "spec": {"flowers": "roses"}});
        self.post(GARDENS, &garden).await
    }

    /// The annotation of a garden, as JSON.
    pub(crate) async fn annotation(&self, garden: &str, key: &str) -> Value {
        self.annotation_of(&format!("{GARDENS}/{garden}"), key).await
    }

    /// The annotation of any object, as JSON.
    pub(crate) async fn annotation_of(&self, path: &str, key: &str) -> Value {
        let text = self.get(path).await["metadata"]["annotations"]["kausality.io/".to_owned() + key].clone();
        text.as_str().map_or(Value::Null, |text| serde_json::from_str(text).unwrap_or_else(|_| json!(text)))
    }

    /// Enters a drift of a bed into the ledger.
    pub(crate) async fn drift(&self, plot: &Plot<'_>) -> Value {
        let drift = serde_json::to_value(plot.drift()).unwrap();
        let path = match plot.parent["metadata"]["namespace"].as_str() {
            Some(namespace) => format!("/apis/kausality.io/v1alpha1/namespaces/{namespace}/drifts"),
            None => "/apis/kausality.io/v1alpha1/clusterdrifts".to_owned(),
        };
        self.post(&path, &drift).await
    }

    /// The kubeconfig, as it would be if the control plane were elsewhere.
    pub(crate) fn kubeconfig_at(&self, address: &str) -> String {
        let mut config: Value =
            serde_json::from_str(&std::fs::read_to_string(&self.kubeconfig).unwrap()).unwrap();
        config["clusters"][0]["cluster"]["server"] = json!(format!("https://{address}"));
        config.to_string()
    }

    /// Where the control plane is.
    pub(crate) fn address(&self) -> std::net::SocketAddr {
        let url = &self.served.as_ref().expect("a sandbox").url;
        url.trim_start_matches("https://").parse().unwrap()
    }

    /// The program, on its way to this control plane.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kausality"));
        command.args(arguments).env("KUBECONFIG", &self.kubeconfig).stdin(Stdio::null());
        command
    }

    /// What the program says.
    pub(crate) fn run(&self, arguments: &[&str]) -> Said {
        said(&mut self.command(arguments), arguments)
    }

    /// What the program says must be as it was.
    pub(crate) fn golden(&self, name: &str, arguments: &[&str]) -> Said {
        let said = self.run(arguments);
        insta::assert_snapshot!(name, said.transcript());
        said
    }
}

pub(crate) fn said(command: &mut Command, arguments: &[&str]) -> Said {
    let output = command.output().unwrap();
    let quoted =
        |word: &&str| if word.contains([' ', '*']) { format!("'{word}'") } else { (*word).to_owned() };
    let words: Vec<String> = arguments.iter().map(quoted).collect();
    Said {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
        command: format!("kausality {}", words.join(" ")),
    }
}

pub(crate) const GARDENS: &str = "/apis/garden.io/v1/namespaces/park/gardens";
pub(crate) const PATIENCE: std::time::Duration = std::time::Duration::from_secs(60);
pub(crate) const GARDENER: &str = "system:serviceaccount:garden:gardener";

/// A drift as a test wants it.
#[derive(Clone)]
pub(crate) struct Plot<'a> {
    pub(crate) id: &'a str,
    pub(crate) parent: &'a Value,
    pub(crate) child: &'a str,
    pub(crate) user: &'a str,
    pub(crate) path: &'a str,
    pub(crate) state: &'a str,
    /// When it was first seen, in minutes before now.
    pub(crate) minutes: i64,
}

impl<'a> Plot<'a> {
    pub(crate) fn new(id: &'a str, parent: &'a Value, child: &'a str) -> Self {
        Self { id, parent, child, user: GARDENER, path: "spec.flowers", state: "Blocked", minutes: 5 }
    }

    pub(crate) fn drift(&self) -> Drift {
        let text = |pointer: &str| self.parent.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let parent_text = self.parent.to_string();
        let summary = Summary::of(&Object::parse(&parent_text).unwrap());
        let now = Timestamp::now();
        // Half a minute more: ages do not turn while the test runs.
        let seen = now - SignedDuration::from_secs(60 * self.minutes + 30);
        let seen = Timestamp::from_second(seen.as_second()).unwrap();
        let (kind, name) = (text("/kind"), text("/metadata/name"));
        let parent = json!({"apiVersion": text("/apiVersion"), "kind": kind, "namespace": text("/metadata/namespace"),
            "name": name, "uid": text("/metadata/uid"), "generation": summary.generation,
            "observedGeneration": summary.generation, "controllerManager": "gardener", "lifecyclePhase": "Initialized"});
        let spec = json!({
            "id": self.id, "parent": parent, "parentIntent": summary.intent.to_string(), "diff": format!("diff-{}", self.id),
            "child": {"apiVersion": "garden.io/v1", "kind": "Bed", "namespace": text("/metadata/namespace"),
                "name": self.child, "uid": "uid", "generation": 2},
            "request": {"user": self.user, "uid": "r", "operation": "UPDATE", "fieldManager": "gardener"},
            "changes": [{"path": self.path, "old": "\"roses\"", "new": "\"thistles\"", "oldOwner": "kubectl",
                "newOwner": "gardener"}],
            "trace": [{"apiVersion": "garden.io/v1", "kind": kind, "name": name, "generation": 1, "user": "alice",
                "timestamp": seen, "labels": {"ticket": "OPS-7"}}],
            "summary": {"parent": format!("{kind}/{name}"), "child": format!("Bed/{}", self.child),
                "actor": kausality_api::drift::short_user(self.user),
                "change": format!("{}: \"roses\" → \"thistles\"", self.path)},
        });
        let mut status =
            json!({"state": self.state, "count": 3, "firstSeen": seen, "lastSeen": seen, "countedAt": seen});
        if self.state == "Resolved" {
            status["resolution"] = json!({"reason": "ChildGone", "at": seen, "message": "the child is gone"});
        }
        Drift::new(serde_json::from_value(spec).unwrap(), serde_json::from_value(status).unwrap())
    }
}
