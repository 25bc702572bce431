//! What a test does where no node can be started.

use std::process::Command;

use anyhow::{Result, ensure};

use crate::aloud::aloud;
use crate::folder::is_set;
use crate::peer::{REQUIRE, peer_or_skip};
use crate::skip::find_or_skip;

use super::{Node, NodePrograms};

/// Programs of the host that a node is started with, and the Debian packages that have them.
const NEEDED: [(&str, &str); 4] =
    [("unshare", "util-linux"), ("nsenter", "util-linux"), ("mount", "mount"), ("ip", "iproute2")];

/// Starts a node. Where that cannot be, says so loudly and gives `None`: skip the test.
///
/// It takes Linux, root, the control plane's binaries and the peer `node`. With `REQUIRE_PEERS=1` in the environment it is an
/// error if one of them is missing. That a node does not start although all of it is there is an error always.
pub async fn node_or_skip() -> Result<Option<Node>> {
    if let Some(reason) = obstacle() {
        ensure!(!is_set(std::env::var_os(REQUIRE).as_deref()), "{reason}, and {REQUIRE} is set");
        aloud("SKIPPED", &format!("{reason}. ({REQUIRE}=1 makes this a failure.)"))?;
        return Ok(None);
    }
    let Some(binaries) = find_or_skip().await? else { return Ok(None) };
    let Some(peer) = peer_or_skip("node").await? else { return Ok(None) };
    Node::start(&binaries, &NodePrograms::of(&peer)?).await.map(Some)
}

/// Why this machine cannot have a node.
fn obstacle() -> Option<String> {
    if !cfg!(target_os = "linux") {
        return Some("a real node needs Linux".to_owned());
    }
    if !rustix::process::geteuid().is_root() {
        return Some(
            "a real node needs root, for namespaces and control groups: run the tests with sudo".to_owned(),
        );
    }
    let missing = NEEDED.iter().find(|(name, _)| Command::new(name).arg("--version").output().is_err());
    missing.map(|(name, package)| format!("a real node needs {name}: install {package}"))
}
