//! What waits for one endpoint, and when each is due. Keeps no time of its own, and sends nothing.

use std::{
    collections::{BTreeSet, HashMap},
    time::Duration,
};

use tokio::time::Instant;

use super::ledger::Key;
use crate::{
    backoff::{self, Patience},
    delivery::Record,
    sender::{About, Failure},
};

/// How many reports are on their way to one endpoint at once.
pub(super) const AT_ONCE: usize = 8;

/// The longest pause after the cluster has failed us: it is one, and needs no jitter over minutes.
const CLUSTER: Duration = Duration::from_secs(30);

/// How often a failure is written into a Drift.
const COMPLAIN: Duration = Duration::from_secs(300);

/// The drifts that an endpoint has yet to hear of.
#[derive(Debug, Default)]
pub(super) struct Queue {
    jobs: HashMap<Key, Job>,
    /// Those that are not under way, by when they are due.
    due: BTreeSet<(Instant, Key)>,
    flying: usize,
    gate: Gate,
}

/// Whether the endpoint is there. While it is not, it is tried by one report at a time.
#[derive(Debug, Default)]
struct Gate {
    failures: u32,
    until: Option<Instant>,
    /// Goes up with each failure: reports that were under way together count as one.
    epoch: u64,
}

#[derive(Debug, Default)]
struct Job {
    failures: u32,
    place: Place,
    is_snoozed: bool,
    owed: Option<Owed>,
    complained: Option<Instant>,
}

#[derive(Debug)]
enum Place {
    Waiting(Instant),
    Flying {
        /// Whether something has changed since it went.
        again: bool,
    },
}

impl Default for Place {
    fn default() -> Self {
        Self::Flying { again: false }
    }
}

/// What has been told, and could not be recorded yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Owed {
    pub(super) uid: Option<String>,
    pub(super) record: Record,
}

/// A drift whose turn it is.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) key: Key,
    pub(super) owed: Option<Owed>,
    /// Whether a failure is to be written into the Drift.
    pub(super) may_complain: bool,
    epoch: u64,
}

/// What came of it.
#[derive(Debug)]
pub(super) enum Landing {
    /// There was nothing to tell.
    Idle,
    /// It was told, and recorded. There may be more.
    Told { more: bool },
    /// It was told, and could not be recorded: that is all that is left to do.
    Unrecorded(Owed),
    /// It is not to be told before.
    Snoozed(Instant),
    /// It was not told.
    Failed { failure: Failure, complained: bool },
    /// The cluster does not say what is to be told.
    Stuck,
}

impl Queue {
    /// There is something to tell about this drift.
    pub(super) fn want(&mut self, key: &Key, now: Instant) {
        match self.jobs.get_mut(key) {
            None => {
                let job = Job { place: Place::Waiting(now), ..Job::default() };
                self.jobs.insert(key.clone(), job);
                self.due.insert((now, key.clone()));
            }
            Some(Job { place: Place::Flying { again }, .. }) => *again = true,
            // It may be over by now, and then nobody is to hear of it at all.
            Some(Job { place: Place::Waiting(due), is_snoozed: true, .. }) => {
                self.due.remove(&(*due, key.clone()));
                *due = now;
                self.due.insert((now, key.clone()));
            }
            // It has its time already: a change of the Drift is no reason to try sooner.
            Some(Job { place: Place::Waiting(_), .. }) => {}
        }
    }

    /// There is nothing more to tell about this drift. What is under way is not called back.
    pub(super) fn forget(&mut self, key: &Key) {
        if let Some(Job { place: Place::Waiting(due), owed: None, .. }) = self.jobs.get(key) {
            self.due.remove(&(*due, key.clone()));
            self.jobs.remove(key);
        }
    }

    /// The next drift whose turn it is, if the endpoint may be bothered.
    pub(super) fn take(&mut self, now: Instant) -> Option<Flight> {
        if !self.has_room() || self.gate.until.is_some_and(|until| now < until) {
            return None;
        }
        let next = self.due.first().filter(|(due, _)| *due <= now)?.clone();
        self.due.remove(&next);
        let key = next.1;
        let job = self.jobs.get_mut(&key)?;
        job.place = Place::Flying { again: false };
        self.flying += 1;
        let may_complain = job.complained.is_none_or(|at| now.duration_since(at) >= COMPLAIN);
        Some(Flight { owed: job.owed.take(), may_complain, epoch: self.gate.epoch, key })
    }

    /// When to look again, if nothing changes.
    pub(super) fn next_due(&self) -> Option<Instant> {
        let (due, _) = self.due.first().filter(|_| self.has_room())?;
        Some(self.gate.until.map_or(*due, |until| until.max(*due)))
    }

    /// What came of a flight. `random` is any number.
    pub(super) fn land(&mut self, flight: Flight, landing: Landing, now: Instant, random: u64) {
        self.flying = self.flying.saturating_sub(1);
        let Some(job) = self.jobs.get_mut(&flight.key) else { return };
        let is_changed = matches!(job.place, Place::Flying { again: true });
        job.is_snoozed = matches!(landing, Landing::Snoozed(_));
        match &landing {
            Landing::Told { .. } | Landing::Unrecorded(_) => self.gate.open(),
            Landing::Failed { failure, .. } => match failure.about {
                About::Endpoint => self.gate.close(flight.epoch, failure.asked, now, random),
                About::Report => self.gate.open(),
            },
            Landing::Idle | Landing::Snoozed(_) | Landing::Stuck => {}
        }
        let due = match landing {
            Landing::Idle | Landing::Told { more: false } if !is_changed => None,
            Landing::Idle | Landing::Told { .. } => {
                job.failures = 0;
                Some(now)
            }
            // What has changed on the way may be that it is over.
            Landing::Snoozed(_) if is_changed => Some(now),
            Landing::Snoozed(until) => Some(until),
            Landing::Failed { failure, complained } => {
                if complained {
                    job.complained = Some(now);
                }
                job.failures = job.failures.saturating_add(1);
                Some(now + backoff::pause(job.failures, failure.patience, failure.asked, random))
            }
            Landing::Unrecorded(owed) => {
                job.owed = Some(owed);
                Some(now + job.pause_for_cluster(random))
            }
            Landing::Stuck => {
                job.owed = flight.owed;
                Some(now + job.pause_for_cluster(random))
            }
        };
        match due {
            Some(due) => {
                job.place = Place::Waiting(due);
                self.due.insert((due, flight.key));
            }
            None => _ = self.jobs.remove(&flight.key),
        }
    }

    /// How many drifts the endpoint has yet to hear of, without those that are to be kept from it.
    pub(super) fn pending(&self) -> usize {
        self.jobs.values().filter(|job| !job.is_snoozed).count()
    }

    fn has_room(&self) -> bool {
        self.flying < if self.gate.failures == 0 { AT_ONCE } else { 1 }
    }
}

impl Job {
    fn pause_for_cluster(&mut self, random: u64) -> Duration {
        self.failures = self.failures.saturating_add(1);
        backoff::pause(self.failures, Patience::Growing, None, random).min(CLUSTER)
    }
}

impl Gate {
    fn open(&mut self) {
        self.failures = 0;
        self.until = None;
    }

    fn close(&mut self, epoch: u64, asked: Option<Duration>, now: Instant, random: u64) {
        if epoch != self.epoch {
            return;
        }
        self.epoch += 1;
        self.failures = self.failures.saturating_add(1);
        self.until = Some(now + backoff::pause(self.failures, Patience::Growing, asked, random));
    }
}

#[cfg(test)]
mod tests;
