//! Kausality itself, several times, as the API server asks it.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures::{
    FutureExt,
    future::{BoxFuture, Either, select},
};
use hyper::body::Bytes;
use kausality_api::mode::Mode;
use kausality_cluster::{Cluster, Sight, policies, registration::WEBHOOK};
use kausality_core::{Settings, decision::Verdict};
use kausality_sandbox::{Admission, Sandbox, User, Write};
use serde_json::json;
use tokio::{sync::broadcast, time::Instant};

use crate::{
    SELF,
    clock::Clock,
    dice::Dice,
    line::Line,
    oracle::{Oracle, Question, is_gated},
    weather::Sky,
};

/// How long a replica may take for a decision.
const DEADLINE: Duration = Duration::from_secs(8);

/// How long the API server waits for one.
const TIMEOUT: Duration = Duration::from_secs(10);

/// All replicas, dead or alive.
pub(crate) struct Replicas {
    seed: u64,
    quiet_time: Duration,
    sandbox: Sandbox,
    sky: Arc<Sky>,
    clock: Clock,
    oracle: Arc<Oracle>,
    dice: Dice,
    started: AtomicU64,
    all: Mutex<Vec<Arc<Replica>>>,
}

struct Replica {
    cluster: Arc<Cluster>,
    line: Line,
    /// Tells when it dies.
    death: broadcast::Sender<()>,
}

impl Replica {
    /// Ends when the replica does.
    async fn end(&self) {
        let mut death = self.death.subscribe();
        if !self.line.is_dead() {
            let _ = death.recv().await;
        }
    }

    fn die(&self) {
        self.line.die();
        let _ = self.death.send(());
    }

    /// At which version it knows the parent of a request.
    fn knows(&self, review: &[u8]) -> Option<String> {
        let [api_version, kind, namespace, name, uid] = Question::parent_of(review)?;
        let kind = self.cluster.kinds.of_kind(&api_version, &kind).now_or_never()?.ok()?;
        match self.cluster.watched(&kind)?.look(&namespace, &name, &uid) {
            Sight::Here(summary) => Some(summary.resource_version.clone()),
            _ => None,
        }
    }
}

impl Replicas {
    pub(crate) fn new(
        seed: u64,
        quiet_time: Duration,
        sandbox: &Sandbox,
        sky: &Arc<Sky>,
        clock: Clock,
        oracle: &Arc<Oracle>,
    ) -> Arc<Self> {
        Arc::new(Self {
            seed,
            quiet_time,
            sandbox: sandbox.clone(),
            sky: sky.clone(),
            clock,
            oracle: oracle.clone(),
            dice: Dice::new(seed, "replicas"),
            started: AtomicU64::new(0),
            all: Mutex::default(),
        })
    }

    fn all(&self) -> MutexGuard<'_, Vec<Arc<Replica>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts one more.
    pub(crate) fn start(&self) {
        let name = format!("replica {}", self.started.fetch_add(1, Ordering::Relaxed));
        let line = Line::new(&self.sandbox, User::admin(SELF), &self.sky, Dice::new(self.seed, &name));
        let settings = Settings {
            own_users: [SELF.to_owned()].into(),
            default_mode: if self.seed % 4 == 3 { Mode::Log } else { Mode::Enforce },
            quiet_time: self.quiet_time,
            salt: b"simulation".to_vec(),
            ..Settings::default()
        };
        let clock = self.clock;
        let wall = kausality_cluster::Clock::new(move || clock.timestamp());
        let cluster = Cluster::new(line.client(), line.client(), settings, wall);
        if self.seed.is_multiple_of(2) {
            // What is real is found to be so.
            cluster.doubt_reviews();
        }
        let replica = Arc::new(Replica { cluster, line, death: broadcast::Sender::new(1) });
        for task in [
            policies::follow(replica.cluster.clone(), Vec::new()).boxed(),
            replica.cluster.clone().record().boxed(),
        ] {
            let replica = replica.clone();
            tokio::spawn(async move { select(task, Box::pin(replica.end())).await.factor_first().0 });
        }
        self.oracle.note(format_args!("{name} starts"));
        self.all().push(replica);
    }

    /// Ends one of them, on the spot or after it has written what it can.
    pub(crate) async fn stop_one(&self) {
        let replica = {
            let mut all = self.all();
            let which = self.dice.below(all.len() as u64);
            let which = usize::try_from(which).unwrap_or_default();
            if which >= all.len() {
                return;
            }
            all.remove(which)
        };
        if self.dice.chance(500) {
            self.oracle.note("a replica ends");
            replica.cluster.flush(Duration::from_secs(5)).await;
        } else {
            self.oracle.note("a replica crashes");
        }
        self.oracle.count("replicas stopped");
        replica.die();
    }

    /// Whether all of them can answer.
    pub(crate) fn are_ready(&self) -> bool {
        self.all().iter().all(|replica| replica.cluster.is_synced())
    }

    pub(crate) fn len(&self) -> usize {
        self.all().len()
    }

    fn pick(&self) -> Option<Arc<Replica>> {
        let ready: Vec<_> =
            self.all().iter().filter(|replica| replica.cluster.is_synced()).cloned().collect();
        self.dice.pick(&ready).cloned()
    }

    async fn ask(&self, review: &[u8]) -> Result<kausality_sandbox::Verdict, String> {
        let replica = self.pick().ok_or_else(|| "connection refused".to_owned())?;
        tokio::time::sleep(self.sky.delay(&self.dice)).await;
        let known = replica.knows(review);
        let question = self.oracle.ask(review, known.as_deref()).ok_or("no review")?;
        let deciding = replica.cluster.admit(review, Instant::now() + DEADLINE, |_| ());
        let decided = match select(Box::pin(deciding), Box::pin(replica.end())).await {
            Either::Left((decided, _)) => decided.map_err(|error| error.to_string())?.1,
            Either::Right(_) => return Err("connection reset by peer".to_owned()),
        };
        self.oracle.decide(&question, &decided);
        tokio::time::sleep(self.sky.delay(&self.dice)).await;
        if self.sky.strikes(&self.dice, "decisions lost", |weather| weather.lost) {
            return Err("connection reset by peer".to_owned());
        }
        let mut verdict = match &decided.verdict {
            Verdict::Allow | Verdict::Warn => kausality_sandbox::Verdict::allow(),
            Verdict::Deny(denial) => kausality_sandbox::Verdict::deny(denial.code, denial.message.clone()),
        };
        let patch = serde_json::to_value(decided.patch.operations()).map_err(|error| error.to_string())?;
        verdict.patch = (!decided.patch.is_empty()).then_some(patch);
        Ok(verdict)
    }
}

/// The API server's way to the replicas.
pub(crate) struct Gate(pub(crate) Arc<Replicas>);

impl Admission for Gate {
    fn name(&self) -> &str {
        WEBHOOK
    }

    fn matches(&self, write: &Write<'_>) -> bool {
        is_gated(write.group, write.resource) && matches!(write.subresource, "" | "status" | "scale")
    }

    fn review(&self, review: Bytes) -> BoxFuture<'_, Result<kausality_sandbox::Verdict, String>> {
        async move {
            let asked = tokio::time::timeout(TIMEOUT, self.0.ask(&review)).await;
            asked.unwrap_or_else(|_| Err("context deadline exceeded".to_owned()))
        }
        .boxed()
    }
}

/// Another webhook, which comes after ours: it refuses what we allowed, or changes it.
pub(crate) struct Neighbour {
    pub(crate) sky: Arc<Sky>,
    pub(crate) dice: Dice,
}

impl Admission for Neighbour {
    fn name(&self) -> &str {
        "neighbour.example.com"
    }

    fn matches(&self, write: &Write<'_>) -> bool {
        let part = matches!(write.subresource, "" | "status" | "scale");
        part && is_gated(write.group, write.resource) && write.user != SELF
    }

    fn review(&self, review: Bytes) -> BoxFuture<'_, Result<kausality_sandbox::Verdict, String>> {
        async move {
            tokio::time::sleep(self.sky.delay(&self.dice)).await;
            if self.sky.strikes(&self.dice, "writes failed after admission", |weather| weather.failing) {
                return Err("the neighbour is not at home".to_owned());
            }
            let mut verdict = kausality_sandbox::Verdict::allow();
            let review: serde_json::Value = serde_json::from_slice(&review).unwrap_or_default();
            let labels = &review["request"]["object"]["metadata"]["labels"];
            let whole = review["request"]["subResource"].is_null() && review["request"]["object"].is_object();
            if whole && self.sky.strikes(&self.dice, "writes meddled with", |weather| weather.meddling) {
                let mut labels = labels.as_object().cloned().unwrap_or_default();
                labels.insert("neighbour".to_owned(), json!("was-here"));
                verdict.patch = Some(json!([{"op": "add", "path": "/metadata/labels", "value": labels}]));
            }
            Ok(verdict)
        }
        .boxed()
    }
}
