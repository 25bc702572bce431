//! Approvals before there is a drift: somebody knows what a controller is going to do.

use std::io::Write;

use anyhow::{Result, anyhow, bail};

use kausality_core::summary::ObjectId;

use super::{Approving, duration};
use crate::{
    act::{Account, Change, Choice, DryRun, Editor, Subject, outcome},
    ledger::Scope,
};

/// Approves changes of the child that is named, which need not exist, by the parent that is.
pub(super) async fn approve(
    editor: &Editor,
    deed: &Approving,
    choice: &Choice,
    dry_run: DryRun,
    account: &mut Account<impl Write>,
) -> Result<()> {
    let (Some(parent), Some(child)) = (&choice.filter.parent, &choice.filter.child) else {
        bail!("name a parent and a child");
    };
    if deed.exact {
        bail!("there is no open drift of {}/{}: --exact needs one", child.kind, child.name);
    }
    let parent = format!("{}/{}", parent.kind, parent.name);
    let parent = editor.named(&parent, choice.place.namespace.as_deref()).await?;
    editor.may_decide(&parent.namespace).await?;
    let child_kind = editor.kinds().named(&child.kind).await?;
    let of = &child_kind.resource;
    let namespace = match choice.place.scope(&editor.ledger.client) {
        Scope::Namespace(namespace) if child_kind.namespaced => namespace,
        _ => String::new(),
    };
    let child = ObjectId {
        api_version: of.api_version.clone(),
        kind: of.kind.clone(),
        namespace,
        name: child.name.clone(),
    };
    let subject = Subject::of_kind(&child.api_version, &child.kind, &child.namespace);
    let coverage = editor.coverage([subject.clone()]).await;
    account.warn(coverage.warnings());
    let edited = editor
        .edit(&parent, dry_run, |summary| {
            let approval = deed.entry(summary, &child).map_err(|why| anyhow!(why))?;
            deed.add(summary, &approval).map_err(|why| anyhow!(why))
        })
        .await?;
    let what = if edited.outcome { "approved" } else { "is already approved" };
    let place = match parent.namespace.as_str() {
        "" if !child.namespace.is_empty() => format!(" in namespace {}", child.namespace),
        _ => String::new(),
    };
    let often = duration(deed.mode);
    let result = format!("{}/{}{place} {what} {often}, ahead of any drift", child.kind, child.name);
    let fault = coverage.fault(&subject);
    let line = match fault {
        Some(_) => format!("{parent} {}", outcome("", fault)),
        None => format!("{result}, by {parent}"),
    };
    account.tell(&parent.full_name(), &line)?;
    account.keep(Change::of(&parent, &edited).that_means(&result, fault));
    Ok(())
}
