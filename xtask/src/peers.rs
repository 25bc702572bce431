//! `cargo xtask peer` and `cargo xtask peers`: third-party programs that suites of tests run beside Kausality.
//!
//! Each peer is a [`Set`] in a module of its own; [`programs`](crate::programs) builds and keeps it. `make test-peers`
//! runs the suites of the peers that are built.

mod argo_rollouts;
mod cluster_api;
mod command;
mod crossplane;
mod node;
mod prometheus_operator;

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::builder::PossibleValuesParser;
use serde::Serialize;

use crate::programs::{ABSENT, Built, Programs, Recipe, Set, found, is_set, repository, say};

/// All peers, by name. The suite of a peer is the module of its name in `crates/kausality/tests/peers`.
static PEERS: &[&Set] =
    &[&argo_rollouts::SET, &cluster_api::SET, &crossplane::SET, &node::SET, &prometheus_operator::SET];

/// How `cargo xtask peer` is called.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Its name: `cargo xtask peers` lists them.
    #[arg(value_parser = PossibleValuesParser::new(PEERS.iter().map(|peer| peer.name)))]
    name: String,
    /// Print the folder if it is there, exit with 3 if not, and build nothing.
    #[arg(long)]
    path: bool,
}

/// How `cargo xtask peers` is called.
#[derive(clap::Args)]
pub(crate) struct ListOptions {
    /// Output format.
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
}

#[derive(Clone, Copy, Default, clap::ValueEnum)]
enum Output {
    /// For people.
    #[default]
    Table,
    /// The names alone, one per line.
    Name,
    Json,
}

/// Finds or builds a peer, and prints its folder.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let peer = PEERS.iter().find(|peer| peer.name == options.name);
    let peer = peer.with_context(|| format!("{} is not a peer", options.name))?;
    let programs = programs(peer)?;
    if let Some(folder) = programs.find()? {
        return found(&folder);
    }
    if options.path {
        say(&format!("{}: {}", peer.name, hint(peer.name)))?;
        return Ok(ExitCode::from(ABSENT));
    }
    match programs.build()? {
        Built::Folder(folder) => found(&folder),
        Built::Impossible(reason) => {
            let go = programs.recipe.go();
            say(&format!(
                "cannot build {}: {reason}. Install Go {go} or later (https://go.dev/dl), and try again",
                peer.name
            ))?;
            let required = is_set(std::env::var_os("REQUIRE_PEERS").as_deref());
            Ok(if required { ExitCode::FAILURE } else { ExitCode::from(ABSENT) })
        }
    }
}

/// Prints all peers. Builds nothing.
pub(crate) fn list(options: &ListOptions) -> Result<ExitCode> {
    let peers = PEERS.iter().map(|peer| Row::new(peer)).collect::<Result<Vec<_>>>()?;
    let text = match options.output {
        Output::Table => table(&peers),
        Output::Name => peers.iter().map(|peer| format!("{}\n", peer.name)).collect(),
        Output::Json => serde_json::to_string_pretty(&peers)? + "\n",
    };
    std::io::stdout().lock().write_all(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// One peer in the list.
#[derive(Debug, Serialize)]
struct Row {
    name: &'static str,
    version: String,
    /// `None` if it is not built.
    folder: Option<PathBuf>,
}

impl Row {
    fn new(peer: &Set) -> Result<Self> {
        let programs = programs(peer)?;
        let version = programs.recipe.version().map(ToString::to_string).unwrap_or_default();
        Ok(Self { name: peer.name, version, folder: programs.find()? })
    }
}

fn programs(peer: &Set) -> Result<Programs> {
    let root = repository();
    Ok(Programs::new("peers", Recipe::read(peer, &root)?, &root)?.named(peer.name))
}

fn hint(name: &str) -> String {
    format!("not built; `cargo xtask peer {name}` builds it")
}

fn table(peers: &[Row]) -> String {
    let width = |title: &str, cell: fn(&Row) -> &str| {
        peers.iter().map(|peer| cell(peer).len()).chain([title.len()]).max().unwrap_or_default()
    };
    let (names, versions) = (width("NAME", |peer| peer.name), width("VERSION", |peer| &peer.version));
    let mut text = format!("{:names$}  {:versions$}  FOLDER\n", "NAME", "VERSION");
    for Row { name, version, folder } in peers {
        let folder = folder.as_ref().map_or_else(|| hint(name), |folder| folder.display().to_string());
        text.push_str(&format!("{name:names$}  {version:versions$}  {folder}\n"));
    }
    text
}

#[cfg(test)]
mod tests;
