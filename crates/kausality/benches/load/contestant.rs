//! Those that are measured: each in a process of its own, which is this program again in another role.

use std::{
    io::{BufRead, BufReader, Lines, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use kausality_cluster::{Clock, Cluster, policies};
use kausality_core::{Decision, Settings, cause::Cause, class::Class};
use kausality_webhook::{
    Admission, BadReview, Bytes, Certificates, Clients, Config, Metrics, Reply, Server, Subject,
};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Value, json};

use crate::{
    api::{CannedApi, Shelf},
    deployments,
    machine::{self, Seat},
    parents,
    passport::{self, Passport},
    reviews::Recorded,
};

/// What a process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Role {
    /// A webhook that lets everything pass, unread.
    Null,
    /// The same for an API server, which wants its uid back.
    Silent,
    /// One that sets two annotations, of the size of ours.
    Patching,
    /// One that finds out whether it is JSON, and lets it pass.
    Reader,
    /// Kausality's webhook, on an API in memory.
    Ours,
    /// The same, and it asks for client certificates.
    Guarded,
    /// A cluster with many parents.
    Parents,
    /// Somebody who lists as many, and keeps nothing.
    List,
}

impl Role {
    fn name(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Silent => "silent",
            Self::Patching => "patching",
            Self::Reader => "reader",
            Self::Ours => "ours",
            Self::Guarded => "guarded",
            Self::Parents => "parents",
            Self::List => "list",
        }
    }
}

/// Plays a role, until nobody listens any more.
pub(crate) fn play(role: Role, count: usize) -> Result<()> {
    machine::take(Seat::Server)?;
    // As the webhook has it: as many threads as there are processors for it.
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        match role {
            Role::Null => serve(Null, None, || json!({})).await,
            Role::Silent => serve(Polite { patches: false }, None, || json!({})).await,
            Role::Patching => serve(Polite { patches: true }, None, || json!({})).await,
            Role::Reader => serve(Reader, None, || json!({})).await,
            Role::Ours | Role::Guarded => {
                let recorded = Recorded::read()?;
                let mut shelves = recorded.owners()?;
                shelves.push(deployments::namespaces());
                let api = CannedApi::new(shelves);
                let cluster = cluster(&api, Settings::default()).await?;
                let ours = Arc::new(Ours { cluster, drifts: AtomicU64::new(0) });
                let told = ours.clone();
                let passport = if role == Role::Guarded { Some(Passport::make()?) } else { None };
                serve(ours, passport, move || json!({"calls": api.calls().json(), "drifts": told.drifts.load(Ordering::Relaxed)}))
                    .await
            }
            Role::Parents => tell(&parents::watched(count).await?),
            Role::List => tell(&parents::listed(count).await?),
        }
    })
}

fn tell(what: &Value) -> Result<()> {
    println!("{what}");
    Ok(())
}

/// How long a cluster may take to know everything.
const PATIENCE: Duration = Duration::from_secs(120);

/// A cluster on an API in memory that knows everything, in the way of `kausality webhook`. What that writes later, once
/// an object is quiet, is not written here: it is on no request's way.
pub(crate) async fn cluster(api: &CannedApi, settings: Settings) -> Result<Arc<Cluster>> {
    let cluster = Cluster::new(api.client(), api.client(), settings, Clock::default());
    for (group, plural) in api.resources() {
        let kind = cluster.kinds.of_resource(&group, &plural).await?;
        if !group.is_empty() && group != kausality_api::GROUP {
            cluster.require(&kind);
        }
    }
    tokio::spawn(policies::follow(cluster.clone(), Vec::new()));
    let deadline = Instant::now() + PATIENCE;
    while !cluster.is_synced() {
        if Instant::now() > deadline {
            bail!("the cluster is not known after {PATIENCE:?}");
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Ok(cluster)
}

/// A shelf without policies: they are served, but there are none.
pub(crate) fn no_policies() -> Shelf {
    Shelf::new(kausality_api::GROUP, "v1alpha1", "kausalities", "Kausality").cluster_scoped()
}

/// Serves, and tells what is asked on standard input.
async fn serve(
    admission: impl Admission,
    passport: Option<Passport>,
    state: impl Fn() -> Value + Send + 'static,
) -> Result<()> {
    let certificates = Certificates::self_signed(&["localhost".to_owned()], &[[127, 0, 0, 1].into()])?;
    let ca = certificates.ca_pem().map(ToOwned::to_owned);
    let mut config = Config::new(([127, 0, 0, 1], 0).into(), certificates);
    if let Some(passport) = &passport {
        let file = concat!(env!("CARGO_TARGET_TMPDIR"), "/load-client-ca.pem");
        std::fs::write(file, &passport.ca).with_context(|| format!("cannot write {file}"))?;
        config.clients = Clients::default().with_authority(file, &[passport::NAME.to_owned()])?;
    }
    let server = Server::new(config, admission, Metrics::default()).listen().await?;
    let url = format!("https://{}/admit", server.address());
    tell(&json!({"url": url, "ca": ca, "passport": passport.as_ref().map(Passport::json)}))?;
    // Whoever started this process ends it by going away.
    let asked = tokio::task::spawn_blocking(move || -> Result<()> {
        for line in std::io::stdin().lines() {
            line?;
            tell(&state())?;
        }
        Ok(())
    });
    tokio::select! {
        () = server.run(std::future::pending()) => Ok(()),
        asked = asked => asked?,
    }
}

/// Lets everything pass, unread. Its answers repeat no uid, which an API server would insist on.
struct Null;

impl Admission for Null {
    async fn decide(&self, _review: Bytes, _until: Instant) -> Result<Reply, BadReview> {
        Ok(Reply { subject: Subject::default(), decision: Decision::allow(Class::Ignored) })
    }

    fn is_ready(&self) -> bool {
        true
    }
}

/// Lets everything pass, and repeats the uid. Sets two annotations that are new each time, or none.
struct Polite {
    patches: bool,
}

/// The annotations that it sets, and how many bytes they take: as many as a trace of two hops, and the users who have updated it.
const ANNOTATIONS: [(&str, usize); 2] = [("kausality.io/trace", 420), ("kausality.io/updaters", 5)];

impl Admission for Polite {
    async fn decide(&self, review: Bytes, _until: Instant) -> Result<Reply, BadReview> {
        #[derive(Deserialize)]
        struct Asked {
            request: Uid,
        }
        #[derive(Deserialize)]
        struct Uid {
            uid: String,
        }
        let Asked { request: Uid { uid } } = serde_json::from_slice(&review)?;
        let mut decision = Decision::allow(Class::Ignored);
        if self.patches {
            let values = ANNOTATIONS.map(|(key, size)| {
                (key.to_owned(), Some(uid.chars().cycle().take(size).collect::<String>()))
            });
            decision.patch.annotations.extend(values);
        }
        Ok(Reply { subject: Subject { uid, ..Subject::default() }, decision })
    }

    fn is_ready(&self) -> bool {
        true
    }
}

/// Lets everything pass that is JSON: the least that somebody does who reads.
struct Reader;

impl Admission for Reader {
    async fn decide(&self, review: Bytes, until: Instant) -> Result<Reply, BadReview> {
        serde_json::from_slice::<IgnoredAny>(&review)?;
        Null.decide(review, until).await
    }

    fn is_ready(&self) -> bool {
        true
    }
}

/// Decides as `kausality webhook` does.
struct Ours {
    cluster: Arc<Cluster>,
    drifts: AtomicU64,
}

impl Admission for Ours {
    async fn decide(&self, review: Bytes, until: Instant) -> Result<Reply, BadReview> {
        let decided = Box::pin(self.cluster.admit(&review, until.into(), |request| Subject::from(request)));
        let (subject, decision) = decided.await?;
        if decision.cause == Some(Cause::Drift) {
            self.drifts.fetch_add(1, Ordering::Relaxed);
        }
        Ok(Reply { subject, decision })
    }

    fn is_ready(&self) -> bool {
        self.cluster.is_synced()
    }
}

/// A process in a role. Ends when dropped.
pub(crate) struct Process {
    child: Child,
    asked: ChildStdin,
    told: Lines<BufReader<ChildStdout>>,
}

impl Process {
    pub(crate) fn start(role: Role, count: usize) -> Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            // As the image has it: memory that a list took goes back once it is free.
            .env("MALLOC_TRIM_THRESHOLD_", "131072")
            .args(["--role", role.name(), "--count", &count.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start the process {}", role.name()))?;
        let (asked, told) = child.stdin.take().zip(child.stdout.take()).context("no pipes")?;
        Ok(Self { child, asked, told: BufReader::new(told).lines() })
    }

    /// What it says next.
    pub(crate) fn hear(&mut self) -> Result<Value> {
        let line = self.told.next().context("the process has ended; what it wrote is above")??;
        Ok(serde_json::from_str(&line)?)
    }

    /// What it says when asked.
    pub(crate) fn ask(&mut self) -> Result<Value> {
        writeln!(self.asked, "?")?;
        self.hear()
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// For how long processors have worked for it.
    pub(crate) fn busy(&self) -> Duration {
        machine::busy(self.child.id())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
