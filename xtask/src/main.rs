//! Repository chores, run as `cargo xtask <command>`.
//!
//! Each command is a module with a `run` function; `main` only picks one.

mod check;
mod control_plane;
mod cost;
mod generate;
mod manifests;
mod plant;

use std::process::ExitCode;

use clap::Parser;

/// Repository chores.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
enum Command {
    /// Fail if the architecture is broken: an impure core, a wrong dependency, a crate without the lints.
    Check,
    /// Provide the control plane for tests, and print its folder: kube-apiserver and all that goes with it.
    ControlPlane(control_plane::Options),
    /// Count the instructions of decisions, and fail if they exceed their budget.
    Cost {
        /// Write the figure into the README.
        #[arg(long)]
        write: bool,
    },
    /// Write the files that follow from the code: CustomResourceDefinitions.
    Generate {
        /// Only fail if one of them is out of date.
        #[arg(long)]
        check: bool,
    },
    /// Write what helm makes of the chart: the plain manifests, and what the tests compare with. Needs the helm of
    /// `control-plane`.
    Manifests,
    /// Plant known bugs in a copy of the tree, and fail if simulation does not find each of them.
    Plant {
        /// Only those whose name contains this.
        #[arg(default_value = "")]
        which: String,
    },
}

fn main() -> anyhow::Result<ExitCode> {
    match Command::parse() {
        Command::Check => check::run(),
        Command::ControlPlane(options) => control_plane::run(&options),
        Command::Cost { write } => cost::run(write),
        Command::Generate { check } => generate::run(check),
        Command::Manifests => manifests::run(),
        Command::Plant { which } => plant::run(&which),
    }
}
