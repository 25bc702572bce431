//! What is not entered, since so much waits for somebody already.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;

/// How often it is said of a namespace that no more is entered.
const AGAIN: Duration = Duration::from_secs(60);

/// What is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Bound {
    /// One child has as many open entries as it may.
    Child,
    /// A namespace has.
    Namespace,
    /// This replica knows as many drifts as it may that are not written yet.
    Replica,
}

impl Bound {
    const ALL: [Self; 3] = [Self::Child, Self::Namespace, Self::Replica];

    /// The word, for metrics.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Child => "child",
            Self::Namespace => "namespace",
            Self::Replica => "replica",
        }
    }
}

/// How often drifts were not entered, and whether that has been said.
#[derive(Debug, Default)]
pub(crate) struct Refused {
    counts: [AtomicU64; Bound::ALL.len()],
    said: Mutex<BTreeMap<(String, Bound), Instant>>,
}

impl Refused {
    /// Counts one more. Tells whether it is to be said.
    pub(super) fn count(&self, namespace: &str, bound: Bound) -> bool {
        if let Some(count) = self.counts.get(bound as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        said.retain(|_, at| at.elapsed() < AGAIN);
        let is_news = !said.contains_key(&(namespace.to_owned(), bound));
        if is_news {
            said.insert((namespace.to_owned(), bound), Instant::now());
        }
        is_news
    }

    /// How often, by what was full.
    pub(crate) fn counts(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let counts = self.counts.iter().map(|count| count.load(Ordering::Relaxed));
        Bound::ALL.iter().map(|bound| bound.as_str()).zip(counts)
    }
}
