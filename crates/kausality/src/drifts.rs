//! `kausality drifts`: the ledger as a list.

use std::{io::Write, process::ExitCode};

use anyhow::Result;
use clap::Args;
use jiff::Timestamp;
use kausality_api::drift::{Drift, cause::causes};
use serde_json::Value;

use crate::{
    connect::Connection,
    ledger::{Entry, Filter, Ledger, Place, Reference, Scope, Wanted},
    output::{self, ListOutput},
    span,
};

mod groups;
mod table;
mod watch;

pub(crate) use table::style;

/// List drifts: changes by controllers that nobody asked for, and that nothing let pass.
#[derive(Debug, Args)]
pub struct Drifts {
    /// Only these, by their ids or the beginnings of them, or by KIND/NAME of their child or parent
    #[arg(value_name = "ID|KIND/NAME")]
    names: Vec<String>,

    #[command(flatten)]
    place: Place,

    #[command(flatten)]
    filter: Filter,

    /// Show drifts that are over, too
    #[arg(long)]
    all: bool,

    /// Go on showing what changes
    #[arg(short, long, conflicts_with_all = ["group", "exit_code"])]
    watch: bool,

    /// One line for each cause: what one actor did in a row
    #[arg(long)]
    group: bool,

    /// Exit with 3 if there are open ones
    #[arg(long)]
    exit_code: bool,

    /// How drifts are shown
    #[arg(short, long, value_enum, default_value_t)]
    output: ListOutput,

    #[command(flatten)]
    connection: Connection,
}

/// What is listed.
struct Listed {
    entries: Vec<Entry>,
    /// What is said instead, if that is nothing.
    nothing: String,
}

/// That there are open drifts, for scripts.
const OPEN: u8 = 3;

impl Drifts {
    /// Runs the command.
    ///
    /// # Errors
    /// If drifts cannot be read, or a name means nothing or too much.
    pub fn run(&self) -> Result<ExitCode> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let ledger = Ledger::new(self.connection.client("drifts").await?);
            if self.watch { self.follow(&ledger).await } else { self.list(&ledger).await }
        })
    }

    async fn list(&self, ledger: &Ledger) -> Result<ExitCode> {
        let scope = self.place.scope(&ledger.client);
        let Listed { entries, nothing } = self.meant(ledger, &scope).await?;
        if entries.is_empty() && matches!(self.output, ListOutput::Table | ListOutput::Wide) {
            anstream::eprintln!("{nothing}");
        } else {
            self.print(&mut anstream::stdout().lock(), &entries, &scope, Timestamp::now())?;
        }
        let open = entries.iter().any(|entry| entry.drift.status.state.is_open());
        Ok(ExitCode::from(if self.exit_code && open { OPEN } else { 0 }))
    }

    /// The drifts that are meant.
    async fn meant(&self, ledger: &Ledger, scope: &Scope) -> Result<Listed> {
        let selection = self.filter.resolve(&ledger.kinds, self.all, span::now()).await?;
        let entries = ledger.read(scope, None).await?;
        let is_counted = |entry: &&Entry| selection.resolved || entry.drift.status.state.is_open();
        let nothing = self.nothing(scope, selection.resolved, entries.iter().filter(is_counted).count());
        if self.names.is_empty() {
            let entries = entries.into_iter().filter(|entry| selection.has(&entry.drift)).collect();
            return Ok(Listed { entries, nothing });
        }
        let found = ledger.named(&self.names, scope, &entries, &selection).await?;
        Ok(Listed { entries: found.into_iter().flat_map(|(_, found)| found).collect(), nothing })
    }

    /// What is said where nothing is found, though there are so many drifts that no filter or name means.
    fn nothing(&self, scope: &Scope, resolved: bool, others: usize) -> String {
        let open = if resolved { "" } else { "open " };
        if others == 0 || !self.filter.is_any() && self.names.is_empty() {
            return format!("No {open}drifts {scope}.");
        }
        let others = match (others, resolved) {
            (1, false) => "1 other is open".to_owned(),
            (1, true) => "There is 1 other".to_owned(),
            (_, false) => format!("{others} others are open"),
            (_, true) => format!("There are {others} others"),
        };
        format!("No {open}drifts {scope} match. {others}.")
    }

    async fn wanted(&self, ledger: &Ledger) -> Result<Vec<Wanted>> {
        let mut wanted = Vec::new();
        for name in &self.names {
            wanted.push(Reference::parse(name)?.resolve(&ledger.kinds).await?);
        }
        Ok(wanted)
    }

    fn print(&self, out: &mut impl Write, entries: &[Entry], scope: &Scope, now: Timestamp) -> Result<()> {
        if self.group {
            let causes = causes(entries.iter().map(|entry| &entry.drift));
            match self.output {
                ListOutput::Json => return output::json(out, &causes),
                ListOutput::Yaml => return output::yaml(out, &causes),
                _ => {}
            }
            if !causes.is_empty() {
                groups::table(&causes, self.output == ListOutput::Wide, now).write(out)?;
                return Ok(());
            }
        }
        let objects = || entries.iter().map(|entry| entry.object.clone()).collect::<Vec<Value>>();
        match self.output {
            ListOutput::Json => return output::json(out, &output::list(objects())),
            ListOutput::Yaml => return output::yaml(out, &output::list(objects())),
            ListOutput::Name => {
                for entry in entries {
                    writeln!(out, "{}", entry.full_name())?;
                }
                return Ok(());
            }
            ListOutput::Table | ListOutput::Wide => {}
        }
        let drifts: Vec<&Drift> = entries.iter().map(|entry| &entry.drift).collect();
        self.layout(scope).table(&drifts, now).write(out)?;
        Ok(())
    }

    fn layout(&self, scope: &Scope) -> table::Layout {
        table::Layout { namespaces: *scope == Scope::Everywhere, wide: self.output == ListOutput::Wide }
    }

    /// Shows the list, and then whatever changes, until it is stopped.
    async fn follow(&self, ledger: &Ledger) -> Result<ExitCode> {
        let scope = self.place.scope(&ledger.client);
        let selection = self.filter.resolve(&ledger.kinds, self.all, span::now()).await?;
        let wanted = self.wanted(ledger).await?;
        let watch = watch::Watch { output: self.output, layout: self.layout(&scope), selection, wanted };
        watch.follow(ledger, &scope).await?;
        Ok(ExitCode::SUCCESS)
    }
}
