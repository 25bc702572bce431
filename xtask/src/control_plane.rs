//! `cargo xtask control-plane`: the binaries that the tests against a real API server run.
//!
//! Prints one folder that holds them all. Everything else is said on stderr, so that a script can take the
//! folder from stdout.
//!
//! | module | what it knows |
//! |---|---|
//! | [`set`] | which binaries there are, and how each is built |
//! | [`source`] | where the binaries come from: `KUBEBUILDER_ASSETS`, or the pinned modules |
//! | [`message`] | what is said when there is no control plane |
//!
//! [`programs`](crate::programs) builds them and keeps them.

mod message;
mod set;
mod source;

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;

use crate::programs::{ABSENT, Built, Link, Programs, Recipe, found, is_set, repository, say};
use source::Source;

pub(crate) use set::STAMPS;

/// How `cargo xtask control-plane` is called.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Print the folder if it is there, exit with 3 if not, and build nothing.
    #[arg(long)]
    path: bool,
}

/// Finds or builds the binaries, and prints their folder.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let root = repository();
    let assets = std::env::var_os("KUBEBUILDER_ASSETS").filter(|value| !value.is_empty());
    let assets = assets.map(std::path::absolute).transpose()?;
    let source = source::choose(assets.as_deref(), |path| path.is_file());
    if let Some(notice) = source.notice() {
        say(&notice)?;
    }
    let assets = match &source {
        Source::Complete { folder } => return found(folder),
        Source::Assets { folder } => Some(folder.as_path()),
        Source::Modules { .. } => None,
    };

    let programs = Programs::new("control-plane", recipe(&root, assets)?, &root)?;
    if let Some(folder) = programs.find()? {
        return found(&folder);
    }
    if options.path {
        say("there is no control plane for tests: `make control-plane` provides it")?;
        return Ok(ExitCode::from(ABSENT));
    }
    match programs.build()? {
        Built::Folder(folder) => found(&folder),
        Built::Impossible(reason) => {
            let required = is_set(std::env::var_os("REQUIRE_CONTROL_PLANE").as_deref());
            say(&message::absent(&reason, &programs.recipe, required))?;
            Ok(if required { ExitCode::FAILURE } else { ExitCode::from(ABSENT) })
        }
    }
}

/// With `assets`, the control plane is linked from there, and helm is built. Without, all is built.
fn recipe(root: &Path, assets: Option<&Path>) -> Result<Recipe> {
    let Some(folder) = assets else { return Recipe::read(&set::ALL, root) };
    let names = set::CONTROL_PLANE.iter().map(|binary| binary.name);
    let links = names.map(|name| Link { name, target: folder.join(name) }).collect();
    Ok(Recipe::read(&set::HELM_ALONE, root)?.with_links(links))
}
