//! Third-party programs, and what a test does where they are not built.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::aloud::aloud;
use crate::cached;
use crate::folder::is_set;

/// Set to anything but nothing or 0, a test without its peer fails.
pub(crate) const REQUIRE: &str = "REQUIRE_PEERS";

/// A third-party program that `cargo xtask peer` has built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    folder: PathBuf,
}

impl Peer {
    /// A file or a folder of it: a binary by its name, or what comes with it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The folder that holds all of it. Other tests use it at the same time: write nothing into it.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

/// Finds a peer in the cache. Where it is not built, says so loudly and gives `None`: skip the test.
///
/// With `REQUIRE_PEERS=1` in the environment that is an error.
pub async fn peer_or_skip(name: &str) -> Result<Option<Peer>> {
    let command = ["peer".to_owned(), name.to_owned()];
    // It may take a while: cargo may have to build xtask.
    let find = move || cached::folder(&command.each_ref().map(String::as_str));
    if let Some(folder) = tokio::task::spawn_blocking(find).await.context("looking for a peer")?? {
        return Ok(Some(Peer { folder }));
    }
    aloud("SKIPPED", &absent(name, is_set(std::env::var_os(REQUIRE).as_deref()))?)?;
    Ok(None)
}

/// Why a test is skipped. An error if it may not be.
fn absent(name: &str, required: bool) -> Result<String> {
    let hint = format!("`cargo xtask peer {name}` builds it");
    if required {
        bail!("{name} is not built, and {REQUIRE} is set: {hint}");
    }
    Ok(format!("{name}: not built; {hint}. ({REQUIRE}=1 makes this a failure.)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_that_is_not_built_is_skipped_unless_it_is_required() {
        let reason = absent("argo-rollouts", false).unwrap();
        assert!(reason.starts_with("argo-rollouts: not built; `cargo xtask peer argo-rollouts`"), "{reason}");
        let error = absent("argo-rollouts", true).unwrap_err().to_string();
        assert!(error.contains("`cargo xtask peer argo-rollouts` builds it"), "{error}");
    }

    #[tokio::test]
    async fn a_peer_that_does_not_exist_is_an_error() {
        let error = peer_or_skip("no-such-peer").await.unwrap_err().to_string();
        assert!(error.contains("no-such-peer"), "{error}");
    }
}
