//! Commands about parents themselves: freeze, snooze.

use std::{io::Write, process::ExitCode};

use anyhow::{Result, bail};
use clap::Args;
use kausality_api::text::plain;
use kausality_core::Summary;

use super::{
    Account, Acting, Change, Covered, DryRun, Edited, Editor, ParentName, Subject, confirmed, outcome,
};
use crate::{
    connect::Connection,
    ledger::{Place, Reference},
    target::Target,
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

    /// The parents have no namespace; ids are those of drifts of children that have none
    #[arg(long, conflicts_with = "namespace")]
    cluster: bool,

    #[command(flatten)]
    acting: Acting,

    #[command(flatten)]
    connection: Connection,
}

/// What a command does to a parent: `apply` edits the annotations and says what was done.
pub(crate) struct ParentChange<F> {
    /// `freeze`.
    pub(crate) verb: &'static str,
    /// Whether it takes something that enforces it to be of use.
    pub(crate) is_enforced: bool,
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
        let ParentChange { verb, is_enforced, apply } = change;
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
        let mut account = Account::new(verb, &editor.user, &self.acting, out);
        let subjects = parents.iter().filter(|_| is_enforced).map(Subject::children);
        let coverage = editor.coverage(subjects).await;
        account.warn(coverage.warnings());
        if self.acting.dry_run == DryRun::None && !confirmed(&deeds, self.acting.yes)? {
            account.decline("Nothing was done.");
            return account.end();
        }
        for parent in &parents {
            let user = editor.user.as_str();
            match editor.edit(parent, self.acting.dry_run, |summary| apply(summary, user)).await {
                Ok(edited) => {
                    let fault = coverage.fault(&Subject::children(parent));
                    let outcome = outcome(&edited.outcome, fault);
                    account.tell(&parent.full_name(), &format!("{parent} {}", plain(&outcome)))?;
                    if account.is_document() {
                        account.keep(change_of(&editor, parent, &edited, fault).await);
                    }
                }
                Err(error) => account.refuse_parent(parent, &format!("{error:#}")),
            }
        }
        account.end()
    }

    async fn parent(&self, editor: &Editor, name: &str) -> Result<ParentName> {
        if let Reference::Id(_) = Reference::parse(name)? {
            let (namespace, cluster) = (self.namespace.clone(), self.cluster);
            let place = Place { namespace, cluster, ..Place::default() };
            let entry = editor.ledger.one(&place, name).await?;
            return Ok(ParentName::from(&entry.drift.spec.parent));
        }
        if self.cluster && Target::parse(editor.kinds(), &[name.to_owned()]).await?.kind.namespaced {
            bail!("{name} is in a namespace: name that with -n, and leave out --cluster");
        }
        editor.named(name, self.namespace.as_deref()).await
    }
}

/// What was done to a parent, and the open drifts that it is about: all of its children's.
async fn change_of(
    editor: &Editor,
    parent: &ParentName,
    edited: &Edited<String>,
    fault: Option<&str>,
) -> Change {
    let change = Change::of(parent, edited).that_means(&edited.outcome, fault);
    match editor.ledger.of_parent(&edited.object).await {
        Ok(entries) => change.about(entries.iter().map(Covered::from).collect()),
        Err(error) => {
            anstream::eprintln!(
                "note: {}",
                plain(&format!("the drifts of {parent} are not known: {error:#}"))
            );
            change
        }
    }
}
