//! The `kausality` command.

use std::process::ExitCode;

use clap::Parser;
use kausality::Cli;

fn main() -> ExitCode {
    Cli::parse().run().unwrap_or_else(|error| {
        anstream::eprintln!("error: {error:#}");
        ExitCode::from(2)
    })
}
