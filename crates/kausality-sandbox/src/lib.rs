//! A Kubernetes control plane in one process: to try Kausality without a cluster, to embed it, and to test what no
//! cluster shows on demand.
//!
//! ```text
//!  kubectl ──HTTPS──┐                          ┌─ read, list, watch
//!                   ├─▶ Sandbox::handle ─▶ call ┤
//!  kube::Client ────┘    (one state machine)    └─ write: decode ─▶ managedFields ─▶ admission ─▶ prepare ─▶ validate ─▶ store
//!                                                                                    │
//!                                                             in-process, or webhooks over HTTPS
//! ```
//!
//! A [`Sandbox`] is a state behind one function from requests to answers. Time comes from a [`Clock`], and what is made up
//! (uids, names) from a seed, so that the same requests in the same order have the same results. [`Sandbox::serve`] puts it
//! behind HTTPS, [`Sandbox::client`] behind a `kube::Client`, and [`Sandbox::add_admission`] asks somebody about every write.
//! [`controllers`] are what makes a cluster out of an API.
//!
//! A write is prepared on a copy. It is stored if the object is still the one that the copy was made of; if not, it is a
//! conflict for who named a resourceVersion, and is done again for all others.

pub mod controllers;

mod admission;
mod aggregation;
mod answer;
mod audit;
mod call;
mod client;
mod clock;
mod conversion;
mod defaults;
mod discovery;
mod identity;
mod kinds;
mod managed;
mod metadata;
mod observer;
mod openapi;
mod patch;
mod prepare;
mod rbac;
mod request;
mod runtime;
mod sandbox;
mod seed;
mod serve;
mod status;
mod store;
mod table;
mod types;
mod validate;
mod verbs;

pub use admission::{Admission, Verdict, Write};
pub use answer::Body;
pub use audit::AuditEntry;
pub use clock::{Clock, RealClock, VirtualClock};
pub use discovery::VERSION;
pub use identity::{MASTERS, User};
pub use observer::{Observer, Stored};
pub use runtime::{Road, Running};
pub use sandbox::{Builder, Sandbox};
pub use serve::{ServeError, Served};
pub use status::{Cause, Failure, Subject};
