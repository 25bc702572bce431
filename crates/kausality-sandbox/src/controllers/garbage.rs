//! The garbage collector: what becomes of objects whose owners go.
//!
//! A cache that does not show an owner may just be behind, so nothing is deleted before a live read has confirmed that
//! the owner is gone.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use serde_json::{Value, json};

use super::{
    Action, Cache, Change, Controller, Delete, Key, Outcome, Propagation, Read, Resource, Time, Watched,
    Write, object,
};

/// The finalizer of an owner that waits for its dependents to go.
const FOREGROUND: &str = "foregroundDeletion";
/// The finalizer of an owner whose dependents are to stay.
const ORPHAN: &str = "orphan";
/// When to look again at an object whose owner is of a kind that nobody serves, in milliseconds.
const UNKNOWN_KIND: u64 = 30_000;
/// How many owners that are gone it remembers, as that of Kubernetes does.
const ABSENT: usize = 500;

/// The garbage collector.
#[derive(Debug, Default)]
pub struct GarbageCollector {
    /// What was read live for a key that is to be synced again at once.
    seen: BTreeMap<Key, BTreeMap<Key, Option<Arc<Value>>>>,
    /// The uids of owners whose deletion was seen, the latest last: those of a kind that went with them cannot be read.
    absent: VecDeque<String>,
}

impl Controller for GarbageCollector {
    fn name(&self) -> &str {
        "generic-garbage-collector"
    }

    fn watches(&self) -> Watched {
        Watched::Everything
    }

    fn keys(&mut self, cache: &Cache, change: &Change) -> Vec<Key> {
        let (before, after) = (change.before.as_deref(), change.after.as_deref());
        let mut keys = Vec::new();
        if let Some(after) = after
            && before.is_none_or(|before| ties(before) != ties(after))
            && (object::owners(after).next().is_some() || object::deleting(after))
        {
            keys.push(change.key());
        }
        // A dependent that has let go may be the last that a foreground deletion waited for.
        for owner in before.into_iter().flat_map(object::owners) {
            keys.extend(
                cache.find(owner.uid()).filter(|key| cache.at(key).is_some_and(|it| waits(it))).cloned(),
            );
        }
        let gone = after.is_none();
        if gone || after.is_some_and(|after| waits(after) && before.is_none_or(|before| !waits(before))) {
            let uid = object::uid(change.object());
            let others = keys.len();
            keys.extend(cache.dependents(uid).map(|(resource, it)| resource.key_of(it)));
            if gone && keys.len() > others {
                self.absent.push_back(uid.to_owned());
                if self.absent.len() > ABSENT {
                    self.absent.pop_front();
                }
            }
        }
        keys
    }

    fn sync(&mut self, cache: &Cache, key: &Key, now: Time) -> Outcome {
        let seen = self.seen.remove(key).unwrap_or_default();
        let Some(item) = cache.at(key) else { return Outcome::default() };
        if object::deleting(item) {
            return Outcome::writes(release(cache, &key.resource, item));
        }
        let Owners { solid, dangling, waiting, reads, unknown } = self.owners(cache, key, item, &seen);
        if !reads.is_empty() {
            return Outcome { reads, ..Outcome::default() };
        }
        if unknown {
            return Outcome { again: Some(now.after(UNKNOWN_KIND)), ..Outcome::default() };
        }
        if solid {
            let gone: Vec<_> = dangling.into_iter().chain(waiting).collect();
            let writes = if gone.is_empty() { vec![] } else { vec![let_go(&key.resource, item, &gone)] };
            return Outcome::writes(writes);
        }
        if dangling.is_empty() && waiting.is_empty() {
            return Outcome::default();
        }
        let has = |finalizer: &str| object::finalizers(item).any(|it| it == finalizer);
        let propagation = if !waiting.is_empty() && cache.dependents(object::uid(item)).next().is_some() {
            Propagation::Foreground
        } else if has(ORPHAN) {
            Propagation::Orphan
        } else if has(FOREGROUND) {
            Propagation::Foreground
        } else {
            Propagation::Background
        };
        let delete = Delete {
            uid: Some(object::uid(item).to_owned()),
            resource_version: Some(object::version(item).to_owned()),
            propagation: Some(propagation),
            grace_period_seconds: None,
        };
        Outcome::writes(vec![Write { key: key.clone(), action: Action::Delete(delete) }])
    }

    fn seen(&mut self, key: &Key, read: &Read, found: &[Arc<Value>]) {
        if let Read::Object(owner) = read {
            self.seen.entry(key.clone()).or_default().insert(owner.clone(), found.first().cloned());
        }
    }
}

/// All of an object that the garbage collector looks at.
fn ties(object: &Value) -> [&Value; 3] {
    let metadata = &object["metadata"];
    [&metadata["ownerReferences"], &metadata["finalizers"], &metadata["deletionTimestamp"]]
}

/// Whether it is deleted in the foreground, and waits for its dependents.
fn waits(object: &Value) -> bool {
    object::deleting(object) && object::finalizers(object).any(|it| it == FOREGROUND)
}

/// The owners of an object, by what is known of them.
#[derive(Default)]
struct Owners {
    /// Whether one of them is there to stay.
    solid: bool,
    /// The uids of those that are gone.
    dangling: Vec<String>,
    /// The uids of those that wait for the object to go.
    waiting: Vec<String>,
    /// What must be read to know more.
    reads: Vec<Read>,
    /// Whether one is of a kind that nobody serves.
    unknown: bool,
}

impl GarbageCollector {
    fn owners(
        &self,
        cache: &Cache,
        key: &Key,
        item: &Value,
        seen: &BTreeMap<Key, Option<Arc<Value>>>,
    ) -> Owners {
        let mut owners = Owners::default();
        for owner in object::owners(item) {
            let resource = cache.resource_of(owner.api_version(), owner.kind());
            // Nothing in a namespace can own what is in none: such a reference cannot be judged either.
            let Some(resource) = resource.filter(|it| !it.namespaced || key.resource.namespaced) else {
                if self.absent.iter().any(|uid| uid == owner.uid()) {
                    owners.dangling.push(owner.uid().to_owned());
                } else {
                    owners.unknown = true;
                }
                continue;
            };
            let place = resource.key(&key.namespace, owner.name());
            let this = |it: &&Arc<Value>| object::uid(it) == owner.uid();
            let uid = owner.uid().to_owned();
            match (cache.at(&place).filter(this), seen.get(&place)) {
                (Some(held), _) if waits(held) => owners.waiting.push(uid),
                (Some(_), _) => owners.solid = true,
                (None, None) => owners.reads.push(Read::Object(place)),
                (None, Some(live)) => match live.as_ref().filter(this) {
                    Some(live) if waits(live) => owners.waiting.push(uid),
                    Some(_) => owners.solid = true,
                    None => owners.dangling.push(uid),
                },
            }
        }
        owners
    }
}

/// What an object that is being deleted needs: its dependents let go of, or waited for.
fn release(cache: &Cache, resource: &Resource, item: &Value) -> Vec<Write> {
    let uid = object::uid(item);
    if object::finalizers(item).any(|it| it == ORPHAN) {
        let dependents = cache.dependents(uid).map(|(resource, it)| let_go(resource, it, &[uid.to_owned()]));
        return dependents.chain([Write::remove_finalizer(resource, item, ORPHAN)]).collect();
    }
    let blocked = |it: &Value| object::owners(it).any(|owner| owner.uid() == uid && owner.blocks());
    if waits(item) && !cache.dependents(uid).any(|(_, it)| blocked(it)) {
        return vec![Write::remove_finalizer(resource, item, FOREGROUND)];
    }
    Vec::new()
}

/// Takes owners off an object, if it is still as it was seen.
pub(super) fn let_go(resource: &Resource, item: &Value, uids: &[String]) -> Write {
    let stay = object::owners(item).filter(|owner| !uids.iter().any(|uid| uid == owner.uid()));
    let stay: Vec<_> = stay.map(|owner| owner.reference().clone()).collect();
    let stay = if stay.is_empty() { Value::Null } else { Value::Array(stay) };
    let metadata = json!({
        "uid": object::uid(item), "resourceVersion": object::version(item), "ownerReferences": stay
    });
    Write::patch(resource, item, json!({ "metadata": metadata }))
}
