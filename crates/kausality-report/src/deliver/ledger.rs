//! What the leader remembers of all Drifts: as much as says whether somebody is to be told.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    ops::ControlFlow,
    sync::{Mutex, MutexGuard, PoisonError},
};

use kausality_api::drift::DriftStatus;
use kausality_cluster::Mirror;
use kube::core::DynamicObject;
use tokio::sync::Notify;

use crate::delivery::Standing;

/// Names a Drift, or a ClusterDrift by an empty namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) namespace: String,
    pub(super) name: String,
}

/// All Drifts and ClusterDrifts.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    state: Mutex<State>,
    /// Told whenever there is something in `changed`.
    pub(super) told: Notify,
}

#[derive(Debug, Default)]
struct State {
    standings: HashMap<Key, Standing>,
    changed: BTreeSet<Key>,
}

impl Ledger {
    /// Those that have changed since this was last asked, with how they stand; gone, if they do not.
    pub(super) fn changes(&self) -> Vec<(Key, Option<Standing>)> {
        let mut state = self.lock();
        let changed = std::mem::take(&mut state.changed);
        changed.into_iter().map(|key| (key.clone(), state.standings.get(&key).cloned())).collect()
    }

    /// Takes down how one stands that we have just written. A watch that breaks off now may next show it as it was before,
    /// since it is seen again: that has to be noticed as a change.
    pub(super) fn note(&self, key: &Key, standing: Standing) {
        let mut state = self.lock();
        // What a watch has told since, and nobody has looked at, is newer.
        if state.changed.contains(key) {
            return;
        }
        if let Some(known) = state.standings.get_mut(key) {
            *known = standing;
        }
    }

    /// What a watch of Drifts feeds; of ClusterDrifts, if they are not `namespaced`.
    pub(super) fn side(&self, namespaced: bool) -> Side<'_> {
        Side { ledger: self, namespaced, listed: Mutex::default() }
    }

    fn set(&self, key: Key, standing: Option<Standing>) {
        let mut state = self.lock();
        let before = match &standing {
            Some(standing) => state.standings.insert(key.clone(), standing.clone()),
            None => state.standings.remove(&key),
        };
        if before != standing {
            state.changed.insert(key);
            self.told.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One of the two kinds.
pub(super) struct Side<'a> {
    ledger: &'a Ledger,
    namespaced: bool,
    /// Those that the list under way has named.
    listed: Mutex<HashSet<Key>>,
}

impl Side<'_> {
    fn listed(&self) -> MutexGuard<'_, HashSet<Key>> {
        self.listed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Mirror for Side<'_> {
    fn begin(&self) {
        self.listed().clear();
    }

    fn arrive(&self, object: DynamicObject) -> ControlFlow<()> {
        self.listed().insert(key(&object));
        self.apply(object)
    }

    fn complete(&self) {
        let listed = std::mem::take(&mut *self.listed());
        let is_gone = |key: &&Key| key.namespace.is_empty() != self.namespaced && !listed.contains(*key);
        let gone: Vec<Key> = self.ledger.lock().standings.keys().filter(is_gone).cloned().collect();
        for key in gone {
            self.ledger.set(key, None);
        }
    }

    fn apply(&self, mut object: DynamicObject) -> ControlFlow<()> {
        let key = key(&object);
        let status = object.data.get_mut("status").map(serde_json::Value::take).unwrap_or_default();
        match serde_json::from_value::<DriftStatus>(status) {
            Ok(status) => self.ledger.set(key, Some(Standing::from(&status))),
            Err(error) => {
                tracing::warn!(drift = key.name, namespace = key.namespace, %error, "cannot be understood");
                self.ledger.set(key, None);
            }
        }
        ControlFlow::Continue(())
    }

    fn remove(&self, object: DynamicObject) {
        self.ledger.set(key(&object), None);
    }
}

fn key(object: &DynamicObject) -> Key {
    let metadata = &object.metadata;
    Key {
        namespace: metadata.namespace.clone().unwrap_or_default(),
        name: metadata.name.clone().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn drift(namespace: &str, name: &str, state: &str) -> DynamicObject {
        let status = json!({"state": state, "count": 1, "firstSeen": "2026-01-01T00:00:00Z", "lastSeen": "2026-01-01T00:00:00Z", "countedAt": "2026-01-01T00:00:00Z"});
        let mut object = json!({"metadata": {"name": name}, "spec": {"big": "x"}, "status": status});
        if !namespace.is_empty() {
            object["metadata"]["namespace"] = json!(namespace);
        }
        serde_json::from_value(object).unwrap()
    }

    fn changes(ledger: &Ledger) -> Vec<String> {
        let word = |standing: Option<Standing>| match standing {
            None => "gone",
            Some(Standing { resolved: None, .. }) => "open",
            Some(_) => "over",
        };
        let changes = ledger.changes().into_iter();
        changes.map(|(key, standing)| format!("{}/{} {}", key.namespace, key.name, word(standing))).collect()
    }

    #[test]
    fn changes_are_told_once_and_only_those_that_matter() {
        let ledger = Ledger::default();
        let side = ledger.side(true);
        _ = side.apply(drift("a", "1", "Blocked"));
        _ = side.apply(drift("a", "2", "Resolved"));
        assert_eq!(changes(&ledger), ["a/1 open", "a/2 over"]);
        _ = side.apply(drift("a", "1", "Passed"));
        assert!(changes(&ledger).is_empty(), "it is as open as before");
        _ = side.apply(drift("a", "1", "Resolved"));
        side.remove(drift("a", "2", "Resolved"));
        assert_eq!(changes(&ledger), ["a/1 over", "a/2 gone"]);
        _ = side.apply(drift("a", "1", "Nonsense"));
        assert_eq!(changes(&ledger), ["a/1 gone"]);
    }

    #[test]
    fn one_that_is_seen_again_unseen_is_a_change() {
        let ledger = Ledger::default();
        let side = ledger.side(true);
        _ = side.apply(drift("a", "1", "Blocked"));
        changes(&ledger);
        // It was told, and is over, and seen again, while the watch was broken.
        let told = kausality_api::drift::Delivery { endpoint: "e".to_owned(), ..Default::default() };
        let key = Key { namespace: "a".to_owned(), name: "1".to_owned() };
        ledger.note(&key, Standing { resolved: None, deliveries: vec![told.clone()] });
        assert!(changes(&ledger).is_empty(), "what we write ourselves is no news");
        _ = side.apply(drift("a", "1", "Blocked"));
        assert_eq!(changes(&ledger), ["a/1 open"]);
        _ = side.apply(drift("a", "1", "Resolved"));
        ledger.note(&key, Standing { resolved: None, deliveries: vec![told.clone()] });
        assert_eq!(changes(&ledger), ["a/1 over"], "what came meanwhile is newer");
        side.remove(drift("a", "1", "Blocked"));
        ledger.note(&key, Standing { resolved: None, deliveries: vec![told] });
        assert_eq!(changes(&ledger), ["a/1 gone"], "and what is gone stays gone");
    }

    #[test]
    fn a_new_list_replaces_what_was_known_of_its_kind() {
        let ledger = Ledger::default();
        let (drifts, clusterdrifts) = (ledger.side(true), ledger.side(false));
        _ = drifts.apply(drift("a", "1", "Blocked"));
        _ = drifts.apply(drift("a", "2", "Blocked"));
        _ = clusterdrifts.apply(drift("", "3", "Blocked"));
        changes(&ledger);
        drifts.begin();
        _ = drifts.arrive(drift("a", "2", "Blocked"));
        _ = drifts.arrive(drift("a", "4", "Blocked"));
        drifts.complete();
        assert_eq!(changes(&ledger), ["a/1 gone", "a/4 open"]);
    }
}
