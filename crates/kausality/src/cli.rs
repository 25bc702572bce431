//! The command line.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::{replay::Replay, why::Why};

/// Trace and gate changes of intent through the hierarchy of Kubernetes objects.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Replay(Replay),
    Why(Why),
}

impl Cli {
    /// Runs the command that was given.
    ///
    /// # Errors
    /// Whatever keeps the command from doing its work.
    pub fn run(&self) -> Result<ExitCode> {
        match &self.command {
            Command::Replay(replay) => replay.run(),
            Command::Why(why) => why.run(),
        }
    }
}
