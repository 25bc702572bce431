//! What a folder of the cache is made of.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::pin::{Pin, Version, release};
use super::set::{Binary, Copied, Set, Step};

/// What a folder of the cache is made of: a set with its pins, and links.
#[derive(Debug, Clone)]
pub(crate) struct Recipe {
    /// Taken from elsewhere, by a link.
    pub(crate) links: Vec<Link>,
    pub(crate) builds: Vec<Build>,
    pub(super) copies: Vec<PinnedCopy>,
    pub(super) steps: Vec<Work>,
}

#[derive(Debug, Clone)]
pub(crate) struct Link {
    pub(crate) name: &'static str,
    pub(crate) target: PathBuf,
}

#[derive(Debug, Clone)]
pub(crate) struct Build {
    pub(crate) binary: Binary,
    pub(super) pin: Pin,
}

impl Build {
    /// The flags of `go build` for it.
    pub(crate) fn flags(&self) -> Vec<String> {
        self.binary.flags(&self.pin.version)
    }
}

#[derive(Debug, Clone)]
pub(super) struct PinnedCopy {
    pub(super) what: Copied,
    pub(super) pin: Pin,
}

#[derive(Debug, Clone)]
pub(super) struct Work {
    pub(super) step: Step,
    /// The content of its inputs.
    pub(super) inputs: Vec<String>,
}

impl Recipe {
    /// Reads the pins of a set, and the inputs of its steps. `root` is the root of the repository.
    pub(crate) fn read(set: &Set, root: &Path) -> Result<Self> {
        let builds = set.binaries.iter().map(|binary| {
            let pin = Pin::read(root, binary.module)?;
            Ok(Build { binary: *binary, pin })
        });
        let copies = set.copies.iter().map(|what| {
            let pin = Pin::read(root, what.module)?;
            Ok(PinnedCopy { what: *what, pin })
        });
        let steps = set.steps.iter().map(|step| {
            let inputs = step.inputs.iter().map(|input| {
                let path = root.join(input);
                std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))
            });
            Ok(Work { step: *step, inputs: inputs.collect::<Result<_>>()? })
        });
        Ok(Self {
            links: Vec::new(),
            builds: builds.collect::<Result<_>>()?,
            copies: copies.collect::<Result<_>>()?,
            steps: steps.collect::<Result<_>>()?,
        })
    }

    /// The same, with links to what is elsewhere.
    pub(crate) fn with_links(self, links: Vec<Link>) -> Self {
        Self { links, ..self }
    }

    /// The version of the first binary, which stands for the set.
    pub(crate) fn version(&self) -> Option<&Version> {
        self.builds.first().map(|build| &build.pin.version)
    }

    /// The oldest Go that may build all of it.
    pub(crate) fn go(&self) -> &str {
        let pins = self.builds.iter().map(|build| &build.pin);
        let pins = pins.chain(self.copies.iter().map(|copy| &copy.pin));
        pins.map(|pin| pin.go.as_str()).max_by_key(|go| release(go)).unwrap_or_default()
    }

    /// The files and folders in a folder that is made so.
    pub(super) fn files(&self) -> impl Iterator<Item = &'static str> {
        let links = self.links.iter().map(|link| link.name);
        let builds = self.builds.iter().map(|build| build.binary.name);
        let copies = self.copies.iter().map(|copy| copy.what.to);
        let outputs = self.steps.iter().flat_map(|work| work.step.outputs.iter().copied());
        links.chain(builds).chain(copies).chain(outputs)
    }
}

#[cfg(test)]
mod tests;
