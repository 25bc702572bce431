//! The objects of one kind as small summaries, fed by a watch.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::{Arc, Mutex, PoisonError, RwLock},
    time::{Duration, Instant},
};

use kausality_core::Summary;
use tokio::sync::watch;

use crate::kinds::Kind;

/// How many objects of a kind are kept at most; those of a kind with more are read live.
const MAX_OBJECTS: usize = 200_000;

/// How many uids of deleted objects are remembered, for the garbage collector's deletions that follow.
const MAX_DEPARTED: usize = 16_384;

/// A watch that has been silent and broken for longer than this is not trusted.
const MAX_OUTAGE: Duration = Duration::from_secs(5);

/// A watch that fails says so at least this often: the longest pause between its attempts is half of it.
const SURE_RECOVERY: Duration = Duration::from_secs(60);

/// The objects of one kind. One watch writes, everybody reads.
#[derive(Debug)]
pub struct Index {
    /// The kind.
    pub kind: Kind,
    state: RwLock<State>,
    departed: Mutex<Departed>,
    changes: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct State {
    objects: HashMap<Place, Arc<Summary>>,
    /// Objects of a list that is still being read.
    arriving: HashMap<Place, Arc<Summary>>,
    synced: bool,
    /// Since when the watch does not work, and when that showed last.
    broken: Option<(Instant, Instant)>,
    last_event: Option<Instant>,
}

impl State {
    /// How long the watch has not worked. It tells of every failure, and tries again within seconds: where none has
    /// come for a while it works again, although nothing has happened to tell.
    fn outage(&self) -> Option<Duration> {
        let (since, last) = self.broken?;
        (last.elapsed() < SURE_RECOVERY).then(|| since.elapsed())
    }
}

type Place = (String, String);

#[derive(Debug, Default)]
struct Departed {
    order: VecDeque<String>,
    uids: HashSet<String>,
}

/// What an index knows of an object.
#[derive(Clone, Debug)]
pub enum Sight {
    /// It is there.
    Here(Arc<Summary>),
    /// It was there, and is not any more.
    Departed,
    /// It has not been seen, but may have come since.
    Unseen,
    /// The index cannot be trusted now.
    Blind,
}

/// How an index is doing.
#[derive(Clone, Copy, Debug)]
pub struct Health {
    /// How many objects it holds.
    pub objects: usize,
    /// Whether it has been filled once.
    pub synced: bool,
    /// How long the watch has been broken.
    pub outage: Option<Duration>,
    /// How long ago the last event came.
    pub silence: Option<Duration>,
}

impl Index {
    /// An index of this kind that is still empty.
    #[must_use]
    pub fn new(kind: Kind) -> Self {
        Self { kind, state: RwLock::default(), departed: Mutex::default(), changes: watch::Sender::new(0) }
    }

    /// What is known of an object. `uid` is the one that must be meant.
    #[must_use]
    pub fn look(&self, namespace: &str, name: &str, uid: &str) -> Sight {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        if !state.synced
            || state.outage().is_some_and(|outage| outage > MAX_OUTAGE)
            || state.objects.len() > MAX_OBJECTS
        {
            return Sight::Blind;
        }
        match state.objects.get(&(namespace.to_owned(), name.to_owned())) {
            Some(summary) if uid.is_empty() || summary.uid == uid => Sight::Here(summary.clone()),
            _ if self.departed.lock().unwrap_or_else(PoisonError::into_inner).uids.contains(uid) => {
                Sight::Departed
            }
            _ => Sight::Unseen,
        }
    }

    /// Waits until something changes, or the time is up.
    pub async fn changed(&self, patience: Duration) {
        let mut changes = self.changes.subscribe();
        let _ = tokio::time::timeout(patience, changes.changed()).await;
    }

    /// Waits until the index has been filled once, or the time is up.
    pub async fn synced(&self, patience: Duration) -> bool {
        let mut changes = self.changes.subscribe();
        let filled = async {
            while !self.health().synced {
                if changes.changed().await.is_err() {
                    break;
                }
            }
        };
        let _ = tokio::time::timeout(patience, filled).await;
        self.health().synced
    }

    /// A list begins: what comes until it ends replaces everything.
    pub fn begin(&self) {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        state.arriving.clear();
    }

    /// An object of a list that is being read.
    pub fn arrive(&self, summary: Summary) {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        state.arriving.insert(place(&summary), Arc::new(summary));
    }

    /// The list is complete.
    pub fn complete(&self) {
        let mut gone = Vec::new();
        self.update(|state| {
            let arrived = std::mem::take(&mut state.arriving);
            let before = std::mem::replace(&mut state.objects, arrived);
            gone = before
                .into_iter()
                .filter(|(place, summary)| {
                    state.objects.get(place).is_none_or(|current| current.uid != summary.uid)
                })
                .map(|(_, summary)| summary.uid.clone())
                .collect();
            state.synced = true;
        });
        self.depart(gone);
    }

    /// An object is there, or has changed.
    pub fn apply(&self, summary: Summary) {
        let mut replaced = None;
        self.update(|state| {
            let uid = summary.uid.clone();
            let before = state.objects.insert(place(&summary), Arc::new(summary));
            replaced = before.filter(|before| before.uid != uid).map(|before| before.uid.clone());
        });
        self.depart(replaced);
    }

    /// An object is gone.
    pub fn remove(&self, summary: &Summary) {
        self.update(|state| {
            let place = place(summary);
            if state.objects.get(&place).is_some_and(|current| current.uid == summary.uid) {
                state.objects.remove(&place);
            }
        });
        self.depart([summary.uid.clone()]);
    }

    /// The watch does not work. What is known goes stale from here.
    pub fn fail(&self) {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let since = state.outage().and(state.broken).map_or(now, |(since, _)| since);
        state.broken = Some((since, now));
    }

    /// How the index is doing.
    #[must_use]
    pub fn health(&self) -> Health {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        Health {
            objects: state.objects.len(),
            synced: state.synced,
            outage: state.outage(),
            silence: state.last_event.map(|at| at.elapsed()),
        }
    }

    fn update(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        change(&mut state);
        state.broken = None;
        state.last_event = Some(Instant::now());
        drop(state);
        self.changes.send_modify(|count| *count = count.wrapping_add(1));
    }

    fn depart(&self, uids: impl IntoIterator<Item = String>) {
        let mut departed = self.departed.lock().unwrap_or_else(PoisonError::into_inner);
        for uid in uids {
            if departed.uids.insert(uid.clone()) {
                departed.order.push_back(uid);
            }
            if departed.order.len() > MAX_DEPARTED
                && let Some(oldest) = departed.order.pop_front()
            {
                departed.uids.remove(&oldest);
            }
        }
    }
}

fn place(summary: &Summary) -> Place {
    (summary.id.namespace.clone(), summary.id.name.clone())
}

#[cfg(test)]
mod tests;
