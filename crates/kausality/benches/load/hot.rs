//! One drift in a hot loop: what it costs the API server, and those who do not drift.
//!
//! A real API server, and the real webhook beside it. Nobody registers: reviews go directly to the webhook, as the API
//! server would send them on behalf of a controller that does not take no for an answer. All of them are of one change
//! of one child. Beside them go reviews that are no drift, at a constant rate, with the hot loop and without, in turns. In a third
//! turn the same loop goes to a null webhook: what it costs those beside it to share a machine with whoever sends it.

use std::{
    process::{Child, Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use kausality_testbed::{Binaries, ControlPlane, eventually, free_port};
use kausality_webhook::Bytes;
use kube::{api::ListParams, core::DynamicObject};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::{
    Plan,
    contestant::{Process, Role},
    figures::{Latencies, Report, Rounds, print_table},
    garden::{Garden, OPERATOR, define},
    generator::{Load, Open},
    wire::{Protocol, Wire},
};

/// How often the controller drifts, in a second.
const HOT: f64 = 1000.0;

/// How many reviews there are beside it, in a second.
const CALM: f64 = 200.0;

/// How many of its requests may be unanswered. More means that the webhook, or this process, does not keep up.
const MAX_UNANSWERED: usize = 1000;

/// How long things may take to come about.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long counts may take to be written that are due at the end.
const LAST_COUNT: Duration = Duration::from_secs(35);

const NAMESPACE: &str = "default";

/// Measures it; nothing where there is no control plane.
pub(crate) fn measure(plan: &Plan, report: &mut Report) -> Result<Value> {
    // One thread: whoever waits for a moment to come has the processor, and others have the rest.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let binaries = tokio::task::spawn_blocking(Binaries::find).await??;
        let Some(binaries) = binaries else {
            println!("\nA hot loop: SKIPPED, there is no control plane. `make control-plane` provides it.");
            return Ok(Value::Null);
        };
        eprintln!("starting a control plane");
        run(&ControlPlane::start(&binaries).await?, plan, report).await
    })
}

async fn run(plane: &ControlPlane, plan: &Plan, report: &mut Report) -> Result<Value> {
    define(plane).await?;
    let garden = Garden::new(plane, NAMESPACE)?;
    let (hot, calm) = (garden.child("hot", true).await?, garden.child("calm", false).await?);
    let webhook = Webhook::start(plane)?;
    let connect =
        async || Ok::<_, anyhow::Error>(Arc::new(Wire::connect(&webhook.url, Protocol::Http2, None).await?));
    let wire = eventually(PATIENCE, "the webhook", connect).await?;
    let drifts = Drifts { wire, review: review(&hot) };
    eventually(PATIENCE, "a denial", async || match drifts.send(0).await {
        Ok(true) => Ok(()),
        Ok(false) => Err("it was allowed".to_owned()),
        Err(error) => Err(error.to_string()),
    })
    .await?;
    // On connections of its own: what is measured is the webhook, and not who goes first on a wire.
    let load = Load {
        wire: connect().await?,
        reviews: Arc::from([Bytes::from(review(&calm).replace(UID, "calm"))]),
    };
    load.check().await?;

    let mut tallies = Vec::new();
    let (mut without, mut elsewhere, mut with) =
        (Latencies::default(), Latencies::default(), Latencies::default());
    let mut null = Process::start(Role::Null, 0)?;
    let null_url = null.hear()?["url"].as_str().context("the null webhook tells no URL")?.to_owned();
    let begun = Instant::now();
    for round in 0..plan.rounds {
        eprintln!("round {} of {}: without the hot loop", round + 1, plan.rounds);
        without.push(&calmly(&load, plan).await?.latencies);
        eprintln!("round {} of {}: beside one that a null webhook answers", round + 1, plan.rounds);
        let nobody = Drifts {
            wire: Arc::new(Wire::connect(&null_url, Protocol::Http2, None).await?),
            review: drifts.review.clone(),
        };
        let (calm, tally) = tokio::join!(calmly(&load, plan), nobody.hammer(plan.warm_up + plan.hot));
        let tally = tally?;
        ensure!(tally.failed == 0, "the null webhook failed {} times", tally.failed);
        elsewhere.push(&calm?.latencies);
        eprintln!("round {} of {}: with it", round + 1, plan.rounds);
        // Connections that nobody used for a while are closed by now.
        let drifts = Drifts { wire: connect().await?, review: drifts.review.clone() };
        let (calm, tally) = tokio::join!(calmly(&load, plan), drifts.hammer(plan.warm_up + plan.hot));
        with.push(&calm?.latencies);
        tallies.push(tally?);
    }
    let lasted = begun.elapsed();
    tokio::time::sleep(LAST_COUNT.min(plan.hot)).await;

    let entries = garden.api("kausality.io", "v1alpha1", "Drift").list(&ListParams::default()).await?.items;
    let audit = plane.audit()?;
    let calls = |resource: &str, verbs: &[&str]| {
        let is_such = |event: &&kausality_testbed::AuditEvent| {
            event.resource == resource && verbs.contains(&event.verb.as_str()) && event.code < 300
        };
        audit.iter().filter(is_such).count()
    };
    let writes = calls("drifts", &["create", "update", "patch"]);
    let reads = calls("stacks", &["get"]);
    let counted: u64 = entries.iter().filter_map(|entry| entry.data["status"]["count"].as_u64()).sum();

    let sum = |of: fn(&Tally) -> u64| tallies.iter().map(of).sum::<u64>();
    let (denied, allowed, failed) = (sum(|it| it.denied), sum(|it| it.allowed), sum(|it| it.failed));
    let unsent = sum(|it| it.unsent);
    let fault =
        tallies.iter().find_map(|it| it.fault.as_ref()).map(|it| format!(" ({it})")).unwrap_or_default();
    let rates: Rounds = tallies.iter().map(Tally::rate).collect();
    let row = |name: &str, latencies: &Latencies| {
        vec![name.to_owned(), latencies.p50.show(0), latencies.p99.show(0), latencies.p999.show(0)]
    };
    let title = format!(
        "Reviews that are no drift, {CALM:.0} a second, {} rounds of {:?}: latency in µs",
        plan.rounds, plan.hot
    );
    let rows = vec![
        row("without a hot loop", &without),
        row("beside one that a null webhook answers", &elsewhere),
        row("beside one", &with),
    ];
    print_table(&title, &["reviews", "p50", "p99", "p99.9"], rows);
    println!(
        "hot loop: {denied} denials, {} a second; {allowed} allowed, {failed} failed{fault}, {unsent} not sent in time",
        rates.show(0)
    );
    println!(
        "{} Drift objects; {writes} writes of them in {:.0} s; it counts {counted} of {} sightings; {reads} live reads of the parent",
        entries.len(),
        lasted.as_secs_f64(),
        denied + 1,
    );
    ensure!(allowed == 0, "{allowed} drifts were allowed");
    #[allow(clippy::cast_precision_loss, reason = "there are not that many")]
    let (objects, a_minute) =
        (entries.len() as f64, writes.saturating_sub(1) as f64 * 60.0 / lasted.as_secs_f64().max(60.0));
    report.at_most("Drift objects of one drift in a hot loop", objects, 1.0, "");
    report.at_most("writes of it, after the first, a minute", a_minute, 2.0, "");
    report.at_least("denials answered in a hot loop", rates.median() / HOT, 0.99, "of those asked for");
    Ok(
        json!({"without": without.json(), "elsewhere": elsewhere.json(), "with": with.json(), "denied": denied, "allowed": allowed, "failed": failed, "unsent": unsent,
        "rate": rates.json(), "drifts": entries.len(), "writes": writes, "reads": reads, "counted": counted}),
    )
}

/// One turn of reviews that are no drift.
async fn calmly(load: &Load, plan: &Plan) -> Result<Open> {
    let open = load.open(plan.warm_up, plan.hot, CALM).await?;
    ensure!(open.failed == 0, "{} reviews that are no drift failed", open.failed);
    Ok(open)
}

/// What became of one hot loop.
#[derive(Default)]
struct Tally {
    denied: u64,
    allowed: u64,
    failed: u64,
    /// How many were due but not sent, since too many were unanswered.
    unsent: u64,
    /// Why the first one failed.
    fault: Option<String>,
    lasted: Duration,
}

impl Tally {
    fn note(&mut self, denied: Result<bool>) {
        match denied {
            Ok(true) => self.denied += 1,
            Ok(false) => self.allowed += 1,
            Err(fault) => {
                self.failed += 1;
                self.fault.get_or_insert_with(|| format!("{fault:#}"));
            }
        }
    }

    /// Denials a second.
    fn rate(&self) -> f64 {
        #[allow(clippy::cast_precision_loss, reason = "there are not that many")]
        let denied = self.denied as f64;
        denied / self.lasted.as_secs_f64()
    }
}

/// The reviews of one drift.
struct Drifts {
    wire: Arc<Wire>,
    /// With a place for its uid.
    review: String,
}

impl Drifts {
    /// Sends one, under a number of its own. Tells whether it was denied as a drift.
    async fn send(&self, nth: u64) -> Result<bool> {
        let review = self.review.replace(UID, &format!("hot-{nth}"));
        denied(&self.wire, review).await
    }

    /// So many a second, whether they are answered or not.
    async fn hammer(&self, time: Duration) -> Result<Tally> {
        let mut tally = Tally::default();
        let mut requests = JoinSet::new();
        let begun = Instant::now();
        let mut ticks = tokio::time::interval(Duration::from_millis(1));
        let mut sent = 0_u64;
        while begun.elapsed() < time {
            ticks.tick().await;
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small number")]
            let due = (begun.elapsed().min(time).as_secs_f64() * HOT) as u64;
            for nth in sent..due {
                if requests.len() >= MAX_UNANSWERED {
                    tally.unsent += 1;
                    continue;
                }
                let (wire, review) = (self.wire.clone(), self.review.replace(UID, &format!("hot-{nth}")));
                requests.spawn(async move { denied(&wire, review).await });
            }
            sent = sent.max(due);
            while let Some(answered) = requests.try_join_next() {
                tally.note(answered?);
            }
        }
        while let Some(answered) = requests.join_next().await {
            tally.note(answered?);
        }
        tally.lasted = begun.elapsed();
        Ok(tally)
    }
}

async fn denied(wire: &Wire, review: String) -> Result<bool> {
    let answer: Value = serde_json::from_slice(&wire.send(Bytes::from(review)).await?)?;
    let response = &answer["response"];
    let message = response["status"]["message"].as_str().unwrap_or_default();
    ensure!(response["allowed"] == true || message.contains("kausality: drift "), "{message}");
    Ok(response["allowed"] == false)
}

/// Stands for the uid of a review.
const UID: &str = "00000000-uid-of-the-review";

/// The review of a change of a child by its operator.
fn review(child: &DynamicObject) -> String {
    let mut old = json!(child);
    (old["apiVersion"], old["kind"]) = ("v1".into(), "ConfigMap".into());
    let mut new = old.clone();
    new["data"]["colour"] = "drifted".into();
    let (kind, resource) = (
        json!({"group": "", "version": "v1", "kind": "ConfigMap"}),
        json!({"group": "", "version": "v1", "resource": "configmaps"}),
    );
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": UID, "kind": kind, "resource": resource, "requestKind": kind, "requestResource": resource,
        "name": child.metadata.name, "namespace": NAMESPACE, "operation": "UPDATE", "dryRun": false,
        "userInfo": {"username": OPERATOR, "groups": ["system:serviceaccounts", "system:authenticated"]},
        "object": new, "oldObject": old,
        "options": {"apiVersion": "meta.k8s.io/v1", "kind": "UpdateOptions", "fieldManager": "operator"}}})
    .to_string()
}

/// `kausality webhook` on a control plane. Ends when dropped.
struct Webhook {
    child: Child,
    url: String,
}

impl Webhook {
    fn start(plane: &ControlPlane) -> Result<Self> {
        let address = format!("127.0.0.1:{}", free_port()?);
        let log = std::fs::File::create(plane.folder().join("webhook.log"))?;
        let child = Command::new(env!("CARGO_BIN_EXE_kausality"))
            .args([
                "webhook",
                "--quiet-time",
                "0s",
                "--default-mode",
                "enforce",
                "--resources",
                "stacks.example.com,configmaps",
            ])
            .args(["--bind-address", &address, "--kubeconfig"])
            .arg(plane.kubeconfig())
            .stderr(Stdio::from(log))
            .spawn()
            .context("cannot start kausality webhook")?;
        Ok(Self { child, url: format!("https://{address}/admit") })
    }
}

impl Drop for Webhook {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
