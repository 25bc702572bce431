//! Repository chores, run as `cargo xtask <command>`.
//!
//! Each command is a module with a `run` function; `main` only picks one.

mod check;
mod control_plane;
mod cost;
mod dependencies;
mod generate;
mod image;
mod manifests;
mod peers;
mod plant;
mod programs;
mod suites;

use std::{io::Write as _, process::ExitCode};

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
    /// Check licenses, sources and versions of the dependencies by the rules of deny.toml.
    Dependencies,
    /// Write the files that follow from the code: CustomResourceDefinitions.
    Generate {
        /// Only fail if one of them is out of date.
        #[arg(long)]
        check: bool,
    },
    /// Make the container image without a container engine: an archive for containerd, docker and podman.
    Image(image::Options),
    /// Write what helm makes of the chart: the plain manifests, and what the tests compare with. Needs the helm of
    /// `control-plane`.
    Manifests,
    /// Provide a third-party program that a suite of tests runs, and print its folder.
    Peer(peers::Options),
    /// List the third-party programs that suites of tests run, and whether each is built.
    Peers(peers::ListOptions),
    /// Plant known bugs in a copy of the tree, and fail if simulation does not find each of them.
    Plant {
        /// Only those whose name contains this.
        #[arg(default_value = "")]
        which: String,
    },
    /// Build and run all tests, two executables at a time.
    Test {
        /// Only unit tests, the tests of pure crates, and the scenarios on the sandbox.
        #[arg(long)]
        quick: bool,
    },
}

fn main() -> ExitCode {
    run(Command::parse()).unwrap_or_else(|error| {
        // Without a backtrace, which CI would show in place of the reason.
        let _ = writeln!(std::io::stderr(), "error: {error:#}");
        ExitCode::FAILURE
    })
}

fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Check => check::run(),
        Command::ControlPlane(options) => control_plane::run(&options),
        Command::Cost { write } => cost::run(write),
        Command::Dependencies => dependencies::run(),
        Command::Generate { check } => generate::run(check),
        Command::Image(options) => image::run(&options),
        Command::Manifests => manifests::run(),
        Command::Peer(options) => peers::run(&options),
        Command::Peers(options) => peers::list(&options),
        Command::Plant { which } => plant::run(&which),
        Command::Test { quick } => suites::run(quick),
    }
}
