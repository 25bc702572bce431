//! The real control plane: etcd, kube-apiserver, kube-controller-manager, and `kausality webhook` before them.

use std::{
    cell::RefCell,
    collections::HashMap,
    process::{Child, Command, Stdio},
};

use kausality_testbed::{ControlPlane, Kubelet, MASTERS, eventually};
use kube::{Client, client::Body};
use serde_json::{Value, json};

use crate::{
    kinds::{Kind, Target},
    log::AuditLog,
    plane::{Action, Answer, Audited, Call, PATIENCE, PatchType, Plane},
};

/// The resources that the webhook watches.
const RESOURCES: &str = "deployments.apps,replicasets.apps,statefulsets.apps,daemonsets.apps,jobs.batch,\
    cronjobs.batch,pods,configmaps,secrets,roles.rbac.authorization.k8s.io,\
    eksclusters.example.com,nodepools.example.com,clusterpools.example.com,legacypools.example.com";

/// The control plane, a kubelet, and a webhook once it is started.
pub(crate) struct Real {
    plane: ControlPlane,
    _kubelet: Kubelet,
    webhook: Option<Webhook>,
    audit: AuditLog,
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
    pub(crate) async fn new(plane: ControlPlane) -> Self {
        let kubelet = plane.play_kubelet().await.unwrap();
        let audit = AuditLog::new(plane.folder().join("audit.log"));
        Self { plane, _kubelet: kubelet, webhook: None, audit, clients: RefCell::default() }
    }

    /// Starts Kausality, and waits until its webhook is asked.
    pub(crate) async fn install(&mut self) {
        let log = std::fs::File::create(self.plane.folder().join("webhook.log")).unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_kausality"))
            .args(["webhook", "--register", "--bind-address", "127.0.0.1:0", "--default-mode", "log"])
            .args(["--resources", RESOURCES])
            .arg("--kubeconfig")
            .arg(self.plane.kubeconfig())
            .stderr(Stdio::from(log))
            .spawn()
            .unwrap();
        self.webhook = Some(Webhook(child));
        let probe = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": "probe" } });
        let call = Call { action: Action::Create(probe), dry_run: true, field_manager: None };
        let target = Target { kind: Kind::named("ConfigMap").unwrap(), namespace: "default", name: "probe" };
        eventually(PATIENCE, "an answer of the webhook", async || {
            let answer = self.call("probe", target, &call).await?;
            let traced = !answer.body["metadata"]["annotations"]["kausality.io/trace"].is_null();
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
        let client = self.plane.client(user, &[MASTERS]).map_err(|error| format!("{error:#}"))?;
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

    async fn list(&self, kind: &Kind, namespace: &str) -> Result<Vec<Value>, String> {
        let list = self.read(&kind.path(namespace)).await?.unwrap_or_default();
        Ok(list["items"].as_array().cloned().unwrap_or_default())
    }

    fn audited(&self) -> usize {
        self.audit.len()
    }

    fn audit(&self, from: usize) -> Vec<std::sync::Arc<Audited>> {
        self.audit.from(from)
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.plane.folder().join("webhook.log")).unwrap_or_default()
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

/// The text in `299 - "text"`.
fn warning_text(header: &str) -> String {
    let text = header.split_once('"').map_or(header, |(_, text)| text);
    text.strip_suffix('"').unwrap_or(text).replace("\\\"", "\"").replace("\\\\", "\\")
}
