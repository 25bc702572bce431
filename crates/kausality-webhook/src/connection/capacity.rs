//! How many connections are open, and which of them goes where there is no room for another.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Instant,
};

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
};
use tokio::task::{AbortHandle, Id};

use crate::seldom::Seldom;

/// The most connections where nobody says otherwise.
pub(crate) const CONNECTIONS: usize = 1000;

/// How many connections there may be, and how many had to go.
#[derive(Clone, Debug)]
pub(crate) struct Capacity {
    pub(crate) limit: usize,
    pub(crate) closed: Family<Closed, Counter>,
}

impl Default for Capacity {
    fn default() -> Self {
        Self { limit: CONNECTIONS, closed: Family::default() }
    }
}

/// Why a connection was closed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Closed {
    /// `idle`: it made room for another. `full`: it was that other one, and all were in use.
    reason: &'static str,
}

/// What a connection is used for.
#[derive(Debug)]
pub(crate) struct Usage {
    begun: Instant,
    requests: AtomicUsize,
    /// When it was last used: milliseconds after `begun`.
    last: AtomicU64,
    /// Whether it has brought a review that was taken.
    is_known: AtomicBool,
}

impl Usage {
    fn new() -> Self {
        Self {
            begun: Instant::now(),
            requests: AtomicUsize::new(0),
            last: AtomicU64::new(0),
            is_known: AtomicBool::new(false),
        }
    }

    /// Notes that a request is under way, until what this gives is dropped.
    pub(crate) fn begin(self: &Arc<Self>) -> UnderWay {
        self.requests.fetch_add(1, Ordering::Relaxed);
        UnderWay(Arc::clone(self))
    }

    /// Notes that whoever uses it may post reviews.
    pub(crate) fn know(&self) {
        self.is_known.store(true, Ordering::Relaxed);
    }

    fn is_idle(&self) -> bool {
        self.requests.load(Ordering::Relaxed) == 0
    }

    /// Those that are missed least come first: strangers before those who post reviews, and then by their last use.
    fn worth(&self) -> (bool, Instant) {
        let last = std::time::Duration::from_millis(self.last.load(Ordering::Relaxed));
        (self.is_known.load(Ordering::Relaxed), self.begun + last)
    }
}

/// A request that is under way.
#[derive(Debug)]
pub(crate) struct UnderWay(Arc<Usage>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        let now = u64::try_from(self.0.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.0.last.store(now, Ordering::Relaxed);
        self.0.requests.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The connections that are open.
#[derive(Debug, Default)]
pub(super) struct Open {
    capacity: Capacity,
    connections: HashMap<Id, (AbortHandle, Arc<Usage>)>,
    complaints: Seldom,
}

impl Open {
    pub(super) fn new(capacity: Capacity) -> Self {
        Self { capacity, ..Self::default() }
    }

    /// Finds room for a connection, if need be by closing an idle one. None, if all are in use: then it is to be closed at
    /// once, so that its client need not wait to learn that.
    pub(super) fn admit(&mut self) -> Option<Arc<Usage>> {
        if self.connections.len() >= self.capacity.limit {
            let idle = self.connections.iter().filter(|(_, (_, usage))| usage.is_idle());
            let idle = idle.min_by_key(|(_, (_, usage))| usage.worth()).map(|(id, _)| *id);
            let reason = if idle.is_some() { "idle" } else { "full" };
            self.capacity.closed.get_or_create(&Closed { reason }).inc();
            if self.complaints.is_due() {
                tracing::warn!(
                    limit = self.capacity.limit,
                    closed = if idle.is_some() { "one that was idle" } else { "the one that came" },
                    "too many connections: see who connects, or raise --max-connections"
                );
            }
            // What is aborted is dropped, and with it its file descriptor.
            self.remove(idle?)?.abort();
        }
        Some(Arc::new(Usage::new()))
    }

    pub(super) fn add(&mut self, task: AbortHandle, usage: Arc<Usage>) {
        self.connections.insert(task.id(), (task, usage));
    }

    pub(super) fn remove(&mut self, id: Id) -> Option<AbortHandle> {
        self.connections.remove(&id).map(|(task, _)| task)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::task::JoinSet;

    use super::*;

    struct Full {
        open: Open,
        tasks: JoinSet<()>,
    }

    /// As many connections as fit, of which each is used as `uses` says.
    fn full(uses: &[fn(&Arc<Usage>)]) -> Full {
        let mut open = Open::new(Capacity { limit: uses.len(), ..Capacity::default() });
        let mut tasks = JoinSet::new();
        for each in uses {
            let usage = open.admit().unwrap();
            each(&usage);
            open.add(tasks.spawn(std::future::pending()), usage);
        }
        Full { open, tasks }
    }

    fn at(millis: u64) -> impl Fn(&Arc<Usage>) {
        move |usage| usage.last.store(millis, Ordering::Relaxed)
    }

    /// Which task ended.
    async fn ended(full: &mut Full, ids: &[Id]) -> usize {
        let ended = tokio::time::timeout(Duration::from_secs(30), full.tasks.join_next()).await;
        let id = ended.unwrap().unwrap().unwrap_err().id();
        ids.iter().position(|other| *other == id).unwrap()
    }

    #[tokio::test]
    async fn the_one_that_is_missed_least_makes_room() {
        let mut full = full(&[
            |usage| at(1)(usage),
            |usage| {
                usage.know();
                at(0)(usage);
            },
            |usage| at(60_000)(usage),
            |usage| std::mem::forget(usage.begin()),
        ]);
        let mut ids: Vec<Id> = full.open.connections.keys().copied().collect();
        ids.sort_unstable_by_key(ToString::to_string);
        ids.sort_by_key(|id| full.open.connections[id].1.begun);
        for expected in [0, 2, 1] {
            assert!(full.open.admit().is_some());
            assert_eq!(ended(&mut full, &ids).await, expected);
            let busy = Arc::new(Usage::new());
            std::mem::forget(busy.begin());
            let task = full.tasks.spawn(std::future::pending());
            full.open.add(task, busy);
        }
        assert!(full.open.admit().is_none(), "all are in use");
        let count = |reason| full.open.capacity.closed.get_or_create(&Closed { reason }).get();
        assert_eq!((count("idle"), count("full")), (3, 1));
    }
}
