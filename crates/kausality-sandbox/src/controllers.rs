//! The controllers of a control plane, each a pure step: a cache and a key in, writes out.
//!
//! ```text
//!  watch events ──▶ Cache ──▶ keys ──▶ queue ──▶ sync ──▶ Outcome { reads, writes, again }
//!                                        ▲                   │
//!                                        └── Retry ◀── the driver reads and writes
//! ```
//!
//! No controller knows a clock, a network or randomness, so the same code runs in real time in the sandbox and under a
//! seeded scheduler in simulation. Towards admission they behave as those of Kubernetes do: same users, same requests
//! in the same order, same conflicts.
//!
//! # What a driver does
//!
//! 1. It feeds each watch event to the controller's [`Cache`], and the [`Change`]s that come out to
//!    [`Controller::keys`]. The keys go into a queue that holds each key once.
//! 2. It takes a key and calls [`Controller::sync`].
//! 3. If the outcome asks for reads, it reads live, reports each with [`Controller::seen`], and syncs the key again at
//!    once. An outcome with reads has no writes. If one fails in any other way than with "not found", none is reported,
//!    and the key comes back after [`Retry::failed`].
//! 4. Else it does the writes in order. One that is refused is reported with [`Controller::refused`]; if
//!    [`Refusal::stops`] says so, the rest is not tried, and the key comes back after [`Retry::failed`].
//! 5. Else it calls [`Retry::forget`], and brings the key back at [`Outcome::again`], if that is set.

use std::sync::Arc;

use serde_json::Value;

mod account;
mod cache;
mod composite;
mod conditions;
mod cronjob;
mod daemonset;
mod deployment;
mod expectations;
mod garbage;
mod hash;
mod job;
mod kubelet;
mod namespace;
mod object;
mod pod;
mod replicaset;
mod resource;
mod retry;
mod revision;
mod scheduler;
mod statefulset;
mod time;
mod ttl;
mod write;

#[cfg(test)]
mod tests;

pub use account::ServiceAccounts;
pub use cache::{Cache, Change, Event};
pub use composite::{Child, Composite, Manner};
pub use cronjob::CronJobs;
pub use daemonset::DaemonSets;
pub use deployment::Deployments;
pub use garbage::GarbageCollector;
pub use job::Jobs;
pub use kubelet::Kubelet;
pub use namespace::Namespaces;
pub use replicaset::ReplicaSets;
pub use resource::{
    CONTROLLER_REVISIONS, CRON_JOBS, DAEMON_SETS, DEPLOYMENTS, JOBS, Key, NAMESPACES, NODES, PODS,
    REPLICA_SETS, Resource, SERVICE_ACCOUNTS, STATEFUL_SETS,
};
pub use retry::Retry;
pub use scheduler::Scheduler;
pub use statefulset::StatefulSets;
pub use time::Time;
pub use ttl::FinishedJobs;
pub use write::{Action, Delete, Propagation, Read, Refusal, Write};

/// A controller: it is told what changed, says what to look at, and answers each look with writes.
pub trait Controller {
    /// What people call it: `deployment-controller`.
    fn name(&self) -> &str;

    /// Who it is towards the API: `system:serviceaccount:kube-system:deployment-controller`.
    fn user(&self) -> String {
        format!("system:serviceaccount:kube-system:{}", self.name())
    }

    /// What its cache must hold.
    fn watches(&self) -> Watched;

    /// Which objects to sync after a change that the cache holds already. This is also how a controller sees that what
    /// it wrote has arrived, so each change must be reported once.
    fn keys(&mut self, cache: &Cache, change: &Change) -> Vec<Key>;

    /// What to do about one object, as far as the cache knows.
    fn sync(&mut self, cache: &Cache, key: &Key, now: Time) -> Outcome;

    /// Writes that its last sync of this key asked for and that did not happen: the first was refused, the others were
    /// not tried.
    fn refused(&mut self, key: &Key, undone: &[Write], refusal: &Refusal) {
        let _ = (key, undone, refusal);
    }

    /// What a live read that its last sync of this key asked for has found.
    fn seen(&mut self, key: &Key, read: &Read, found: &[Arc<Value>]) {
        let _ = (key, read, found);
    }
}

/// What a controller's cache must hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Watched {
    /// These resources.
    These(Vec<Resource>),
    /// All that is served, also what is served later.
    Everything,
}

/// What a sync asks its driver to do.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// What to read live before the key is synced again; if there is any, there are no writes.
    pub reads: Vec<Read>,
    /// What to write, in this order.
    pub writes: Vec<Write>,
    /// When to look again although nothing changed.
    pub again: Option<Time>,
}

impl Outcome {
    /// Writes, and nothing else.
    fn writes(writes: Vec<Write>) -> Self {
        Self { writes, ..Self::default() }
    }
}

/// The controllers of a plain control plane, a scheduler, and a kubelet with a node. Composite controllers come on top.
pub fn standard() -> Vec<Box<dyn Controller + Send>> {
    vec![
        Box::new(Deployments::default()),
        Box::new(ReplicaSets::default()),
        Box::new(StatefulSets::default()),
        Box::new(DaemonSets::default()),
        Box::new(Jobs::default()),
        Box::new(CronJobs::default()),
        Box::new(FinishedJobs::default()),
        Box::new(GarbageCollector::default()),
        Box::new(Namespaces::default()),
        Box::new(ServiceAccounts::default()),
        Box::new(Scheduler::default()),
        Box::new(Kubelet::default()),
    ]
}
