//! `kausality reject`: stops drifts, whatever approves them.

use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::Args;
use jiff::Timestamp;
use kausality_api::{
    annotation::REJECTIONS,
    approval::{Entries, Rejection},
};
use kausality_core::{Summary, entries, standing::Standing};

use crate::{
    act::{Account, Acting, Choice, Deed, Done, Editor, Needs, act_on_drifts, remedy},
    approve::reason,
    connect::Connection,
    ledger::Entry,
    span,
};

/// Stop drifts, whatever approves them: in log mode, too.
///
/// An entry is added to the annotation kausality.io/rejections of the parent, in your name. It holds until the parent's
/// intent changes.
#[derive(Debug, Args)]
pub struct Reject {
    #[command(flatten)]
    choice: Choice,

    /// Why: whoever's change is denied reads it
    #[arg(long, value_name = "TEXT", required = true, value_parser = reason)]
    reason: String,

    /// When the rejection becomes void: in 2h, 7d, or at 2026-01-25T12:00:00Z
    #[arg(long, value_name = "TIME", value_parser = span::until)]
    expires: Option<Timestamp>,

    /// Reject exactly the change that was seen, and no other of the same child
    #[arg(long)]
    exact: bool,

    /// Let it hold after the parent's intent has changed, too
    #[arg(long)]
    always: bool,

    /// Reject what is resolved already, too
    #[arg(long)]
    force: bool,

    #[command(flatten)]
    acting: Acting,

    #[command(flatten)]
    connection: Connection,
}

impl Reject {
    /// Runs the command.
    ///
    /// # Errors
    /// If drifts are not found, or nothing may be done.
    pub fn run(&self) -> Result<ExitCode> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let editor = Editor::new(self.connection.client("reject").await?).await?;
            let deed = Rejecting {
                reason: self.reason.clone(),
                expires: self.expires,
                exact: self.exact,
                always: self.always,
                force: self.force,
                by: editor.user.clone(),
            };
            let entries = self.choice.find(&editor).await?;
            if entries.is_empty() {
                bail!("there is no such open drift {}", self.choice.place.scope(&editor.ledger.client));
            }
            let mut account = Account::new(deed.verb(), &editor.user, &self.acting, anstream::stdout());
            act_on_drifts(&editor, &deed, &entries, &self.acting, &mut account).await?;
            account.end()
        })
    }
}

/// A rejection in the making.
#[derive(Clone, Debug)]
struct Rejecting {
    reason: String,
    expires: Option<Timestamp>,
    exact: bool,
    always: bool,
    force: bool,
    by: String,
}

impl Deed for Rejecting {
    fn verb(&self) -> &'static str {
        "reject"
    }

    fn needs(&self) -> Needs {
        if self.force { Needs::Current } else { Needs::Open }
    }

    fn apply(&self, parent: &mut Summary, entry: &Entry, now: Timestamp) -> Result<Done, String> {
        let spec = &entry.drift.spec;
        let rejection = Rejection {
            api_version: spec.child.api_version.clone(),
            kind: spec.child.kind.clone(),
            namespace: entries::bound(&parent.id, &spec.child.namespace),
            name: spec.child.name.clone(),
            generation: parent.generation.filter(|_| !self.always),
            reason: self.reason.clone(),
            diff: self.exact.then(|| spec.diff.clone()),
            expires: self.expires,
            by: Some(self.by.clone()),
        };
        let entries = Entries::<Rejection>::decode(parent.annotation(REJECTIONS).unwrap_or("[]"));
        if !entries.is_list() {
            return Err(format!(
                "{REJECTIONS} of {} is no JSON list, and blocks every drift as it is: correct it, or remove it with {}",
                parent.id,
                remedy(parent)
            ));
        }
        let says = |entry: &Rejection| Rejection { by: None, ..entry.clone() };
        if entries.valid().any(|(_, entry)| says(entry) == says(&rejection)) {
            return Ok(Done::new("is rejected already"));
        }
        let approved = Standing::of(spec, parent, now).approval().is_some();
        parent.annotate(REJECTIONS, Some(&entries.with(&rejection)));
        let mut done = Done::new("rejected");
        if approved {
            done.notes.push("there is an approval for it: the rejection wins while it holds".to_owned());
        }
        Ok(done)
    }
}

#[cfg(test)]
mod tests;
