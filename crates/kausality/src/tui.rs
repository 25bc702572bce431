//! `kausality tui`: the drifts of a cluster on a terminal.

use std::{
    collections::BTreeMap,
    io::IsTerminal,
    process::{ExitCode, Stdio},
    time::Duration,
};

use anyhow::{Result, bail};
use clap::Args;
use futures::{StreamExt, stream};
use kausality_api::{
    drift::{Drift, cause::DriftKey},
    text::{plain, shorten},
};
use kausality_tui::{Action, Deed, Input, Link, run};
use kube::runtime::{WatchStreamExt, watcher};
use tokio::{process::Command, sync::mpsc, time::timeout};

use crate::{
    connect::Connection,
    ledger::{Entry, Ledger, Place, Scope},
};

/// See drifts as they come, understand them, and decide about them with one key.
///
/// Whatever is decided is done as the commands of the same names do it, and needs the same rights.
#[derive(Debug, Args)]
pub struct Tui {
    #[command(flatten)]
    place: Place,

    /// Let the wheel of the mouse move; text cannot be marked with it then
    #[arg(long)]
    mouse: bool,

    #[command(flatten)]
    connection: Connection,
}

/// How long more changes are waited for before all are shown.
const GATHER: Duration = Duration::from_millis(50);

/// How long a decision may take.
const DEADLINE: Duration = Duration::from_secs(60);

/// Characters of what is told about one.
const MAX_MESSAGE: usize = 300;

impl Tui {
    /// Runs the command until the person quits.
    ///
    /// # Errors
    /// If there is no terminal, or drifts cannot be read to begin with.
    pub fn run(&self) -> Result<ExitCode> {
        if !std::io::stdout().is_terminal() || !std::io::stdin().is_terminal() {
            bail!("this needs a terminal; `kausality drifts --watch` does not");
        }
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let ended = runtime.block_on(self.show());
        // Whatever still waits for the cluster need not be waited for.
        runtime.shutdown_background();
        ended
    }

    async fn show(&self) -> Result<ExitCode> {
        let client = self.connection.client("tui").await?;
        let scope = self.place.scope(&client);
        let ledger = Ledger::new(client);
        // What is wrong to begin with is told, and not tried for ever.
        ledger.read(&scope, None).await?;
        let (inputs, received) = mpsc::channel(64);
        let (deeds, decided) = mpsc::channel(16);
        let place = scope.to_string();
        let arguments = self.connection.arguments();
        tokio::select! {
            ended = run::run(&place, self.mouse, received, deeds) => ended?,
            () = follow(&ledger, &scope, &inputs) => {}
            () = act(decided, &inputs, &arguments) => {}
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Tells of all drifts whenever one changes, for as long as anybody listens.
async fn follow(ledger: &Ledger, scope: &Scope, inputs: &mpsc::Sender<Input>) {
    let scopes = match scope {
        Scope::Everywhere => vec![scope.clone(), Scope::Cluster],
        scope => vec![scope.clone()],
    };
    let mut changes = stream::select_all(scopes.iter().map(|scope| {
        let (api, resource) = ledger.api(scope);
        let changes = watcher(api, watcher::Config::default()).default_backoff();
        changes.map(move |change| (resource.clone(), change)).boxed()
    }));
    let mut drifts: BTreeMap<DriftKey, Drift> = BTreeMap::new();
    // Those of a list that is being read, by the plural name of their kind.
    let mut arriving: BTreeMap<String, Vec<DriftKey>> = BTreeMap::new();
    loop {
        let mut next = changes.next().await;
        let mut link = None;
        // Many changes are one picture.
        while let Some((resource, change)) = next {
            let read = |object| {
                let object = serde_json::to_value(object).ok()?;
                Entry::of(object, &resource).ok().map(|entry| entry.drift)
            };
            match change {
                Ok(watcher::Event::Init) => drop(arriving.insert(resource.plural.clone(), Vec::new())),
                Ok(watcher::Event::InitApply(object)) => {
                    if let Some(drift) = read(object) {
                        arriving.entry(resource.plural.clone()).or_default().push(DriftKey::of(&drift));
                        drifts.insert(DriftKey::of(&drift), drift);
                    }
                }
                Ok(watcher::Event::InitDone) => {
                    let there = arriving.remove(&resource.plural).unwrap_or_default();
                    let of_kind = |drift: &Drift| drift.plural() == resource.plural;
                    drifts.retain(|key, drift| !of_kind(drift) || there.contains(key));
                    link = Some(Link::Live);
                }
                Ok(watcher::Event::Apply(object)) => {
                    drifts.extend(read(object).map(|drift| (DriftKey::of(&drift), drift)));
                    link = Some(Link::Live);
                }
                Ok(watcher::Event::Delete(object)) => {
                    if let Some(drift) = read(object) {
                        drifts.remove(&DriftKey::of(&drift));
                    }
                }
                Err(error) => link = Some(Link::Broken(shorten(&plain(&error.to_string()), MAX_MESSAGE))),
            }
            next = timeout(GATHER, changes.next()).await.ok().flatten();
        }
        if let Some(link) = link
            && inputs.send(Input::Link(link)).await.is_err()
        {
            return;
        }
        if inputs.send(Input::Drifts(drifts.values().cloned().collect())).await.is_err() {
            return;
        }
    }
}

/// Does what is decided, by the command that does it.
async fn act(mut decided: mpsc::Receiver<Deed>, inputs: &mpsc::Sender<Input>, connection: &[String]) {
    while let Some(deed) = decided.recv().await {
        let done = timeout(DEADLINE, perform(&deed, connection)).await;
        let done = done.unwrap_or_else(|_| Err(format!("no answer within {} s", DEADLINE.as_secs())));
        if inputs.send(Input::Done(done)).await.is_err() {
            return;
        }
    }
}

async fn perform(deed: &Deed, connection: &[String]) -> Result<String, String> {
    let mut told = Vec::new();
    let mut namespaces: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for key in &deed.drifts {
        namespaces.entry(&key.namespace).or_default().push(&key.name);
    }
    for (namespace, names) in namespaces {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut command = Command::new(program);
        command.args(words(deed)).args(names).args(connection).arg("--yes");
        match namespace {
            "" => command.arg("--cluster"),
            namespace => command.args(["--namespace", namespace]),
        };
        command.stdin(Stdio::null()).kill_on_drop(true);
        let output = command.output().await.map_err(|error| error.to_string())?;
        let [said, complained] = [&output.stdout, &output.stderr].map(|text| {
            let text = String::from_utf8_lossy(text);
            text.lines().map(|line| plain(line).into_owned()).collect::<Vec<_>>().join("; ")
        });
        if !output.status.success() {
            return Err(shorten(&complained, MAX_MESSAGE));
        }
        told.push(said);
    }
    Ok(shorten(&told.join("; "), MAX_MESSAGE))
}

/// The command that does it.
fn words(deed: &Deed) -> Vec<&str> {
    let text = deed.text.as_str();
    match deed.action {
        Action::ApproveOnce => vec!["approve", "--mode", "once"],
        Action::ApproveGeneration => vec!["approve", "--mode", "generation"],
        Action::ApproveAlways => vec!["approve", "--mode", "always"],
        Action::Reject => vec!["reject", "--reason", text],
        Action::Freeze => vec!["freeze", "--reason", text],
        Action::Unfreeze => vec!["unfreeze"],
        Action::Snooze => vec!["snooze", "--for", text],
        Action::Unapprove => vec!["unapprove"],
    }
}
