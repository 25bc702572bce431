//! Approvals before there is a drift: somebody knows what a controller is going to do.

use std::{io::Write, process::ExitCode};

use anyhow::{Context, Result, anyhow, bail};

use super::{Approving, duration};
use crate::act::{Acting, Choice, Editor};

/// Approves changes of the child that is named, which need not exist, by the parent that is.
pub(super) async fn approve(
    editor: &Editor,
    deed: &Approving,
    choice: &Choice,
    acting: &Acting,
    out: &mut impl Write,
) -> Result<ExitCode> {
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
    let (added, _) = editor
        .edit(&parent, acting.dry_run, |summary| {
            let approval =
                deed.entry(summary, [&of.api_version, &of.kind, &child.name]).map_err(|why| anyhow!(why))?;
            deed.add(summary, &approval).map_err(|why| anyhow!(why))
        })
        .await?;
    let (kind, name, note) = (&of.kind, &child.name, acting.dry_run.note());
    let what = if added { "approved" } else { "is already approved" };
    let how = duration(deed.mode);
    writeln!(out, "{kind}/{name} {what} {how}, ahead of any drift, by {parent}{note}")
        .context("cannot write")?;
    Ok(ExitCode::SUCCESS)
}
