//! Drift reports: delivered to endpoints, received and kept.
//!
//! ```text
//!  Drift, ClusterDrift ──▶ deliver ──▶ sender ──HTTPS──▶ receive ──▶ a page of YAML (`kausality backend log`)
//!  (the ledger)              │ delivery: what is next       │        history: SQLite (`kausality backend serve`)
//!         ▲                  │ backoff: how long to wait    │
//!         └── deliveries ────┘                              └── any other endpoint may stand here
//! ```
//!
//! The ledger in the cluster says what is to be told and what has been; nothing is kept beside it. So delivery is at
//! least once, in order for each drift and endpoint, whoever leads and however often that changes. What decides is pure:
//! [`delivery`], [`backoff`] and [`signature`].
//!
//! ```no_run
//! use kausality_report::{Metrics, deliver, endpoint, sender::Sender};
//!
//! async fn lead(client: kube::Client) -> Result<(), endpoint::BadEndpoints> {
//!     let endpoints = endpoint::check(endpoint::read("endpoints.yaml".as_ref())?)?;
//!     let senders = endpoints.into_iter().map(Sender::new).collect::<Result<Vec<_>, _>>()?;
//!     deliver::run(client, &senders, &Metrics::default()).await;
//!     Ok(())
//! }
//! ```

pub mod backoff;
pub mod deliver;
pub mod delivery;
pub mod endpoint;
pub mod history;
mod metrics;
pub mod receive;
pub mod secret;
pub mod sender;
pub mod signature;

pub use metrics::{Metrics, phase_name};
