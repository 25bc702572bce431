//! What a controller knows: the objects that its watches have shown so far.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;

use super::{Key, Resource, object};

/// By namespace and name.
type Objects = BTreeMap<String, BTreeMap<String, Arc<Value>>>;

/// The objects that watches have shown so far, which may be behind what is stored. Objects are also found by uid and
/// by the uid of their owners, at a cost that follows what is found.
#[derive(Clone, Debug, Default)]
pub struct Cache {
    objects: BTreeMap<Resource, Objects>,
    /// By the uid of an owner.
    dependents: BTreeMap<String, BTreeMap<Resource, Objects>>,
    /// By the uid of the owner that is their controller.
    controlled: BTreeMap<String, BTreeMap<Resource, Objects>>,
    uids: BTreeMap<String, Key>,
}

/// A watch event.
#[derive(Clone, Debug)]
pub enum Event {
    /// The object is there, new or changed.
    Applied(Arc<Value>),
    /// The object is gone; this was its last state.
    Deleted(Arc<Value>),
}

/// What an event has changed in a cache. An object of one uid never becomes one of another: that is a removal and an
/// addition.
#[derive(Clone, Debug)]
pub struct Change {
    /// The resource of the object.
    pub resource: Resource,
    /// The object before, if it was known.
    pub before: Option<Arc<Value>>,
    /// The object after, if it still is.
    pub after: Option<Arc<Value>>,
}

impl Change {
    /// The object: as it is, or as it was last seen.
    pub fn object(&self) -> &Value {
        static NOTHING: Value = Value::Null;
        self.after.as_deref().or(self.before.as_deref()).unwrap_or(&NOTHING)
    }

    /// Its key.
    pub fn key(&self) -> Key {
        self.resource.key_of(self.object())
    }
}

impl Cache {
    /// Makes a resource known, so that references to its kind can be resolved before the first object is seen.
    pub fn register(&mut self, resource: &Resource) {
        if !self.objects.contains_key(resource) {
            self.objects.insert(resource.clone(), Objects::new());
        }
    }

    /// Forgets a resource that is not served any more, and what is known of its objects.
    pub fn forget(&mut self, resource: &Resource) {
        let objects: Vec<_> = self.list(resource).cloned().collect();
        for object in objects {
            self.remove(resource, &object);
        }
        self.objects.remove(resource);
    }

    /// The resources it knows.
    pub fn resources(&self) -> impl Iterator<Item = &Resource> {
        self.objects.keys()
    }

    /// The resource that an `apiVersion` and `kind` mean.
    pub fn resource_of(&self, api_version: &str, kind: &str) -> Option<&Resource> {
        self.resources().find(|resource| resource.is(api_version, kind))
    }

    /// Takes in one event, and says what it changed. An event that tells nothing new, because it came before or was
    /// overtaken, changes nothing.
    pub fn apply(&mut self, resource: &Resource, event: Event) -> Vec<Change> {
        let change = |before, after| Change { resource: resource.clone(), before, after };
        match event {
            Event::Applied(new) => {
                match self.get(resource, object::namespace(&new), object::name(&new)).cloned() {
                    Some(old) if object::uid(&old) != object::uid(&new) => {
                        self.remove(resource, &old);
                        self.insert(resource, Arc::clone(&new));
                        vec![change(Some(old), None), change(None, Some(new))]
                    }
                    Some(old) if !is_later(&new, &old) => Vec::new(),
                    Some(old) => {
                        if object::owner_references(&old) == object::owner_references(&new) {
                            self.renew(resource, &new);
                        } else {
                            self.remove(resource, &old);
                            self.insert(resource, Arc::clone(&new));
                        }
                        vec![change(Some(old), Some(new))]
                    }
                    None => {
                        self.insert(resource, Arc::clone(&new));
                        vec![change(None, Some(new))]
                    }
                }
            }
            Event::Deleted(last) => {
                let held = self.get(resource, object::namespace(&last), object::name(&last)).cloned();
                match held.filter(|held| object::uid(held) == object::uid(&last)) {
                    Some(held) => {
                        self.remove(resource, &held);
                        vec![change(Some(last), None)]
                    }
                    None => Vec::new(),
                }
            }
        }
    }

    /// Takes in a whole list of a resource, after a watch broke, and says what that changed.
    pub fn replace(&mut self, resource: &Resource, list: Vec<Arc<Value>>) -> Vec<Change> {
        self.register(resource);
        let places: std::collections::BTreeSet<_> =
            list.iter().map(|it| (object::namespace(it).to_owned(), object::name(it).to_owned())).collect();
        let gone: Vec<_> = self
            .list(resource)
            .filter(|it| !places.contains(&(object::namespace(it).to_owned(), object::name(it).to_owned())))
            .cloned()
            .collect();
        let gone = gone.into_iter().map(Event::Deleted);
        gone.chain(list.into_iter().map(Event::Applied))
            .flat_map(|event| self.apply(resource, event))
            .collect()
    }

    /// All it holds, as if it had just been added: for a controller that starts, or that must look at everything again.
    pub fn all(&self) -> Vec<Change> {
        let added = |resource: &Resource, it: &Arc<Value>| Change {
            resource: resource.clone(),
            before: None,
            after: Some(Arc::clone(it)),
        };
        self.resources().flat_map(|resource| self.list(resource).map(move |it| added(resource, it))).collect()
    }

    /// One object.
    pub fn get(&self, resource: &Resource, namespace: &str, name: &str) -> Option<&Arc<Value>> {
        self.objects.get(resource)?.get(namespace)?.get(name)
    }

    /// The object at a key.
    pub fn at(&self, key: &Key) -> Option<&Arc<Value>> {
        self.get(&key.resource, &key.namespace, &key.name)
    }

    /// Where the object of a uid is.
    pub fn find(&self, uid: &str) -> Option<&Key> {
        self.uids.get(uid)
    }

    /// All objects of a resource, by namespace and name.
    pub fn list(&self, resource: &Resource) -> impl Iterator<Item = &Arc<Value>> {
        self.objects.get(resource).into_iter().flat_map(flat)
    }

    /// All objects of a resource in a namespace, by name.
    pub fn list_in(&self, resource: &Resource, namespace: &str) -> impl Iterator<Item = &Arc<Value>> {
        self.objects
            .get(resource)
            .and_then(|objects| objects.get(namespace))
            .into_iter()
            .flat_map(BTreeMap::values)
    }

    /// The objects of a resource that have the owner as their controller, by namespace and name.
    pub fn owned(&self, resource: &Resource, owner: &str) -> impl Iterator<Item = &Arc<Value>> {
        let objects = self.controlled.get(owner).and_then(|by_resource| by_resource.get(resource));
        objects.into_iter().flat_map(flat)
    }

    /// All objects that name the owner among theirs.
    pub fn dependents(&self, owner: &str) -> impl Iterator<Item = (&Resource, &Arc<Value>)> {
        let by_resource = self.dependents.get(owner).into_iter().flatten();
        by_resource.flat_map(|(resource, objects)| flat(objects).map(move |it| (resource, it)))
    }

    fn insert(&mut self, resource: &Resource, new: Arc<Value>) {
        for owner in object::owners(&new) {
            let by_resource = self.dependents.entry(owner.uid().to_owned()).or_default();
            put(of(by_resource, resource), &new);
        }
        if let Some(owner) = object::controller(&new) {
            let by_resource = self.controlled.entry(owner.uid().to_owned()).or_default();
            put(of(by_resource, resource), &new);
        }
        self.uids.insert(object::uid(&new).to_owned(), resource.key_of(&new));
        put(of(&mut self.objects, resource), &new);
    }

    /// Puts a later state of an object in the place of the earlier one. It has the same owners.
    fn renew(&mut self, resource: &Resource, new: &Arc<Value>) {
        for owner in object::owners(new) {
            if let Some(by_resource) = self.dependents.get_mut(owner.uid()) {
                exchange(by_resource, resource, new);
            }
        }
        if let Some(by_resource) = object::controller(new).and_then(|it| self.controlled.get_mut(it.uid())) {
            exchange(by_resource, resource, new);
        }
        exchange(&mut self.objects, resource, new);
    }

    fn remove(&mut self, resource: &Resource, old: &Value) {
        for owner in object::owners(old) {
            drop_from(&mut self.dependents, owner.uid(), resource, old);
        }
        if let Some(owner) = object::controller(old) {
            drop_from(&mut self.controlled, owner.uid(), resource, old);
        }
        self.uids.remove(object::uid(old));
        if let Some(objects) = self.objects.get_mut(resource) {
            take(objects, old);
        }
    }
}

/// Whether an object is a later state of the same. Versions are numbers; whatever is none is later unless it is equal.
fn is_later(new: &Value, old: &Value) -> bool {
    let (new, old) = (object::version(new), object::version(old));
    match (new.parse::<u64>(), old.parse::<u64>()) {
        (Ok(new), Ok(old)) => new > old,
        _ => new != old,
    }
}

fn of<'a>(map: &'a mut BTreeMap<Resource, Objects>, resource: &Resource) -> &'a mut Objects {
    map.entry(resource.clone()).or_default()
}

/// Drops an object from an index by owner, with all that is empty after that.
fn drop_from(
    index: &mut BTreeMap<String, BTreeMap<Resource, Objects>>,
    owner: &str,
    resource: &Resource,
    old: &Value,
) {
    let Some(by_resource) = index.get_mut(owner) else { return };
    if let Some(objects) = by_resource.get_mut(resource) {
        take(objects, old);
        if objects.is_empty() {
            by_resource.remove(resource);
        }
    }
    if by_resource.is_empty() {
        index.remove(owner);
    }
}

fn flat(objects: &Objects) -> impl Iterator<Item = &Arc<Value>> {
    objects.values().flat_map(BTreeMap::values)
}

fn put(objects: &mut Objects, new: &Arc<Value>) {
    let by_name = objects.entry(object::namespace(new).to_owned()).or_default();
    by_name.insert(object::name(new).to_owned(), Arc::clone(new));
}

/// Puts an object where one of its name is.
fn exchange(by_resource: &mut BTreeMap<Resource, Objects>, resource: &Resource, new: &Arc<Value>) {
    let by_name = by_resource.get_mut(resource).and_then(|objects| objects.get_mut(object::namespace(new)));
    if let Some(held) = by_name.and_then(|by_name| by_name.get_mut(object::name(new))) {
        *held = Arc::clone(new);
    }
}

fn take(objects: &mut Objects, old: &Value) {
    if let Some(by_name) = objects.get_mut(object::namespace(old)) {
        by_name.remove(object::name(old));
        if by_name.is_empty() {
            objects.remove(object::namespace(old));
        }
    }
}

#[cfg(test)]
mod tests;
