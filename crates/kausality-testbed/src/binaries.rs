//! Where the binaries are.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::cached;

const ETCD: &str = "etcd";
const APISERVER: &str = "kube-apiserver";
const CONTROLLER_MANAGER: &str = "kube-controller-manager";
const KUBECTL: &str = "kubectl";
const HELM: &str = "helm";

/// A folder that holds etcd, kube-apiserver, kube-controller-manager and kubectl, and mostly helm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binaries {
    folder: PathBuf,
}

impl Binaries {
    /// Looks into `KUBEBUILDER_ASSETS`, and into the cache that `cargo xtask control-plane` fills. Builds nothing.
    ///
    /// `KUBEBUILDER_ASSETS` with all five is taken as it is. Else the cache is asked, where helm may have been added to
    /// those assets. What has no helm is taken last.
    pub fn find() -> Result<Option<Self>> {
        let assets = std::env::var_os("KUBEBUILDER_ASSETS").filter(|value| !value.is_empty());
        let assets = assets.map(std::path::absolute).transpose().context("reading KUBEBUILDER_ASSETS")?;
        Self::choose(assets, || cached::folder(&["control-plane"]))
    }

    fn choose(
        assets: Option<PathBuf>,
        cached: impl FnOnce() -> Result<Option<PathBuf>>,
    ) -> Result<Option<Self>> {
        let assets = assets.and_then(Self::at);
        if let Some(assets) = &assets
            && assets.helm().is_some()
        {
            return Ok(Some(assets.clone()));
        }
        Ok(cached()?.and_then(Self::at).or(assets))
    }

    /// A folder, if it holds all that a control plane needs.
    fn at(folder: PathBuf) -> Option<Self> {
        let complete =
            [ETCD, APISERVER, CONTROLLER_MANAGER, KUBECTL].iter().all(|name| folder.join(name).is_file());
        complete.then_some(Self { folder })
    }

    /// The folder that holds them.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// kubectl. [`ControlPlane::kubectl`](crate::ControlPlane::kubectl) knows where to go and as whom.
    pub fn kubectl(&self) -> PathBuf {
        self.folder.join(KUBECTL)
    }

    /// helm, if it is there.
    pub fn helm(&self) -> Option<PathBuf> {
        Some(self.folder.join(HELM)).filter(|path| path.is_file())
    }

    pub(crate) fn etcd(&self) -> PathBuf {
        self.folder.join(ETCD)
    }

    pub(crate) fn apiserver(&self) -> PathBuf {
        self.folder.join(APISERVER)
    }

    pub(crate) fn controller_manager(&self) -> PathBuf {
        self.folder.join(CONTROLLER_MANAGER)
    }
}

#[cfg(test)]
mod tests {
    use anyhow::bail;

    use super::*;

    const FOUR: [&str; 4] = [ETCD, APISERVER, CONTROLLER_MANAGER, KUBECTL];
    const FIVE: [&str; 5] = [ETCD, APISERVER, CONTROLLER_MANAGER, KUBECTL, HELM];

    fn folder(files: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            std::fs::write(folder.path().join(file), "").unwrap();
        }
        folder
    }

    #[test]
    fn the_most_complete_folder_is_taken() {
        let (none, four, five) = (folder(&[KUBECTL]), folder(&FOUR), folder(&FIVE));
        let other = folder(&FIVE);
        for (assets, cache, expected) in [
            (None, None, None),
            (None, Some(&five), Some(&five)),
            (None, Some(&none), None),
            (Some(&none), None, None),
            (Some(&none), Some(&five), Some(&five)),
            (Some(&four), None, Some(&four)),
            (Some(&four), Some(&five), Some(&five)),
            (Some(&five), Some(&other), Some(&five)),
        ] {
            let path = |folder: &tempfile::TempDir| folder.path().to_owned();
            let found = Binaries::choose(assets.map(path), || Ok(cache.map(path))).unwrap();
            assert_eq!(found.map(|found| found.folder), expected.map(path), "{assets:?} {cache:?}");
        }
    }

    #[test]
    fn assets_with_all_do_not_ask_the_cache() {
        let five = folder(&FIVE);
        assert!(Binaries::choose(Some(five.path().to_owned()), || bail!("asked")).unwrap().is_some());
    }
}
