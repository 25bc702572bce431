//! One decision about many drifts: parent by parent, each in one write.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Write,
};

use anyhow::Result;
use jiff::Timestamp;
use kausality_api::text::plain;
use kausality_core::Summary;

use super::{Account, Acting, Change, Covered, DryRun, Editor, ParentName, Subject, confirmed, outcome};
use crate::{ledger::Entry, live::Progress, span};

/// What a command does about a drift.
pub(crate) trait Deed {
    /// In a word: `approve`.
    fn verb(&self) -> &'static str;

    /// Changes the annotations of the parent, and says what that means; or why it must not be done.
    fn apply(&self, parent: &mut Summary, entry: &Entry, now: Timestamp) -> Result<Done, String>;

    /// What it takes.
    fn needs(&self) -> Needs;

    /// Whether it takes something that enforces it to be of use.
    fn is_enforced(&self) -> bool {
        true
    }
}

/// What it takes to do something about a drift.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    /// Its parent, whatever has become of the drift.
    Parent,
    /// A drift that is still what it was.
    Current,
    /// One that is also open.
    Open,
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
    account: &mut Account<impl Write>,
) -> Result<()> {
    let mut by_parent: BTreeMap<ParentName, Vec<&Entry>> = BTreeMap::new();
    for entry in entries {
        by_parent.entry(ParentName::from(&entry.drift.spec.parent)).or_default().push(entry);
    }
    let namespaces: BTreeSet<&str> = by_parent.keys().map(|parent| parent.namespace.as_str()).collect();
    for namespace in namespaces {
        editor.may_decide(namespace).await?;
    }

    let (mut possible, mut deeds) = (Vec::new(), Vec::new());
    let mut progress = Progress::new(by_parent.len());
    for (done, (parent, entries)) in by_parent.into_iter().enumerate() {
        progress.at(done);
        let trials = try_out(editor, deed, &parent, &entries).await;
        let mut left = Vec::new();
        for (entry, trial) in entries.into_iter().zip(trials) {
            match trial {
                Ok(done) => {
                    deeds.push(line(entry, &done, None));
                    left.push(entry);
                }
                Err(why) => account.refuse_drift(entry, &why),
            }
        }
        if !left.is_empty() {
            possible.push((parent, left));
        }
    }
    drop(progress);
    let decided = possible.iter().flat_map(|(_, entries)| entries).filter(|_| deed.is_enforced());
    let coverage = editor.coverage(decided.map(|entry| children(entry))).await;
    account.warn(coverage.warnings());
    if acting.dry_run == DryRun::None && !confirmed(&deeds, acting.yes)? {
        account.decline("Nothing was done.");
        return Ok(());
    }
    for (parent, entries) in possible {
        let edited = editor.edit(&parent, acting.dry_run, |summary| Ok(apply(deed, summary, &entries))).await;
        let edited = match edited {
            Ok(edited) => edited,
            Err(error) => {
                let error = format!("{error:#}");
                entries.iter().for_each(|entry| account.refuse_drift(entry, &error));
                continue;
            }
        };
        let mut covered = Vec::new();
        for (entry, outcome) in entries.iter().zip(&edited.outcome) {
            match outcome {
                Ok(done) => {
                    let fault = coverage.fault(&children(entry));
                    account.tell(&entry.full_name(), &line(entry, done, fault))?;
                    for note in &done.notes {
                        anstream::eprintln!("note: {}: {}", entry.full_name(), plain(note));
                    }
                    covered.push(Covered::decided(entry, done, fault));
                }
                Err(why) => account.refuse_drift(entry, why),
            }
        }
        account.keep(Change::of(&parent, &edited).about(covered));
    }
    Ok(())
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
        is_parent(parent, entry)?;
        if deed.needs() == Needs::Open {
            is_open(entry)
                .map_err(|over| format!("{over}: say --force to {} it all the same", deed.verb()))?;
        }
        if deed.needs() != Needs::Parent {
            is_current(parent, entry)?;
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
    if parent.deleting {
        return Err(format!("{} is being deleted: what is cleaned up needs no decision", parent.id));
    }
    if kausality_core::ledger::parent_changed(&entry.drift.spec, parent) {
        return Err(format!(
            "the intent of {} has changed since: this drift has expired. What its controller does about the new intent \
             is no drift, and another drift has another id",
            parent.id
        ));
    }
    Ok(())
}

/// That the drift is not over.
fn is_open(entry: &Entry) -> Result<(), String> {
    let status = &entry.drift.status;
    if status.state.is_open() {
        return Ok(());
    }
    let why = status.resolution.as_ref();
    let why = why.map(|it| format!(" ({} at {})", it.reason.as_str(), span::to_second(it.at)));
    Err(format!("it is resolved already{}", why.unwrap_or_default()))
}

/// What a decision about a drift is about.
fn children(entry: &Entry) -> Subject {
    let child = &entry.drift.spec.child;
    Subject::of_kind(&child.api_version, &child.kind, &child.namespace)
}

/// `drift/e675380dcb6f9bf1 approved once: ReplicaSet/web-1 of Deployment/web`.
fn line(entry: &Entry, done: &Done, fault: Option<&str>) -> String {
    let summary = &entry.drift.spec.summary;
    let what = format!("{}: {} of {}", done.what, summary.child, summary.parent);
    format!("{} {}", entry.full_name(), plain(&outcome(&what, fault)))
}
