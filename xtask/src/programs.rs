//! Programs that tests run, built once from pinned sources and kept in the cache of the user.
//!
//! Programs that belong together are a [`Set`], which is data. The control plane is one, and so is each peer.
//!
//! | module | what it knows |
//! |---|---|
//! | [`set`] | what a set is: binaries, files to copy, other steps |
//! | [`pin`] | the modules in the repository, and the versions that they pin |
//! | [`toolchain`] | which Go there is, and whether it is new enough |
//! | [`recipe`] | what a folder of the cache is made of: a set with its pins, and links |
//! | [`key`] | the name of the folder in the cache |
//! | [`cache`] | the folder itself: found, or filled by one run at a time |
//! | [`build`] | one `go build` |
//! | [`copy`] | files out of a module in Go's module cache |
//! | [`edit`] | a copy of a module, with changes |
//! | [`progress`] | the line that shows that it is alive |

mod build;
mod cache;
mod copy;
mod edit;
mod key;
mod pin;
mod progress;
mod recipe;
mod set;
mod toolchain;

use std::ffi::OsStr;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;

use cache::Cache;
use key::Key;
use toolchain::Toolchain;

pub(crate) use recipe::{Link, Recipe};
pub(crate) use set::{Binary, Copied, Edit, Module, Place, Set, Step, Value};
pub(crate) use toolchain::Reason;

/// The exit code that says: the programs are not there, or cannot be built here.
pub(crate) const ABSENT: u8 = 3;

/// The programs of one recipe, on this machine.
#[derive(Debug)]
pub(crate) struct Programs {
    pub(crate) recipe: Recipe,
    root: PathBuf,
    cache: Cache,
    key: Key,
    toolchain: Toolchain,
}

/// How a build ended.
pub(crate) enum Built {
    /// All programs are in this folder.
    Folder(PathBuf),
    /// There is no Go that can build them.
    Impossible(Reason),
}

impl Programs {
    /// Programs that are kept in a folder of the cache, `~/.cache/kausality/<group>`, under the key of their recipe.
    pub(crate) fn new(group: &str, recipe: Recipe, root: &Path) -> Result<Self> {
        let cache = Cache::at(std::env::var_os("XDG_CACHE_HOME"), std::env::var_os("HOME"), group)?;
        let key = Key::new(&recipe, std::env::consts::OS, std::env::consts::ARCH);
        let toolchain = Toolchain::find(root, recipe.go());
        Ok(Self { recipe, root: root.to_path_buf(), cache, key, toolchain })
    }

    /// The same, with a name before the key.
    pub(crate) fn named(self, name: &str) -> Self {
        Self { key: self.key.named(name), ..self }
    }

    /// The folder that holds them, if they are built.
    pub(crate) fn find(&self) -> Result<Option<PathBuf>> {
        self.cache.find(&self.key, &self.toolchain, &self.recipe)
    }

    /// Builds them, or waits for another run that does.
    pub(crate) fn build(&self) -> Result<Built> {
        match &self.toolchain {
            Toolchain::Usable { version } => {
                let name = self.key.with_go(version);
                self.cache.fill(&name, &self.recipe, &self.root).map(Built::Folder)
            }
            Toolchain::Unusable(reason) => Ok(Built::Impossible(reason.clone())),
        }
    }
}

/// The root of the repository, wherever in it cargo was called.
pub(crate) fn repository() -> PathBuf {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    manifest.as_deref().and_then(Path::parent).map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}

/// Whether a variable such as `REQUIRE_CONTROL_PLANE` is set, and not to nothing or 0.
pub(crate) fn is_set(value: Option<&OsStr>) -> bool {
    value.is_some_and(|value| !value.is_empty() && value != "0")
}

/// Prints the folder of programs that are there.
pub(crate) fn found(folder: &Path) -> Result<ExitCode> {
    writeln!(std::io::stdout().lock(), "{}", folder.display())?;
    Ok(ExitCode::SUCCESS)
}

/// Says something to people: stdout is for what a script takes.
pub(crate) fn say(text: &str) -> Result<()> {
    writeln!(std::io::stderr().lock(), "{text}")?;
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests;
