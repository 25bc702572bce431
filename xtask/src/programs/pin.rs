//! The modules in the repository, and the versions that they pin.

use std::fmt;
use std::path::Path;

use anyhow::{Context as _, Result};

use super::set::Module;

/// A version of a Go module, as `v1.35.8`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Version(String);

impl Version {
    /// Reads `v<major>.<minor>.<rest>`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let version = Self(text.to_owned());
        let numeric = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let well_formed = text.starts_with('v')
            && numeric(version.major())
            && numeric(version.minor())
            && text.matches('.').count() >= 2;
        well_formed.then_some(version)
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    pub(super) fn major(&self) -> &str {
        self.part(0)
    }

    pub(super) fn minor(&self) -> &str {
        self.part(1)
    }

    fn part(&self, index: usize) -> &str {
        self.0.trim_start_matches('v').split('.').nth(index).unwrap_or_default()
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a module pins, and the files that say so.
#[derive(Debug, Clone)]
pub(super) struct Pin {
    pub(super) version: Version,
    /// The oldest Go that may build it, as `1.26.0`.
    pub(super) go: String,
    pub(super) go_mod: String,
    pub(super) go_sum: String,
}

impl Pin {
    /// Reads the files of a module. `root` is the root of the repository.
    pub(super) fn read(root: &Path, module: &Module) -> Result<Self> {
        let folder = root.join(module.folder);
        let text = |name| {
            let path = folder.join(name);
            std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))
        };
        Self::parse(module.pins, text("go.mod")?, text("go.sum")?).with_context(|| {
            format!(
                "{} has no `go` line, or requires no version of {}: the README.md beside its folder says how it should look",
                folder.join("go.mod").display(),
                module.pins
            )
        })
    }

    /// `None` if the go.mod has no `go` line, or does not require `path`.
    pub(super) fn parse(path: &str, go_mod: String, go_sum: String) -> Option<Self> {
        let lines = || go_mod.lines().map(|line| line.split("//").next().unwrap_or_default());
        let go = lines().find_map(|line| line.strip_prefix("go "))?.trim().to_owned();
        let version = lines().find_map(|line| {
            let mut words = line.split_whitespace().skip_while(|word| *word == "require");
            (words.next() == Some(path)).then(|| words.next().and_then(Version::parse)).flatten()
        })?;
        Some(Self { version, go, go_mod, go_sum })
    }
}

/// The numbers of a release of Go: `go1.26.8-X:nodwarf5` and `1.26.8` are `[1, 26, 8]`.
pub(super) fn release(version: &str) -> Vec<u32> {
    let numbers = version.trim_start_matches(|c: char| !c.is_ascii_digit());
    let end = numbers.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(numbers.len());
    numbers[..end].split('.').map_while(|number| number.parse().ok()).collect()
}

#[cfg(test)]
mod tests;
