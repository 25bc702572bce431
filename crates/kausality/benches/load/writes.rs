//! How long the API server takes for an update, with us and without: on a real control plane, and with the real webhook.

use std::{
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use hdrhistogram::Histogram;
use kausality_testbed::{Binaries, ControlPlane, MASTERS, eventually, free_port};
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
    core::{ApiResource, DynamicObject, GroupVersionKind},
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinSet,
};

use crate::{
    Plan,
    figures::{Latencies, Report, Rounds, histogram, print_table},
};

/// How many clients write at once, where more than one does.
pub(crate) const AT_ONCE: usize = 8;

/// How many writes each client makes before it is the other side's turn.
pub(crate) const TURN: usize = 20;

/// How long things may take to come about.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The namespaces: the webhook is registered for the first of them only.
const SIDES: [&str; 2] = ["reviewed", "left-alone"];

/// Measures all of it; nothing where there is no control plane.
pub(crate) fn measure(plan: &Plan, _: &mut Report) -> Result<Value> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        match control_plane("Writes at the API server").await? {
            Some(plane) => run(&plane, plan).await,
            None => Ok(Value::Null),
        }
    })
}

/// A control plane; where there is none, that is said.
pub(crate) async fn control_plane(what: &str) -> Result<Option<ControlPlane>> {
    let binaries = tokio::task::spawn_blocking(Binaries::find).await??;
    let Some(binaries) = binaries else {
        println!("\n{what}: SKIPPED, there is no control plane. `make control-plane` provides it.");
        return Ok(None);
    };
    eprintln!("starting a control plane");
    ControlPlane::start(&binaries).await.map(Some)
}

async fn run(plane: &ControlPlane, plan: &Plan) -> Result<Value> {
    // Not as the webhook itself, whose own writes are left alone.
    let client = plane.client("alice", &[MASTERS])?;
    for side in SIDES {
        prepare(&client, side).await?;
    }
    let webhook = Webhook::start(plane)?;
    is_asked(&client, SIDES[0]).await?;
    let mut figures = serde_json::Map::new();
    let mut rows = Vec::new();
    for clients in [1, AT_ONCE] {
        let what = if clients == 1 { "one after the other".to_owned() } else { format!("{clients} at once") };
        let mut latencies = [Latencies::default(), Latencies::default()];
        for round in 0..plan.rounds {
            eprintln!("round {} of {}: writes, {what}", round + 1, plan.rounds);
            let histograms = measure_round(&client, clients, plan.writes / clients.min(4)).await?;
            latencies
                .iter_mut()
                .zip(&histograms)
                .for_each(|(latencies, histogram)| latencies.push(histogram));
        }
        let [with, without] = &latencies;
        for (side, latencies) in [("with us", with), ("without", without)] {
            rows.push(vec![format!("{what}, {side}"), latencies.p50.show(0), latencies.p99.show(0)]);
        }
        let more = |of: fn(&Latencies) -> &Rounds| of(with).median() - of(without).median();
        let (p50, p99) = (more(|latencies| &latencies.p50), more(|latencies| &latencies.p99));
        rows.push(vec![format!("{what}, difference"), format!("{p50:.0}"), format!("{p99:.0}")]);
        figures.insert(what, json!({"with": with.json(), "without": without.json()}));
    }
    print_table("Updates of owned ConfigMaps at a real API server, in µs", &["writes", "p50", "p99"], rows);
    let (reviewed, drifts) = webhook.counts().await?;
    ensure!(reviewed > 0.0 && drifts == 0.0, "{reviewed} requests were reviewed, {drifts} of them drift");
    println!("{reviewed} requests were reviewed, none of them drift");
    Ok(Value::Object(figures))
}

/// One round, in turns: writes with the webhook, and without.
async fn measure_round(client: &Client, clients: usize, writes: usize) -> Result<[Histogram<u64>; 2]> {
    let mut histograms = [histogram()?, histogram()?];
    for turn in 0..writes.div_ceil(TURN) {
        for (side, histogram) in SIDES.iter().zip(&mut histograms) {
            let mut writers = JoinSet::new();
            for child in 0..clients {
                writers.spawn(write_all(client.clone(), side, child, turn));
            }
            while let Some(written) = writers.join_next().await {
                written??.into_iter().for_each(|nanoseconds| histogram.saturating_record(nanoseconds));
            }
        }
    }
    Ok(histograms)
}

/// Waits until the webhook is asked about what is written in a namespace.
pub(crate) async fn is_asked(client: &Client, side: &str) -> Result<()> {
    eventually(PATIENCE, "the webhook to be asked", async || {
        let written = write(client, side, 0, 0).await?;
        let trace = written
            .metadata
            .annotations
            .unwrap_or_default()
            .into_keys()
            .find(|key| key.starts_with("kausality.io/trace."));
        trace.context("no trace on what was written")
    })
    .await?;
    Ok(())
}

/// One client's turn: nanoseconds for each write.
pub(crate) async fn write_all(
    client: Client,
    side: &'static str,
    child: usize,
    turn: usize,
) -> Result<Vec<u64>> {
    let mut took = Vec::new();
    for nth in 0..TURN {
        let begun = Instant::now();
        write(&client, side, child, 1 + turn * TURN + nth).await?;
        took.push(u64::try_from(begun.elapsed().as_nanos())?);
    }
    Ok(took)
}

/// Changes a child.
async fn write(client: &Client, side: &str, child: usize, nth: usize) -> Result<DynamicObject> {
    let stamp = format!("{nth} at {:?}", std::time::SystemTime::now());
    let patch = Patch::Merge(json!({"data": {"number": stamp}}));
    let name = format!("child-{child}");
    let api = api(client, "", "ConfigMap", Some(side));
    Ok(api.patch(&name, &PatchParams::default(), &patch).await?)
}

/// A namespace with a parent and its children.
pub(crate) async fn prepare(client: &Client, side: &str) -> Result<()> {
    let create = async |group: &str, kind: &str, namespace: Option<&str>, object: Value| {
        let api = api(client, group, kind, namespace);
        let object = serde_json::from_value(object)?;
        api.create(&PostParams::default(), &object).await.with_context(|| format!("cannot create a {kind}"))
    };
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": side}});
    create("", "Namespace", None, namespace).await?;
    // Nobody runs its Pod, so it never settles, and nothing is drift.
    let labels = json!({"app": "owner"});
    let owner = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "owner"},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels},
            "spec": {"containers": [{"name": "app", "image": "registry.example.com/app:1"}]}}}});
    let owner = create("apps", "Deployment", Some(side), owner).await?;
    for child in 0..AT_ONCE {
        let child = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("child-{child}"),
            "annotations": {"made-by": "bench"}, "ownerReferences": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "owner",
                "uid": owner.metadata.uid, "controller": true}]},
            "data": {"number": "0", "settings": "colour: green\nsize: 3\n".repeat(20)}});
        create("", "ConfigMap", Some(side), child).await?;
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

/// `kausality webhook` on a control plane. Ends when dropped.
struct Webhook {
    child: Child,
    health: String,
}

impl Webhook {
    fn start(plane: &ControlPlane) -> Result<Self> {
        let health = format!("127.0.0.1:{}", free_port()?);
        let log = std::fs::File::create(plane.folder().join("webhook.log"))?;
        let excluded = format!("kube-system,{}", SIDES[1]);
        let child = Command::new(env!("CARGO_BIN_EXE_kausality"))
            .args([
                "webhook",
                "--quiet-time",
                "0s",
                "--register",
                "--bind-address",
                "127.0.0.1:0",
                "--resources",
                "configmaps",
            ])
            .args(["--exclude-namespaces", &excluded, "--health-address", &health, "--kubeconfig"])
            .arg(plane.kubeconfig())
            .stderr(Stdio::from(log))
            .spawn()
            .context("cannot start kausality webhook")?;
        Ok(Self { child, health })
    }

    /// How many requests were reviewed, and how many of them were drift.
    async fn counts(&self) -> Result<(f64, f64)> {
        let mut stream = TcpStream::connect(&self.health).await?;
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await?;
        let mut text = String::new();
        stream.read_to_string(&mut text).await?;
        let sum = |name: &str| {
            let lines = text.lines().filter(|line| line.starts_with(name));
            lines.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok()).sum()
        };
        Ok((sum("kausality_decisions_total{"), sum("kausality_drifts_total{")))
    }
}

impl Drop for Webhook {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
