//! How fast the sandbox is: `cargo bench -p kausality --bench sandbox [-- --json] [--runs N] [NAME…]`.
//!
//! - `rollout`: a Deployment of 1,000 replicas is created and then rolled out to another template, by all standard
//!   controllers, the scheduler and the kubelet. In seconds of real time, on one thread; with the time of the machine, or
//!   with one that jumps to whatever is next (`virtual`).
//! - `writes`: requests through Kausality's admission, one after the other. In writes a second, on one thread, which also
//!   does what the client does (read the answer, write the next request) and what Kausality's watches do.
//! - `writes-2`: the same requests on two threads, by several clients at once, each with owners of its own.
//!
//! The allocator is mimalloc: that of the C library takes longer, and makes threads wait for each other. Programs
//! that embed the sandbox and want these figures choose it as well.
//!
//! Each is measured without admission too (`null`): the difference is what admission costs.

#![allow(clippy::print_stdout, reason = "this is what it is for")]

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures::future::BoxFuture;
use http::{Method, Request};
use http_body_util::BodyExt as _;
use kausality::embedded::embed;
use kausality_api::{mode::Mode, policy::QuietTime};
use kausality_sandbox::{
    Clock, Sandbox, User,
    controllers::{Time, standard},
};
use kausality_webhook::Bytes;
use serde_json::{Value, json};

/// Objects are many small allocations, and whoever watches frees them on another thread.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How many replicas are rolled out.
const REPLICAS: u64 = 1000;

/// How many owners there are, how often each is changed, and how many writes each change is.
const OWNERS: usize = 50;
const ROUNDS: usize = 40;
const STEPS: usize = 5;

/// One thing that is measured.
struct Benchmark {
    name: &'static str,
    unit: &'static str,
    run: fn() -> Result<Took>,
    /// What is told of what it took.
    figure: fn(Duration) -> f64,
}

/// How many clients there are at once, and on how many threads, where there are several.
const CLIENTS: usize = 10;
const THREADS: usize = 2;

/// How long something took, and for how long of that the processors worked on it: each of them, if there are several.
/// Where others want the processors too, the second is what an idle machine would take.
#[derive(Clone, Copy)]
struct Took {
    wall: Duration,
    busy: Duration,
}

const BENCHMARKS: [Benchmark; 8] = [
    Benchmark { name: "rollout-virtual-null", unit: "s", run: || rollout(true, None), figure: seconds },
    Benchmark {
        name: "rollout-virtual",
        unit: "s",
        run: || rollout(true, Some(Mode::Enforce)),
        figure: seconds,
    },
    Benchmark { name: "rollout-null", unit: "s", run: || rollout(false, None), figure: seconds },
    Benchmark { name: "rollout", unit: "s", run: || rollout(false, Some(Mode::Enforce)), figure: seconds },
    Benchmark { name: "writes-null", unit: "writes/s", run: || writes(None), figure: per_second },
    Benchmark { name: "writes", unit: "writes/s", run: || writes(Some(Mode::Enforce)), figure: per_second },
    Benchmark { name: "writes-2-null", unit: "writes/s", run: || writes_at_once(None), figure: per_second },
    Benchmark {
        name: "writes-2",
        unit: "writes/s",
        run: || writes_at_once(Some(Mode::Enforce)),
        figure: per_second,
    },
];

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    let (mut as_json, mut runs, mut names) = (false, 5, Vec::new());
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--json" => as_json = true,
            "--runs" => runs = arguments.next().context("--runs of how many?")?.parse()?,
            _ => names.push(argument),
        }
    }
    if !as_json {
        let columns = ["median", "least", "most", "busy median", "busy least", "busy most"];
        let columns: String = columns.iter().map(|column| format!("{column:>13}")).collect();
        println!("{:<22}{columns}  unit ({runs} runs)", "what");
    }
    for Benchmark { name, unit, run, figure } in BENCHMARKS {
        if !names.is_empty() && !names.iter().any(|wanted| wanted == name) {
            continue;
        }
        let took = (0..runs).map(|_| run()).collect::<Result<Vec<_>>>()?;
        let figures = |of: fn(&Took) -> Duration| {
            let mut figures: Vec<_> = took.iter().map(|took| figure(of(took))).collect();
            figures.sort_by(f64::total_cmp);
            figures
        };
        let (wall, busy) = (figures(|took| took.wall), figures(|took| took.busy));
        if as_json {
            println!("{}", json!({"name": name, "unit": unit, "wall": wall, "busy": busy}));
            continue;
        }
        let digits = if unit == "s" { 3 } else { 0 };
        let mut line = format!("{name:<22}");
        for figures in [wall, busy] {
            let of = |nth: usize| figures.get(nth).copied().unwrap_or_default();
            for figure in [of(figures.len() / 2), of(0), of(figures.len().saturating_sub(1))] {
                line.push_str(&format!("{figure:>13.digits$}"));
            }
        }
        println!("{line}  {unit}");
    }
    Ok(())
}

fn seconds(took: Duration) -> f64 {
    took.as_secs_f64()
}

fn per_second(took: Duration) -> f64 {
    #[allow(clippy::cast_precision_loss, reason = "there are not that many")]
    let count = (OWNERS * ROUNDS * STEPS) as f64;
    count / took.as_secs_f64()
}

/// For how long processors have worked for all threads of this process. Only Linux tells.
fn busy() -> Duration {
    let threads = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let nanoseconds = threads.filter_map(|thread| {
        let text = std::fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(nanoseconds.sum())
}

/// What a moment was, to tell later how long ago it is.
struct Begun(Instant, Duration);

impl Begun {
    fn now() -> Self {
        Self(Instant::now(), busy())
    }

    fn took(&self) -> Took {
        Took { wall: self.0.elapsed(), busy: busy().saturating_sub(self.1) }
    }
}

/// The time as tokio has it, from a fixed day on.
struct Simulated(tokio::time::Instant);

impl Clock for Simulated {
    fn now(&self) -> Time {
        let since = u64::try_from(self.0.elapsed().as_millis()).unwrap_or(u64::MAX);
        Time(1_700_000_000_000).after(since)
    }

    fn sleep_until(&self, time: Time) -> BoxFuture<'static, ()> {
        let left = Duration::from_millis(time.0.saturating_sub(self.now().0));
        Box::pin(tokio::time::sleep(left))
    }
}

/// A Deployment is created and rolled out.
fn rollout(simulated: bool, mode: Option<Mode>) -> Result<Took> {
    on_one_thread(simulated, async move {
        let builder = Sandbox::builder();
        let builder = if simulated { builder.clock(Simulated(tokio::time::Instant::now())) } else { builder };
        let sandbox = builder.build();
        if let Some(mode) = mode {
            embed(&sandbox, mode, QuietTime::NONE).await?;
        }
        let _running = sandbox.run(standard());
        let caller = Caller { sandbox, user: User::admin("alice"), agent: "kubectl/v1" };
        let deployments = "/apis/apps/v1/namespaces/default/deployments";
        let path = format!("{deployments}/web");
        let begun = Begun::now();
        caller.send(Method::POST, deployments, JSON, &deployment()).await?;
        caller.rolled_out(&path, 1).await?;
        let patch = json!({"spec": {"template": {"metadata": {"annotations": {"version": "2"}}}}});
        caller.send(Method::PATCH, &path, MERGE, &patch).await?;
        caller.rolled_out(&path, 2).await?;
        Ok(begun.took())
    })
}

fn deployment() -> Value {
    let container = json!({"name": "app", "image": "registry.example.com/app:1", "ports": [{"containerPort": 8080}],
        "env": [{"name": "COLOUR", "value": "green"}], "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}});
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": {"replicas": REPLICAS,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}}})
}

/// Owners are changed, and what follows from it.
fn writes(mode: Option<Mode>) -> Result<Took> {
    on_one_thread(false, async move {
        let (garden, owners) = Garden::plant(mode).await?;
        let begun = Begun::now();
        garden.tend(owners).await?;
        Ok(begun.took())
    })
}

/// The same, by several clients at once.
fn writes_at_once(mode: Option<Mode>) -> Result<Took> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(THREADS).enable_all().build()?;
    let took = runtime.block_on(async move {
        let (garden, mut owners) = Garden::plant(mode).await?;
        let each = owners.len().div_ceil(CLIENTS);
        let begun = Begun::now();
        let mut clients = tokio::task::JoinSet::new();
        while !owners.is_empty() {
            let own = owners.split_off(owners.len().saturating_sub(each));
            clients.spawn(garden.clone().tend(own));
        }
        while let Some(done) = clients.join_next().await {
            done??;
        }
        anyhow::Ok(begun.took())
    })?;
    Ok(Took { busy: took.busy / u32::try_from(THREADS)?, ..took })
}

/// Who changes what.
#[derive(Clone)]
struct Garden {
    user: Caller,
    controller: Caller,
}

impl Garden {
    /// A sandbox with owners.
    async fn plant(mode: Option<Mode>) -> Result<(Self, Vec<Value>)> {
        let sandbox = Sandbox::default();
        if let Some(mode) = mode {
            embed(&sandbox, mode, QuietTime::NONE).await?;
        }
        let user = Caller { sandbox: sandbox.clone(), user: User::admin("alice"), agent: "kubectl/v1" };
        let name = "system:serviceaccount:garden:gardener";
        let controller = Caller { sandbox, user: User::admin(name), agent: "gardener/v1" };
        let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        user.send(Method::POST, definitions, JSON, &definition()).await?;
        let mut owners = Vec::new();
        for nth in 0..OWNERS {
            let bed = json!({"apiVersion": "garden.example.com/v1", "kind": "Bed", "metadata": {"name": format!("bed-{nth}")},
                "spec": {"size": 1, "plants": ["basil", "sage"], "soil": {"kind": "loam", "depth": 30}}});
            owners.push(user.send(Method::POST, BEDS, JSON, &bed).await?);
        }
        Ok((Self { user, controller }, owners))
    }

    /// Changes owners, again and again.
    async fn tend(self, mut owners: Vec<Value>) -> Result<()> {
        for round in 0..ROUNDS {
            for owner in &mut owners {
                change(&self.user, &self.controller, owner, round).await?;
            }
        }
        Ok(())
    }
}

const BEDS: &str = "/apis/garden.example.com/v1/namespaces/default/beds";
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn definition() -> Value {
    let spec = json!({"type": "object", "properties": {"size": {"type": "integer", "minimum": 1},
        "plants": {"type": "array", "items": {"type": "string"}},
        "soil": {"type": "object", "properties": {"kind": {"type": "string"}, "depth": {"type": "integer"}}}}});
    let status = json!({"type": "object", "properties": {"observedGeneration": {"type": "integer"},
        "conditions": {"type": "array", "items": {"type": "object", "properties": {"type": {"type": "string"},
            "status": {"type": "string"}, "reason": {"type": "string"}, "lastTransitionTime": {"type": "string"}}}}}});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "beds.garden.example.com"},
        "spec": {"group": "garden.example.com", "scope": "Namespaced", "names": {"plural": "beds", "kind": "Bed"},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec, "status": status}}}}]}})
}

/// One change of an owner, from the user's wish to the controller's last word: [`STEPS`] writes, none of them drift.
async fn change(user: &Caller, controller: &Caller, owner: &mut Value, round: usize) -> Result<()> {
    owner["spec"]["size"] = (round + 2).into();
    let name = owner["metadata"]["name"].as_str().context("it has a name")?.to_owned();
    let path = format!("{BEDS}/{name}");
    *owner = user.send(Method::PUT, &path, JSON, owner).await?;
    let child = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("{name}-{round}"),
        "labels": {"bed": name}, "ownerReferences": [{"apiVersion": "garden.example.com/v1", "kind": "Bed", "name": name,
            "uid": owner["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true}]},
        "data": {"size": round.to_string(), "plan": "rows: 3\nspacing: 20\nwater: daily\n"}});
    let mut child = controller.send(Method::POST, CONFIG_MAPS, JSON, &child).await?;
    let child_path = format!("{CONFIG_MAPS}/{name}-{round}");
    child["data"]["size"] = (round + 1).to_string().into();
    controller.send(Method::PUT, &child_path, JSON, &child).await?;
    let label = json!({"metadata": {"labels": {"season": round.to_string()}}});
    user.send(Method::PATCH, &child_path, MERGE, &label).await?;
    owner["status"] = json!({"observedGeneration": owner["metadata"]["generation"], "conditions": [
        {"type": "Ready", "status": "True", "reason": format!("Round{round}"), "lastTransitionTime": "2026-01-01T00:00:00Z"}]});
    *owner = controller.send(Method::PUT, &format!("{path}/status"), JSON, owner).await?;
    Ok(())
}

const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";

/// Somebody who calls the sandbox.
#[derive(Clone)]
struct Caller {
    sandbox: Sandbox,
    user: User,
    agent: &'static str,
}

impl Caller {
    async fn send(&self, method: Method, path: &str, content: &str, body: &Value) -> Result<Value> {
        let body = if body.is_null() { Bytes::new() } else { Bytes::from(serde_json::to_vec(body)?) };
        let request = Request::builder().method(method).uri(path).extension(self.user.clone());
        let request = request.header("content-type", content).header("user-agent", self.agent).body(body)?;
        let answer = self.sandbox.handle(request).await;
        let status = answer.status();
        let body = answer.into_body().collect().await?.to_bytes();
        ensure!(status.is_success(), "{path}: {}", String::from_utf8_lossy(&body));
        // Whoever watches gets its turn, as it would if the answer had come over a network.
        tokio::task::yield_now().await;
        Ok(serde_json::from_slice(&body)?)
    }

    /// Waits until a Deployment has arrived at a generation of its revision.
    async fn rolled_out(&self, path: &str, revision: u64) -> Result<()> {
        let mut ticks = tokio::time::interval(Duration::from_millis(10));
        let revision = revision.to_string();
        loop {
            ticks.tick().await;
            let deployment = self.send(Method::GET, path, JSON, &Value::Null).await?;
            let (status, metadata) = (&deployment["status"], &deployment["metadata"]);
            if metadata["annotations"]["deployment.kubernetes.io/revision"] == revision
                && status["observedGeneration"] == metadata["generation"]
                && ["replicas", "updatedReplicas", "availableReplicas"]
                    .iter()
                    .all(|count| status[*count] == REPLICAS)
            {
                return Ok(());
            }
        }
    }
}

/// Runs it on one thread, in simulated time or not.
fn on_one_thread<T>(simulated: bool, what: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(simulated).build()?;
    runtime.block_on(what)
}
