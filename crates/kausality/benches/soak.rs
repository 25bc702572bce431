//! Does the webhook keep anything for ever? `cargo bench -p kausality --bench soak [-- --minutes N] [--objects N] [--rate N]`
//!
//! A control plane in this process, and `kausality webhook` beside it, in enforce mode. Half of the objects are owners,
//! half are children. All the time people change owners, an operator follows and says so, drifts, and is denied; and
//! objects go, and others come. Cycles begin at a constant rate, whether or not the ones before are done.
//!
//! What the webhook takes of the memory is looked at every few seconds. At the end it is told how much it grew by the
//! minute after the first third, with the error of that figure: whoever keeps something for each change would show.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "this is what it is for")]

use std::{
    fs,
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail, ensure};
use clap::Parser;
use http::{Method, Request};
use http_body_util::BodyExt as _;
use kausality_sandbox::{Sandbox, User};
use kausality_webhook::Bytes;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

/// Objects are many small allocations.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How often memory is looked at.
const LOOK: Duration = Duration::from_secs(5);

/// How many cycles are under way at once: if there are more, the machine cannot keep the rate.
const AT_ONCE: usize = 256;

/// Of so many cycles one ends with a drift, and one with the end of its objects.
const DRIFTS: u64 = 20;
const ENDS: u64 = 10;

const OPERATOR: &str = "system:serviceaccount:stacks:operator";

#[derive(Debug, Parser)]
struct Arguments {
    /// How long
    #[arg(long, default_value_t = 30)]
    minutes: u64,
    /// How many objects
    #[arg(long, default_value_t = 10_000)]
    objects: u64,
    /// How many cycles a second, of about four writes each
    #[arg(long, default_value_t = 25)]
    rate: u64,
    /// What cargo gives to every benchmark
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(soak(&arguments))
}

async fn soak(arguments: &Arguments) -> Result<()> {
    let sandbox = Sandbox::builder().history(1000).audit(0).build();
    furnish(&sandbox).await?;
    let owners = arguments.objects / 2;
    for number in 0..owners {
        create(&sandbox, number, 0).await?;
    }
    eprintln!("{} objects are there", 2 * owners);
    let served = sandbox.serve(([127, 0, 0, 1], 0).into()).await?;
    let folder = tempfile::tempdir()?;
    let kubeconfig = folder.path().join("kubeconfig");
    fs::write(&kubeconfig, served.kubeconfig(&User::admin("kausality")))?;
    let webhook = Webhook::start(&kubeconfig)?;
    registered(&sandbox).await?;

    let state = Arc::new(State {
        sandbox,
        owners: (0..owners).map(|_| AtomicU64::new(0)).collect(),
        counts: Counts::default(),
    });
    let places = Arc::new(Semaphore::new(AT_ONCE));
    let begun = Instant::now();
    let mut ticks = tokio::time::interval(Duration::from_secs(1) / u32::try_from(arguments.rate)?.max(1));
    let mut samples: Vec<(f64, f64)> = Vec::new();
    let mut looked = begun;
    let end = Duration::from_secs(60 * arguments.minutes);
    for cycle in 0u64.. {
        ticks.tick().await;
        if begun.elapsed() >= end {
            break;
        }
        let place = places.clone().acquire_owned().await?;
        let cycling = state.clone();
        tokio::spawn(async move {
            cycling.cycle(cycle).await;
            drop(place);
        });
        if looked.elapsed() >= LOOK {
            looked = Instant::now();
            samples.push((begun.elapsed().as_secs_f64() / 60.0, webhook.resident()?));
            if samples.len().is_multiple_of(12) {
                let (minutes, mebibytes) = samples.last().copied().unwrap_or_default();
                eprintln!("{minutes:5.1} min: {mebibytes:7.2} MiB, {}", state.counts);
            }
        }
    }
    let from = samples.len() / 3;
    let (slope, error) = fit(&samples[from..]);
    let (least, most) = samples[from..]
        .iter()
        .fold((f64::MAX, f64::MIN), |(least, most), (_, it)| (least.min(*it), most.max(*it)));
    println!("{}", state.counts);
    println!("resident memory after the first third: {least:.2} to {most:.2} MiB");
    println!("growth: {:.1} KiB a minute, ± {:.1} (standard error)", slope * 1024.0, error * 1024.0);
    Ok(())
}

struct State {
    sandbox: Sandbox,
    /// How often each has been made anew.
    owners: Vec<AtomicU64>,
    counts: Counts,
}

#[derive(Default)]
struct Counts {
    written: AtomicU64,
    denied: AtomicU64,
    failed: AtomicU64,
    made: AtomicU64,
}

impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let Self { written, denied, failed, made } = self;
        let (written, denied, failed, made) = (of(written), of(denied), of(failed), of(made));
        write!(f, "{written} writes, {denied} drifts denied, {made} objects made anew, {failed} failures")
    }
}

impl State {
    /// Somebody changes an owner, and what follows.
    async fn cycle(&self, cycle: u64) {
        // Neighbouring cycles are about different owners.
        let place = (cycle.wrapping_mul(2_654_435_761) % self.owners.len().max(1) as u64) as usize;
        let Some(age) = self.owners.get(place) else { return };
        let name = name(place as u64, age.load(Ordering::Relaxed));
        let (stack, child) = (stack(&name), config_map(&name));
        let color = format!("color {cycle}");
        let Some(changed) =
            self.write("alice", Method::PATCH, &stack, &json!({"spec": {"color": color}})).await
        else {
            return;
        };
        self.write(OPERATOR, Method::PATCH, &child, &json!({"data": {"color": color}})).await;
        let generation = &changed["metadata"]["generation"];
        let status = json!({"status": {"observedGeneration": generation,
            "conditions": [{"type": "Ready", "status": "True"}]}});
        self.write(OPERATOR, Method::PATCH, &format!("{stack}/status"), &status).await;
        if cycle.is_multiple_of(DRIFTS) {
            self.write(OPERATOR, Method::PATCH, &child, &json!({"data": {"color": "drift"}})).await;
        }
        if cycle.is_multiple_of(ENDS) {
            for url in [&child, &stack] {
                self.write("alice", Method::DELETE, url, &Value::Null).await;
            }
            let next = age.fetch_add(1, Ordering::Relaxed) + 1;
            match create(&self.sandbox, place as u64, next).await {
                Ok(()) => self.counts.made.fetch_add(2, Ordering::Relaxed),
                Err(_) => self.counts.failed.fetch_add(1, Ordering::Relaxed),
            };
        }
    }

    async fn write(&self, who: &str, method: Method, url: &str, body: &Value) -> Option<Value> {
        let (code, answer) = send(&self.sandbox, who, method, url, body).await;
        let count = match code {
            200..300 => &self.counts.written,
            403 => &self.counts.denied,
            _ => &self.counts.failed,
        };
        count.fetch_add(1, Ordering::Relaxed);
        (code < 300).then_some(answer)
    }
}

fn name(number: u64, age: u64) -> String {
    format!("stack-{number}-{age}")
}

fn stack(name: &str) -> String {
    format!("/apis/example.com/v1/namespaces/default/stacks/{name}")
}

fn config_map(name: &str) -> String {
    format!("/api/v1/namespaces/default/configmaps/{name}")
}

fn parent(url: &str) -> &str {
    url.rsplit_once('/').map_or(url, |(parent, _)| parent)
}

/// Makes an owner and its child.
async fn create(sandbox: &Sandbox, number: u64, age: u64) -> Result<()> {
    let name = name(number, age);
    let body = json!({"apiVersion": "example.com/v1", "kind": "Stack", "metadata": {"name": name}, "spec": {"color": "red"}});
    let (code, made) = send(sandbox, "alice", Method::POST, parent(&stack(&name)), &body).await;
    ensure!(code == 201, "{name}: {code} {}", made["message"]);
    let owner = json!([{"apiVersion": "example.com/v1", "kind": "Stack", "name": name, "uid": made["metadata"]["uid"],
        "controller": true}]);
    let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "ownerReferences": owner},
        "data": {"color": "red"}});
    let (code, made) = send(sandbox, OPERATOR, Method::POST, parent(&config_map(&name)), &body).await;
    ensure!(code == 201, "{name}: {code} {}", made["message"]);
    Ok(())
}

/// What must be there before.
async fn furnish(sandbox: &Sandbox) -> Result<()> {
    let anything = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let schema = json!({"type": "object", "properties": {"spec": anything, "status": anything}});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "stacks.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"kind": "Stack", "listKind": "StackList", "plural": "stacks", "singular": "stack"},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": schema}}],
        },
    });
    let url = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let ours = kausality_api::crd::all().into_iter().map(|(_, definition)| definition);
    for definition in ours.chain([definition]) {
        let (code, answer) = send(sandbox, "admin", Method::POST, url, &definition).await;
        ensure!(code == 201, "the definition: {code} {}", answer["message"]);
    }
    Ok(())
}

async fn send(sandbox: &Sandbox, who: &str, method: Method, url: &str, body: &Value) -> (u16, Value) {
    let content = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
    let bytes = if body.is_null() { Bytes::new() } else { Bytes::from(body.to_string()) };
    let request = Request::builder()
        .method(method)
        .uri(url)
        .header("content-type", content)
        .header("user-agent", who)
        .extension(User::admin(who))
        .body(bytes);
    let Ok(request) = request else { return (0, Value::Null) };
    let answer = sandbox.handle(request).await;
    let code = answer.status().as_u16();
    let body = answer.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    (code, serde_json::from_slice(&body).unwrap_or_default())
}

/// Waits until the webhook is registered.
async fn registered(sandbox: &Sandbox) -> Result<()> {
    let url = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/kausality";
    let begun = Instant::now();
    while send(sandbox, "admin", Method::GET, url, &Value::Null).await.0 != 200 {
        if begun.elapsed() > Duration::from_secs(60) {
            bail!("the webhook does not register");
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}

/// `kausality webhook`. It ends when this is dropped.
struct Webhook(Child);

impl Webhook {
    fn start(kubeconfig: &std::path::Path) -> Result<Self> {
        let child = Command::new(env!("CARGO_BIN_EXE_kausality"))
            .args(["webhook", "--quiet-time", "0s"])
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .args(["--bind-address", "127.0.0.1:0", "--register", "--default-mode", "enforce"])
            .args(["--resources", "stacks.example.com,configmaps"])
            .env("RUST_LOG", "error")
            // As the image has it.
            .env("MALLOC_TRIM_THRESHOLD_", "131072")
            .stdout(Stdio::null())
            .spawn();
        Ok(Self(child.context("kausality webhook cannot be started")?))
    }

    /// How much memory it takes, in MiB.
    fn resident(&self) -> Result<f64> {
        let text =
            fs::read_to_string(format!("/proc/{}/statm", self.0.id())).context("the webhook is gone")?;
        let pages: usize = text.split(' ').nth(1).context("statm has no second number")?.parse()?;
        Ok((pages * rustix::param::page_size()) as f64 / f64::from(1 << 20))
    }
}

impl Drop for Webhook {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The slope of the line that is nearest to all points, and its standard error.
fn fit(points: &[(f64, f64)]) -> (f64, f64) {
    let n = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / n;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let spread: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    let slope = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum::<f64>() / spread;
    let rest: f64 = points.iter().map(|point| (point.1 - y - slope * (point.0 - x)).powi(2)).sum();
    (slope, (rest / (n - 2.0) / spread).sqrt())
}
