//! `cargo xtask control-plane`: the binaries that the tests against a real API server run.
//!
//! Prints one folder that holds them all. Everything else is said on stderr, so that a script can take the
//! folder from stdout.
//!
//! | module | what it knows |
//! |---|---|
//! | [`binary`] | which binaries there are, and how each is built |
//! | [`pin`] | the modules in `control-plane/`, and the versions that they pin |
//! | [`toolchain`] | which Go there is, and whether it is new enough |
//! | [`source`] | where the binaries come from: `KUBEBUILDER_ASSETS`, or the pinned modules |
//! | [`recipe`] | what a folder of the cache is made of: binaries to build, and links |
//! | [`key`] | the name of the folder in the cache |
//! | [`cache`] | the folder itself: found, or filled by one run at a time |
//! | [`build`] | one `go build` |
//! | [`progress`] | the line that shows that it is alive |
//! | [`message`] | what is said when there is no control plane |

mod binary;
mod build;
mod cache;
mod key;
mod message;
mod pin;
mod progress;
mod recipe;
mod source;
mod toolchain;

use std::ffi::OsStr;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;

use cache::Cache;
use key::Key;
use pin::Pins;
use recipe::Recipe;
use source::Source;
use toolchain::Toolchain;

/// The exit code that says: there is no control plane, and none can be built here.
const ABSENT: u8 = 3;

/// How `cargo xtask control-plane` is called.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Print the folder if it is there, exit with 3 if not, and build nothing.
    #[arg(long)]
    path: bool,
}

/// Finds or builds the binaries, and prints their folder.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let root = repository().join("control-plane");
    let pins = Pins::read(&root)?;
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

    let recipe = Recipe::new(assets, &pins);
    let cache = Cache::at(std::env::var_os("XDG_CACHE_HOME"), std::env::var_os("HOME"))?;
    let key = Key::new(&recipe, &pins, std::env::consts::OS, std::env::consts::ARCH);
    let toolchain = Toolchain::find(&root, pins.go());
    if let Some(folder) = cache.find(&key, &toolchain, &recipe)? {
        return found(&folder);
    }
    if options.path {
        say("there is no control plane for tests: `make control-plane` provides it")?;
        return Ok(ExitCode::from(ABSENT));
    }
    match toolchain {
        Toolchain::Usable { version } => found(&cache.fill(&key.with_go(&version), &recipe, &root)?),
        Toolchain::Unusable(reason) => {
            let required = is_required(std::env::var_os("REQUIRE_CONTROL_PLANE").as_deref());
            say(&message::absent(&reason, pins.go(), &recipe, required))?;
            Ok(if required { ExitCode::FAILURE } else { ExitCode::from(ABSENT) })
        }
    }
}

/// The root of the repository, wherever in it cargo was called.
fn repository() -> PathBuf {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    manifest.as_deref().and_then(Path::parent).map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}

/// Whether a run without a control plane is a failure: `REQUIRE_CONTROL_PLANE` is set, and not to nothing or 0.
fn is_required(value: Option<&OsStr>) -> bool {
    value.is_some_and(|value| !value.is_empty() && value != "0")
}

fn found(folder: &Path) -> Result<ExitCode> {
    writeln!(std::io::stdout().lock(), "{}", folder.display())?;
    Ok(ExitCode::SUCCESS)
}

fn say(text: &str) -> Result<()> {
    writeln!(std::io::stderr().lock(), "{text}")?;
    Ok(())
}

#[cfg(test)]
mod tests;
