//! A control plane with Crossplane, its provider, the function and, where wanted, Kausality.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;

use kausality_testbed::{ControlPlane, MASTERS, Peer, Program, eventually, free_port, start_or_skip};
use kube::Client;
use kube::api::{Api, DynamicObject, PostParams};
use kube::core::ApiResource;
use serde_json::{Value, json};

use super::kinds::{self, NAMESPACE, SYSTEM, objects, revisions, shops, stores, xstores};
use crate::log::Log;
use crate::stage::{PATIENCE, Webhook, apply, must};

pub(super) const CROSSPLANE: &str = "system:serviceaccount:crossplane-system:crossplane";

/// What Kausality watches: composites, claims and children.
const RESOURCES: &str =
    "shops.example.org,stores.example.org,xstores.example.org,objects.kubernetes.m.crossplane.io";

/// Whether Kausality is there, and what it does about drift.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kausality {
    Absent,
    Logs,
    Enforces,
}

/// Dropped in this order.
pub(super) struct World {
    _webhook: Option<Webhook>,
    crossplane: RefCell<Option<Program>>,
    function: RefCell<Option<Program>>,
    provider: RefCell<Option<Program>>,
    peer: Peer,
    /// Of the function.
    port: u16,
    /// One for each person: each has connections of its own.
    clients: RefCell<HashMap<String, Client>>,
    pub(super) plane: ControlPlane,
}

impl World {
    /// `None` where there is no control plane.
    pub(super) async fn start(peer: &Peer, kausality: Kausality) -> Option<Self> {
        let plane = start_or_skip().await.unwrap()?;
        install(&plane, peer).await;
        let port = free_port().unwrap();
        let provider = provider(&plane, peer).await;
        let function = function(&plane, peer, port, "v1");
        let crossplane = crossplane(&plane, peer).await;
        apply(&plane, &kinds::function_revision());
        let status = json!({ "status": {
            "endpoint": format!("dns:///127.0.0.1:{port}"), "capabilities": ["composition"],
        } });
        let admin = |arguments: &[&str]| must(&plane, "admin", &[MASTERS], arguments);
        let patch = ["patch", "functionrevision", "function-1", "--subresource=status", "--type=merge", "-p"];
        admin(&[&patch[..], &[&status.to_string()]].concat());
        apply(&plane, &kinds::definitions());
        admin(&["wait", "--for=condition=Established", "xrd", "--all", "--timeout=120s"]);
        admin(&["wait", "--for=condition=Offered", "xrd/xstores.example.org", "--timeout=120s"]);

        let webhook = match kausality {
            Kausality::Absent => None,
            Kausality::Logs => Some(Webhook::start_in("log", &plane, RESOURCES).await),
            Kausality::Enforces => Some(Webhook::start_in("enforce", &plane, RESOURCES).await),
        };
        let world = Self {
            _webhook: webhook,
            crossplane: RefCell::new(Some(crossplane)),
            function: RefCell::new(Some(function)),
            provider: RefCell::new(Some(provider)),
            peer: peer.clone(),
            port,
            clients: RefCell::default(),
            plane,
        };
        if kausality != Kausality::Absent {
            world.is_reviewed().await;
        }
        Some(world)
    }

    /// Waits until the API server asks Kausality.
    async fn is_reviewed(&self) {
        let probe = json!({
            "apiVersion": "example.org/v1", "kind": "Shop",
            "metadata": { "name": "probe", "namespace": NAMESPACE }, "spec": {},
        });
        let probe: DynamicObject = serde_json::from_value(probe).unwrap();
        let dry_run = PostParams { dry_run: true, ..PostParams::default() };
        eventually(PATIENCE, "an answer of the webhook", async || {
            let answer = self.api("probe", &shops()).create(&dry_run, &probe).await?;
            let annotations = answer.metadata.annotations.unwrap_or_default();
            let traced = annotations.keys().any(|key| key.starts_with("kausality.io/trace"));
            if traced { Ok(()) } else { Err(anyhow::anyhow!("{annotations:?}")) }
        })
        .await
        .unwrap();
    }

    /// A client of a person, who may do everything.
    fn client(&self, user: &str) -> Client {
        let mut clients = self.clients.borrow_mut();
        let client =
            clients.entry(user.to_owned()).or_insert_with(|| self.plane.client(user, &[MASTERS]).unwrap());
        client.clone()
    }

    /// Objects of a kind, wherever it is, as a person sees them.
    pub(super) fn api(&self, user: &str, kind: &ApiResource) -> Api<DynamicObject> {
        let client = self.client(user);
        if [xstores(), revisions()].contains(kind) {
            return Api::all_with(client, kind);
        }
        Api::namespaced_with(client, NAMESPACE, kind)
    }

    /// Applies a manifest as the platform team.
    pub(super) fn apply(&self, manifest: &Value) {
        apply(&self.plane, manifest);
    }

    /// The calls from now on.
    pub(super) fn log(&self) -> Log {
        Log::new(self.plane.audit_tail().unwrap(), is_watched)
    }

    /// Replaces the function by another version of it. Crossplane is started again, since it does not look at composites
    /// otherwise until something happens to them.
    pub(super) async fn upgrade_function(&self, version: &str) {
        self.stop_crossplane();
        self.function.replace(None);
        self.function.replace(Some(function(&self.plane, &self.peer, self.port, version)));
        self.start_crossplane().await;
    }

    pub(super) fn stop_crossplane(&self) {
        self.crossplane.replace(None);
    }

    pub(super) async fn start_crossplane(&self) {
        let crossplane = crossplane(&self.plane, &self.peer).await;
        self.crossplane.replace(Some(crossplane));
    }

    /// Fails if a program has ended.
    pub(super) fn runs(&self) {
        for program in [&self.crossplane, &self.function, &self.provider] {
            program.borrow_mut().as_mut().unwrap().is_running().unwrap();
        }
    }
}

/// Installs CustomResourceDefinitions, accounts, certificates and access to the cloud.
async fn install(plane: &ControlPlane, peer: &Peer) {
    let admin = |arguments: &[&str]| must(plane, "admin", &[MASTERS], arguments);
    // Some are too long for the annotation of a client-side apply.
    let create = |folder: &str, prefix: &str| {
        for entry in fs::read_dir(peer.file(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.file_name().unwrap().to_string_lossy().starts_with(prefix) {
                admin(&["create", "-f", path.to_str().unwrap()]);
            }
        }
    };
    create("crds", "");
    // The others are for managed resources without a namespace.
    create("provider-crds", "kubernetes.m.");
    admin(&["wait", "--for=condition=Established", "crd", "--all", "--timeout=120s"]);
    apply(plane, &kinds::accounts(&["crossplane", "provider-kubernetes", "cloud"]));
    let cloud = plane.service_account_kubeconfig(SYSTEM, "cloud").await.unwrap();
    apply(plane, &kinds::cloud(&fs::read_to_string(cloud).unwrap()));

    let certificates = certificates(plane);
    fs::create_dir(&certificates).unwrap();
    for (from, to) in [("ca.pem", "ca.crt"), ("server.pem", "tls.crt"), ("server.key", "tls.key")] {
        fs::copy(plane.folder().join(from), certificates.join(to)).unwrap();
    }
}

/// Crossplane and the function trust each other by the authority of the control plane.
fn certificates(plane: &ControlPlane) -> PathBuf {
    plane.folder().join("crossplane-certificates")
}

async fn crossplane(plane: &ControlPlane, peer: &Peer) -> Program {
    let kubeconfig = plane.service_account_kubeconfig(SYSTEM, "crossplane").await.unwrap();
    let cache = plane.folder().join("crossplane-cache");
    fs::create_dir_all(&cache).unwrap();
    let arguments = [
        "core",
        "start",
        "--enable-webhooks=false",
        "--enable-usages=false",
        "--metrics-port=0",
        "--health-probe-port=0",
        &format!("--cache-dir={}", cache.display()),
        &format!("--tls-client-certs-dir={}", certificates(plane).display()),
        // After 100 events it would ignore a composite for minutes.
        "--circuit-breaker-burst=10000",
    ];
    let env = [("KUBECONFIG", kubeconfig.to_str().unwrap())];
    plane.run_with(&env, &peer.file("crossplane"), &arguments).unwrap()
}

async fn provider(plane: &ControlPlane, peer: &Peer) -> Program {
    let kubeconfig = plane.service_account_kubeconfig(SYSTEM, "provider-kubernetes").await.unwrap();
    let certificates = certificates(plane);
    let env = [
        ("KUBECONFIG", kubeconfig.to_str().unwrap()),
        ("TLS_SERVER_CERTS_DIR", certificates.to_str().unwrap()),
    ];
    let arguments = [
        "--metrics-bind-address=0",
        "--health-probe-bind-addr=0",
        // It takes no 0 for any.
        &format!("--webhook-port={}", free_port().unwrap()),
    ];
    plane.run_with(&env, &peer.file("provider-kubernetes"), &arguments).unwrap()
}

fn function(plane: &ControlPlane, peer: &Peer, port: u16, version: &str) -> Program {
    let arguments = [
        &format!("--listen=127.0.0.1:{port}"),
        &format!("--certs={}", certificates(plane).display()),
        &format!("--version={version}"),
    ];
    plane.run(&peer.file("function"), &arguments.map(String::as_str)).unwrap()
}

/// Whether a kind is one that Kausality watches.
fn is_watched(group: &str, plural: &str) -> bool {
    let kinds = [shops(), stores(), xstores(), objects()];
    kinds.iter().any(|kind| kind.group == group && kind.plural == plural)
}
