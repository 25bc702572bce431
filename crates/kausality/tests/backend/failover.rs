//! Controllers and the backend are killed at random moments, and every drift still arrives.
//!
//! `KAUSALITY_ROUNDS` and `KAUSALITY_DRIFTS` say how many kills there are, and how many drifts; `KAUSALITY_SEED` repeats one run.

use std::{
    collections::BTreeMap,
    fs::File,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use jiff::Timestamp;
use kausality_sandbox::{Sandbox, User};
use kausality_testbed::{eventually, free_port};
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    core::{ApiResource, DynamicObject, GroupVersionKind},
};
use serde_json::{Value, json};

use crate::process::Backend;

const PATIENCE: Duration = Duration::from_secs(120);

/// Not to be found anywhere.
const TOKEN: &str = "planted-token-3141592653";

fn number(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().map_or(usual, |text| text.parse().unwrap())
}

/// Random numbers that can be repeated.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

fn api(client: &Client, group: &str, version: &str, kind: &str, plural: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk(group, version, kind);
    Api::all_with(client.clone(), &ApiResource::from_gvk_with_plural(&kind, plural))
}

fn drifts(client: &Client) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("kausality.io", "v1alpha1", "Drift");
    Api::namespaced_with(client.clone(), "default", &ApiResource::from_gvk_with_plural(&kind, "drifts"))
}

fn object(value: Value) -> DynamicObject {
    serde_json::from_value(value).unwrap()
}

/// A cluster with all kinds of Kausality.
async fn cluster() -> Sandbox {
    let sandbox = Sandbox::builder().build();
    let client = sandbox.client(&User::admin("admin"));
    let definitions =
        api(&client, "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions");
    for entry in Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/crds").read_dir().unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        let definition: DynamicObject = serde_saphyr::from_str(&text).unwrap();
        definitions.create(&PostParams::default(), &definition).await.unwrap();
    }
    let namespace = json!({"metadata": {"name": "kausality-system"}});
    let namespaces = api(&client, "", "v1", "Namespace", "namespaces");
    namespaces.create(&PostParams::default(), &object(namespace)).await.unwrap();
    let served = async || drifts(&client).list(&ListParams::default()).await;
    eventually(PATIENCE, "drifts are served", served).await.unwrap();
    sandbox
}

fn drift(id: &str) -> Value {
    let now = Timestamp::now();
    json!({
        "apiVersion": "kausality.io/v1alpha1", "kind": "Drift", "metadata": {"name": id},
        "spec": {
            "id": id, "parentIntent": "i", "diff": "d", "summary": {"parent": "", "child": "", "actor": "", "change": ""},
            "parent": {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": "parent",
                "lifecyclePhase": "Initialized"},
            "child": {"apiVersion": "v1", "kind": "Pod", "namespace": "default", "name": id},
            "request": {"user": "u", "uid": format!("request-{id}"), "operation": "UPDATE"},
            "newObject": {"spec": {"of": id}},
        },
        "status": {"state": "Blocked", "count": 1, "firstSeen": now, "lastSeen": now, "countedAt": now},
    })
}

/// All that runs, and how to start it.
struct Machinery {
    folder: tempfile::TempDir,
    address: String,
    client: Client,
    backend: Backend,
    controller: Child,
}

impl Machinery {
    fn new(client: Client, kubeconfig: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("kubeconfig"), kubeconfig).unwrap();
        std::fs::write(folder.path().join("token"), TOKEN).unwrap();
        let address = format!("127.0.0.1:{}", free_port().unwrap());
        let backend = backend(folder.path(), &address);
        let controller = controller(folder.path(), &address);
        Self { folder, address, client, backend, controller }
    }

    /// Kills one of them, and starts it anew.
    async fn kill(&mut self, dice: &mut Dice) {
        if dice.below(2) == 0 {
            self.backend.kill();
            self.backend = backend(self.folder.path(), &self.address);
            return;
        }
        self.controller.kill().unwrap();
        self.controller.wait().unwrap();
        // Nobody has to wait here until its lease is over: it is dead for certain.
        let kind = GroupVersionKind::gvk("coordination.k8s.io", "v1", "Lease");
        let resource = ApiResource::from_gvk_with_plural(&kind, "leases");
        let leases: Api<DynamicObject> =
            Api::namespaced_with(self.client.clone(), "kausality-system", &resource);
        _ = leases.delete("kausality-controller", &DeleteParams::default()).await;
        self.controller = controller(self.folder.path(), &self.address);
    }

    /// All reports that the backend has, oldest first.
    fn reports(&self) -> Vec<(String, String)> {
        let (mut reports, mut more) = (Vec::new(), String::new());
        loop {
            let headers = format!("Authorization: Bearer {TOKEN}\r\n");
            let (status, page) =
                self.backend.ask("GET", &format!("/api/v1/drifts?limit=300{more}"), &headers, "");
            assert_eq!(status, 200, "{page}");
            let text = |item: &Value, field: &str| item["report"]["spec"][field].as_str().unwrap().to_owned();
            reports.extend(
                page["items"].as_array().unwrap().iter().map(|item| (text(item, "id"), text(item, "phase"))),
            );
            match page["continue"].as_str() {
                Some(token) => more = format!("&continue={token}"),
                None => break,
            }
        }
        reports.reverse();
        reports
    }

    /// What the controller last said.
    fn last_words(&self) -> String {
        let log = self.log();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("controller.log")).unwrap()
    }
}

impl Drop for Machinery {
    fn drop(&mut self) {
        _ = self.controller.kill();
        _ = self.controller.wait();
    }
}

fn backend(folder: &Path, address: &str) -> Backend {
    let file = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    Backend::start_at(address, &["serve", "--database", &file("reports.db"), "--token-file", &file("token")])
}

fn controller(folder: &Path, address: &str) -> Child {
    let log = |name: &str| File::options().create(true).append(true).open(folder.join(name)).unwrap();
    let file = |name: &str| -> PathBuf { folder.join(name) };
    Command::new(env!("CARGO_BIN_EXE_kausality"))
        .args(["controller", "--service", "webhook", "--drift-webhook-timeout", "2s"])
        .arg("--kubeconfig")
        .arg(file("kubeconfig"))
        .args(["--drift-webhook-url", &format!("http://{address}/webhook"), "--drift-webhook-token-file"])
        .arg(file("token"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log("controller.log"))
        .spawn()
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_drift_arrives_whoever_is_killed() {
    let (rounds, count) = (number("KAUSALITY_ROUNDS", 6), number("KAUSALITY_DRIFTS", 120));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let seed = number("KAUSALITY_SEED", now);
    println!("KAUSALITY_SEED={seed} KAUSALITY_ROUNDS={rounds} KAUSALITY_DRIFTS={count}");
    let mut dice = Dice(seed);
    let sandbox = cluster().await;
    let served = sandbox.serve(([127, 0, 0, 1], 0).into()).await.unwrap();
    let client = sandbox.client(&User::admin("admin"));
    let mut machinery = Machinery::new(client.clone(), &served.kubeconfig(&User::admin("controller")));
    let ids: Vec<String> = (0..count).map(|number| format!("d{number:04}")).collect();
    // Between two kills, so many drifts come, and so many of those before are over.
    let share = ids.len().div_ceil(usize::try_from(rounds).unwrap());
    let (mut come, mut gone) = (0, 0);
    for _ in 0..rounds {
        for id in ids.iter().skip(come).take(share) {
            drifts(&client).create(&PostParams::default(), &object(drift(id))).await.unwrap();
            come += 1;
        }
        // When the blow falls is what is random here.
        tokio::time::sleep(Duration::from_millis(dice.below(700))).await;
        machinery.kill(&mut dice).await;
        while gone + share / 2 < come {
            resolve(&client, &ids[gone]).await;
            gone += 1;
        }
    }
    for id in &ids[gone..] {
        resolve(&client, id).await;
    }
    // Asked of the backend first: to list all drifts time and again would be most of the work.
    let arrived = async || match machinery.backend.ask("GET", "/healthz", "", "").1["driftCount"].as_u64() {
        Some(reports) if reports == 2 * count => Ok(()),
        reports => Err(format!("{reports:?} reports. {}", machinery.last_words())),
    };
    eventually(PATIENCE, "all has arrived", arrived).await.unwrap();
    let recorded = async || {
        let all = drifts(&client).list(&ListParams::default()).await.unwrap();
        let is_untold = |drift: &&DynamicObject| drift.data["status"]["deliveries"][0]["resolved"].is_null();
        match all.iter().filter(is_untold).count() {
            0 => Ok(()),
            left => Err(format!("{left} are left. {}", machinery.last_words())),
        }
    };
    eventually(PATIENCE, "all is recorded", recorded).await.unwrap();

    let mut heard: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (id, phase) in machinery.reports() {
        heard.entry(id).or_default().push(phase);
    }
    assert_eq!(heard.keys().collect::<Vec<_>>(), ids.iter().collect::<Vec<_>>(), "all, and none is made up");
    for (id, phases) in &heard {
        assert_eq!(phases, &["Detected", "Resolved"], "{id}");
    }
    let ledger = serde_json::to_string(&drifts(&client).list(&ListParams::default()).await.unwrap()).unwrap();
    for (place, text) in [("the log", machinery.log()), ("the ledger", ledger)] {
        assert!(!text.contains(TOKEN), "{place} has the token");
        assert!(!text.contains("/webhook"), "{place} has the URL");
    }
}

async fn resolve(client: &Client, id: &str) {
    let status = json!({"state": "Resolved", "resolution": {"reason": "ChildGone", "at": Timestamp::now()}});
    let patch = Patch::Merge(json!({"status": status}));
    drifts(client).patch(id, &PatchParams::default(), &patch).await.unwrap();
}
