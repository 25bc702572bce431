//! Whether a watch is alive.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

/// A watch that has been broken for longer than this is not trusted.
const MAX_OUTAGE: Duration = Duration::from_secs(5);

/// The signs of life of one watch. What follows the watch gives them, everybody may look.
#[derive(Debug, Default)]
pub(crate) struct Pulse(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    synced: bool,
    /// Since when the watch does not work.
    broken: Option<Instant>,
    /// When the API server last showed that it still watches.
    sign: Option<Instant>,
}

/// How a watch is doing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Health {
    /// How many objects are known from it.
    pub objects: usize,
    /// Whether it has told everything once.
    pub synced: bool,
    /// How long it has been broken.
    pub outage: Option<Duration>,
    /// How long ago the API server last showed that it still watches: with an event, a bookmark, or an answer.
    pub silence: Option<Duration>,
}

impl Pulse {
    /// The watch works.
    pub(crate) fn beat(&self) {
        let mut state = self.lock();
        state.broken = None;
        state.sign = Some(Instant::now());
    }

    /// The watch works, and everything has been told once.
    pub(crate) fn sync(&self) {
        self.beat();
        self.lock().synced = true;
    }

    /// The watch does not work. What is known goes stale from here.
    pub(crate) fn fail(&self) {
        self.lock().broken.get_or_insert_with(Instant::now);
    }

    /// Whether everything has been told once.
    pub(crate) fn is_synced(&self) -> bool {
        self.lock().synced
    }

    /// Whether what is known is what there is, but for moments.
    pub(crate) fn is_trusted(&self) -> bool {
        let state = self.lock();
        state.synced && state.broken.is_none_or(|since| since.elapsed() <= MAX_OUTAGE)
    }

    /// How the watch is doing that has told of so many objects.
    pub(crate) fn health(&self, objects: usize) -> Health {
        let state = self.lock();
        Health {
            objects,
            synced: state.synced,
            outage: state.broken.map(|since| since.elapsed()),
            silence: state.sign.map(|sign| sign.elapsed()),
        }
    }

    /// Lets the watch be broken since longer ago.
    #[cfg(test)]
    pub(crate) fn age(&self) {
        let mut state = self.lock();
        state.broken = state.broken.and_then(|since| since.checked_sub(MAX_OUTAGE));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
