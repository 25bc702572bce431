//! A control plane with Cluster API, the providers that we play and, where wanted, Kausality.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;

use kausality_testbed::{
    Component, ControlPlane, MASTERS, Peer, Program, eventually, free_port, start_or_skip,
};
use kube::Client;
use kube::api::{Api, DynamicObject, PostParams};
use kube::core::ApiResource;
use serde_json::{Value, json};

use super::kinds::{self, NAMESPACE, clusters};
use crate::log::Log;
use crate::stage::{PATIENCE, Webhook, apply, get, must};

/// What Kausality watches.
const RESOURCES: &str = "clusters.cluster.x-k8s.io,clusterclasses.cluster.x-k8s.io,machinedeployments.cluster.x-k8s.io,\
     machinesets.cluster.x-k8s.io,machines.cluster.x-k8s.io,machinehealthchecks.cluster.x-k8s.io,\
     kubeadmconfigs.bootstrap.cluster.x-k8s.io,kubeadmconfigtemplates.bootstrap.cluster.x-k8s.io,\
     playedclusters.infrastructure.cluster.x-k8s.io,playedclustertemplates.infrastructure.cluster.x-k8s.io,\
     playedmachines.infrastructure.cluster.x-k8s.io,playedmachinetemplates.infrastructure.cluster.x-k8s.io,\
     playedcontrolplanes.controlplane.cluster.x-k8s.io,playedcontrolplanetemplates.controlplane.cluster.x-k8s.io,\
     secrets";

/// The programs, with the ServiceAccounts that they use.
const ACCOUNTS: [(&str, &str); 5] = [
    ("capi-system", "capi-manager"),
    ("capi-kubeadm-bootstrap-system", "capi-kubeadm-bootstrap-manager"),
    ("played-system", "infrastructure"),
    ("played-system", "control-plane"),
    // What managers do in the clusters that they make.
    ("played-system", "workload"),
];

/// Dropped in this order.
pub(super) struct World {
    _webhook: Webhook,
    programs: RefCell<Vec<Program>>,
    /// One for each person: each has connections of its own.
    clients: RefCell<HashMap<String, Client>>,
    pub(super) plane: ControlPlane,
}

impl World {
    /// Starts all, with Kausality in a mode. `None` where there is no control plane.
    pub(super) async fn start(peer: &Peer, mode: &str) -> Option<Self> {
        let mut plane = start_or_skip().await.unwrap()?;
        install(&plane, peer);
        // The garbage collector looks for new kinds every 30 s: this way it knows them from the start.
        plane.restart(Component::ControllerManager).await.unwrap();
        let kubeconfigs = kubeconfigs(&plane).await;
        // Right before they are used: what is free may be taken any time.
        let ports = [free_port().unwrap(), free_port().unwrap()];
        let programs = programs(&plane, peer, ports, &kubeconfigs);
        register(&plane, peer, ports).await;
        let webhook = Webhook::start_in(mode, &plane, RESOURCES).await;
        let programs = RefCell::new(programs);
        let world = Self { _webhook: webhook, programs, clients: RefCell::default(), plane };
        world.is_reviewed().await;
        Some(world)
    }

    /// Waits until the API server asks Kausality and Cluster API.
    async fn is_reviewed(&self) {
        let probe: DynamicObject = serde_json::from_value(kinds::cluster("probe")).unwrap();
        let dry_run = PostParams { dry_run: true, ..PostParams::default() };
        eventually(PATIENCE, "an answer of both webhooks", async || {
            let answer = self.api("probe", &clusters()).create(&dry_run, &probe).await?;
            let annotations = answer.metadata.annotations.unwrap_or_default();
            let traced = annotations.keys().any(|key| key.starts_with("kausality.io/trace"));
            if traced { Ok(()) } else { Err(anyhow::anyhow!("{annotations:?}")) }
        })
        .await
        .unwrap();
    }

    /// Objects of a kind in our namespace, as a person sees them.
    pub(super) fn api(&self, user: &str, kind: &ApiResource) -> Api<DynamicObject> {
        let mut clients = self.clients.borrow_mut();
        let client =
            clients.entry(user.to_owned()).or_insert_with(|| self.plane.client(user, &[MASTERS]).unwrap());
        Api::namespaced_with(client.clone(), NAMESPACE, kind)
    }

    /// What the kubelet of a Node reports: that it is not ready.
    pub(super) fn break_node(&self, name: &str) {
        let mut node = get(&self.plane, &["node", name]);
        for condition in node["status"]["conditions"].as_array_mut().unwrap() {
            if condition["type"] == "Ready" {
                condition["status"] = json!("False");
            }
        }
        let file = self.plane.folder().join("node.json");
        fs::write(&file, node.to_string()).unwrap();
        let replace = ["replace", "--subresource=status", "-f", file.to_str().unwrap()];
        must(&self.plane, &format!("system:node:{name}"), &[MASTERS], &replace);
    }

    /// The calls from now on.
    pub(super) fn log(&self) -> Log {
        Log::new(self.plane.audit_tail().unwrap(), is_watched)
    }

    /// Fails if a program has ended.
    pub(super) fn runs(&self) {
        self.programs.borrow_mut().iter_mut().for_each(|program| program.is_running().unwrap());
    }
}

/// Whether a kind is one whose changes we look at. Of Secrets, there are others.
fn is_watched(group: &str, _: &str) -> bool {
    group.ends_with("cluster.x-k8s.io")
}

/// Installs CustomResourceDefinitions and accounts.
fn install(plane: &ControlPlane, peer: &Peer) {
    let admin = |arguments: &[&str]| must(plane, "admin", &[MASTERS], arguments);
    for folder in ["crds", "bootstrap-crds"] {
        let folder = peer.file(folder);
        let folder = folder.to_str().unwrap();
        admin(&["create", "-f", folder]);
        // Which version of a kind follows which version of the contracts.
        admin(&["label", "-f", folder, "cluster.x-k8s.io/v1beta2=v1beta2"]);
    }
    apply(plane, &kinds::definitions());
    admin(&["wait", "--for=condition=Established", "crd", "--all", "--timeout=120s"]);
    apply(plane, &kinds::accounts(&ACCOUNTS));
    let certificates = certificates(plane);
    fs::create_dir(&certificates).unwrap();
    for (from, to) in [("server.pem", "tls.crt"), ("server.key", "tls.key")] {
        fs::copy(plane.folder().join(from), certificates.join(to)).unwrap();
    }
}

/// Registers the admission webhooks of Cluster API, which its manifests have behind Services. Conversion is left out: nobody
/// uses older versions here.
async fn register(plane: &ControlPlane, peer: &Peer, ports: [u16; 2]) {
    for (file, port) in ["webhooks.yaml", "bootstrap-webhooks.yaml"].into_iter().zip(ports) {
        let file = peer.file(file);
        let text = must(
            plane,
            "admin",
            &[MASTERS],
            &["create", "--dry-run=client", "-o", "json", "-f", file.to_str().unwrap()],
        );
        // One document after the other.
        for manifest in serde_json::Deserializer::from_str(&text).into_iter::<Value>() {
            let mut manifest = manifest.unwrap();
            manifest["metadata"] = json!({
                "name": format!("{}-{port}", manifest["metadata"]["name"].as_str().unwrap()),
            });
            for webhook in manifest["webhooks"].as_array_mut().unwrap() {
                let path = webhook["clientConfig"]["service"]["path"].as_str().unwrap().to_owned();
                webhook["clientConfig"] = json!({ "url": url(port, &path), "caBundle": ca(plane) });
            }
            apply(plane, &manifest);
        }
        eventually(PATIENCE, "the webhooks of Cluster API", async || {
            tokio::net::TcpStream::connect(("127.0.0.1", port)).await.map(drop)
        })
        .await
        .unwrap();
    }
}

fn url(port: u16, path: &str) -> String {
    format!("https://127.0.0.1:{port}{path}")
}

fn ca(plane: &ControlPlane) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(plane.ca_pem())
}

fn certificates(plane: &ControlPlane) -> PathBuf {
    plane.folder().join("cluster-api-certificates")
}

async fn kubeconfigs(plane: &ControlPlane) -> Vec<PathBuf> {
    let mut kubeconfigs = Vec::new();
    for (namespace, name) in ACCOUNTS {
        kubeconfigs.push(plane.service_account_kubeconfig(namespace, name).await.unwrap());
    }
    kubeconfigs
}

fn programs(plane: &ControlPlane, peer: &Peer, ports: [u16; 2], kubeconfigs: &[PathBuf]) -> Vec<Program> {
    let certificates = format!("--webhook-cert-dir={}", certificates(plane).display());
    let authority = format!("--authority={}", plane.folder().join("ca.pem").display());
    let workload = format!("--workload-kubeconfig={}", kubeconfigs[4].display());
    let run = |index: usize, program: &str, arguments: &[&str]| {
        let env = [
            ("KUBECONFIG", kubeconfigs[index].to_str().unwrap()),
            ("POD_NAMESPACE", ACCOUNTS[index].0),
            ("POD_NAME", program),
            ("POD_UID", program),
        ];
        plane.run_with(&env, &peer.file(program), arguments).unwrap()
    };
    let manager = |index: usize, program: &str, more: &[&str]| {
        let port = format!("--webhook-port={}", ports[index]);
        let common = [
            &*port,
            &*certificates,
            "--health-addr=127.0.0.1:0",
            "--diagnostics-address=127.0.0.1:0",
            "--insecure-diagnostics",
        ];
        run(index, program, &[&common[..], more].concat())
    };
    vec![
        manager(0, "core", &["--feature-gates=ClusterTopology=true"]),
        manager(1, "kubeadm-bootstrap", &[]),
        run(2, "provider", &["--role=infrastructure"]),
        run(3, "provider", &["--role=control-plane", &authority, &workload]),
    ]
}
