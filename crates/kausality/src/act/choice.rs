//! Which drifts a command acts on.

use anyhow::{Result, bail};
use clap::Args;

use super::Editor;
use crate::{
    ledger::{Entry, Filter, Place, Reference},
    span,
};

/// Which drifts are meant.
#[derive(Clone, Debug, Args)]
pub(crate) struct Choice {
    /// Drifts, by their ids or the beginnings of them, or by KIND/NAME of their child or parent
    #[arg(
        value_name = "ID|KIND/NAME",
        required_unless_present_any = ["all", "selector", "state", "parent", "child", "actor", "since"]
    )]
    names: Vec<String>,

    /// All open drifts there
    #[arg(long)]
    all: bool,

    #[command(flatten)]
    pub(crate) filter: Filter,

    #[command(flatten)]
    pub(crate) place: Place,
}

impl Choice {
    /// Whether nothing but a child and its parent is named, so that there need not be a drift yet.
    pub(crate) fn names_child_and_parent(&self) -> bool {
        self.names.is_empty() && self.filter.child.is_some() && self.filter.parent.is_some()
    }

    /// The drifts that are meant: those that are named, be they over or not, and open ones of objects that are named; all
    /// open ones, if nothing is.
    ///
    /// # Errors
    /// If they cannot be read, or a name means nothing or too much.
    pub(crate) async fn find(&self, editor: &Editor) -> Result<Vec<Entry>> {
        let ledger = &editor.ledger;
        let scope = self.place.scope(&ledger.client);
        let selection = self.filter.resolve(&ledger.kinds, false, span::now()).await?;
        let entries = ledger.read(&scope, self.filter.selector.as_deref()).await?;
        if self.names.is_empty() {
            return Ok(entries.into_iter().filter(|entry| selection.has(&entry.drift)).collect());
        }
        let mut found: Vec<Entry> = Vec::new();
        for name in &self.names {
            let reference = Reference::parse(name)?;
            let by_id = matches!(reference, Reference::Id(_));
            let wanted = reference.resolve(&ledger.kinds).await?;
            let mut meant = ledger.meant(&scope, entries.clone(), &wanted).await?;
            meant.retain(|entry| {
                if by_id { selection.would_have(&entry.drift) } else { selection.has(&entry.drift) }
            });
            if meant.is_empty() {
                bail!("no open drift of {name:?} is as the filters say");
            }
            for entry in meant {
                let is_new = |found: &Entry| {
                    found.drift.metadata.name != entry.drift.metadata.name
                        || found.drift.metadata.namespace != entry.drift.metadata.namespace
                };
                if found.iter().all(is_new) {
                    found.push(entry);
                }
            }
        }
        Ok(found)
    }
}
