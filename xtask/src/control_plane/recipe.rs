//! What a folder of the cache is made of.

use std::path::{Path, PathBuf};

use super::binary::{Binary, CONTROL_PLANE, HELM};
use super::pin::{Pins, Version};

/// What a folder of the cache is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Recipe {
    /// Taken from elsewhere, by a link.
    pub(super) links: Vec<Link>,
    pub(super) builds: Vec<Build>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) name: &'static str,
    pub(super) target: PathBuf,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Build {
    pub(super) binary: Binary,
    pub(super) version: Version,
}

impl Recipe {
    /// With `assets`, the control plane is linked from there, and helm is built. Without, all is built.
    pub(super) fn new(assets: Option<&Path>, pins: &Pins) -> Self {
        let build = |binary: Binary| Build { binary, version: pins.of(binary.module).version.clone() };
        match assets {
            Some(folder) => {
                let link = |binary: Binary| Link { name: binary.name, target: folder.join(binary.name) };
                Self { links: CONTROL_PLANE.map(link).to_vec(), builds: vec![build(HELM)] }
            }
            None => Self {
                links: Vec::new(),
                builds: CONTROL_PLANE.into_iter().chain([HELM]).map(build).collect(),
            },
        }
    }

    /// The files of a folder that is made so.
    pub(super) fn files(&self) -> impl Iterator<Item = &'static str> {
        let links = self.links.iter().map(|link| link.name);
        links.chain(self.builds.iter().map(|build| build.binary.name))
    }
}
