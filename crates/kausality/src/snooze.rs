//! `kausality snooze` and `kausality unsnooze`: drifts are judged as ever, but nobody is told for a while.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use jiff::Timestamp;
use kausality_api::{
    annotation::{SNOOZE, SNOOZE_UNTIL},
    snooze::Snooze as Annotation,
};
use kausality_core::Summary;

use crate::{
    act::{ParentChange, Parents},
    approve::reason,
    span,
};

/// Tell nobody about drifts of a parent's children for a while. What is denied stays denied.
#[derive(Debug, Args)]
#[group(skip)]
pub struct Snooze {
    #[command(flatten)]
    parents: Parents,

    /// For how long: 90m, 2h, 7d
    #[arg(long = "for", value_name = "TIME", value_parser = for_a_while, required_unless_present = "until")]
    length: Option<Timestamp>,

    /// Until when: 2026-01-25T12:00:00Z
    #[arg(long, value_name = "TIME", value_parser = span::until, conflicts_with = "length")]
    until: Option<Timestamp>,

    /// Why
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    reason: Option<String>,
}

/// Tell people about drifts of a parent's children again.
#[derive(Debug, Args)]
pub struct Unsnooze {
    #[command(flatten)]
    parents: Parents,
}

/// A length of time, and no timestamp.
fn for_a_while(text: &str) -> Result<Timestamp> {
    span::duration(text)?;
    span::until(text)
}

impl Snooze {
    /// Runs the command.
    ///
    /// # Errors
    /// If a parent is not found, or nothing may be done.
    pub fn run(&self) -> Result<ExitCode> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let apply = |parent: &mut Summary, user: &str| {
            let Some(expiry) = self.length.or(self.until) else { anyhow::bail!("say for how long") };
            let snooze = Annotation { expiry, user: Some(user.to_owned()), message: self.reason.clone() };
            parent.annotate(SNOOZE, Some(&snooze.encode()));
            // The older form would speak against it.
            parent.annotate(SNOOZE_UNTIL, None);
            Ok(format!("snoozed until {expiry}"))
        };
        let change = ParentChange { verb: "snooze", is_enforced: true, apply };
        runtime.block_on(self.parents.each(change, &mut anstream::stdout()))
    }
}

impl Unsnooze {
    /// Runs the command.
    ///
    /// # Errors
    /// If a parent is not found, or nothing may be done.
    pub fn run(&self) -> Result<ExitCode> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let apply = |parent: &mut Summary, _: &str| {
            let was = [SNOOZE, SNOOZE_UNTIL].iter().any(|key| parent.annotation(key).is_some());
            parent.annotate(SNOOZE, None);
            parent.annotate(SNOOZE_UNTIL, None);
            Ok(if was { "is told about again".to_owned() } else { "is not snoozed".to_owned() })
        };
        let change = ParentChange { verb: "unsnooze", is_enforced: false, apply };
        runtime.block_on(self.parents.each(change, &mut anstream::stdout()))
    }
}
