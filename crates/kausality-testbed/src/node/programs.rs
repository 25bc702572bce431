//! Where the programs of a node are.

use std::path::PathBuf;

use anyhow::{Context as _, Result};

use crate::peer::Peer;

/// The programs of the peer `node`, in one folder: kubelet, kube-proxy, kube-scheduler, `pause` and `app`, and in `root` the
/// unpacked Debian packages of containerd, runc, nftables and the CNI plugins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodePrograms {
    folder: PathBuf,
    /// The libraries of the packages.
    libraries: PathBuf,
}

impl NodePrograms {
    /// Those of the peer `node`.
    pub fn of(peer: &Peer) -> Result<Self> {
        let folder = peer.folder().to_owned();
        // As in usr/lib/x86_64-linux-gnu.
        let all = folder.join("root/usr/lib");
        let entries = std::fs::read_dir(&all).with_context(|| format!("listing {}", all.display()))?;
        let mut libraries = entries.flatten().map(|entry| entry.path());
        let libraries = libraries
            .find(|path| path.to_string_lossy().ends_with("-linux-gnu"))
            .with_context(|| format!("{} has no libraries", all.display()))?;
        Ok(Self { folder, libraries })
    }

    /// A small web server for Pods: listens on `$PORT`, or on 8080, and says `$TEXT`.
    pub fn app(&self) -> PathBuf {
        self.folder.join("app")
    }

    /// What keeps the namespaces of a Pod.
    pub fn pause(&self) -> PathBuf {
        self.folder.join("pause")
    }

    pub(super) fn kubelet(&self) -> PathBuf {
        self.folder.join("kubelet")
    }

    pub(super) fn proxy(&self) -> PathBuf {
        self.folder.join("kube-proxy")
    }

    pub(super) fn scheduler(&self) -> PathBuf {
        self.folder.join("kube-scheduler")
    }

    pub(super) fn containerd(&self) -> PathBuf {
        self.root("usr/bin/containerd")
    }

    pub(super) fn ctr(&self) -> PathBuf {
        self.root("usr/bin/ctr")
    }

    /// The folder of the CNI plugins.
    pub(super) fn cni(&self) -> PathBuf {
        self.root("usr/lib/cni")
    }

    /// The variables by which programs find each other (kubelet starts mount, kube-proxy nft, containerd runc), and those
    /// of packages their libraries.
    pub(super) fn environment(&self) -> Vec<(String, String)> {
        let own = ["usr/sbin", "usr/bin"].map(|name| self.root(name).display().to_string());
        let path = std::env::var("PATH").unwrap_or_default();
        // Where mount and ip are, also for users whose PATH does not have them.
        let path = format!("{}:{path}:/usr/sbin:/sbin:/usr/bin:/bin", own.join(":"));
        let libraries = self.libraries.display().to_string();
        vec![("PATH".to_owned(), path), ("LD_LIBRARY_PATH".to_owned(), libraries)]
    }

    fn root(&self, path: &str) -> PathBuf {
        self.folder.join("root").join(path)
    }
}
