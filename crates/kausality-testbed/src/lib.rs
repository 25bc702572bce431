//! Real control planes for tests: etcd, kube-apiserver and kube-controller-manager on loopback, or with a real node.
//!
//! ```text
//!  Binaries ──start──> ControlPlane ──client(user, groups)──> kube::Client as that user
//!  (found, never          │   ├──────kubectl(user, groups)──> a command as that user
//!   built here)           │   ├──────play_kubelet()─────────> Kubelet: Pods run, Jobs complete, deletions end
//!                         │   ├──────audit()────────────────> every API call, by user, user agent and code
//!                         │   └──────pause(), restart()─────> faults
//!                         └──drop──> no process, no file
//! ```
//!
//! A test that needs a control plane asks for one, and passes where there is none:
//!
//! ```no_run
//! # use std::time::Duration;
//! use kausality_testbed::{MASTERS, eventually, start_or_skip};
//! use kube::api::{Api, ListParams};
//! use k8s_openapi::api::core::v1::Namespace;
//!
//! # async fn test() -> anyhow::Result<()> {
//! let Some(plane) = start_or_skip().await? else { return Ok(()) };
//! let namespaces: Api<Namespace> = Api::all(plane.client("alice", &[MASTERS])?);
//! assert!(!namespaces.list(&ListParams::default()).await?.items.is_empty());
//!
//! // The API server writes a call into the audit log after it has answered.
//! let call = eventually(Duration::from_secs(10), "alice in the audit log", async || {
//!     plane.audit().map(|events| events.into_iter().find(|event| event.user == "alice")).ok().flatten()
//! });
//! assert_eq!(call.await?.verb, "list");
//! # Ok(())
//! # }
//! ```
//!
//! A [`Node`] is a control plane of its own with a real kubelet, for what only containers show. It takes Linux and root:
//! [`node_or_skip`].
//!
//! Every control plane has its own folder, ports, certificates and processes, so any number of them run at once, in
//! one test process or in many. The folder holds the logs. It is removed at the end, except if the test panics, the
//! start fails or `KAUSALITY_TESTBED_KEEP` is set: then its path is printed. (A test that returns an error has
//! dropped its control plane before anybody sees the error: prefer `unwrap` and `assert` over `?` for what is tested.)

mod aloud;
mod audit;
mod binaries;
mod cached;
mod certificates;
mod eventually;
mod expected;
mod flags;
mod folder;
mod identity;
mod kubelet;
mod launch;
mod node;
mod peer;
mod plane;
mod port;
mod process;
mod program;
mod shared;
mod skip;
mod xtask;

pub use audit::{AuditEvent, AuditTail};
pub use binaries::Binaries;
pub use eventually::{Probe, eventually};
pub use expected::expected_to_fail;
pub use identity::MASTERS;
pub use kubelet::Kubelet;
pub use node::{Node, NodePrograms, Outage, node_or_skip};
pub use peer::{Peer, peer_or_skip};
pub use plane::{Component, ControlPlane};
pub use port::free_port;
pub use program::Program;
pub use shared::share_or_skip;
pub use skip::{find_or_skip, start_or_skip};
