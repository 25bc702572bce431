//! Kausality on a cluster: facts out of it, effects into it.
//!
//! ```text
//!   watch ──▶ Index (one per kind: small summaries) ──┐
//!   live read, where a watch is not good enough ──────┼──▶ Known ──▶ decide ──▶ Decision
//!   watch ──▶ Namespaces ─────────────────────────────┘                           │
//!                                                                                 ▼
//!            before the answer: a `once` approval is used up by compare-and-swap ─┤
//!            after it: annotations that no patch could carry, events on parents ──┘
//! ```
//!
//! A request that is no drift is answered from memory. Before anything is denied or reported, the parent is
//! read live and the decision is made again: a stale cache must never block a legitimate change.

mod admission;
mod afterwards;
mod alarm;
mod authorities;
mod below;
mod clock;
mod cluster;
mod effects;
mod events;
pub mod exceptions;
mod feed;
mod grants;
mod index;
mod inputs;
mod kinds;
mod lately;
pub mod ledger;
mod namespaces;
mod pending;
pub mod policies;
mod pulse;
mod reads;
mod reason;
pub mod registration;
pub mod salt;
mod schemas;
mod spent;
mod unjudged;

pub use alarm::alarm;
pub use clock::Clock;
pub use cluster::{Cluster, Freshness, WatchHealth};
pub use feed::{Mirror, Which, follow};
pub use index::{Changes, Index, Sight};
pub use kinds::{Kind, Kinds, Listing, UnknownKind};
pub use pulse::Health;
pub use reason::reason;
pub use schemas::{NoSchema, Schemas};
