//! `kausality show`: everything about one drift.

use std::{
    io::{self, Write},
    process::ExitCode,
};

use anstyle::{AnsiColor, Style};
use anyhow::Result;
use clap::Args;
use jiff::Timestamp;
use kausality_api::{
    drift::{Delivery, Drift, DriftState, DriftStep, FieldChange},
    text::{plain, shorten},
};
use serde_json::json;

use crate::{
    act::ParentName,
    connect::Connection,
    drifts::style,
    ledger::{
        Entry, Ledger, Place,
        present::{ParentView, Present},
        reasons,
    },
    output::{self, ThingOutput, program},
    trace::hops::{hop, when},
};

/// Show everything about one drift, and how to decide about it.
#[derive(Debug, Args)]
pub struct Show {
    /// The drift, by its id or the beginning of it, or by KIND/NAME of its child or parent
    #[arg(value_name = "ID|KIND/NAME")]
    name: String,

    #[command(flatten)]
    place: Place,

    /// How it is shown
    #[arg(short, long, value_enum, default_value_t)]
    output: ThingOutput,

    #[command(flatten)]
    connection: Connection,
}

impl Show {
    /// Runs the command.
    ///
    /// # Errors
    /// If there is no such drift, or there are several.
    pub fn run(&self) -> Result<ExitCode> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let ledger = Ledger::new(self.connection.client("show").await?);
            let Entry { drift, mut object } = ledger.one(&self.place, &self.name).await?;
            let now = Timestamp::now();
            let present = Present::of(&ledger, &drift, now).await;
            object["now"] = json!(present.steps(&drift, now));
            let mut out = anstream::stdout().lock();
            match self.output {
                ThingOutput::Table => {
                    let context =
                        Context { program: program(), namespace: ledger.client.default_namespace() };
                    page(&mut out, &drift, &present, &context, now)?;
                }
                ThingOutput::Json => output::json(&mut out, &object)?,
                ThingOutput::Yaml => output::yaml(&mut out, &object)?,
            }
            Ok(ExitCode::SUCCESS)
        })
    }
}

/// What commands that are shown depend on.
struct Context<'a> {
    /// What the program is called.
    program: &'a str,
    /// The namespace that need not be named.
    namespace: &'a str,
}

fn page(
    out: &mut impl Write,
    drift: &Drift,
    present: &Present,
    context: &Context<'_>,
    now: Timestamp,
) -> io::Result<()> {
    head(out, drift, now)?;
    match reasons::are_recorded(drift) {
        true => section(out, "Why, as the rules had it when it was last seen")?,
        false => section(out, "Why, as far as the entry tells")?,
    }
    steps(out, &reasons::then(drift))?;
    changes(out, drift)?;
    if let Some(trace) = drift.spec.trace.as_ref().filter(|trace| !trace.hops().is_empty()) {
        section(out, "Trace of the parent, origin first")?;
        for (depth, one) in trace.hops().iter().enumerate() {
            writeln!(out, "  {}{}", "  ".repeat(depth), hop(one, now))?;
        }
    }
    decided(out, drift, now)?;
    section(out, "What holds now")?;
    steps(out, &present.steps(drift, now))?;
    deliveries(out, &drift.status.deliveries, now)?;
    commands(out, drift, &present.parent, context)
}

fn steps(out: &mut impl Write, steps: &[DriftStep]) -> io::Result<()> {
    for step in steps {
        let mark = if step.decided { " ◀ decided" } else { "" };
        writeln!(out, "  {:9} {}{mark}", step.rule, step.finding)?;
        for line in &step.evidence {
            writeln!(out, "            · {line}")?;
        }
    }
    Ok(())
}

fn section(out: &mut impl Write, title: &str) -> io::Result<()> {
    let bold = Style::new().bold();
    writeln!(out, "\n{bold}{title}{bold:#}")
}

fn head(out: &mut impl Write, drift: &Drift, now: Timestamp) -> io::Result<()> {
    let Drift { kind, metadata, spec, status, .. } = drift;
    let (bold, state) = (Style::new().bold(), style(status.state));
    let (kind, name) = (plain(kind), plain(&metadata.name));
    writeln!(out, "{bold}{kind} {name}{bold:#}  {state}{}{state:#}", status.state.as_str())?;
    let child = &spec.child;
    let separator = if child.namespace.is_empty() { "" } else { "/" };
    let generation = child.generation.map(|it| format!(", generation {it}")).unwrap_or_default();
    let what = format!(
        "{} of {} {}{separator}{} ({}{generation})",
        spec.request.operation, child.kind, child.namespace, child.name, child.api_version
    );
    let manager = spec.request.field_manager.as_ref().map(|manager| format!(", as {manager}"));
    let who = format!("{}{}", spec.request.user, manager.unwrap_or_default());
    let times = match status.count {
        1 => "once".to_owned(),
        count => format!("{count} times, last {}", when(status.last_seen, now)),
    };
    let generation = spec.parent.generation.map(|it| format!(", generation {it}")).unwrap_or_default();
    let parent = ParentName::from(&spec.parent);
    let parent = format!("{parent} ({}{generation})", spec.parent.api_version);
    let denied = spec.denied_by.as_ref().map(|rule| ("denied by", format!("{rule}: not a drift")));
    let facts = [
        ("what", what),
        ("who", who),
        ("when", format!("first {}, seen {times}", when(status.first_seen, now))),
        ("parent", parent),
    ];
    for (label, text) in facts.into_iter().chain(denied) {
        writeln!(out, "  {label:9} {}", plain(&text))?;
    }
    Ok(())
}

/// Characters of a value that are shown.
const MAX_VALUE: usize = 200;

fn changes(out: &mut impl Write, drift: &Drift) -> io::Result<()> {
    section(out, "What changed")?;
    if drift.spec.changes.is_empty() {
        writeln!(out, "  {}", plain(&drift.spec.summary.change))?;
    }
    for change in &drift.spec.changes {
        field(out, change)?;
    }
    match drift.spec.more_changes {
        0 => Ok(()),
        more => writeln!(out, "  … and {more} more fields"),
    }
}

fn field(out: &mut impl Write, change: &FieldChange) -> io::Result<()> {
    let (red, green) = (AnsiColor::Red.on_default(), AnsiColor::Green.on_default());
    let value = |value: &Option<String>| match value {
        Some(text) => plain(&shorten(text, MAX_VALUE)).into_owned(),
        None => "(absent)".to_owned(),
    };
    let (old, new) = (value(&change.old), value(&change.new));
    writeln!(out, "  {}: {red}{old}{red:#} → {green}{new}{green:#}", plain(&change.path))?;
    match (&change.old_owner, &change.new_owner) {
        (None, None) => Ok(()),
        (old, new) => {
            let name = |owner: &Option<String>| owner.as_deref().map_or("nobody".into(), plain).into_owned();
            writeln!(out, "    owned by {}, then by {}", name(old), name(new))
        }
    }
}

/// What people have decided, as the ledger has it.
fn decided(out: &mut impl Write, drift: &Drift, now: Timestamp) -> io::Result<()> {
    section(out, "What has been decided")?;
    let mut lines = Vec::new();
    if let Some(decision) = &drift.status.decision {
        let by = decision.by.as_deref().unwrap_or("an unnamed user");
        let mode = decision.mode.map(|mode| format!(" ({})", mode.as_str())).unwrap_or_default();
        let why = decision.reason.as_deref().map(|why| format!(": {why}")).unwrap_or_default();
        lines.push(format!("{}{mode} by {by} {}{why}", decision.action, when(decision.at, now)));
    }
    if let Some(resolution) = &drift.status.resolution {
        let by = resolution.by.as_deref().map(|by| format!(" by {by}")).unwrap_or_default();
        let at = when(resolution.at, now);
        lines.push(format!("resolved{by} {at}: {}, {}", resolution.reason.as_str(), resolution.message));
    }
    if lines.is_empty() {
        lines.push("nothing yet".to_owned());
    }
    lines.iter().try_for_each(|line| writeln!(out, "  {}", plain(line)))
}

fn deliveries(out: &mut impl Write, deliveries: &[Delivery], now: Timestamp) -> io::Result<()> {
    if deliveries.is_empty() {
        return Ok(());
    }
    section(out, "Who has been told")?;
    for delivery in deliveries {
        let mut parts = Vec::new();
        parts.extend(delivery.detected.map(|at| format!("of the drift {}", when(at, now))));
        parts.extend(delivery.resolved.map(|at| format!("of its end {}", when(at, now))));
        if parts.is_empty() {
            parts.push("nothing yet".to_owned());
        }
        parts.extend(delivery.error.as_deref().map(|error| format!("failed: {}", shorten(error, MAX_VALUE))));
        writeln!(out, "  {}: {}", plain(&delivery.endpoint), plain(&parts.join(", ")))?;
    }
    Ok(())
}

/// What to type, for drifts that can still be decided.
fn commands(
    out: &mut impl Write,
    drift: &Drift,
    parent: &ParentView,
    context: &Context<'_>,
) -> io::Result<()> {
    let open = drift.status.state.is_open();
    if !open || matches!(parent, ParentView::Gone | ParentView::Changed(_)) {
        return Ok(());
    }
    section(out, "What you can do")?;
    let namespace = &drift.metadata.namespace;
    let place = match namespace.as_str() {
        "" => " --cluster".to_owned(),
        namespace if namespace == context.namespace => String::new(),
        namespace => format!(" -n {namespace}"),
    };
    let (program, id) = (context.program, &drift.metadata.name);
    let parent = &drift.spec.parent;
    let object = ParentName::from(parent).full_name();
    let parent_place = match parent.namespace.as_str() {
        "" => "",
        _ => place.as_str(),
    };
    // What has passed is not decided about any more: what comes next is.
    let [once, exactly, denied] = match drift.status.state {
        DriftState::Passed => [
            "let the next change of the child pass, once",
            "let exactly this change pass once, if it comes again",
            "deny it if it comes again, whatever approves it",
        ],
        _ => {
            ["let the child change once", "let exactly this change pass once", "deny it whatever approves it"]
        }
    };
    let mut lines = vec![
        (format!("{program} approve {id}{place}"), once),
        (format!("{program} approve {id}{place} --exact"), exactly),
        (format!("{program} except {id}{place}"), "make a rule of it, so that nobody is asked again"),
        (format!("{program} reject {id}{place} --reason '…'"), denied),
        (
            format!("{program} freeze {object}{parent_place} --reason '…'"),
            "deny every change of its children",
        ),
    ];
    if drift.status.state == DriftState::Passed {
        writeln!(out, "  this change has passed already: what you decide is for the next one")?;
    }
    if drift.spec.denied_by.is_some() {
        let user = plain(&drift.spec.request.user).into_owned();
        writeln!(out, "  anybody but {user} can approve exactly this change")?;
        lines.retain(|(command, _)| !command.ends_with(" --exact") && !command.contains(" except "));
        if let Some((_, what)) = lines.first_mut() {
            *what = exactly;
        }
    }
    if drift.is_barred() {
        writeln!(out, "  change the rule that denies it: no approval lets it pass while that holds")?;
        lines.retain(|(command, _)| !command.contains(" approve ") && !command.contains(" except "));
    }
    let width = lines.iter().map(|(command, _)| command.chars().count()).max().unwrap_or_default();
    for (command, what) in lines {
        writeln!(out, "  {}  {what}", plain(&format!("{command:width$}")))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
