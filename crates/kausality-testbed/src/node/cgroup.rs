//! The control groups that the containers of a node run in.
//!
//! kubelet wants one to exist, and makes groups of Pods below it. Version 1 has a tree for each resource, version 2 has one.

use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

/// Begins the names of all groups made here. The id of the test process follows.
const PREFIX: &str = "kausality-node-";

/// How long groups may take to become free after the last process in them has ended.
const FREE: Duration = Duration::from_secs(10);

/// What kubelet may ask of version 2.
const CONTROLLERS: [&str; 5] = ["cpu", "cpuset", "hugetlb", "memory", "pids"];

/// A control group in every tree. It is removed with all below it when this value is dropped.
#[derive(Debug)]
pub(super) struct Cgroup {
    name: String,
    trees: Trees,
}

/// Where control groups are mounted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Trees {
    /// Of version 1, one for each resource.
    old: Vec<PathBuf>,
    /// Of version 2. Beside trees of version 1 it has no resources.
    unified: Option<PathBuf>,
}

impl Cgroup {
    pub(super) fn create() -> Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let mounts = std::fs::read_to_string("/proc/self/mounts").context("reading /proc/self/mounts")?;
        let trees = Trees::parse(&mounts);
        trees.remove_stale(|process| Path::new("/proc").join(process).exists());
        let name = format!("{PREFIX}{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        // Made before the folders, so that it removes those that are there if one cannot be made.
        let group = Self { name, trees };
        group.trees.make(&group.name).context("creating the control group of a node")?;
        Ok(group)
    }

    /// As kubelet names it.
    pub(super) fn path(&self) -> String {
        format!("/{}", self.name)
    }

    /// The processes in the group of a container, wherever below it is.
    pub(super) fn processes_of(&self, container: &str) -> Result<Vec<u32>> {
        ensure!(!container.is_empty(), "a container has an id");
        let mut folders: Vec<PathBuf> = self.trees.all().take(1).map(|tree| tree.join(&self.name)).collect();
        while let Some(folder) = folders.pop() {
            if folder.file_name().is_some_and(|name| name.to_string_lossy().contains(container)) {
                let path = folder.join("cgroup.procs");
                let text =
                    std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
                return Ok(text.lines().filter_map(|line| line.parse().ok()).collect());
            }
            folders.extend(below(&folder));
        }
        Ok(Vec::new())
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        if let Err(error) = self.trees.remove(&self.name, FREE) {
            // Nothing is left to do for who cannot even write to stderr.
            let _ = writeln!(std::io::stderr(), "the control group {} is left: {error:#}", self.name);
        }
    }
}

impl Trees {
    /// Finds them in `/proc/mounts`.
    fn parse(mounts: &str) -> Self {
        let mut trees = Self::default();
        for line in mounts.lines() {
            let mut words = line.split(' ').skip(1);
            match (words.next(), words.next()) {
                (Some(folder), Some("cgroup")) => trees.old.push(folder.into()),
                (Some(folder), Some("cgroup2")) => trees.unified = Some(folder.into()),
                _ => {}
            }
        }
        trees
    }

    fn all(&self) -> impl Iterator<Item = &PathBuf> {
        self.old.iter().chain(&self.unified)
    }

    fn make(&self, name: &str) -> Result<()> {
        for tree in &self.old {
            let folder = tree.join(name);
            std::fs::create_dir(&folder).with_context(|| format!("creating {}", folder.display()))?;
            // A group has no processors and no memory until somebody says so.
            for file in ["cpuset.cpus", "cpuset.mems"] {
                let (from, to) = (tree.join(file), folder.join(file));
                if from.exists() {
                    let text = std::fs::read(&from).with_context(|| format!("reading {}", from.display()))?;
                    std::fs::write(&to, text).with_context(|| format!("writing {}", to.display()))?;
                }
            }
        }
        if !self.old.is_empty() {
            return Ok(());
        }
        let tree = self.unified.as_ref().context("no control groups are mounted (/sys/fs/cgroup)")?;
        let path = tree.join("cgroup.controllers");
        let there = std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        let wanted: Vec<String> = CONTROLLERS
            .iter()
            .filter(|controller| there.split_whitespace().any(|one| one == **controller))
            .map(|controller| format!("+{controller}"))
            .collect();
        let path = tree.join("cgroup.subtree_control");
        std::fs::write(&path, wanted.join(" ")).with_context(|| {
            format!(
                "enabling {} in {}: a node needs the root of all control groups, which a container does not have",
                wanted.join(" "),
                path.display()
            )
        })?;
        let folder = tree.join(name);
        std::fs::create_dir(&folder).with_context(|| format!("creating {}", folder.display()))
    }

    /// Removes a group from all trees. A group is busy for a moment after its last process has ended.
    fn remove(&self, name: &str, within: Duration) -> Result<()> {
        let deadline = Instant::now() + within;
        for tree in self.all() {
            let folder = tree.join(name);
            loop {
                match remove(&folder) {
                    Err(error) if error.kind() == ErrorKind::ResourceBusy && Instant::now() < deadline => {
                        std::thread::sleep(Duration::from_millis(20));
                    }
                    outcome => break outcome.with_context(|| format!("removing {}", folder.display()))?,
                }
            }
        }
        Ok(())
    }

    /// Removes what test processes left that were killed.
    fn remove_stale(&self, lives: impl Fn(&str) -> bool) {
        for folder in self.all().flat_map(|tree| below(tree)) {
            let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let process = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next());
            if process.is_some_and(|process| !lives(process)) {
                // One that cannot be removed is in nobody's way.
                let _ = remove(&folder);
            }
        }
    }
}

/// Removes a group with all groups below it. The files in it are not real ones, and go with it.
fn remove(folder: &Path) -> std::io::Result<()> {
    for group in below(folder) {
        remove(&group)?;
    }
    match std::fs::remove_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        outcome => outcome,
    }
}

/// The folders in a folder. None where there is no such folder.
fn below(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .collect()
}

#[cfg(test)]
mod tests;
