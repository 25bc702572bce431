//! `kausality replay`: recorded requests in, decisions out.

use std::{
    io::{self, IsTerminal, Write},
    path::PathBuf,
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use kausality_api::{policy::QuietTime, text::plain};
use kausality_core::{Settings, cause::Cause, exceptions::Exceptions, policy::Policies, review::BadReview};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::mode::ModeArgument;

pub mod around;
pub mod audit;
pub mod engine;
pub mod input;
mod overlay;
pub(crate) mod policies;
pub mod row;
pub mod summary;
mod table;
mod world;

use audit::Told;
use engine::{Engine, Judged, Source};
use input::Input;
use policies::Loaded;
use row::Row;
use summary::Summary;
use table::Table;
pub use table::object;

/// Decide recorded requests, as Kausality would have.
#[derive(Debug, Args)]
pub struct Replay {
    #[command(flatten)]
    recording: Recording,

    /// How decisions are shown
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,

    /// Show only these decisions
    #[arg(long, value_enum)]
    only: Option<Only>,

    /// Show updates of status and metadata in the table too
    #[arg(long)]
    all: bool,

    /// Exit with 1 if there is any
    #[arg(long, value_enum)]
    fail_on: Option<FailOn>,
}

/// What is replayed, and under which rules.
#[derive(Debug, Args)]
pub struct Recording {
    /// AdmissionReviews or audit.k8s.io/v1 events: JSON files, folders of them, or - for standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// The mode where no annotation or policy says another
    #[arg(long, value_enum, default_value_t = ModeArgument::Log)]
    mode: ModeArgument,

    /// How long a parent must have been in steady state, with no change to its children, before a change counts as drift,
    /// where no policy says otherwise. Only audit logs tell the time
    #[arg(long, default_value_t, value_name = "DURATION")]
    quiet_time: QuietTime,

    /// A file of policies (Kausality, ApprovalPolicy, ClusterApprovalPolicy), YAML or JSON, or a folder of YAML files; may be given more than once
    #[arg(long, value_name = "FILE|DIR")]
    policy: Vec<PathBuf>,
}

/// How decisions are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// For people.
    #[default]
    Table,
    /// For programs: one JSON object a line.
    Json,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Only {
    /// Drifts
    Drift,
    /// Denials
    Deny,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FailOn {
    /// A drift
    Drift,
    /// A denial
    Deny,
}

impl Recording {
    fn settings(&self) -> Result<Settings> {
        self.settings_with(Loaded::default())
    }

    /// The settings, with policies beside those that were given.
    fn settings_with(&self, more: Loaded) -> Result<Settings> {
        let Loaded { mut policies, mut exceptions } = policies::load(&self.policy)?;
        policies.extend(more.policies);
        exceptions.extend(more.exceptions);
        Ok(Settings {
            default_mode: self.mode.into(),
            quiet_time: self.quiet_time.0,
            policies: Policies::new(policies),
            exceptions: Arc::new(Exceptions::new(&exceptions)),
            ..Settings::default()
        })
    }

    /// What was named to be replayed.
    pub(crate) fn files(&self) -> &[PathBuf] {
        &self.files
    }

    fn is_several(&self) -> bool {
        Input::all(&self.files).is_ok_and(|inputs| inputs.len() > 1)
    }

    pub(crate) fn has_stdin(&self) -> bool {
        self.files.iter().any(|file| file.as_os_str() == "-")
    }

    /// The name of the last file that is replayed.
    #[must_use]
    pub fn last_file(&self) -> Option<String> {
        Input::all(&self.files).ok()?.last().map(Input::name)
    }

    /// Replays everything, in order, until `each` says that it has seen enough.
    ///
    /// # Errors
    /// If a file or a policy cannot be read, or `each` fails.
    pub fn replay(&self, each: impl FnMut(&str, u64, &Fed) -> Result<Flow>) -> Result<()> {
        self.replay_with(Loaded::default(), each)
    }

    /// Replays everything under more policies than those that were given.
    ///
    /// # Errors
    /// If a file or a policy cannot be read, or `each` fails.
    pub(crate) fn replay_with(
        &self,
        more: Loaded,
        mut each: impl FnMut(&str, u64, &Fed) -> Result<Flow>,
    ) -> Result<()> {
        let mut engine = Engine::new(self.settings_with(more)?);
        let inputs = Input::all(&self.files)?;
        let mut progress = Progress::new(&inputs);
        for input in &inputs {
            let name = input.name();
            let mut documents = input.open()?;
            while let Some(document) =
                documents.next_document().with_context(|| format!("cannot read {name}"))?
            {
                progress.at(documents.position());
                let fed = match &document.bytes {
                    Ok(bytes) => feed(&mut engine, bytes),
                    Err(why) => vec![Fed::Bad(why.clone())],
                };
                for fed in fed {
                    if progress.aside(|| each(&name, document.line, &fed))? == Flow::Stop {
                        return Ok(());
                    }
                }
            }
            progress.finish_file(documents.position());
        }
        Ok(())
    }
}

/// What became of a document, or of an item of one.
#[derive(Debug)]
pub enum Fed {
    /// A request, judged as far as possible.
    Judged(Box<Judged>),
    /// Nothing that matters: an audit event of a read, of an early stage, of a request that failed.
    Nothing,
    /// It could not be read, and why.
    Bad(String),
}

/// Whether a replay goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// It does.
    GoOn,
    /// It does not.
    Stop,
}

impl Replay {
    /// Runs the command.
    ///
    /// # Errors
    /// If a file or a policy cannot be read, or the output cannot be written.
    pub fn run(&self) -> Result<ExitCode> {
        match self.output {
            // Colours are for people: programs get every byte as it is.
            Output::Json => self.print(io::BufWriter::new(io::stdout().lock())),
            Output::Table => self.print(io::BufWriter::new(anstream::stdout().lock())),
        }
    }

    fn print(&self, mut out: impl Write) -> Result<ExitCode> {
        let mut summary = Summary::of(&self.recording.settings()?.exceptions);
        let mut table = Table::new(self.recording.is_several());
        // Who watches sees every row at once; so does who feeds us by hand.
        let live = io::stdout().is_terminal() || self.recording.has_stdin();
        self.recording.replay(|file, line, fed| {
            match fed {
                Fed::Nothing => summary.skipped += 1,
                Fed::Bad(why) => {
                    summary.bad += 1;
                    if summary.bad <= SHOWN_FAULTS {
                        anstream::eprintln!("{file}:{line}: skipped: {}", plain(why));
                    }
                }
                Fed::Judged(judged) => {
                    summary.count(judged);
                    match (self.shows(judged), self.output) {
                        (false, _) => table.pass_over(judged),
                        (true, Output::Json) => {
                            serde_json::to_writer(&mut out, &Row::new(file, line, judged))?;
                            out.write_all(b"\n")?;
                        }
                        (true, Output::Table) => table.row(&mut out, file, line, judged)?,
                    }
                }
            }
            if live {
                out.flush()?;
            }
            Ok(Flow::GoOn)
        })?;
        if summary.bad > SHOWN_FAULTS {
            anstream::eprintln!("… and {} more could not be read", summary.bad - SHOWN_FAULTS);
        }
        if self.output == Output::Table && summary.requests + summary.skipped > 0 {
            if self.only.is_none() {
                table.footer(&mut out)?;
            }
            summary.print(&mut out)?;
        }
        out.flush()?;
        Ok(self.exit_code(&summary))
    }

    fn shows(&self, judged: &Judged) -> bool {
        match self.only {
            Some(Only::Drift) => judged.cause() == Some(Cause::Drift),
            Some(Only::Deny) => judged.verdict() == "deny",
            None => self.all || self.output == Output::Json || judged.is_change(),
        }
    }

    fn exit_code(&self, summary: &Summary) -> ExitCode {
        if summary.requests + summary.skipped == 0 {
            anstream::eprintln!(
                "error: nothing could be read. Give AdmissionReviews (admission.k8s.io/v1) or audit events \
                 ({}, level RequestResponse), one a line or as JSON files.",
                audit::API_VERSION
            );
            return ExitCode::from(2);
        }
        let failed = match self.fail_on {
            Some(FailOn::Drift) => summary.drifts > 0,
            Some(FailOn::Deny) => summary.denied > 0,
            None => false,
        };
        ExitCode::from(u8::from(failed))
    }
}

/// Feeds one document to the engine: a review, an audit event, or a list of either.
fn feed(engine: &mut Engine, bytes: &[u8]) -> Vec<Fed> {
    #[derive(Deserialize)]
    struct List<'a> {
        #[serde(borrow)]
        items: Vec<&'a RawValue>,
    }
    let mut events = false;
    let items = if bytes.starts_with(b"[") {
        serde_json::from_slice::<Vec<&RawValue>>(bytes)
    } else {
        match feed_one(engine, bytes) {
            Err(BadReview::OtherKind { kind, .. }) if kind.ends_with("List") => {
                // Items of an audit log's list do not say what they are.
                events = kind == "EventList";
                serde_json::from_slice::<List<'_>>(bytes).map(|list| list.items)
            }
            fed => return vec![fed.unwrap_or_else(|error| Fed::Bad(error.to_string()))],
        }
    };
    match items {
        Ok(items) if events => items.iter().map(|item| feed_event(engine, item.get().as_bytes())).collect(),
        Ok(items) => {
            let fed = items.iter().map(|item| feed_one(engine, item.get().as_bytes()));
            fed.map(|fed| fed.unwrap_or_else(|error| Fed::Bad(error.to_string()))).collect()
        }
        Err(error) => vec![Fed::Bad(format!("not a list of reviews or audit events: {error}"))],
    }
}

fn feed_one(engine: &mut Engine, bytes: &[u8]) -> Result<Fed, BadReview> {
    match engine.review(bytes, Source::Webhook) {
        Err(BadReview::OtherKind { api_version, kind })
            if api_version == audit::API_VERSION && kind == "Event" =>
        {
            Ok(feed_event(engine, bytes))
        }
        judged => judged.map(|judged| Fed::Judged(Box::new(judged))),
    }
}

fn feed_event(engine: &mut Engine, bytes: &[u8]) -> Fed {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => return Fed::Bad(format!("not UTF-8: {error}")),
    };
    match audit::event(engine, text) {
        Ok(Told::Request(judged)) => Fed::Judged(judged),
        Ok(Told::Nothing) => Fed::Nothing,
        Err(error) => Fed::Bad(error.to_string()),
    }
}

/// Shows how far a long replay has got, on a terminal.
struct Progress {
    bar: Option<ProgressBar>,
    started: Instant,
    size: Option<u64>,
    /// Bytes of the files before this one.
    before: u64,
}

/// How many documents that cannot be read are named.
const SHOWN_FAULTS: u64 = 20;

/// Shorter replays show nothing.
const PATIENCE: Duration = Duration::from_millis(800);

impl Progress {
    fn new(inputs: &[Input]) -> Self {
        let size = inputs.iter().map(Input::size).sum();
        Self { bar: None, started: Instant::now(), size, before: 0 }
    }

    fn at(&mut self, position: u64) {
        if self.bar.is_none() && self.started.elapsed() > PATIENCE {
            let (bar, template) = match self.size {
                Some(size) => (ProgressBar::new(size), "{bar:30} {bytes}/{total_bytes}, {eta} left"),
                None => (ProgressBar::no_length(), "{spinner} {bytes} read"),
            };
            let style = ProgressStyle::with_template(template);
            let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
            self.bar = Some(bar.with_style(style).with_elapsed(self.started.elapsed()));
        }
        if let Some(bar) = &self.bar {
            bar.set_position(self.before + position);
        }
    }

    /// Lets something else be printed on the terminal.
    fn aside<T>(&self, print: impl FnOnce() -> T) -> T {
        match &self.bar {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }

    fn finish_file(&mut self, read: u64) {
        self.before += read;
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
