//! What a replica has seen of a drift, and has not written yet.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use jiff::Timestamp;
use kausality_api::drift::{Drift as Entry, DriftState, DriftStep};
use tokio::time::Instant;

use super::{ground::Ground, shelf::Stored};

/// How often an entry is written within [`SPAN`] from here, whatever happens to it.
const MAX_WRITES: usize = 3;
const SPAN: Duration = Duration::from_secs(60);

/// One drift, as far as this replica has seen it.
#[derive(Default)]
pub(super) struct Tab {
    /// Held by whoever writes: all others wait for the outcome.
    pub(super) writing: Arc<tokio::sync::Mutex<()>>,
    notes: Mutex<Notes>,
}

#[derive(Clone, Default)]
pub(super) struct Notes {
    /// Whether it is entered and open, as far as this replica knows: at which version it wrote or read that, and on which ground.
    pub(super) entered: Option<(u64, Ground)>,
    /// What has been seen since the last write: how often, when last, and what became of it.
    pub(super) unwritten: u64,
    pub(super) last: Option<Sighting>,
    /// An occurrence that is not known to be entered.
    pub(super) fresh: Option<Fresh>,
    /// Not to be counted before then.
    pub(super) rest_until: Option<Instant>,
    /// Not to be entered before then, since that has just failed.
    pub(super) failed_until: Option<Instant>,
    /// The last writes from here, the latest first.
    writes: [Option<Instant>; MAX_WRITES],
}

/// A drift, as it was last seen.
#[derive(Clone)]
pub(super) struct Sighting {
    pub(super) at: Timestamp,
    pub(super) state: DriftState,
    pub(super) explanation: Vec<DriftStep>,
}

/// An occurrence that begins.
#[derive(Clone)]
pub(super) struct Fresh {
    pub(super) ground: Ground,
    /// When the occurrence before it was over, if that is known.
    pub(super) after: Option<Timestamp>,
    /// What would be entered of it.
    pub(super) entry: Arc<Entry>,
    /// How often it was seen.
    pub(super) count: u64,
}

impl Notes {
    /// It has been seen once more.
    pub(super) fn see(&mut self, sighting: Sighting) {
        self.unwritten += 1;
        self.last = Some(sighting);
        if let Some(fresh) = &mut self.fresh {
            fresh.count += 1;
        }
    }

    /// An occurrence begins, after one that was over then, unless this is the one that already has.
    pub(super) fn begin(&mut self, ground: Ground, after: Option<Timestamp>, entry: impl FnOnce() -> Entry) {
        match &mut self.fresh {
            Some(fresh) if fresh.ground == ground => fresh.after = after.or(fresh.after),
            fresh => *fresh = Some(Fresh { ground, after, entry: Arc::new(entry()), count: 0 }),
        }
    }

    /// So many sightings need not be written any more.
    pub(super) fn settle(&mut self, count: u64) {
        self.unwritten = self.unwritten.saturating_sub(count);
        self.fresh = None;
    }

    /// It has just been written.
    pub(super) fn wrote(&mut self, rest: Duration) {
        let now = Instant::now();
        self.writes.rotate_right(1);
        self.writes[0] = Some(now);
        self.rest_until = Some(self.spent_until().unwrap_or(now).max(now + rest));
    }

    /// Forgets everything but how often it was written.
    pub(super) fn clear(&mut self) {
        *self = Self { writes: self.writes, ..Self::default() };
    }

    /// Until when it must not be written, since it was so often.
    pub(super) fn spent_until(&self) -> Option<Instant> {
        let until = *self.writes.last()?.as_ref()? + SPAN;
        (until > Instant::now()).then_some(until)
    }

    /// Whether something is remembered that no watch tells.
    pub(super) fn is_needed(&self) -> bool {
        self.unwritten > 0 || self.writes[0].is_some_and(|at| at.elapsed() < SPAN) || self.rests()
    }

    fn rests(&self) -> bool {
        self.rest_until.is_some_and(|until| until > Instant::now())
    }

    /// Whether there is something to write, and it is time to. An entry that is over does not wait for the next count:
    /// whoever looks at it wants to know how often it was.
    pub(super) fn is_due(&self, at_once: bool, stored: impl FnOnce() -> Option<Stored>) -> bool {
        let is_over = || {
            let written = self.entered.map_or(0, |(version, _)| version);
            stored().is_some_and(|stored| !stored.state.is_open() && stored.version > written)
        };
        self.unwritten > 0 && (at_once || !self.rests() || self.spent_until().is_none() && is_over())
    }
}

impl Tab {
    pub(super) fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
