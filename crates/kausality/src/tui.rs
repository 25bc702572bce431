//! `kausality tui`: the drifts of a cluster on a terminal.

use std::{
    collections::BTreeMap,
    io::IsTerminal,
    process::{ExitCode, Stdio},
    time::Duration,
};

use anyhow::{Result, bail};
use clap::Args;
use jiff::Timestamp;
use kausality_api::{
    drift::{Drift, cause::DriftKey},
    text::{plain, shorten},
};
use kausality_tui::{
    Action, Deed, Input, Link,
    run::{self, Wishes},
};
use tokio::{process::Command, sync::mpsc, time::timeout};

use crate::{
    connect::Connection,
    ledger::{self, Ledger, News, Place, present::Present},
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
        let known = ledger.known(&scope, None).await?;
        let drifts = known.entries.iter().map(|entry| (DriftKey::of(&entry.drift), entry.drift.clone()));
        let drifts: BTreeMap<DriftKey, Drift> = drifts.collect();
        let (news, told) = mpsc::unbounded_channel();
        let (inputs, received) = mpsc::channel(64);
        let (deeds, decided) = mpsc::channel(16);
        let (looks, looked_at) = mpsc::channel(16);
        let place = scope.to_string();
        let arguments = self.connection.arguments();
        tokio::select! {
            ended = run::run(&place, self.mouse, received, Wishes { deeds, looks }) => ended?,
            () = ledger::follow(&ledger, known, news) => {}
            () = picture(drifts, told, &inputs) => {}
            () = look(looked_at, &inputs, &ledger) => {}
            () = act(decided, &inputs, &arguments) => {}
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Tells of all drifts whenever one changes, for as long as anybody listens.
async fn picture(
    mut drifts: BTreeMap<DriftKey, Drift>,
    mut told: mpsc::UnboundedReceiver<News>,
    inputs: &mpsc::Sender<Input>,
) {
    loop {
        let all = Input::Drifts(drifts.values().cloned().collect());
        if inputs.send(all).await.is_err() {
            return;
        }
        let mut next = told.recv().await;
        let mut link = None;
        // Many changes are one picture.
        while let Some(news) = next {
            match news {
                News::Is(entry) => drop(drifts.insert(DriftKey::of(&entry.drift), entry.drift)),
                News::Gone(entry) => drop(drifts.remove(&DriftKey::of(&entry.drift))),
                News::Lost(why) => link = Some(Link::Broken(shorten(&plain(&why), MAX_MESSAGE))),
                News::Back => link = Some(Link::Live),
                // It was told before there was a picture, and there is nothing to show.
                News::Unreadable(_) => {}
            }
            next = timeout(GATHER, told.recv()).await.ok().flatten();
        }
        if let Some(link) = link
            && inputs.send(Input::Link(link)).await.is_err()
        {
            return;
        }
    }
}

/// Finds out what rules say now about drifts that are looked at.
async fn look(mut looked_at: mpsc::Receiver<Drift>, inputs: &mpsc::Sender<Input>, ledger: &Ledger) {
    while let Some(mut drift) = looked_at.recv().await {
        // Who has gone on need not wait for what they looked at before.
        while let Ok(next) = looked_at.try_recv() {
            drift = next;
        }
        let now = Timestamp::now();
        let steps = Present::of(ledger, &drift, now).await.steps(&drift, now);
        if inputs.send(Input::Present(DriftKey::of(&drift), steps)).await.is_err() {
            return;
        }
    }
}

/// Does what is decided, or tries it, by the command that does it.
async fn act(mut decided: mpsc::Receiver<Deed>, inputs: &mpsc::Sender<Input>, connection: &[String]) {
    while let Some(deed) = decided.recv().await {
        let said = timeout(DEADLINE, perform(&deed, connection)).await;
        let said = said.unwrap_or_else(|_| Err(format!("no answer within {} s", DEADLINE.as_secs())));
        let input = match said {
            Ok(said) if deed.trial && said.iter().any(Said::shows) => {
                Input::Tried(deed, said.into_iter().flat_map(Said::shown).collect())
            }
            Ok(said) => {
                let told: Vec<String> = said.into_iter().flat_map(Said::told).collect();
                Input::Done(deed, Ok(shorten(&told.join("; "), MAX_MESSAGE)))
            }
            Err(why) => Input::Done(deed, Err(why)),
        };
        if inputs.send(input).await.is_err() {
            return;
        }
    }
}

/// What a command printed, line by line.
struct Said {
    out: Vec<String>,
    err: Vec<String>,
}

impl Said {
    /// Whether it shows something to agree to, and not only notes.
    fn shows(&self) -> bool {
        self.err.iter().any(|line| !line.starts_with("note: "))
    }

    /// What it did, and what the person should know though it was done.
    fn told(self) -> impl Iterator<Item = String> {
        self.out.into_iter().chain(self.err.into_iter().filter(|line| line.starts_with("note: ")))
    }

    /// What it shows: first what there is to say, then the document that it is about.
    fn shown(self) -> Vec<String> {
        let is_said = |line: &String| line.starts_with("# ") || line.starts_with("note: ");
        let (mut lines, document): (Vec<_>, Vec<_>) = self.err.into_iter().partition(is_said);
        lines.push(String::new());
        lines.extend(document);
        lines
    }
}

async fn perform(deed: &Deed, connection: &[String]) -> Result<Vec<Said>, String> {
    let mut told = Vec::new();
    let mut namespaces: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for key in &deed.drifts {
        namespaces.entry(&key.namespace).or_default().push(&key.name);
    }
    for (namespace, names) in namespaces {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut command = Command::new(program);
        command.args(words(deed)).args(names).args(connection);
        command.arg(if deed.trial { "--dry-run=client" } else { "--yes" });
        match namespace {
            "" => command.arg("--cluster"),
            namespace => command.args(["--namespace", namespace]),
        };
        command.stdin(Stdio::null()).kill_on_drop(true);
        let output = command.output().await.map_err(|error| error.to_string())?;
        let [out, err] = [&output.stdout, &output.stderr].map(|text| {
            let text = String::from_utf8_lossy(text);
            text.lines().map(|line| plain(line).into_owned()).collect::<Vec<_>>()
        });
        if !output.status.success() {
            return Err(shorten(&err.join("; "), MAX_MESSAGE));
        }
        told.push(Said { out, err });
    }
    Ok(told)
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
        Action::Except => vec!["except", "--reason", text],
    }
}
