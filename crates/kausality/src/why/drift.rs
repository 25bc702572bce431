//! Why a drift of the ledger was stopped: what the rules found then, and what they say now.

use std::{
    io::{self, Write},
    process::ExitCode,
};

use anstyle::Style;
use anyhow::Result;
use jiff::Timestamp;
use kausality_api::{
    drift::{Drift, DriftStep},
    text::plain,
};
use serde_json::json;

use crate::{
    connect::Connection,
    ledger::{Ledger, Place, present::Present, reasons},
    output::{self, ThingOutput},
    span,
};

pub(super) async fn explain(
    name: &str,
    place: &Place,
    connection: &Connection,
    output: ThingOutput,
) -> Result<ExitCode> {
    let ledger = Ledger::new(connection.client("why").await?);
    let entry = ledger.one(place, name).await?;
    let drift = &entry.drift;
    let at = Timestamp::now();
    let now = Present::of(&ledger, drift, at).await.steps(drift, at);
    let mut out = anstream::stdout().lock();
    let document = || {
        let (steps, verdict) = (reasons::then(drift), reasons::verdict(drift));
        json!({"drift": entry.object, "steps": steps, "verdict": verdict, "now": now})
    };
    match output {
        ThingOutput::Table => page(&mut out, drift, &now)?,
        ThingOutput::Json => output::json(&mut out, &document())?,
        ThingOutput::Yaml => output::yaml(&mut out, &document())?,
    }
    Ok(ExitCode::SUCCESS)
}

fn page(out: &mut impl Write, drift: &Drift, now: &[DriftStep]) -> io::Result<()> {
    let bold = Style::new().bold();
    let child = &drift.spec.child;
    let separator = if child.namespace.is_empty() { "" } else { "/" };
    let operation = &drift.spec.request.operation;
    let what = format!("{operation} {} {}{separator}{}", child.kind, child.namespace, child.name);
    writeln!(out, "{bold}{}{bold:#} by {}", plain(&what), plain(&drift.spec.request.user))?;
    let mut then = reasons::then(drift);
    let verdict = plain(&reasons::verdict(drift)).into_owned();
    then.push(DriftStep { rule: "verdict".to_owned(), finding: verdict, ..DriftStep::default() });
    let seen = span::to_second(drift.status.last_seen);
    match reasons::are_recorded(drift) {
        true => writeln!(out, "\nThen, when it was last seen at {seen}:")?,
        false => writeln!(out, "\nThen, as far as its entry tells, which is older than such records:")?,
    }
    tree(out, &then)?;
    writeln!(out, "\nWhat changed (drift {}):", plain(&drift.metadata.name))?;
    for change in &drift.spec.changes {
        let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "(absent)".to_owned());
        let line = format!("{}: {} → {}", change.path, value(&change.old), value(&change.new));
        writeln!(out, "  {}", plain(&line))?;
    }
    if drift.spec.more_changes > 0 {
        writeln!(out, "  … and {} more fields", drift.spec.more_changes)?;
    }
    writeln!(out, "\nNow:")?;
    tree(out, now)
}

fn tree(out: &mut impl Write, steps: &[DriftStep]) -> io::Result<()> {
    let bold = Style::new().bold();
    for (place, step) in steps.iter().enumerate() {
        let (branch, trunk) = if place + 1 == steps.len() { ("└─", " ") } else { ("├─", "│") };
        let mark = if step.decided { " ◀ decided" } else { "" };
        writeln!(out, "{branch} {bold}{:12}{bold:#} {}{mark}", step.rule, step.finding)?;
        for evidence in &step.evidence {
            writeln!(out, "{trunk}                · {evidence}")?;
        }
    }
    Ok(())
}
