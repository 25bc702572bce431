//! Namespaces that differ in the webhook that is registered for them.

use std::{
    collections::BTreeMap,
    ops::Range,
    process::{Child, Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use kausality_testbed::{ControlPlane, MASTERS, eventually};
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
    core::{ApiResource, DynamicObject, GroupVersionKind},
};
use serde_json::json;

use super::{AT_ONCE, What};
use crate::{
    contestant::{Process, Role},
    garden::{self, Garden},
    wire,
    writes::{is_asked, prepare},
};

/// The namespace that no webhook is registered for.
pub(super) const FREE: &str = "free";
/// The one of a webhook that lets everything pass.
pub(super) const SILENT: &str = "silent";
/// The one of a webhook that sets two annotations, of the size of ours.
pub(super) const PATCHING: &str = "patching";
/// The one of Kausality in mode log.
pub(super) const OURS: &str = "ours";
/// The one of Kausality in mode enforce.
pub(super) const ENFORCED: &str = "enforced";

/// The stack whose children drift.
const STACK: &str = "stack";

/// How many of them drift once. Another one is changed to and fro. A namespace has room for 500 drifts that wait for somebody.
pub(super) const DRIFTING: usize = 400;

/// How long things may take to come about.
const PATIENCE: Duration = Duration::from_secs(60);

/// All that is written to, and who is asked about it.
pub(super) struct Stage {
    client: Client,
    gardens: BTreeMap<String, Arc<Garden>>,
    /// The processes of webhooks, by namespace.
    processes: BTreeMap<&'static str, u32>,
    others: Vec<String>,
    _nulls: Vec<Process>,
    _ours: Webhook,
}

impl Stage {
    pub(super) async fn set(plane: &ControlPlane, others: &[String]) -> Result<Self> {
        garden::define(plane).await?;
        // Not as the webhook itself, whose own writes are left alone.
        let client = plane.client("alice", &[MASTERS])?;
        let (mut gardens, mut processes, mut nulls) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
        let others: Vec<(String, &String)> =
            others.iter().enumerate().map(|(nth, url)| (format!("other-{nth}"), url)).collect();
        let ours = Webhook::start(plane, others.iter().map(|(name, _)| name.as_str()))?;
        let fixed = [FREE, SILENT, PATCHING, OURS, ENFORCED];
        for side in fixed.into_iter().chain(others.iter().map(|(name, _)| name.as_str())) {
            prepare(&client, side).await?;
            secrets(&client, side).await?;
        }
        let namespaces = api(&client, "", "Namespace", None);
        let enforce = json!({"metadata": {"annotations": {"kausality.io/mode": "enforce"}}});
        namespaces.patch(ENFORCED, &PatchParams::default(), &Patch::Merge(enforce)).await?;
        for (side, role) in [(SILENT, Role::Silent), (PATCHING, Role::Patching)] {
            let mut process = Process::start(role, 0)?;
            let told = process.hear()?;
            let text =
                |key: &str| told[key].as_str().with_context(|| format!("the webhook {side} tells no {key}"));
            register(&client, side, text("url")?, text("ca")?).await?;
            processes.insert(side, process.id());
            nulls.push(process);
        }
        for (side, url) in &others {
            register(&client, side, url, &wire::certificate_of(url).await?).await?;
        }
        for side in [OURS, ENFORCED] {
            is_asked(&client, side).await?;
            processes.insert(side, ours.0.id());
        }
        for side in fixed {
            let garden = Garden::new(plane, side)?;
            garden.children(STACK, DRIFTING + 1, true).await?;
            gardens.insert(side.to_owned(), Arc::new(garden));
        }
        // From then on it is drift, and the stack's controller is known.
        eventually(PATIENCE, "a denial", async || match gardens[ENFORCED].change(STACK, "blue").await {
            Err(kube::Error::Api(status)) if status.code == 403 => Ok(()),
            other => Err(format!("{other:?}")),
        })
        .await?;
        let others = others.into_iter().map(|(name, _)| name).collect();
        Ok(Self { client, gardens, processes, others, _nulls: nulls, _ours: ours })
    }

    pub(super) fn others(&self) -> impl Iterator<Item = &str> {
        self.others.iter().map(String::as_str)
    }

    pub(super) fn webhook_of(&self, side: &str) -> Option<u32> {
        self.processes.get(side).copied()
    }

    /// Somebody who writes to a namespace.
    pub(super) fn writer(&self, what: What, side: &str, nth: usize) -> Option<Writer> {
        let plain = |kind: &str| Road::Plain(Box::new(api(&self.client, "", kind, Some(side))));
        let road = match what {
            What::Calm => plain("ConfigMap"),
            What::Uncovered => plain("Secret"),
            What::DriftOnce | What::DriftLoop => Road::Drift(self.gardens.get(side)?.clone()),
        };
        Some(Writer { road, what, nth, is_denied: side == ENFORCED })
    }
}

/// Somebody who writes.
pub(super) struct Writer {
    road: Road,
    what: What,
    nth: usize,
    is_denied: bool,
}

enum Road {
    Plain(Box<Api<DynamicObject>>),
    Drift(Arc<Garden>),
}

impl Writer {
    /// Makes the writes of these numbers: nanoseconds for each.
    pub(super) async fn write(&self, numbers: Range<usize>) -> Result<Vec<u64>> {
        let mut took = Vec::new();
        for number in numbers {
            let begun = Instant::now();
            let written = self.write_one(number).await;
            took.push(u64::try_from(begun.elapsed().as_nanos())?);
            match written {
                Err(kube::Error::Api(status)) if self.is_denied && status.code == 403 => {}
                Err(error) => return Err(error.into()),
                Ok(_) => ensure!(!(self.is_denied && self.is_drift()), "a drift was not denied"),
            }
        }
        Ok(took)
    }

    fn is_drift(&self) -> bool {
        matches!(self.road, Road::Drift(_))
    }

    async fn write_one(&self, number: usize) -> Result<DynamicObject, kube::Error> {
        match &self.road {
            Road::Plain(api) => {
                let data = if self.what == What::Uncovered { "stringData" } else { "data" };
                let patch =
                    Patch::Merge(json!({data: {"number": format!("{number} at {:?}", Instant::now())}}));
                api.patch(&format!("child-{}", self.nth), &PatchParams::default(), &patch).await
            }
            Road::Drift(garden) if self.what == What::DriftOnce => {
                garden.change(&format!("{STACK}-{}", number % DRIFTING + 1), "green").await
            }
            Road::Drift(garden) => {
                garden.change(STACK, if number.is_multiple_of(2) { "green" } else { "blue" }).await
            }
        }
    }
}

/// Secrets like the ConfigMaps that there are.
async fn secrets(client: &Client, side: &str) -> Result<()> {
    for nth in 0..AT_ONCE {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": format!("child-{nth}")},
            "stringData": {"number": "0", "settings": "colour: green\nsize: 3\n".repeat(20)}});
        let secrets = api(client, "", "Secret", Some(side));
        secrets.create(&PostParams::default(), &serde_json::from_value(secret)?).await?;
    }
    Ok(())
}

fn api(client: &Client, group: &str, kind: &str, namespace: Option<&str>) -> Api<DynamicObject> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind));
    match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    }
}

/// Has the API server ask a webhook about ConfigMaps in a namespace.
async fn register(client: &Client, side: &str, url: &str, ca: &str) -> Result<()> {
    let rule = json!({"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"],
        "operations": ["CREATE", "UPDATE", "DELETE"]});
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": side},
        "webhooks": [{
            "name": format!("{side}.example.com"), "rules": [rule], "failurePolicy": "Fail",
            "clientConfig": {"url": url, "caBundle": BASE64_STANDARD.encode(ca)},
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": side}},
            "reinvocationPolicy": "IfNeeded", "sideEffects": "None", "admissionReviewVersions": ["v1"],
        }],
    });
    let api = api(client, "admissionregistration.k8s.io", "MutatingWebhookConfiguration", None);
    api.create(&PostParams::default(), &serde_json::from_value(configuration)?).await?;
    Ok(())
}

/// `kausality webhook`, for all namespaces but those of others. Ends when dropped.
struct Webhook(Child);

impl Webhook {
    fn start<'a>(plane: &ControlPlane, others: impl Iterator<Item = &'a str>) -> Result<Self> {
        let log = std::fs::File::create(plane.folder().join("webhook.log"))?;
        let excluded: Vec<&str> = ["kube-system", FREE, SILENT, PATCHING].into_iter().chain(others).collect();
        let child = Command::new(env!("CARGO_BIN_EXE_kausality"))
            .args(["webhook", "--quiet-time", "0s", "--register", "--bind-address", "127.0.0.1:0"])
            .args(["--resources", "configmaps,stacks.example.com"])
            .args(["--exclude-namespaces", &excluded.join(","), "--kubeconfig"])
            .arg(plane.kubeconfig())
            .stderr(Stdio::from(log))
            .spawn()
            .context("cannot start kausality webhook")?;
        Ok(Self(child))
    }
}

impl Drop for Webhook {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
