//! `kausality policy`: approval policies, tested, explained and suggested. None of it needs a cluster.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand};

mod explain;
mod files;
pub(crate) mod narrow;
mod suggest;
mod test;

use explain::Explain;
use suggest::Suggest;
use test::Test;

/// Test, explain and suggest approval policies, from files.
#[derive(Debug, Args)]
pub struct Policy {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Test(Test),
    Explain(Explain),
    Suggest(Box<Suggest>),
}

impl Policy {
    /// Runs the command.
    ///
    /// # Errors
    /// If a file cannot be read, or says what cannot be understood.
    pub fn run(&self) -> Result<ExitCode> {
        match &self.command {
            Command::Test(test) => test.run(),
            Command::Explain(explain) => explain.run(),
            Command::Suggest(suggest) => suggest.run(),
        }
    }
}
