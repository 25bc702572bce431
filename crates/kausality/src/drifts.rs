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
        let entries = self.meant(ledger, &scope).await?;
        self.print(&mut anstream::stdout().lock(), &entries, &scope, Timestamp::now())?;
        let open = entries.iter().any(|entry| entry.drift.status.state.is_open());
        Ok(ExitCode::from(if self.exit_code && open { OPEN } else { 0 }))
    }

    /// The drifts that are meant.
    async fn meant(&self, ledger: &Ledger, scope: &Scope) -> Result<Vec<Entry>> {
        let selection = self.filter.resolve(&ledger.kinds, self.all, span::now()).await?;
        let entries = ledger.read(scope, self.filter.selector.as_deref()).await?;
        if self.names.is_empty() {
            return Ok(entries.into_iter().filter(|entry| selection.has(&entry.drift)).collect());
        }
        let mut found: Vec<Entry> = Vec::new();
        for wanted in self.wanted(ledger).await? {
            // Who names a drift wants to see it, be it over or not.
            let by_id = matches!(wanted, Wanted::Id(_));
            let meant = match &wanted {
                Wanted::Id(_) => ledger.meant(scope, entries.clone(), &wanted).await?,
                Wanted::Object(_) => wanted.find(entries.clone())?,
            };
            for entry in meant {
                let shown =
                    if by_id { selection.would_have(&entry.drift) } else { selection.has(&entry.drift) };
                if shown && !found.iter().any(|known| known.drift.metadata == entry.drift.metadata) {
                    found.push(entry);
                }
            }
        }
        Ok(found)
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
        if entries.is_empty() {
            let open = if self.all { "" } else { "open " };
            anstream::eprintln!("No {open}drifts {scope}.");
            return Ok(());
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
        let watch = watch::Watch {
            output: self.output,
            layout: self.layout(&scope),
            selection,
            wanted,
            labels: self.filter.selector.clone(),
        };
        watch.follow(ledger, &scope).await?;
        Ok(ExitCode::SUCCESS)
    }
}
