//! `kausality why`: the explanation of one decision, rule by rule.

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

use anstyle::Style;
use anyhow::{Context, Result, bail};
use clap::Args;
use kausality_api::text::{plain, shorten};
use kausality_core::{Decision, decision::Effect};
use serde_json::json;

use crate::{
    connect::Connection,
    ledger::Place,
    output::{self, ThingOutput},
    replay::{
        Fed, Flow, Recording,
        engine::{Judged, Outcome},
        row::Row,
    },
};

mod drift;

/// Explain one decision, rule by rule: about a drift of a cluster, or about a recorded request.
///
/// With --line, files are read: AdmissionReviews or audit events, as `kausality replay` takes them. Without, a drift is
/// named by its id, or by KIND/NAME of its child or parent.
#[derive(Debug, Args)]
pub struct Why {
    #[command(flatten)]
    recording: Recording,

    /// The line on which the recorded request starts, counted from 1; of the last file, if there are several
    #[arg(long, value_name = "N")]
    line: Option<u64>,

    /// The uid of the recorded request, where a line holds several
    #[arg(long, value_name = "UID", requires = "line")]
    uid: Option<String>,

    /// How the explanation is shown
    #[arg(short, long, value_enum, default_value_t)]
    output: ThingOutput,

    #[command(flatten)]
    place: Place,

    #[command(flatten)]
    connection: Connection,
}

impl Why {
    /// Runs the command.
    ///
    /// # Errors
    /// If a file cannot be read, or there is no request on that line.
    pub fn run(&self) -> Result<ExitCode> {
        match self.line {
            Some(line) => self.recorded(line),
            None => self.drift(),
        }
    }

    /// Explains a drift.
    fn drift(&self) -> Result<ExitCode> {
        let [file] = self.recording.files() else {
            bail!("name one drift; or, of recorded requests, the line with --line");
        };
        if !self.is_about_drift() {
            let file = file.display();
            bail!("{file} is a file: say which line of it with --line; a drift can be named drift/ID");
        }
        let name = file.to_str().context("a drift has a name of letters and digits")?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(drift::explain(name, &self.place, &self.connection, self.output))
    }

    /// Whether a drift is asked about, and not a recording.
    pub(crate) fn is_about_drift(&self) -> bool {
        let named = |file: &PathBuf| file != Path::new("-") && !file.exists();
        self.line.is_none() && matches!(self.recording.files(), [file] if named(file))
    }

    /// Explains a recorded request.
    fn recorded(&self, wanted: u64) -> Result<ExitCode> {
        let last = self.recording.last_file();
        let mut found = false;
        let mut out = anstream::stdout().lock();
        self.recording.replay(|file, line, fed| {
            if line != wanted || last.as_deref().is_some_and(|last| last != file) {
                return Ok(if line > wanted && found { Flow::Stop } else { Flow::GoOn });
            }
            if let (Fed::Judged(judged), Some(uid)) = (fed, &self.uid)
                && judged.uid != *uid
            {
                return Ok(Flow::GoOn);
            }
            found = true;
            match fed {
                Fed::Bad(why) => bail!("{file}:{line} could not be read: {why}"),
                Fed::Nothing => {
                    bail!("{file}:{line} tells nothing: a read, an early stage or a failed request")
                }
                Fed::Judged(judged) => match self.output {
                    ThingOutput::Table => tree(&mut out, judged)?,
                    ThingOutput::Json => output::json(&mut out, &document(file, line, judged))?,
                    ThingOutput::Yaml => output::yaml(&mut out, &document(file, line, judged))?,
                },
            }
            Ok(Flow::GoOn)
        })?;
        if !found {
            bail!("no request starts on line {wanted}: `kausality replay` lists the lines");
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn tree(out: &mut impl Write, judged: &Judged) -> io::Result<()> {
    let bold = Style::new().bold();
    writeln!(
        out,
        "{bold}{} {}{bold:#} by {}",
        judged.operation.as_str(),
        crate::replay::object(judged),
        plain(&judged.user)
    )?;
    let decision = match &judged.outcome {
        Outcome::Unjudged(why) => return writeln!(out, "└─ cannot be judged: {}", plain(why)),
        Outcome::Decided(decision) => decision,
    };
    for step in decision.explanation.steps() {
        let mark = if step.decided { " ◀ decided" } else { "" };
        writeln!(out, "├─ {bold}{:12}{bold:#} {}{mark}", step.rule, step.finding)?;
        for evidence in &step.evidence {
            writeln!(out, "│                · {evidence}")?;
        }
    }
    writeln!(out, "└─ {bold}{:12}{bold:#} {}", "verdict", verdict(decision))?;
    for warning in &decision.warnings {
        writeln!(out, "                 · warning: {warning}")?;
    }
    consequences(out, decision)
}

fn verdict(decision: &Decision) -> String {
    match &decision.verdict {
        kausality_core::decision::Verdict::Deny(denial) => {
            format!("deny ({} {}): {}", denial.code, denial.reason, denial.message)
        }
        verdict => format!("{} ({})", verdict.as_str(), decision.resolution),
    }
}

/// What follows: the changes, the trace, the annotations.
fn consequences(out: &mut impl Write, decision: &Decision) -> io::Result<()> {
    for effect in &decision.effects {
        if let Effect::Report(drift) = effect {
            writeln!(out, "\nWhat changed (drift {}):", drift.id())?;
            for change in &drift.diff.changes {
                writeln!(out, "  {change}")?;
                if let Some(handover) = drift.owners.iter().find(|owners| owners.path == change.path) {
                    writeln!(out, "    {}", plain(&handover.to_string()))?;
                }
            }
        }
    }
    if let Some(trace) = &decision.trace {
        writeln!(out, "\nTrace, origin first:")?;
        for (depth, hop) in trace.hops().iter().enumerate() {
            let generation = hop.generation.map(|it| format!(" generation {it}")).unwrap_or_default();
            let labels: String = hop.labels.iter().map(|(key, value)| format!(" {key}={value}")).collect();
            let labels = plain(&labels);
            let drift = if hop.drift { " (drift)" } else { "" };
            writeln!(
                out,
                "  {}{} {}{generation} by {} at {}{labels}{drift}",
                "  ".repeat(depth),
                plain(&hop.kind),
                plain(&hop.name),
                plain(&hop.user),
                hop.timestamp
            )?;
        }
    }
    if !decision.patch.is_empty() {
        writeln!(out, "\nAnnotations that Kausality would write:")?;
        for (key, value) in &decision.patch.annotations {
            match value {
                Some(value) => writeln!(out, "  {}: {}", plain(key), plain(&shorten(value, 100)))?,
                None => writeln!(out, "  {}: removed", plain(key))?,
            }
        }
    }
    Ok(())
}

fn document(file: &str, line: u64, judged: &Judged) -> serde_json::Value {
    json!({"request": Row::new(file, line, judged), "steps": steps(judged)})
}

fn steps(judged: &Judged) -> serde_json::Value {
    let steps = judged.decision().map(|decision| decision.explanation.steps()).unwrap_or_default();
    steps
        .iter()
        .map(|step| {
            json!({
                "rule": step.rule.as_str(), "finding": step.finding, "evidence": step.evidence,
                "decided": step.decided
            })
        })
        .collect()
}
