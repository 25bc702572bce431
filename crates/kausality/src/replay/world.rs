//! The cluster as a recording shows it: every live object as it is stored, with the annotations that
//! Kausality would have written.

use std::{
    cell::OnceCell,
    collections::{BTreeMap, HashMap, HashSet, VecDeque},
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

use kausality_api::annotation::MODE;
use kausality_core::{
    KnownParent, Namespace, Summary,
    policy::Policies,
    review::{Object, Text},
    status::Rules,
    summary,
};
use serde_json::value::RawValue;

use super::overlay::Overlay;

/// How many uids of objects that went away are remembered.
const MAX_DEPARTED: usize = 65_536;

/// How many writes to an object may be uncertain at a time.
const MAX_PENDING: usize = 8;

/// How many objects with a generated name may wait for their first sighting.
const MAX_UNNAMED: usize = 4096;

/// Names an object across versions of its API.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub group: String,
    pub kind: String,
    pub namespace: String,
    pub name: String,
}

impl Key {
    /// The key of an object that a request carries.
    pub(crate) fn of(object: &Object<'_>) -> Self {
        Self {
            group: summary::group(&object.api_version).to_owned(),
            kind: object.kind.to_string(),
            namespace: object.metadata.namespace.to_string(),
            name: object.metadata.name.to_string(),
        }
    }
}

/// An object as it is stored.
#[derive(Debug)]
pub(crate) struct Stored {
    /// The object, as last seen whole.
    text: Box<str>,
    /// Its status, where that has been written since.
    status: Option<Box<RawValue>>,
    /// Its generation, where that has been bumped since.
    generation: Option<i64>,
    deleting: bool,
    /// The uid; a CREATE does not tell it.
    uid: Option<String>,
    overlay: Overlay,
    /// The version that was last sighted, with the annotations of that time.
    sighted: Option<(String, Overlay)>,
    /// Writes since then. A review is no proof of storage: the next sighting shows which of them happened.
    pending: VecDeque<(Fingerprint, Overlay)>,
    summary: OnceCell<Option<Arc<Summary>>>,
}

impl Stored {
    /// An object as a text shows it, stored with these annotations.
    pub(crate) fn new(text: &str, object: &Object<'_>, overlay: Overlay) -> Self {
        let uid = &object.metadata.uid;
        Self {
            text: text.into(),
            status: None,
            generation: object.metadata.generation,
            deleting: object.metadata.is_deleting(),
            uid: (!uid.is_empty()).then(|| uid.to_string()),
            overlay,
            sighted: None,
            pending: VecDeque::new(),
            summary: OnceCell::new(),
        }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn with_generation(mut self, generation: Option<i64>) -> Self {
        self.generation = generation;
        self
    }

    pub(crate) fn with_status(mut self, status: Option<&RawValue>) -> Self {
        self.status = status.map(ToOwned::to_owned);
        self
    }

    pub(crate) fn with_deletion(mut self) -> Self {
        self.deleting = true;
        self
    }

    /// Changes what Kausality has written, in every version that may turn out to be the stored one.
    fn overwrite(&mut self, change: impl Fn(&mut Overlay)) {
        let sighted = self.sighted.iter_mut().map(|(_, overlay)| overlay);
        let pending = self.pending.iter_mut().map(|(_, overlay)| overlay);
        sighted.chain(pending).chain([&mut self.overlay]).for_each(change);
        self.summary = OnceCell::new();
    }

    /// What its children's decisions see, its status read by these rules. They are the same throughout.
    fn summary(&self, rules: impl FnOnce() -> Rules) -> Option<Arc<Summary>> {
        let summary = self.summary.get_or_init(|| {
            let mut object = Object::parse(&self.text).ok()?;
            object.metadata.generation = self.generation;
            if self.deleting {
                object.metadata.deletion_timestamp = Some(Text::from(""));
            }
            if let Some(uid) = &self.uid {
                object.metadata.uid = Text::from(uid.as_str());
            }
            self.overlay.dress(&mut object.metadata.annotations);
            object.read_by(rules());
            let status = self.status.as_deref().or(object.status);
            Some(Arc::new(Summary::with_status(&object, status)))
        });
        summary.clone()
    }

    /// All of it, as it was last shown.
    pub(crate) fn whole(&self) -> Option<Arc<serde_json::Value>> {
        serde_json::from_str(&self.text).ok().map(Arc::new)
    }

    /// Whether it may be the object with this uid.
    fn may_be(&self, uid: &str) -> bool {
        self.uid.as_deref().is_none_or(|known| known == uid)
    }

    fn was_sighted_at(&self, resource_version: &str) -> bool {
        self.sighted.as_ref().is_some_and(|(version, _)| version == resource_version)
    }

    fn fingerprint(&self) -> Option<Fingerprint> {
        let object = Object::parse(&self.text).ok()?;
        Some(fingerprint(&object, self.status.as_deref().or(object.status)))
    }

    /// The annotations that the object had when it was as a review shows it.
    fn overlay_as(&self, seen: &Object<'_>) -> &Overlay {
        match &self.sighted {
            // Seen before any of the writes since: none has happened yet, or this is an old copy.
            Some((version, overlay)) if *version == *seen.metadata.resource_version => overlay,
            _ => {
                let seen = fingerprint(seen, seen.status);
                let landed = self.pending.iter().rev().find(|(written, _)| *written == seen);
                landed.map_or(&self.overlay, |(_, overlay)| overlay)
            }
        }
    }
}

/// Tells what an object wants and is, short of reading it.
type Fingerprint = u64;

fn fingerprint(object: &Object<'_>, status: Option<&RawValue>) -> Fingerprint {
    let mut hasher = DefaultHasher::new();
    for (key, value) in object.intent.iter() {
        (&**key, value.get()).hash(&mut hasher);
    }
    status.map(RawValue::get).hash(&mut hasher);
    hasher.finish()
}

/// All live objects that a recording has shown.
#[derive(Debug, Default)]
pub(crate) struct World {
    objects: HashMap<Key, Stored>,
    /// Uids of objects that went away while something may still refer to them, oldest first. Bounded.
    departed: VecDeque<String>,
    departed_uids: HashSet<String>,
    /// Objects whose generated name is not known yet: their annotations wait for the first sighting.
    unnamed: VecDeque<(Key, Overlay)>,
    kinds: HashMap<(String, String), String>,
    resources: HashMap<(String, String), Arc<str>>,
    policies: Policies,
}

impl World {
    /// A world without objects, under these policies.
    pub(crate) fn new(policies: Policies) -> Self {
        Self { policies, ..Self::default() }
    }

    /// What the children of an object are decided by.
    pub(crate) fn summary(&self, key: &Key) -> Option<Arc<Summary>> {
        let stored = self.objects.get(key)?;
        stored.summary(|| self.policies.status_rules(&key.group, &self.resource_of(&key.group, &key.kind)))
    }

    /// The resource that a kind is; empty until a request has shown it.
    pub(crate) fn resource_of(&self, group: &str, kind: &str) -> Arc<str> {
        self.resources.get(&(group.to_owned(), kind.to_owned())).cloned().unwrap_or_default()
    }

    /// Learns which resource a kind is.
    pub(crate) fn learn_kind(&mut self, group: &str, kind: &str, resource: &str) {
        let by_kind = (group.to_owned(), kind.to_owned());
        if self.resources.get(&by_kind).is_none_or(|known| **known != *resource) {
            self.kinds.insert((group.to_owned(), resource.to_owned()), kind.to_owned());
            self.resources.insert(by_kind, resource.into());
        }
    }

    /// The kind of a resource, once a request has shown it.
    pub(crate) fn kind_of(&self, group: &str, resource: &str) -> Option<&str> {
        self.kinds.get(&(group.to_owned(), resource.to_owned())).map(String::as_str)
    }

    pub(crate) fn get(&self, key: &Key) -> Option<&Stored> {
        self.objects.get(key)
    }

    /// Takes note of an object that a review shows as stored, and gives the review's copy of it the
    /// annotations that Kausality would have written: those are returned.
    pub(crate) fn sight(&mut self, text: &str, object: &mut Object<'_>) -> Overlay {
        let key = Key::of(object);
        let known = self.objects.get(&key).filter(|known| known.may_be(&object.metadata.uid));
        let (overlay, again) = match known {
            Some(known) => {
                let again = known.was_sighted_at(&object.metadata.resource_version);
                (known.overlay_as(object).clone(), again)
            }
            None => {
                let overlay = self.christen(&key, &object.metadata.generate_name);
                (overlay.unwrap_or_else(|| Overlay::of(&object.metadata.annotations)), false)
            }
        };
        overlay.dress(&mut object.metadata.annotations);
        if !again {
            let mut seen = Stored::new(text, object, overlay.clone());
            seen.sighted = Some((object.metadata.resource_version.to_string(), overlay.clone()));
            self.objects.insert(key, seen);
        }
        overlay
    }

    /// The annotations of an object that was created with a generated name and is seen for the first time.
    fn christen(&mut self, key: &Key, generate_name: &str) -> Option<Overlay> {
        if generate_name.is_empty() {
            return None;
        }
        let waiting = self.unnamed.iter().position(|(unnamed, _)| {
            unnamed.name == generate_name
                && unnamed.kind == key.kind
                && unnamed.namespace == key.namespace
                && unnamed.group == key.group
        })?;
        self.unnamed.remove(waiting).map(|(_, overlay)| overlay)
    }

    /// Stores an object that is created.
    pub(crate) fn create(
        &mut self,
        text: &str,
        object: &Object<'_>,
        overlay: Overlay,
        generation: Option<i64>,
    ) {
        let mut key = Key::of(object);
        if key.name.is_empty() {
            key.name = object.metadata.generate_name.to_string();
            if self.unnamed.len() >= MAX_UNNAMED {
                self.unnamed.pop_front();
            }
            self.unnamed.push_back((key, overlay));
            return;
        }
        // A name that is taken makes the CREATE fail: what is there stays. But a uid proves that it succeeded.
        let created = Stored::new(text, object, overlay).with_generation(generation);
        if created.uid.is_some() {
            self.remove(&key);
        }
        self.objects.entry(key).or_insert(created);
    }

    /// Stores a write to an object.
    pub(crate) fn write(&mut self, key: Key, mut written: Stored) {
        if let Some(known) = self.objects.remove(&key) {
            written.sighted = known.sighted;
            written.pending = known.pending;
            written.uid = written.uid.or(known.uid);
        }
        if written.pending.len() >= MAX_PENDING {
            written.pending.pop_front();
        }
        if let Some(print) = written.fingerprint() {
            written.pending.push_back((print, written.overlay.clone()));
        }
        self.objects.insert(key, written);
    }

    /// Removes an object.
    pub(crate) fn remove(&mut self, key: &Key) {
        let Some(uid) = self.objects.remove(key).and_then(|stored| stored.uid) else { return };
        if self.departed.len() >= MAX_DEPARTED
            && let Some(oldest) = self.departed.pop_front()
        {
            self.departed_uids.remove(&oldest);
        }
        if self.departed_uids.insert(uid.clone()) {
            self.departed.push_back(uid);
        }
    }

    /// Whether the object with this uid has gone away.
    pub(crate) fn is_departed(&self, uid: &str) -> bool {
        self.departed_uids.contains(uid)
    }

    /// Lets go of an object whose state is not known any more.
    pub(crate) fn forget(&mut self, key: &Key) {
        self.objects.remove(key);
    }

    /// Lets go of all objects of a kind in a namespace; of all namespaces, if it is empty.
    pub(crate) fn forget_all(&mut self, group: &str, kind: &str, namespace: &str) {
        self.objects.retain(|key, _| {
            !(key.group == group && key.kind == kind && (namespace.is_empty() || key.namespace == namespace))
        });
    }

    /// Looks for the owner of an object in `namespace`. Its uid must match, where it is known.
    pub(crate) fn parent(&mut self, owner: &summary::Owner, namespace: &str) -> KnownParent {
        let group = summary::group(&owner.api_version);
        let mut other = false;
        let namespace = owner.namespace.as_deref().unwrap_or(namespace);
        for namespace in [namespace, ""] {
            let key = Key {
                group: group.to_owned(),
                kind: owner.kind.clone(),
                namespace: namespace.to_owned(),
                name: owner.name.clone(),
            };
            let Some(stored) = self.objects.get_mut(&key) else { continue };
            match &stored.uid {
                Some(uid) if *uid != owner.uid && !owner.uid.is_empty() => {
                    other = true;
                    continue;
                }
                None if !owner.uid.is_empty() => {
                    stored.uid = Some(owner.uid.clone());
                    stored.summary = OnceCell::new();
                }
                _ => {}
            }
            if let Some(summary) = self.summary(&key) {
                return KnownParent::Found { summary, resource: self.resource_of(&key.group, &key.kind) };
            }
        }
        if other || self.departed_uids.contains(&owner.uid) {
            KnownParent::Gone
        } else {
            KnownParent::Unreadable(format!("{} {} is not in the recording", owner.kind, owner.name))
        }
    }

    /// A namespace, if the recording has shown it.
    pub(crate) fn namespace(&self, name: &str) -> Option<Arc<Namespace>> {
        let key = Key { kind: "Namespace".to_owned(), name: name.to_owned(), ..Key::default() };
        let object = Object::parse(&self.objects.get(&key)?.text).ok()?;
        let mode = object.metadata.annotations.get(MODE).map(ToOwned::to_owned);
        Some(Arc::new(Namespace { labels: object.metadata.labels(), mode }))
    }

    /// Changes an annotation of people's for good: the recording will go on showing what it was.
    pub(crate) fn rewrite(&mut self, key: &Key, annotation: &str, before: Option<&str>, after: Option<&str>) {
        if let Some(stored) = self.objects.get_mut(key) {
            stored.overwrite(|overlay| overlay.rewrite(annotation, before, after.map(ToOwned::to_owned)));
        }
    }

    /// Changes the replicas of an object, as `scale` does.
    pub(crate) fn scale(&mut self, key: &Key, replicas: i64) {
        let Some(stored) = self.objects.get_mut(key) else { return };
        let Ok(mut object) = serde_json::from_str::<serde_json::Value>(&stored.text) else { return };
        if let Some(spec) = object.get_mut("spec").and_then(serde_json::Value::as_object_mut) {
            spec.insert("replicas".to_owned(), replicas.into());
        }
        stored.generation = stored.generation.map(|generation| generation.saturating_add(1));
        if let (Some(generation), Some(metadata)) =
            (stored.generation, object.get_mut("metadata").and_then(serde_json::Value::as_object_mut))
        {
            metadata.insert("generation".to_owned(), generation.into());
        }
        stored.text = object.to_string().into();
        stored.summary = OnceCell::new();
    }

    /// Writes annotations of Kausality's own to an object.
    pub(crate) fn annotate(&mut self, key: &Key, annotations: &BTreeMap<String, Option<String>>) {
        if let Some(stored) = self.objects.get_mut(key) {
            stored.overwrite(|overlay| overlay.set(annotations));
        }
    }
}
