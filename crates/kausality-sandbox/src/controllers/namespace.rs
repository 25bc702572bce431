//! The namespace controller: a namespace that is deleted goes with all that is in it.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Value, json};

use super::{
    Action, Cache, Change, Controller, Key, NAMESPACES, Outcome, Propagation, Read, Resource, Time, Watched,
    Write, object,
};

/// The finalizer in a namespace's spec that this controller takes off.
const FINALIZER: &str = "kubernetes";
/// When to look again at what takes its time to go, in milliseconds.
const PATIENCE: u64 = 1000;

/// The namespace controller. Its cache tells it when to look; what is in a namespace it reads live, so that nothing is
/// left behind.
#[derive(Debug, Default)]
pub struct Namespaces {
    /// What was read live in a namespace that is to be synced again at once.
    found: BTreeMap<Key, Vec<(Resource, Arc<Value>)>>,
}

impl Controller for Namespaces {
    fn name(&self) -> &str {
        "namespace-controller"
    }

    fn watches(&self) -> Watched {
        Watched::Everything
    }

    fn keys(&mut self, cache: &Cache, change: &Change) -> Vec<Key> {
        let key = if change.resource == NAMESPACES {
            change.key()
        } else if change.after.is_none() && change.resource.namespaced {
            NAMESPACES.key("", object::namespace(change.object()))
        } else {
            return Vec::new();
        };
        if cache.at(&key).is_some_and(|namespace| object::deleting(namespace)) {
            vec![key]
        } else {
            Vec::new()
        }
    }

    fn sync(&mut self, cache: &Cache, key: &Key, now: Time) -> Outcome {
        let found = self.found.remove(key);
        let Some(namespace) = cache.at(key).filter(|namespace| object::deleting(namespace)) else {
            return Outcome::default();
        };
        let finalizers = object::items(&namespace["spec"]["finalizers"]);
        if !finalizers.iter().any(|it| it == FINALIZER) {
            return Outcome::default();
        }
        let Some(found) = found else {
            let all = cache.resources().filter(|resource| resource.namespaced);
            let read = |it: &Resource| Read::Collection { resource: it.clone(), namespace: key.name.clone() };
            return Outcome { reads: all.map(read).collect(), ..Outcome::default() };
        };
        if found.is_empty() {
            let left: Vec<_> = finalizers.iter().filter(|it| *it != FINALIZER).collect();
            let mut copy = (**namespace).clone();
            copy["spec"]["finalizers"] = json!(left);
            return Outcome::writes(vec![Write { key: key.clone(), action: Action::Finalize(copy) }]);
        }
        let stays = found.iter().filter(|(_, it)| !object::deleting(it));
        let delete = |(resource, it): &(Resource, Arc<Value>)| {
            Write::delete(resource, it, Some(Propagation::Background))
        };
        Outcome {
            writes: stays.map(delete).collect(),
            again: Some(now.after(PATIENCE)),
            ..Outcome::default()
        }
    }

    fn seen(&mut self, key: &Key, read: &Read, found: &[Arc<Value>]) {
        let all = self.found.entry(key.clone()).or_default();
        if let Read::Collection { resource, .. } = read {
            all.extend(found.iter().map(|it| (resource.clone(), Arc::<Value>::clone(it))));
        }
    }
}
