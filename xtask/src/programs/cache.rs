//! A folder of programs: found, or filled by one run at a time.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context as _, Result};

use super::build;
use super::copy;
use super::key::Key;
use super::progress::{self, Progress};
use super::recipe::Recipe;
use super::set::Place;
use super::toolchain::Toolchain;

/// The folder that holds one folder of programs for each key.
///
/// A folder is there in whole or not at all: it is filled under a hidden name, and then renamed.
#[derive(Debug)]
pub(super) struct Cache(PathBuf);

impl Cache {
    /// A folder in the cache of the user, from `XDG_CACHE_HOME` and `HOME`.
    pub(super) fn at(xdg: Option<OsString>, home: Option<OsString>, group: &str) -> Result<Self> {
        // The XDG specification has relative paths ignored.
        let xdg = xdg.map(PathBuf::from).filter(|path| path.is_absolute());
        let home = home.filter(|home| !home.is_empty()).map(|home| Path::new(&home).join(".cache"));
        let base = xdg.or(home).context(
            "neither XDG_CACHE_HOME nor HOME is set: set one, so that programs for tests can be kept there",
        )?;
        Ok(Self(base.join("kausality").join(group)))
    }

    /// The folder of a key, if it is there: the one of this Go, or of any where there is no Go to build another.
    pub(super) fn find(&self, key: &Key, toolchain: &Toolchain, recipe: &Recipe) -> Result<Option<PathBuf>> {
        let names = match toolchain {
            Toolchain::Usable { version } => vec![key.with_go(version)],
            Toolchain::Unusable(_) => {
                let mut names = self.names()?;
                names.retain(|name| key.is_of(name));
                names
            }
        };
        let folders = names.iter().map(|name| self.0.join(name));
        Ok(folders.filter(|folder| is_complete(folder, recipe)).max())
    }

    /// Fills the folder of this name. If another run is at it, waits for that.
    pub(super) fn fill(&self, name: &str, recipe: &Recipe, root: &Path) -> Result<PathBuf> {
        let progress = Progress::on_stderr();
        fs::create_dir_all(&self.0).with_context(|| format!("making {}", self.0.display()))?;
        let folder = self.0.join(name);
        // Held until the end of this function, or of this process.
        let _lock = self.lock(name, progress)?;
        if is_complete(&folder, recipe) {
            return Ok(folder);
        }

        let prefix = format!(".{name}.partial-");
        for stale in self.names()?.iter().filter(|name| name.starts_with(&prefix)) {
            remove(&self.0.join(stale))?;
        }
        let partial = self.0.join(format!("{prefix}{}", std::process::id()));
        fs::create_dir(&partial).with_context(|| format!("making {}", partial.display()))?;
        make(recipe, root, &partial, progress)?;
        if folder.exists() {
            remove(&folder)?;
        }
        fs::rename(&partial, &folder)
            .with_context(|| format!("renaming {} to {}", partial.display(), folder.display()))?;
        Ok(folder)
    }

    fn lock(&self, name: &str, progress: Progress) -> Result<File> {
        let path = self.0.join(format!(".{name}.lock"));
        let lock = File::create(&path).with_context(|| format!("making {}", path.display()))?;
        if lock.try_lock().is_err() {
            progress
                .during("waiting for another run that builds the same", |_| lock.lock())
                .with_context(|| format!("locking {}", path.display()))?;
        }
        Ok(lock)
    }

    /// The names of all that is in the cache, which may not exist.
    fn names(&self) -> Result<Vec<String>> {
        if !self.0.exists() {
            return Ok(Vec::new());
        }
        let entries = fs::read_dir(&self.0).and_then(|entries| {
            entries.map(|entry| entry.map(|entry| entry.file_name().to_string_lossy().into_owned())).collect()
        });
        entries.with_context(|| format!("listing {}", self.0.display()))
    }
}

/// Whether all files and folders are there. A link counts if what it points to is there.
fn is_complete(folder: &Path, recipe: &Recipe) -> bool {
    recipe.files().all(|file| folder.join(file).exists())
}

/// Puts all of a recipe into a folder.
fn make(recipe: &Recipe, root: &Path, folder: &Path, progress: Progress) -> Result<()> {
    for link in &recipe.links {
        std::os::unix::fs::symlink(&link.target, folder.join(link.name))
            .with_context(|| format!("linking {}", link.target.display()))?;
    }
    let started = Instant::now();
    let count = recipe.builds.len() + recipe.steps.len();
    let builds = recipe.builds.iter().map(|build| build.binary.name);
    let names: Vec<_> = builds.chain(recipe.steps.iter().map(|work| work.step.name)).collect();
    progress.say(&format!("Building {}. This takes minutes, and is kept.", names.join(", ")));
    for (index, item) in recipe.builds.iter().enumerate() {
        let begun = Instant::now();
        let label = format!("[{}/{count}] {} {}", index + 1, item.binary.name, item.pin.version);
        let file = folder.join(item.binary.name);
        progress.during(&label, |detail| build::build(item, root, &file, detail))?;
        let megabytes = fs::metadata(&file).map_or(0, |data| data.len()) / 1_000_000;
        progress.say(&format!("{label}: built in {}, {megabytes} MB", progress::time(begun.elapsed())));
    }
    for item in &recipe.copies {
        copy::copy(&item.what, root, folder)?;
    }
    for (index, work) in recipe.steps.iter().enumerate() {
        let begun = Instant::now();
        let label = format!("[{}/{count}] {}", recipe.builds.len() + index + 1, work.step.name);
        progress
            .during(&label, |detail| (work.step.run)(&Place { repository: root, folder, detail }))
            .with_context(|| format!("making {}", work.step.name))?;
        progress.say(&format!("{label}: done in {}", progress::time(begun.elapsed())));
    }
    progress.say(&format!("All built in {}.", progress::time(started.elapsed())));
    Ok(())
}

fn remove(folder: &Path) -> Result<()> {
    fs::remove_dir_all(folder).with_context(|| format!("removing {}", folder.display()))
}

#[cfg(test)]
mod tests;
