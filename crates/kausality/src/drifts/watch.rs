//! The list that goes on: each change of a drift is a line more.

use std::{collections::BTreeMap, io::Write};

use anyhow::{Result, bail};
use jiff::Timestamp;
use kausality_api::{
    drift::{Drift, cause::DriftKey},
    text::plain,
};
use tokio::sync::mpsc;

use super::table::Layout;
use crate::{
    ledger::{self, Entry, Ledger, News, Scope, Selection, Wanted},
    output::{self, Cell, ListOutput, Widths},
};

/// What is followed, and how it is shown.
pub(super) struct Watch {
    pub(super) output: ListOutput,
    pub(super) layout: Layout,
    pub(super) selection: Selection,
    pub(super) wanted: Vec<Wanted>,
    pub(super) labels: Option<String>,
}

/// What has been shown: the versions of drifts.
#[derive(Default)]
struct Shown {
    versions: BTreeMap<DriftKey, Option<String>>,
    widths: Option<Widths>,
}

impl Watch {
    /// Shows changes for ever.
    ///
    /// # Errors
    /// If drifts cannot be read to begin with, or nobody reads along.
    pub(super) async fn follow(&self, ledger: &Ledger, scope: &Scope) -> Result<()> {
        // What is wrong to begin with is told, and not tried for ever.
        let known = ledger.known(scope, self.labels.as_deref()).await?;
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
                News::Is(entry) => self.change(&entry, false, shown)?,
                News::Gone(entry) => self.change(&entry, true, shown)?,
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
        for Entry { drift, .. } in entries {
            shown.versions.insert(DriftKey::of(drift), drift.metadata.resource_version.clone());
        }
        out.flush()?;
        Ok(())
    }

    fn change(&self, entry: &Entry, gone: bool, shown: &mut Shown) -> Result<()> {
        let drift = &entry.drift;
        let key = DriftKey::of(drift);
        let before = shown.versions.get(&key);
        // A watch that begins again tells of everything again.
        if !gone && before == Some(&drift.metadata.resource_version) {
            return Ok(());
        }
        // What was shown as open is shown once more when it is over.
        if before.is_none() && (gone || !self.has(drift)) {
            return Ok(());
        }
        if gone || !self.has(drift) {
            shown.versions.remove(&key);
        } else {
            shown.versions.insert(key, drift.metadata.resource_version.clone());
        }
        let mut out = anstream::stdout().lock();
        self.line(&mut out, entry, gone.then_some("Deleted"), shown)?;
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
