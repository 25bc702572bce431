//! What is stored: objects, the revision that counts every write, and what happened for those who watch.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde_json::Value;
use signal::{Changes, Signal};

pub(crate) mod selector;
pub(crate) mod signal;

/// Where an object is in its collection: namespace and name.
pub(crate) type Place = (String, String);

/// All objects.
#[derive(Debug)]
pub(crate) struct Store {
    revision: u64,
    collections: BTreeMap<String, Collection>,
    /// How many events each collection remembers.
    history: usize,
    changed: Signal,
}

/// The objects of one resource.
#[derive(Debug)]
struct Collection {
    objects: BTreeMap<Place, Arc<Value>>,
    log: VecDeque<Arc<Event>>,
    /// The latest revision that is forgotten.
    compacted: u64,
    changed: Signal,
}

/// What happened to an object.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) revision: u64,
    pub(crate) place: Place,
    pub(crate) before: Option<Arc<Value>>,
    pub(crate) after: After,
}

/// What became of it.
#[derive(Debug)]
pub(crate) enum After {
    /// It is there.
    Stored(Arc<Value>),
    /// It is gone; this was its last state.
    Gone(Arc<Value>),
}

/// The history that is asked for is forgotten. What is known begins after this revision.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Compacted(pub(crate) u64);

impl Collection {
    fn new() -> Self {
        Self { objects: BTreeMap::new(), log: VecDeque::new(), compacted: 0, changed: Signal::default() }
    }
}

impl Store {
    pub(crate) fn new(history: usize) -> Self {
        Self { revision: 1, collections: BTreeMap::new(), history, changed: Signal::default() }
    }

    /// How many writes there were.
    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    /// The latest revision in which something changed in a collection.
    pub(crate) fn revision_of(&self, collection: &str) -> u64 {
        self.collections.get(collection).map_or(0, |collection| collection.changed.get())
    }

    pub(crate) fn get(&self, collection: &str, place: &Place) -> Option<&Arc<Value>> {
        self.collections.get(collection)?.objects.get(place)
    }

    /// The objects of a collection, of one namespace or all, in order.
    pub(crate) fn list(&self, collection: &str, namespace: Option<&str>) -> Vec<(Place, Arc<Value>)> {
        let Some(collection) = self.collections.get(collection) else { return Vec::new() };
        let from = (namespace.unwrap_or_default().to_owned(), String::new());
        let within = collection.objects.range(from..);
        let within = within.take_while(|((at, _), _)| namespace.is_none_or(|namespace| at == namespace));
        within.map(|(place, object)| (place.clone(), Arc::clone(object))).collect()
    }

    /// The same, as it was at a revision.
    pub(crate) fn list_at(
        &self,
        collection: &str,
        namespace: Option<&str>,
        revision: u64,
    ) -> Result<Vec<(Place, Arc<Value>)>, Compacted> {
        let mut then: BTreeMap<_, _> = self.list(collection, namespace).into_iter().collect();
        let Some(collection) = self.collections.get(collection) else { return Ok(Vec::new()) };
        if revision < collection.compacted {
            return Err(Compacted(collection.compacted));
        }
        for event in collection.log.iter().rev().take_while(|event| event.revision > revision) {
            if namespace.is_some_and(|namespace| event.place.0 != namespace) {
                continue;
            }
            match &event.before {
                Some(before) => then.insert(event.place.clone(), Arc::clone(before)),
                None => then.remove(&event.place),
            };
        }
        Ok(then.into_iter().collect())
    }

    /// What happened after a revision.
    pub(crate) fn since(&self, collection: &str, revision: u64) -> Result<Vec<Arc<Event>>, Compacted> {
        let Some(collection) = self.collections.get(collection) else { return Ok(Vec::new()) };
        if revision < collection.compacted {
            return Err(Compacted(collection.compacted));
        }
        let first = collection.log.partition_point(|event| event.revision <= revision);
        Ok(collection.log.range(first..).cloned().collect())
    }

    /// Is told of every change of a collection.
    pub(crate) fn subscribe(&mut self, collection: &str) -> Changes {
        self.collection(collection).changed.follow()
    }

    /// Is told of every change.
    pub(crate) fn subscribe_to_all(&self) -> Changes {
        self.changed.follow()
    }

    /// Stores an object, and gives it its revision.
    pub(crate) fn put(&mut self, collection: &str, place: Place, mut object: Value) -> Arc<Value> {
        self.revision += 1;
        let revision = self.revision;
        set_revision(&mut object, revision);
        let object = Arc::new(object);
        let stored = self.collection(collection);
        let before = stored.objects.insert(place.clone(), Arc::clone(&object));
        let event = Event { revision, place, before, after: After::Stored(Arc::clone(&object)) };
        self.record(collection, event);
        object
    }

    /// Removes an object, and says what it was: with these last words, if there are any.
    pub(crate) fn remove(
        &mut self,
        collection: &str,
        place: &Place,
        last: Option<Value>,
    ) -> Option<Arc<Value>> {
        let before = self.collection(collection).objects.remove(place)?;
        self.revision += 1;
        let revision = self.revision;
        let mut last = last.unwrap_or_else(|| Value::clone(&before));
        set_revision(&mut last, revision);
        let last = Arc::new(last);
        let after = After::Gone(Arc::clone(&last));
        self.record(collection, Event { revision, place: place.clone(), before: Some(before), after });
        Some(last)
    }

    /// Forgets what happened: who watches from before must list again.
    pub(crate) fn compact(&mut self) {
        for collection in self.collections.values_mut() {
            collection.log.clear();
            collection.compacted = self.revision;
        }
    }

    /// Forgets a collection, as when its definition is deleted.
    pub(crate) fn names_of(&self, collection: &str) -> Vec<Place> {
        self.collections
            .get(collection)
            .map(|found| found.objects.keys().cloned().collect())
            .unwrap_or_default()
    }

    fn collection(&mut self, name: &str) -> &mut Collection {
        self.collections.entry(name.to_owned()).or_insert_with(Collection::new)
    }

    fn record(&mut self, collection: &str, event: Event) {
        let history = self.history;
        let collection = self.collection(collection);
        let revision = event.revision;
        collection.log.push_back(Arc::new(event));
        while collection.log.len() > history {
            if let Some(forgotten) = collection.log.pop_front() {
                collection.compacted = forgotten.revision;
            }
        }
        collection.changed.set(revision);
        self.changed.set(revision);
    }
}

fn set_revision(object: &mut Value, revision: u64) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("resourceVersion".to_owned(), revision.to_string().into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn place(name: &str) -> Place {
        ("n".to_owned(), name.to_owned())
    }

    fn names(list: &[(Place, Arc<Value>)]) -> Vec<&str> {
        list.iter().map(|((_, name), _)| name.as_str()).collect()
    }

    #[test]
    fn the_past_can_be_listed_until_it_is_forgotten() {
        let mut store = Store::new(2);
        store.put("x", place("a"), json!({"metadata": {}}));
        let then = store.revision();
        store.put("x", place("b"), json!({"metadata": {}}));
        store.remove("x", &place("a"), None);
        assert_eq!(names(&store.list("x", None)), ["b"]);
        assert_eq!(names(&store.list_at("x", Some("n"), then).unwrap()), ["a"]);
        store.put("x", place("c"), json!({"metadata": {}}));
        assert!(store.list_at("x", None, then).is_err());
        assert_eq!(store.since("x", then).unwrap_err(), Compacted(then + 1));
        assert_eq!(store.since("x", then + 1).unwrap().len(), 2);
    }
}
