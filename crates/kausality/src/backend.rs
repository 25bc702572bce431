//! `kausality backend`: receivers of drift reports.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand};

mod log;
mod reception;
mod serve;
mod size;

/// Receive drift reports, and print or keep them.
#[derive(Debug, Args)]
pub struct Backend {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Log(log::Log),
    Serve(Box<serve::Serve>),
}

impl Backend {
    /// Runs the command until it is told to stop.
    ///
    /// # Errors
    /// If it cannot listen, or what it needs cannot be used.
    pub fn run(&self) -> Result<ExitCode> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        match &self.command {
            Command::Log(log) => runtime.block_on(log.run())?,
            Command::Serve(serve) => runtime.block_on(serve.run())?,
        }
        Ok(ExitCode::SUCCESS)
    }
}
