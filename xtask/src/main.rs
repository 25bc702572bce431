//! Repository chores, run as `cargo xtask <command>`.
//!
//! Each command is a module with a `run` function; `main` only picks one.

mod check;

use std::process::ExitCode;

use clap::Parser;

/// Repository chores.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
enum Command {
    /// Fail if the architecture is broken: an impure core, a wrong dependency, a crate without the lints.
    Check,
}

fn main() -> anyhow::Result<ExitCode> {
    match Command::parse() {
        Command::Check => check::run(),
    }
}
