//! Which drifts a command acts on.

use anyhow::{Result, bail};
use clap::Args;

use super::Editor;
use crate::{
    ledger::{Entry, Filter, Place},
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

/// What was found of the ledger.
#[derive(Debug)]
pub(crate) struct Found {
    /// The drifts that are meant.
    pub(crate) chosen: Vec<Entry>,
    /// All that was looked at.
    pub(crate) all: Vec<Entry>,
}

impl Choice {
    /// Whether nothing but a child and its parent is named, so that there need not be a drift yet. Whoever says anything
    /// about drifts means one.
    pub(crate) fn names_child_and_parent(&self) -> bool {
        let Filter { selector, state, parent, child, actor, since } = &self.filter;
        let about_drifts = !self.names.is_empty()
            || self.all
            || self.place.all_namespaces
            || selector.is_some()
            || !state.is_empty()
            || actor.is_some()
            || since.is_some();
        child.is_some() && parent.is_some() && !about_drifts
    }

    /// The drifts that are meant: those that are named, be they over or not, and open ones of objects that are named; all
    /// open ones, if nothing is.
    ///
    /// # Errors
    /// If they cannot be read, or a name means nothing or too much.
    pub(crate) async fn find(&self, editor: &Editor) -> Result<Vec<Entry>> {
        Ok(self.look(editor).await?.chosen)
    }

    /// The same, with all that was looked at.
    ///
    /// # Errors
    /// As [`Self::find`] has.
    pub(crate) async fn look(&self, editor: &Editor) -> Result<Found> {
        let ledger = &editor.ledger;
        let scope = self.place.scope(&ledger.client);
        let selection = self.filter.resolve(&ledger.kinds, false, span::now()).await?;
        let all = ledger.read(&scope, None).await?;
        if self.names.is_empty() {
            let chosen = all.iter().filter(|entry| selection.has(&entry.drift)).cloned().collect();
            return Ok(Found { chosen, all });
        }
        let mut chosen = Vec::new();
        for (name, found) in ledger.named(&self.names, &scope, &all, &selection).await? {
            if found.is_empty() {
                let filters = if self.filter.is_any() { " that is as the filters say" } else { "" };
                bail!("there is no open drift of {name:?} {scope}{filters}");
            }
            chosen.extend(found);
        }
        Ok(Found { chosen, all })
    }
}
