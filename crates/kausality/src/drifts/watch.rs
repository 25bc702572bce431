//! The list that goes on: each change of a drift is a line more.

use std::{collections::BTreeSet, io::Write};

use anyhow::{Result, bail};
use jiff::Timestamp;
use kausality_api::{
    drift::{Drift, cause::DriftKey},
    text::plain,
};
use serde_json::Value;
use tokio::sync::mpsc;

use super::table::Layout;
use crate::{
    ledger::{self, Entry, Ledger, News, Scope, Selection, Wanted},
    output::{self, Cell, ListOutput, Widths},
    span,
};

/// What is followed, and how it is shown.
pub(super) struct Watch {
    pub(super) output: ListOutput,
    pub(super) layout: Layout,
    pub(super) selection: Selection,
    pub(super) wanted: Vec<Wanted>,
}

/// What has been shown, and not as over or gone.
#[derive(Default)]
struct Shown {
    drifts: BTreeSet<DriftKey>,
    widths: Option<Widths>,
}

impl Watch {
    /// Shows changes for ever.
    ///
    /// # Errors
    /// If drifts cannot be read to begin with, or nobody reads along.
    pub(super) async fn follow(&self, ledger: &Ledger, scope: &Scope) -> Result<()> {
        // What is wrong to begin with is told, and not tried for ever.
        let known = ledger.known(scope, None).await?;
        let mut shown = Shown::default();
        let entries: Vec<&Entry> = known.entries.iter().filter(|entry| self.has(&entry.drift)).collect();
        self.begin(&entries, &mut shown)?;
        let (news, mut received) = mpsc::unbounded_channel();
        tokio::select! {
            () = ledger::follow(ledger, known, news) => bail!("the API server does not tell any more"),
            ended = self.tell(&mut received, &mut shown) => ended,
        }
    }

    async fn tell(&self, received: &mut mpsc::UnboundedReceiver<News>, shown: &mut Shown) -> Result<()> {
        let mut failing = false;
        while let Some(news) = received.recv().await {
            match news {
                News::Is(entry) => self.change(&entry, shown)?,
                News::Gone(entry) => self.removal(&entry, shown)?,
                News::Unreadable(why) => anstream::eprintln!("note: {}", plain(&why)),
                News::Lost(why) => {
                    // It is tried again; one word about it is enough.
                    if !failing {
                        anstream::eprintln!("note: {}: it is tried again", plain(&why));
                    }
                    failing = true;
                }
                News::Back => {
                    if failing {
                        anstream::eprintln!("note: connected again");
                    }
                    failing = false;
                }
            }
        }
        Ok(())
    }

    fn has(&self, drift: &Drift) -> bool {
        self.selection.has(drift) && self.is_wanted(drift)
    }

    fn is_wanted(&self, drift: &Drift) -> bool {
        let is_it = |wanted: &Wanted| match wanted {
            Wanted::Id(id) => drift.metadata.name.starts_with(id),
            Wanted::Object(object) => object.is_child(drift) || object.is_parent(drift),
        };
        self.wanted.is_empty() || self.wanted.iter().any(is_it)
    }

    fn begin(&self, entries: &[&Entry], shown: &mut Shown) -> Result<()> {
        let mut out = anstream::stdout().lock();
        if matches!(self.output, ListOutput::Table | ListOutput::Wide) {
            let drifts: Vec<&Drift> = entries.iter().map(|entry| &entry.drift).collect();
            shown.widths = Some(self.layout.table(&drifts, Timestamp::now()).write(&mut out)?);
        } else {
            for entry in entries {
                self.line(&mut out, entry, None, shown)?;
            }
        }
        shown.drifts.extend(entries.iter().map(|entry| DriftKey::of(&entry.drift)));
        out.flush()?;
        Ok(())
    }

    fn change(&self, entry: &Entry, shown: &mut Shown) -> Result<()> {
        let key = DriftKey::of(&entry.drift);
        if self.has(&entry.drift) {
            shown.drifts.insert(key);
        } else if !shown.drifts.remove(&key) {
            return Ok(());
        }
        // What was shown as open is shown once more when it is over.
        let mut out = anstream::stdout().lock();
        self.line(&mut out, entry, None, shown)?;
        out.flush()?;
        Ok(())
    }

    fn removal(&self, entry: &Entry, shown: &mut Shown) -> Result<()> {
        if !shown.drifts.remove(&DriftKey::of(&entry.drift)) {
            return Ok(());
        }
        let mut gone = entry.clone();
        // Programs have no column to look at.
        if let Some(metadata) = gone.object.get_mut("metadata").and_then(Value::as_object_mut) {
            let now = || span::now().to_string().into();
            metadata.entry("deletionTimestamp").or_insert_with(now);
        }
        let mut out = anstream::stdout().lock();
        self.line(&mut out, &gone, Some("Deleted"), shown)?;
        out.flush()?;
        Ok(())
    }

    fn line(&self, out: &mut impl Write, entry: &Entry, state: Option<&str>, shown: &Shown) -> Result<()> {
        match self.output {
            ListOutput::Json => {
                serde_json::to_writer(&mut *out, &entry.object)?;
                writeln!(out)?;
            }
            ListOutput::Yaml => {
                writeln!(out, "---")?;
                output::yaml(out, &entry.object)?;
            }
            ListOutput::Name => writeln!(out, "{}", entry.full_name())?,
            ListOutput::Table | ListOutput::Wide => {
                let mut row = self.layout.row(&entry.drift, Timestamp::now());
                let place = usize::from(self.layout.namespaces) + 1;
                if let (Some(state), Some(cell)) = (state, row.get_mut(place)) {
                    *cell = Cell::new(state);
                }
                if let Some(widths) = &shown.widths {
                    widths.row(out, &row)?;
                }
            }
        }
        Ok(())
    }
}
