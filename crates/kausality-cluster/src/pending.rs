//! Annotations that Kausality has decided on but that do not show on their objects yet.
//!
//! A patch returned for a status update is dropped on custom resources, and one for `scale` cannot reach the
//! scaled object: both are written later. Until then this replica knows them from here.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use kausality_api::{
    annotation::{CONTROLLERS, SETTLED},
    identity::{Hashes, UserHash},
};
use kausality_core::{Summary, summary::ObjectId};

/// What is held back for want of a place is held back no longer than this.
const MAX_WAITING: usize = 10_000;

/// Annotations by key; `None` removes one.
pub(crate) type Annotations = BTreeMap<String, Option<String>>;

/// What waits to be written.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    waiting: Mutex<HashMap<String, Waiting>>,
}

/// What annotations wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Until {
    /// Their object is quiet.
    Quiet,
    /// A `scale` has happened.
    Scaled,
}

#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    pub object: ObjectId,
    pub annotations: Annotations,
    /// The generation at which the annotations were decided on.
    pub generation: Option<i64>,
    until: Until,
    since: Instant,
}

impl Pending {
    /// Notes annotations that an object, named by its uid, must come to carry. Tells whether it is the first note on
    /// that object.
    pub(crate) fn note(
        &self,
        object: &ObjectId,
        uid: &str,
        generation: Option<i64>,
        annotations: &Annotations,
        until: Until,
    ) -> bool {
        let mut waiting = self.lock();
        let first = !waiting.contains_key(uid);
        if waiting.len() >= MAX_WAITING && first {
            return false;
        }
        let entry = waiting.entry(uid.to_owned()).or_insert_with(|| Waiting {
            object: object.clone(),
            annotations: Annotations::new(),
            generation,
            until,
            since: Instant::now(),
        });
        if entry.generation != generation {
            entry.annotations.remove(SETTLED);
        }
        for (key, value) in annotations {
            let value = match (key.as_str(), value, entry.annotations.get(key)) {
                (CONTROLLERS, Some(value), Some(Some(waiting))) => Some(together(waiting, value)),
                _ => value.clone(),
            };
            entry.annotations.insert(key.clone(), value);
        }
        entry.generation = generation;
        entry.since = Instant::now();
        first
    }

    /// What waits for an object.
    pub(crate) fn get(&self, uid: &str) -> Option<Waiting> {
        self.lock().get(uid).cloned()
    }

    /// An object as it will be once everything is written.
    pub(crate) fn over(&self, summary: Arc<Summary>) -> Arc<Summary> {
        let waiting = self.lock();
        let Some(waiting) = waiting.get(&summary.uid) else { return summary };
        let mut dressed = Summary::clone(&summary);
        for (key, value) in &waiting.annotations {
            // A change of intent takes the mark off, also one back to the intent that it speaks of.
            if key == SETTLED && value.is_some() && summary.generation != waiting.generation {
                continue;
            }
            dressed.annotate(key, value.as_deref());
        }
        Arc::new(dressed)
    }

    /// What has waited for its object to be quiet for at least so long, by uid.
    pub(crate) fn ripe(&self, age: Duration) -> Vec<(String, Waiting)> {
        let waiting = self.lock();
        let is_ripe = |entry: &Waiting| entry.until == Until::Quiet && entry.since.elapsed() >= age;
        let ripe = waiting.iter().filter(|(_, entry)| is_ripe(entry));
        ripe.map(|(uid, entry)| (uid.clone(), entry.clone())).collect()
    }

    /// Lets go of what has been written, unless more has come since.
    pub(crate) fn done(&self, uid: &str, written: &Annotations) {
        let mut waiting = self.lock();
        if let Some(entry) = waiting.get_mut(uid) {
            entry.annotations.retain(|key, value| written.get(key) != Some(value));
            if entry.annotations.is_empty() {
                waiting.remove(uid);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Both lists of users as one. The later was made from the stored object, and so does not know the earlier.
fn together(earlier: &str, later: &str) -> String {
    let mut users = Hashes::decode(earlier);
    let later = later.split(',').filter_map(UserHash::parse);
    later.for_each(|user| users.note(user, &Hashes::default()));
    users.encode()
}
