//! One decision about many drifts: parent by parent, each in one write.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Write,
    process::ExitCode,
};

use anyhow::{Context, Result};
use jiff::Timestamp;
use kausality_api::{drift::DriftState, text::plain};
use kausality_core::Summary;

use super::{Acting, DryRun, Editor, ParentName, confirmed};
use crate::{ledger::Entry, live::Progress, span};

/// What a command does about a drift.
pub(crate) trait Deed {
    /// In a word: `approve`.
    fn verb(&self) -> &'static str;

    /// Changes the annotations of the parent, and says what that means; or why it must not be done.
    fn apply(&self, parent: &mut Summary, entry: &Entry, now: Timestamp) -> Result<Done, String>;

    /// Whether it makes sense for a drift that is over, or is not any more what it was.
    fn needs_open(&self) -> bool;
}

/// What was done about a drift.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Done {
    /// `approved once`.
    pub(crate) what: String,
    /// What a person should know about it.
    pub(crate) notes: Vec<String>,
}

impl Done {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), notes: Vec::new() }
    }
}

/// Does it to all of them. Those that cannot be helped are told, and the others done.
///
/// # Errors
/// If nothing may be done, or nobody agrees.
pub(crate) async fn act_on_drifts(
    editor: &Editor,
    deed: &dyn Deed,
    entries: &[Entry],
    acting: &Acting,
    out: &mut impl Write,
) -> Result<ExitCode> {
    let mut by_parent: BTreeMap<ParentName, Vec<&Entry>> = BTreeMap::new();
    for entry in entries {
        by_parent.entry(ParentName::from(&entry.drift.spec.parent)).or_default().push(entry);
    }
    let namespaces: BTreeSet<&str> = by_parent.keys().map(|parent| parent.namespace.as_str()).collect();
    for namespace in namespaces {
        editor.may_decide(namespace).await?;
    }

    let mut failed = false;
    let (mut possible, mut deeds) = (Vec::new(), Vec::new());
    let mut progress = Progress::new(by_parent.len());
    for (done, (parent, entries)) in by_parent.into_iter().enumerate() {
        progress.at(done);
        let trials = try_out(editor, deed, &parent, &entries).await;
        let mut left = Vec::new();
        for (entry, trial) in entries.into_iter().zip(trials) {
            match trial {
                Ok(done) => {
                    deeds.push(line(entry, &done));
                    left.push(entry);
                }
                Err(why) => {
                    failed = true;
                    refuse(deed, entry, &why);
                }
            }
        }
        if !left.is_empty() {
            possible.push((parent, left));
        }
    }
    drop(progress);
    if deeds.is_empty() {
        return Ok(ExitCode::from(1));
    }
    if acting.dry_run == DryRun::None && !confirmed(&deeds, acting.yes)? {
        anstream::eprintln!("Nothing was done.");
        return Ok(ExitCode::from(1));
    }
    for (parent, entries) in possible {
        let outcomes =
            editor.edit(&parent, acting.dry_run, |summary| Ok(apply(deed, summary, &entries))).await;
        let outcomes = match outcomes {
            Ok((outcomes, _)) => outcomes,
            Err(error) => {
                failed = true;
                let error = format!("{error:#}");
                entries.iter().for_each(|entry| refuse(deed, entry, &error));
                continue;
            }
        };
        for (entry, outcome) in entries.iter().zip(outcomes) {
            match outcome {
                Ok(done) => {
                    writeln!(out, "{}{}", line(entry, &done), acting.dry_run.note())
                        .context("cannot write")?;
                    for note in &done.notes {
                        anstream::eprintln!("note: {}: {}", entry.full_name(), plain(note));
                    }
                }
                Err(why) => {
                    failed = true;
                    refuse(deed, entry, &why);
                }
            }
        }
    }
    Ok(ExitCode::from(u8::from(failed)))
}

/// What would become of each drift.
async fn try_out(
    editor: &Editor,
    deed: &dyn Deed,
    parent: &ParentName,
    entries: &[&Entry],
) -> Vec<Result<Done, String>> {
    match editor.read(parent).await {
        Ok(Some(live)) => apply(deed, &mut live.summary.clone(), entries),
        Ok(None) => entries.iter().map(|_| Err(format!("its parent, {parent}, is gone"))).collect(),
        Err(error) => entries.iter().map(|_| Err(format!("{error:#}"))).collect(),
    }
}

/// Decides about drifts of one parent, one after the other: each sees what became of those before.
pub(super) fn apply(deed: &dyn Deed, parent: &mut Summary, entries: &[&Entry]) -> Vec<Result<Done, String>> {
    let now = span::now();
    let one = |entry: &&Entry| {
        if deed.needs_open() {
            is_current(parent, entry)?;
        } else {
            is_parent(parent, entry)?;
        }
        // A refusal leaves no traces.
        let mut copy = parent.clone();
        let done = deed.apply(&mut copy, entry, now)?;
        *parent = copy;
        Ok(done)
    };
    entries.iter().map(one).collect()
}

/// That the parent is the one of the drift.
fn is_parent(parent: &Summary, entry: &Entry) -> Result<(), String> {
    match &entry.drift.spec.parent.uid {
        Some(uid) if *uid != parent.uid => {
            Err(format!("its parent is gone: another {} has its name", parent.id))
        }
        _ => Ok(()),
    }
}

/// That the drift is still about what the parent wants.
fn is_current(parent: &Summary, entry: &Entry) -> Result<(), String> {
    is_parent(parent, entry)?;
    if parent.deleting {
        return Err(format!("{} is being deleted: what is cleaned up needs no decision", parent.id));
    }
    if parent.intent.to_string() != entry.drift.spec.parent_intent {
        return Err(format!(
            "the intent of {} has changed since: this drift has expired. What its controller does about the new intent \
             is no drift, and another drift has another id",
            parent.id
        ));
    }
    Ok(())
}

/// That a drift is over, and why; nothing, if it is open.
pub(crate) fn over(entry: &Entry) -> Option<String> {
    let status = &entry.drift.status;
    if status.state != DriftState::Resolved {
        return None;
    }
    let why = status
        .resolution
        .as_ref()
        .map(|it| format!(" ({} at {})", it.reason.as_str(), span::to_second(it.at)));
    Some(format!("it is resolved already{}", why.unwrap_or_default()))
}

/// `drift/e675380dcb6f9bf1 approved once: ReplicaSet/web-1 of Deployment/web`.
fn line(entry: &Entry, done: &Done) -> String {
    let summary = &entry.drift.spec.summary;
    let text = format!("{}: {} of {}", done.what, summary.child, summary.parent);
    format!("{} {}", entry.full_name(), plain(&text))
}

fn refuse(deed: &dyn Deed, entry: &Entry, why: &str) {
    anstream::eprintln!("error: cannot {} {}: {}", deed.verb(), entry.full_name(), plain(why));
}
