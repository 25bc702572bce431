//! `kausality freeze` and `kausality unfreeze`: nothing below a parent changes.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use kausality_api::{
    annotation::FREEZE,
    freeze::{Freeze as Annotation, Frozen},
};
use kausality_core::Summary;

use crate::{
    act::{ParentChange, Parents},
    approve::reason,
    span,
};

/// Stop every change of a parent's children, whoever makes it and whatever the mode: for emergencies.
#[derive(Debug, Args)]
pub struct Freeze {
    #[command(flatten)]
    parents: Parents,

    /// Why: whoever's change is denied reads it
    #[arg(long, value_name = "TEXT", required = true, value_parser = reason)]
    reason: String,
}

/// Let changes of a parent's children pass again.
#[derive(Debug, Args)]
pub struct Unfreeze {
    #[command(flatten)]
    parents: Parents,
}

impl Freeze {
    /// Runs the command.
    ///
    /// # Errors
    /// If a parent is not found, or nothing may be done.
    pub fn run(&self) -> Result<ExitCode> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let apply = |parent: &mut Summary, user: &str| Ok(freeze(parent, user, &self.reason));
        let change = ParentChange { verb: "freeze", is_enforced: true, apply };
        runtime.block_on(self.parents.each(change, &mut anstream::stdout()))
    }
}

impl Unfreeze {
    /// Runs the command.
    ///
    /// # Errors
    /// If a parent is not found, or nothing may be done.
    pub fn run(&self) -> Result<ExitCode> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let apply = |parent: &mut Summary, _: &str| Ok(unfreeze(parent));
        let change = ParentChange { verb: "unfreeze", is_enforced: false, apply };
        runtime.block_on(self.parents.each(change, &mut anstream::stdout()))
    }
}

/// What an annotation says of a freeze, if it is one.
fn frozen(parent: &Summary) -> Option<String> {
    match Frozen::decode(parent.annotation(FREEZE)?) {
        Frozen::No => None,
        Frozen::Yes(freeze) => Some(freeze.to_string()),
        Frozen::Unclear(fault) => Some(format!("by an annotation that cannot be understood ({fault})")),
    }
}

/// Who froze it first is asked first: a freeze that stands is left as it is.
fn freeze(parent: &mut Summary, user: &str, reason: &str) -> String {
    if let Some(how) = frozen(parent) {
        return format!("is frozen already {how}");
    }
    let freeze =
        Annotation { user: Some(user.to_owned()), message: Some(reason.to_owned()), at: Some(span::now()) };
    parent.annotate(FREEZE, Some(&freeze.encode()));
    "frozen".to_owned()
}

fn unfreeze(parent: &mut Summary) -> String {
    let was = frozen(parent);
    parent.annotate(FREEZE, None);
    match was {
        Some(how) => format!("unfrozen (it was frozen {how})"),
        None => "is not frozen".to_owned(),
    }
}
