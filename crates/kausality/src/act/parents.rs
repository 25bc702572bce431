//! Commands about parents themselves: freeze, snooze.

use std::{io::Write, process::ExitCode};

use anyhow::{Context, Result};
use clap::Args;
use kausality_api::text::plain;
use kausality_core::Summary;

use super::{Acting, DryRun, Editor, ParentName, confirmed};
use crate::{
    connect::Connection,
    ledger::{Place, Reference},
};

/// Which parents are meant.
#[derive(Clone, Debug, Args)]
pub(crate) struct Parents {
    /// The parents: deployment/web; or the id of a drift, for its parent
    #[arg(value_name = "KIND/NAME|ID", required = true)]
    names: Vec<String>,

    /// The namespace of the parents [default: that of the context]
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,

    #[command(flatten)]
    acting: Acting,

    #[command(flatten)]
    connection: Connection,
}

/// What a command does to a parent: `apply` edits the annotations and says what was done.
pub(crate) struct ParentChange<F> {
    /// `freeze`.
    pub(crate) verb: &'static str,
    pub(crate) apply: F,
}

impl Parents {
    /// Edits each of them. `apply` gets the parent and the name of who edits it.
    ///
    /// # Errors
    /// If one cannot be found, or nothing may be done.
    pub(crate) async fn each<F>(&self, change: ParentChange<F>, out: &mut impl Write) -> Result<ExitCode>
    where
        F: Fn(&mut Summary, &str) -> Result<String>,
    {
        let ParentChange { verb, apply } = change;
        let editor = Editor::new(self.connection.client(verb).await?).await?;
        let mut parents = Vec::new();
        for name in &self.names {
            let parent = self.parent(&editor, name).await?;
            if !parents.contains(&parent) {
                parents.push(parent);
            }
        }
        for parent in &parents {
            editor.may_decide(&parent.namespace).await?;
        }
        let deeds: Vec<String> = parents.iter().map(|parent| format!("{verb} {parent}")).collect();
        if self.acting.dry_run == DryRun::None && !confirmed(&deeds, self.acting.yes)? {
            anstream::eprintln!("Nothing was done.");
            return Ok(ExitCode::from(1));
        }
        let mut failed = false;
        for parent in &parents {
            let user = editor.user.as_str();
            match editor.edit(parent, self.acting.dry_run, |summary| apply(summary, user)).await {
                Ok((what, _)) => {
                    writeln!(out, "{parent} {}{}", plain(&what), self.acting.dry_run.note())
                        .context("cannot write")?;
                }
                Err(error) => {
                    failed = true;
                    anstream::eprintln!("error: cannot {verb} {parent}: {}", plain(&format!("{error:#}")));
                }
            }
        }
        Ok(ExitCode::from(u8::from(failed)))
    }

    async fn parent(&self, editor: &Editor, name: &str) -> Result<ParentName> {
        if let Reference::Id(_) = Reference::parse(name)? {
            let place = Place { namespace: self.namespace.clone(), ..Place::default() };
            let entry = editor.ledger.one(&place, name).await?;
            return Ok(ParentName::from(&entry.drift.spec.parent));
        }
        editor.named(name, self.namespace.as_deref()).await
    }
}
