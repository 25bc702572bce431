//! Why a drift of the ledger was stopped.

use std::{
    io::{self, Write},
    process::ExitCode,
};

use anstyle::Style;
use anyhow::Result;
use jiff::Timestamp;
use kausality_api::{
    drift::{Drift, DriftState},
    text::plain,
};
use serde_json::json;

use crate::{
    connect::Connection,
    ledger::{
        Ledger, Place,
        reasons::{self, ParentView, Step},
    },
    output::{self, ThingOutput},
};

pub(super) async fn explain(
    name: &str,
    place: &Place,
    connection: &Connection,
    output: ThingOutput,
) -> Result<ExitCode> {
    let ledger = Ledger::new(connection.client("why").await?);
    let entry = ledger.one(place, name).await?;
    let parent = ParentView::of(&ledger, &entry.drift).await;
    let steps = reasons::steps(&entry.drift, &parent, Timestamp::now());
    let mut out = anstream::stdout().lock();
    let document = || json!({"drift": entry.object, "steps": steps, "verdict": verdict(&entry.drift)});
    match output {
        ThingOutput::Table => tree(&mut out, &entry.drift, &steps)?,
        ThingOutput::Json => output::json(&mut out, &document())?,
        ThingOutput::Yaml => output::yaml(&mut out, &document())?,
    }
    Ok(ExitCode::SUCCESS)
}

fn tree(out: &mut impl Write, drift: &Drift, steps: &[Step]) -> io::Result<()> {
    let bold = Style::new().bold();
    let child = &drift.spec.child;
    let separator = if child.namespace.is_empty() { "" } else { "/" };
    let operation = &drift.spec.request.operation;
    let what = format!("{operation} {} {}{separator}{}", child.kind, child.namespace, child.name);
    writeln!(out, "{bold}{}{bold:#} by {}", plain(&what), plain(&drift.spec.request.user))?;
    for step in steps {
        let mark = if step.decided { " ◀ decided" } else { "" };
        writeln!(out, "├─ {bold}{:12}{bold:#} {}{mark}", step.rule, step.finding)?;
        for evidence in &step.evidence {
            writeln!(out, "│                · {evidence}")?;
        }
    }
    writeln!(out, "└─ {bold}{:12}{bold:#} {}", "verdict", plain(&verdict(drift)))?;
    writeln!(out, "\nWhat changed (drift {}):", plain(&drift.metadata.name))?;
    for change in &drift.spec.changes {
        let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "(absent)".to_owned());
        let line = format!("{}: {} → {}", change.path, value(&change.old), value(&change.new));
        writeln!(out, "  {}", plain(&line))?;
    }
    if drift.spec.more_changes > 0 {
        writeln!(out, "  … and {} more fields", drift.spec.more_changes)?;
    }
    writeln!(out, "\nFreeze, rejections and approvals are shown as the parent has them now.")
}

fn verdict(drift: &Drift) -> String {
    let resolution = drift.status.resolution.as_ref();
    match drift.status.state {
        DriftState::Blocked => "deny: nothing let it pass".to_owned(),
        DriftState::Rejected => "deny: it was rejected".to_owned(),
        DriftState::Passed => "warn: it passed in log mode".to_owned(),
        DriftState::Resolved => {
            let why = resolution.map(|it| format!(" ({}): {}", it.reason.as_str(), it.message));
            format!("none any more: it is resolved{}", why.unwrap_or_default())
        }
    }
}
