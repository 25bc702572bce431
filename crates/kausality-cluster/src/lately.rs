//! Changes that were allowed or written here a moment ago, and that watches may not have shown yet.
//!
//! What follows from a change comes at once: a controller acts on its own watch, which may be ahead of ours. So nobody
//! decides by an object that has a change under way before the watch has had time to show it. A review is no proof of
//! storage, so nothing else is decided by this: what does not show is given up.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use kausality_core::{Decision, Summary, class::Class, is_bound_to_conflict, review::Request};
use tokio::time::Instant;

/// A change that has not shown by then has failed.
const MEMORY: Duration = Duration::from_secs(2);

/// How many are remembered.
const MAX_CHANGES: usize = 4096;

/// Changes by the uid of their object.
#[derive(Debug, Default)]
pub(crate) struct Lately(Mutex<HashMap<String, Change>>);

#[derive(Debug)]
struct Change {
    at: Instant,
    shows: Shows,
}

/// What shows that a change has been stored.
#[derive(Debug)]
enum Shows {
    /// A version after this one.
    After(u64),
    /// That the object is on its way out.
    Deletion,
}

impl Lately {
    /// Notes a request that changes what others are judged by, if it was allowed.
    pub(crate) fn note(&self, request: &Request<'_>, decision: &Decision) {
        let Some(shows) = Shows::of(request, decision) else { return };
        let Some(old) = &request.old_object else { return };
        self.remember(&old.metadata.uid, shows);
    }

    /// Notes that an object, named by its uid, was written by this process, and has this version since.
    pub(crate) fn stored(&self, uid: &str, version: &str) {
        if let Ok(version) = version.parse::<u64>() {
            self.remember(uid, Shows::After(version.saturating_sub(1)));
        }
    }

    fn remember(&self, uid: &str, shows: Shows) {
        let mut changes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if changes.len() >= MAX_CHANGES {
            changes.retain(|_, change| change.at.elapsed() < MEMORY);
        }
        let later = |known: &Change| match (&known.shows, &shows) {
            (Shows::After(known), Shows::After(new)) => known > new,
            _ => false,
        };
        if changes.get(uid).is_some_and(later) {
            return;
        }
        if changes.len() < MAX_CHANGES {
            changes.insert(uid.to_owned(), Change { at: Instant::now(), shows });
        }
    }

    /// Whether an object that is known like this has a change under way.
    pub(crate) fn is_under_way(&self, known: &Summary) -> bool {
        let changes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        changes.get(&known.uid).is_some_and(|change| {
            change.at.elapsed() < MEMORY
                && match change.shows {
                    Shows::After(from) => known.resource_version.parse().is_ok_and(|it: u64| it <= from),
                    Shows::Deletion => !known.deleting,
                }
        })
    }

    /// Forgets the change of an object that has been waited for since then in vain: nobody else need wait.
    pub(crate) fn give_up(&self, known: &Summary, since: Instant) {
        let mut changes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if changes.get(&known.uid).is_some_and(|change| change.at <= since) {
            changes.remove(&known.uid);
        }
    }
}

impl Shows {
    /// What shows that a request has been stored. Nothing does if nothing is, or nothing that matters.
    fn of(request: &Request<'_>, decision: &Decision) -> Option<Self> {
        if !decision.verdict.is_allowed() || request.is_dry_run() || is_bound_to_conflict(request) {
            return None;
        }
        match decision.class {
            Class::Delete => return Some(Self::Deletion),
            Class::Update | Class::Release | Class::Adopt | Class::Relabel | Class::Scale => {}
            Class::Metadata if changes_annotations(request, decision) => {}
            Class::Status if changes_status(request) => {}
            Class::Metadata | Class::Status | Class::Create => return None,
            Class::Evict | Class::Bind | Class::Own | Class::Ignored => return None,
        }
        request.old_object.as_ref()?.metadata.resource_version.parse().ok().map(Self::After)
    }
}

/// Whether a status says something else than before: one that says the same may never be stored.
fn changes_status(request: &Request<'_>) -> bool {
    let (Some(old), Some(new)) = (&request.old_object, &request.object) else { return false };
    *old.reading() != old.reading_with(new.status)
}

/// Whether annotations of ours will be others than they are: an update that changes nothing is never stored.
fn changes_annotations(request: &Request<'_>, decision: &Decision) -> bool {
    let (Some(old), Some(new)) = (&request.old_object, &request.object) else { return false };
    let (old, new) = (&old.metadata.annotations, &new.metadata.annotations);
    let patched = |key: &str| decision.patch.annotations.get(key);
    let will_be = |key: &str| patched(key).map_or_else(|| new.get(key), Option::as_deref);
    let keys = old.ours().chain(new.ours()).map(|(key, _)| key);
    let mut keys = keys.chain(decision.patch.annotations.keys().map(String::as_str));
    keys.any(|key| old.get(key) != will_be(key))
}

#[cfg(test)]
mod tests;
