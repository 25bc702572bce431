//! What a controller has asked for and not yet seen.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{Action, Cache, Change, Key, Resource, Time, Write, object};

/// After this many milliseconds, what has not been seen will not be.
const TIMEOUT: u64 = 5 * 60 * 1000;

/// What a controller has asked for and not yet seen, for each key. While something is open, its cache cannot be trusted
/// to count dependents, and it neither creates nor deletes any.
#[derive(Debug, Default)]
pub(crate) struct Expectations {
    open: BTreeMap<Key, Open>,
}

#[derive(Debug)]
struct Open {
    creations: usize,
    /// The names of those that are to go.
    deletions: BTreeSet<String>,
    since: Time,
}

impl Expectations {
    /// Whether nothing is open, or it has been for too long.
    pub(crate) fn satisfied(&self, key: &Key, now: Time) -> bool {
        self.open.get(key).is_none_or(|open| {
            (open.creations == 0 && open.deletions.is_empty()) || open.since.after(TIMEOUT) < now
        })
    }

    /// Expects what these writes will create and delete.
    pub(crate) fn expect(&mut self, key: &Key, writes: &[Write], now: Time) {
        let creations = writes.iter().filter(|write| matches!(write.action, Action::Create(_))).count();
        let deletions: BTreeSet<_> = writes.iter().filter_map(deleted).map(str::to_owned).collect();
        if creations > 0 || !deletions.is_empty() {
            self.open.insert(key.clone(), Open { creations, deletions, since: now });
        }
    }

    /// Takes in the change of a dependent, and says which of its controllers, all of one resource, to sync.
    pub(crate) fn observe(&mut self, resource: &Resource, cache: &Cache, change: &Change) -> Vec<Key> {
        let owner = |it: &Value| {
            let owner =
                object::controller(it).filter(|owner| resource.is(owner.api_version(), owner.kind()))?;
            Some((resource.key(object::namespace(it), owner.name()), owner.uid().to_owned()))
        };
        let (before, after) = (change.before.as_deref(), change.after.as_deref());
        let mut keys = Vec::new();
        for (key, uid) in [before.and_then(owner), after.and_then(owner)].into_iter().flatten() {
            if keys.contains(&key) {
                continue;
            }
            // What another object of the same name had is none of this one's business.
            if cache.at(&key).is_none_or(|held| object::uid(held) == uid) {
                match (before, after) {
                    (None, Some(new)) if !object::deleting(new) => self.created(&key),
                    (Some(old), Some(new)) if object::deleting(old) == object::deleting(new) => {}
                    _ => self.deleted(&key, object::name(change.object())),
                }
            }
            keys.push(key);
        }
        keys
    }

    /// One dependent has appeared.
    fn created(&mut self, key: &Key) {
        if let Some(open) = self.open.get_mut(key) {
            open.creations = open.creations.saturating_sub(1);
        }
    }

    /// One dependent is going or gone.
    fn deleted(&mut self, key: &Key, name: &str) {
        if let Some(open) = self.open.get_mut(key) {
            open.deletions.remove(name);
        }
    }

    /// These writes did not happen.
    pub(crate) fn undone(&mut self, key: &Key, writes: &[Write]) {
        for write in writes {
            match (&write.action, deleted(write)) {
                (Action::Create(_), _) => self.created(key),
                (_, Some(name)) => self.deleted(key, name),
                _ => {}
            }
        }
    }

    /// The object is gone.
    pub(crate) fn forget(&mut self, key: &Key) {
        self.open.remove(key);
    }
}

fn deleted(write: &Write) -> Option<&str> {
    matches!(write.action, Action::Delete(_)).then_some(write.key.name.as_str())
}

#[cfg(test)]
mod tests;
