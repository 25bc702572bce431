//! Control planes with `kausality webhook` before them: the real one, of etcd, kube-apiserver and
//! kube-controller-manager, and the sandbox.

use std::{
    cell::RefCell,
    collections::HashMap,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use kausality_api::annotation::{Suffix, TRACE};
use kausality_sandbox::{AuditEntry, Running, Sandbox, Served, User, controllers::standard};
use kausality_testbed::{ControlPlane, Kubelet, MASTERS, eventually};
use kube::{Client, client::Body};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::scenarios::{
    kinds::{Kind, Target},
    log::AuditLog,
    plane::{Action, Answer, Audited, Call, PATIENCE, PatchType, Plane},
};

/// The resources that the webhook watches.
const RESOURCES: &str = "deployments.apps,replicasets.apps,statefulsets.apps,daemonsets.apps,jobs.batch,\
    cronjobs.batch,pods,configmaps,secrets,roles.rbac.authorization.k8s.io,\
    eksclusters.example.com,nodepools.example.com,clusterpools.example.com,legacypools.example.com,\
    shardedpools.example.com,\
    controllerrevisions.apps,certificates.cert-manager.io,certificaterequests.cert-manager.io,\
    orders.acme.cert-manager.io,challenges.acme.cert-manager.io,machinedeployments.cluster.x-k8s.io,\
    machinesets.cluster.x-k8s.io,machines.cluster.x-k8s.io,kubeadmcontrolplanes.controlplane.cluster.x-k8s.io,\
    providers.pkg.crossplane.io,providerrevisions.pkg.crossplane.io,\
    managedresourcedefinitions.apiextensions.crossplane.io,databases.aws.m.example.com,\
    applicationsets.argoproj.io,applications.argoproj.io,artifactgenerators.source.extensions.fluxcd.io,\
    externalartifacts.source.toolkit.fluxcd.io,canaries.flagger.app,virtualservices.networking.istio.io,\
    httproutes.gateway.networking.k8s.io";

/// Where scenarios are played.
pub(crate) enum Host {
    /// A real control plane, and a kubelet.
    Cluster(
        Box<ControlPlane>,
        AuditLog,
        #[expect(dead_code, reason = "it works until it is dropped")] Kubelet,
    ),
    /// A sandbox with its folder, which is served, with controllers at work.
    Sandbox(
        Sandbox,
        TempDir,
        #[expect(dead_code, reason = "both work until they are dropped")] (Served, Running),
    ),
}

impl Host {
    pub(crate) async fn cluster(plane: ControlPlane) -> Self {
        let kubelet = plane.play_kubelet().await.unwrap();
        let audit = AuditLog::new(plane.folder().join("audit.log"));
        Self::Cluster(Box::new(plane), audit, kubelet)
    }

    pub(crate) async fn sandbox() -> Self {
        let sandbox = Sandbox::default();
        let served = sandbox.serve("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("kubeconfig"), served.kubeconfig(&User::admin("testbed:admin")))
            .unwrap();
        let running = sandbox.run(standard());
        Self::Sandbox(sandbox, folder, (served, running))
    }

    fn folder(&self) -> &Path {
        match self {
            Self::Cluster(plane, ..) => plane.folder(),
            Self::Sandbox(_, folder, _) => folder.path(),
        }
    }

    fn kubeconfig(&self) -> PathBuf {
        match self {
            Self::Cluster(plane, ..) => plane.kubeconfig().to_owned(),
            Self::Sandbox(_, folder, _) => folder.path().join("kubeconfig"),
        }
    }

    fn client(&self, user: &str) -> Result<Client, String> {
        match self {
            Self::Cluster(plane, ..) => plane.client(user, &[MASTERS]).map_err(|error| format!("{error:#}")),
            Self::Sandbox(sandbox, ..) => Ok(sandbox.client(&User::admin(user))),
        }
    }
}

/// A control plane, and a webhook once it is started.
pub(crate) struct Real {
    host: Host,
    webhook: Option<Webhook>,
    /// One client for each user: each has connections of its own.
    clients: RefCell<HashMap<String, Client>>,
}

/// Ends when dropped.
struct Webhook(Child);

impl Drop for Webhook {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Real {
    /// A control plane without Kausality.
    pub(crate) fn new(host: Host) -> Self {
        Self { host, webhook: None, clients: RefCell::default() }
    }

    /// Starts Kausality, and waits until its webhook is asked.
    pub(crate) async fn install(&mut self) {
        let log = std::fs::File::create(self.host.folder().join("webhook.log")).unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_kausality"))
            .args(["webhook", "--register", "--bind-address", "127.0.0.1:0", "--default-mode", "log"])
            .args(["--quiet-time", "0s", "--resources", RESOURCES])
            .arg("--kubeconfig")
            .arg(self.host.kubeconfig())
            .stderr(Stdio::from(log))
            .spawn()
            .unwrap();
        self.webhook = Some(Webhook(child));
        let probe = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "probe" } });
        let call = Call { action: Action::Create(probe), dry_run: true, field_manager: None };
        let target = Target { kind: Kind::named("ConfigMap").unwrap(), namespace: "default", name: "probe" };
        eventually(PATIENCE, "an answer of the webhook", async || {
            let answer = self.call("probe", target, &call).await?;
            let key = Suffix::of_object(&answer.body).key(TRACE);
            let traced = !answer.body["metadata"]["annotations"][key].is_null();
            if traced { Ok(()) } else { Err(format!("{}", answer.body)) }
        })
        .await
        .unwrap();
    }

    /// Whether objects of a kind can be read.
    pub(crate) async fn served(&self, kind: &Kind) -> Result<(), String> {
        self.read(&kind.path("default")).await?.map(drop).ok_or_else(|| format!("no {}", kind.plural))
    }

    fn client(&self, user: &str) -> Result<Client, String> {
        let mut clients = self.clients.borrow_mut();
        if let Some(client) = clients.get(user) {
            return Ok(client.clone());
        }
        let client = self.host.client(user)?;
        clients.insert(user.to_owned(), client.clone());
        Ok(client)
    }

    async fn send(
        &self,
        user: &str,
        request: http::request::Builder,
        body: Vec<u8>,
    ) -> Result<Answer, String> {
        let request = request.body(Body::from(body)).map_err(|error| error.to_string())?;
        let response = self.client(user)?.send(request).await.map_err(|error| error.to_string())?;
        let header = |name: &str| -> Vec<String> {
            let values = response.headers().get_all(name).into_iter();
            values.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect()
        };
        let code = response.status().as_u16();
        let warnings = header("warning").iter().map(|warning| warning_text(warning)).collect();
        let audit_id = header("audit-id").concat();
        let body = response.into_body().collect_bytes().await.map_err(|error| error.to_string())?;
        let body = serde_json::from_slice(&body)
            .unwrap_or_else(|_| json!({ "message": String::from_utf8_lossy(&body) }));
        Ok(Answer { code, body, warnings, audit_id })
    }

    async fn read(&self, path: &str) -> Result<Option<Value>, String> {
        let answer = self.send("scenarios", http::Request::get(path), Vec::new()).await?;
        match answer.code {
            200 => Ok(Some(answer.body)),
            404 => Ok(None),
            code => Err(format!("GET {path}: {code} {}", answer.message())),
        }
    }
}

impl Plane for Real {
    async fn call(&self, user: &str, target: Target<'_>, call: &Call) -> Result<Answer, String> {
        let object = target.path();
        let (method, path, kind, body) = match &call.action {
            Action::Create(body) => {
                ("POST", target.kind.path(target.namespace), "application/json", body.clone())
            }
            Action::Patch { patch, subresource, body } => {
                let path = match subresource {
                    Some(part) => format!("{object}/{part}"),
                    None => object,
                };
                ("PATCH", path, content_type(*patch), body.clone())
            }
            Action::Delete { propagation } => {
                ("DELETE", object, "application/json", json!({ "propagationPolicy": propagation }))
            }
        };
        let mut query = Vec::new();
        query.extend(call.dry_run.then_some("dryRun=All".to_owned()));
        query.extend(call.field_manager.as_ref().map(|manager| format!("fieldManager={manager}")));
        if matches!(call.action, Action::Patch { patch: PatchType::Apply, .. }) {
            query.push("force=true".to_owned());
        }
        let uri = format!("{path}?{}", query.join("&"));
        let request = http::Request::builder().method(method).uri(uri).header("content-type", kind);
        self.send(user, request, body.to_string().into_bytes()).await
    }

    async fn get(&self, target: Target<'_>) -> Result<Option<Value>, String> {
        self.read(&target.path()).await
    }

    async fn cached(&self, target: Target<'_>) -> Result<(), String> {
        let version =
            |object: Option<Value>| object.map(|object| object["metadata"]["resourceVersion"].clone());
        let fresh = eventually(PATIENCE, "the API server's cache", async || {
            let stored = version(self.get(target).await?);
            let cached = version(self.read(&format!("{}?resourceVersion=0", target.path())).await?);
            if stored == cached { Ok(()) } else { Err(format!("stored {stored:?}, cached {cached:?}")) }
        });
        fresh.await.map_err(|error| format!("{error:#}"))
    }

    async fn list(&self, kind: &Kind, namespace: &str) -> Result<Vec<Value>, String> {
        let list = self.read(&kind.path(namespace)).await?.unwrap_or_default();
        Ok(list["items"].as_array().cloned().unwrap_or_default())
    }

    fn audited(&self) -> usize {
        match &self.host {
            Host::Cluster(_, audit, _) => audit.len(),
            Host::Sandbox(sandbox, ..) => sandbox.audited(),
        }
    }

    fn audit(&self, from: usize) -> Vec<std::sync::Arc<Audited>> {
        match &self.host {
            Host::Cluster(_, audit, _) => audit.from(from),
            Host::Sandbox(sandbox, ..) => {
                let writes = |entry: &AuditEntry| !matches!(entry.verb.as_str(), "get" | "list" | "watch");
                let entries = sandbox.audit(from).into_iter().filter(|entry| writes(entry));
                entries.map(|entry| std::sync::Arc::new(audited(&entry))).collect()
            }
        }
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.host.folder().join("webhook.log")).unwrap_or_default()
    }
}

fn content_type(patch: PatchType) -> &'static str {
    match patch {
        PatchType::Merge => "application/merge-patch+json",
        PatchType::Strategic => "application/strategic-merge-patch+json",
        PatchType::Json => "application/json-patch+json",
        PatchType::Apply => "application/apply-patch+yaml",
    }
}

fn audited(entry: &AuditEntry) -> Audited {
    Audited {
        id: entry.id.clone(),
        verb: entry.verb.clone(),
        user: entry.user.clone(),
        resource: entry.resource.clone(),
        subresource: entry.subresource.clone(),
        namespace: entry.namespace.clone(),
        name: entry.name.clone(),
        code: entry.code,
        annotations: entry.annotations.clone(),
    }
}

/// The text in `299 - "text"`.
fn warning_text(header: &str) -> String {
    let text = header.split_once('"').map_or(header, |(_, text)| text);
    text.strip_suffix('"').unwrap_or(text).replace("\\\"", "\"").replace("\\\\", "\\")
}
