//! What a command has done: told in lines to people as it goes, and in one document to programs at the end.

use std::{io::Write, process::ExitCode};

use anyhow::{Context, Result};
use kausality_api::text::plain;
use serde::Serialize;

use super::{Acting, Done, DryRun, Edited, Edits, ParentName};
use crate::{
    ledger::Entry,
    output::{self, DeedOutput},
};

/// What is told of a command.
pub(crate) struct Account<W> {
    out: W,
    output: DeedOutput,
    dry_run: DryRun,
    document: Document,
    /// Somebody did not agree to all of it.
    declined: bool,
}

/// The same for programs.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    /// `approve`.
    action: &'static str,
    /// Who acts.
    by: String,
    /// `client` or `server`, where nothing is stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    dry_run: Option<&'static str>,
    /// Why nothing comes of it, although it was done.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
    objects: Vec<Change>,
    failed: Vec<Failure>,
}

/// What was done to an object.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Change {
    api_version: String,
    kind: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    namespace: String,
    name: String,
    uid: String,
    /// The version that has it.
    resource_version: String,
    /// What was written; null, what was removed. Nothing, where all was already as it is to be.
    annotations: Edits,
    /// What that means, where it is about the object itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<String>,
    /// Why nothing comes of it, where that is certain.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_enforced: Option<String>,
    /// The drifts that it is about; absent where they cannot be told.
    #[serde(skip_serializing_if = "Option::is_none")]
    drifts: Option<Vec<Covered>>,
}

/// A drift that something was decided about.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Covered {
    #[serde(flatten)]
    drift: Named,
    /// `Bed/south-1`.
    child: String,
    /// What was decided about this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<String>,
    /// Why nothing comes of it, where that is certain.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_enforced: Option<String>,
    /// What a person should know about it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
}

/// Something that could not be done.
#[derive(Debug, Serialize)]
struct Failure {
    #[serde(flatten)]
    object: Named,
    error: String,
}

#[derive(Debug, Serialize)]
struct Named {
    kind: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    namespace: String,
    name: String,
}

impl From<&Entry> for Named {
    fn from(entry: &Entry) -> Self {
        let metadata = &entry.drift.metadata;
        let (namespace, name) = (metadata.namespace.clone(), metadata.name.clone());
        Self { kind: entry.drift.kind.clone(), namespace, name }
    }
}

impl From<&ParentName> for Named {
    fn from(parent: &ParentName) -> Self {
        let ParentName { kind, namespace, name, .. } = parent.clone();
        Self { kind, namespace, name }
    }
}

impl From<&Entry> for Covered {
    fn from(entry: &Entry) -> Self {
        let child = entry.drift.spec.summary.child.clone();
        Self { drift: Named::from(entry), child, result: None, not_enforced: None, notes: Vec::new() }
    }
}

impl Covered {
    /// A drift, what was decided about it, and why nothing comes of that.
    pub(crate) fn decided(entry: &Entry, done: &Done, fault: Option<&str>) -> Self {
        Self {
            result: Some(result(&done.what, fault).to_owned()),
            not_enforced: fault.map(ToOwned::to_owned),
            notes: done.notes.clone(),
            ..Self::from(entry)
        }
    }
}

impl Change {
    /// What was written to an object.
    pub(crate) fn of<T>(parent: &ParentName, edited: &Edited<T>) -> Self {
        let ParentName { api_version, kind, namespace, name } = parent.clone();
        Self {
            api_version,
            kind,
            namespace,
            name,
            uid: edited.object.uid.clone(),
            resource_version: edited.object.resource_version.clone(),
            annotations: edited.written(),
            result: None,
            not_enforced: None,
            drifts: None,
        }
    }

    /// The same, which means this for the object itself, unless nothing comes of it.
    pub(crate) fn that_means(self, what: &str, fault: Option<&str>) -> Self {
        Self {
            result: Some(result(what, fault).to_owned()),
            not_enforced: fault.map(ToOwned::to_owned),
            ..self
        }
    }

    /// The same, about these drifts.
    pub(crate) fn about(self, drifts: Vec<Covered>) -> Self {
        Self { drifts: Some(drifts), ..self }
    }
}

/// What was written means nothing where nothing enforces it.
const UNENFORCED: &str = "annotated, but nothing enforces it";

/// What comes of a decision.
fn result<'a>(what: &'a str, fault: Option<&str>) -> &'a str {
    if fault.is_some() { UNENFORCED } else { what }
}

/// The same in a line.
pub(crate) fn outcome(what: &str, fault: Option<&str>) -> String {
    match fault {
        Some(fault) => format!("{UNENFORCED}: {fault}"),
        None => what.to_owned(),
    }
}

impl<W: Write> Account<W> {
    /// Nothing yet of what somebody does.
    pub(crate) fn new(action: &'static str, by: &str, acting: &Acting, out: W) -> Self {
        let dry_run = match acting.dry_run {
            DryRun::None => None,
            DryRun::Client => Some("client"),
            DryRun::Server => Some("server"),
        };
        let document = Document {
            action,
            by: by.to_owned(),
            dry_run,
            warnings: Vec::new(),
            objects: Vec::new(),
            failed: Vec::new(),
        };
        Self { out, output: acting.output, dry_run: acting.dry_run, document, declined: false }
    }

    /// Whether a document is made of it.
    pub(crate) fn is_document(&self) -> bool {
        matches!(self.output, DeedOutput::Json | DeedOutput::Yaml)
    }

    /// Tells of one deed, done to something of this name.
    ///
    /// # Errors
    /// If nobody reads along.
    pub(crate) fn tell(&mut self, name: &str, line: &str) -> Result<()> {
        match self.output {
            DeedOutput::Text => writeln!(self.out, "{line}{}", self.dry_run.note()),
            DeedOutput::Name => writeln!(self.out, "{name}"),
            DeedOutput::Json | DeedOutput::Yaml => Ok(()),
        }
        .context("cannot write")
    }

    /// Keeps what was done to an object.
    pub(crate) fn keep(&mut self, change: Change) {
        self.document.objects.push(change);
    }

    /// Tells what speaks against it.
    pub(crate) fn warn(&mut self, warnings: Vec<String>) {
        for warning in &warnings {
            anstream::eprintln!("warning: {}", plain(warning));
        }
        self.document.warnings.extend(warnings);
    }

    /// Tells that something cannot be done about a drift.
    pub(crate) fn refuse_drift(&mut self, entry: &Entry, why: &str) {
        self.refuse(&entry.full_name(), Named::from(entry), why);
    }

    /// Tells that something cannot be done to a parent.
    pub(crate) fn refuse_parent(&mut self, parent: &ParentName, why: &str) {
        self.refuse(&parent.to_string(), Named::from(parent), why);
    }

    fn refuse(&mut self, name: &str, object: Named, why: &str) {
        anstream::eprintln!("error: cannot {} {name}: {}", self.document.action, plain(why));
        self.document.failed.push(Failure { object, error: why.to_owned() });
    }

    /// Tells that somebody did not agree.
    pub(crate) fn decline(&mut self, what: &str) {
        anstream::eprintln!("{what}");
        self.declined = true;
    }

    /// Tells what is left to tell, and how it went.
    ///
    /// # Errors
    /// If nobody reads along.
    pub(crate) fn end(mut self) -> Result<ExitCode> {
        match self.output {
            DeedOutput::Text | DeedOutput::Name => {}
            DeedOutput::Json => output::json(&mut self.out, &self.document)?,
            DeedOutput::Yaml => output::yaml(&mut self.out, &self.document)?,
        }
        Ok(ExitCode::from(u8::from(self.declined || !self.document.failed.is_empty())))
    }
}
