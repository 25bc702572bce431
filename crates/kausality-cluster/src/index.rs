//! The objects of one kind as small summaries, fed by a watch.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    ops::ControlFlow,
    sync::{
        Arc, Mutex, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use kausality_core::{
    Summary,
    review::Object,
    status::Rules,
    summary::{Compact, ObjectId},
};
use kube::core::{ApiResource, DynamicObject};
use tokio::{sync::broadcast, time::Instant};

use crate::{
    feed::Mirror,
    kinds::Kind,
    pending::Pending,
    pulse::{Health, Pulse},
};

/// How many objects of a kind are kept at most. Of a kind with more none is kept: they are read live.
const MAX_OBJECTS: usize = 200_000;

/// How many uids of deleted objects are remembered, for the garbage collector's deletions that follow.
const MAX_DEPARTED: usize = 16_384;

/// For how long they are remembered. What they owned is cleaned up by then, or its owner is looked for.
const DEPARTED_FOR: Duration = Duration::from_secs(600);

/// The objects of one kind. One watch writes, everybody reads.
#[derive(Debug)]
pub struct Index {
    /// The kind.
    pub kind: Arc<Kind>,
    pub(crate) pulse: Pulse,
    /// By which rules statuses are read.
    rules: RwLock<Rules>,
    /// Whether the status of any object has shown how far its controller has got.
    evidence: AtomicBool,
    state: RwLock<State>,
    departed: Mutex<Departed>,
    /// What waits to be shown by an object.
    pending: Arc<Pending>,
    /// Not `watch`, which wakes in an order that is left to chance.
    changes: broadcast::Sender<()>,
}

#[derive(Debug, Default)]
struct State {
    objects: HashMap<Place, Entry>,
    /// Objects of a list that is still being read.
    arriving: HashMap<Place, Entry>,
    /// Whether there were too many objects to keep.
    full: bool,
}

/// An object; `None` if it is there but cannot be understood. There are many, and few are asked for: a summary takes
/// more than twice the memory, and is quickly made.
type Entry = Option<Box<Compact>>;

/// The namespace and the name.
type Place = Box<str>;

fn place(namespace: &str, name: &str) -> Place {
    format!("{namespace}/{name}").into()
}

/// Objects that are gone, by their uids: so many, and for so long.
#[derive(Debug, Default)]
struct Departed {
    order: VecDeque<(Instant, Arc<str>)>,
    uids: HashSet<Arc<str>>,
}

impl Departed {
    fn add(&mut self, uid: &str, now: Instant) {
        let uid: Arc<str> = uid.into();
        if self.uids.insert(uid.clone()) {
            self.order.push_back((now, uid));
        }
        let is_old = |at: Instant| now.duration_since(at) >= DEPARTED_FOR;
        while let Some((at, oldest)) = self.order.front()
            && (self.order.len() > MAX_DEPARTED || is_old(*at))
        {
            self.uids.remove(oldest);
            self.order.pop_front();
        }
    }
}

/// The changes of an index.
#[derive(Debug)]
pub struct Changes(broadcast::Receiver<()>);

impl Changes {
    /// Waits until something has changed since the last time, or the time is up.
    pub async fn next(&mut self, patience: Duration) {
        let _ = tokio::time::timeout(patience, self.0.recv()).await;
    }
}

/// What an index knows of an object.
#[derive(Clone, Debug)]
pub enum Sight {
    /// It is there.
    Here(Arc<Summary>),
    /// It was there, and is not any more.
    Departed,
    /// It has not been seen, but may have come since.
    Unseen,
    /// The index cannot be trusted now.
    Blind,
}

impl Index {
    /// An index of this kind that is still empty. Statuses are read by these rules.
    #[must_use]
    pub(crate) fn new(kind: Arc<Kind>, rules: Rules, pending: Arc<Pending>) -> Self {
        Self {
            kind,
            pulse: Pulse::default(),
            rules: RwLock::new(rules),
            evidence: AtomicBool::default(),
            state: RwLock::default(),
            departed: Mutex::default(),
            pending,
            changes: broadcast::Sender::new(1),
        }
    }

    /// Has statuses read by other rules from now on. Whether what is known was read by others, and must be listed again.
    pub(crate) fn read_by(&self, rules: Rules) -> bool {
        let mut known = self.rules.write().unwrap_or_else(PoisonError::into_inner);
        let others = *known != rules;
        if others {
            *known = rules;
            self.evidence.store(false, Ordering::Relaxed);
        }
        others
    }

    /// Whether the status of any object has shown how far its controller has got.
    pub(crate) fn has_evidence(&self) -> bool {
        self.evidence.load(Ordering::Relaxed)
    }

    /// What is known of an object. `uid` is the one that must be meant.
    #[must_use]
    pub fn look(&self, namespace: &str, name: &str, uid: &str) -> Sight {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        if state.full || !self.pulse.is_trusted() {
            return Sight::Blind;
        }
        match state.objects.get(&place(namespace, name)) {
            Some(Some(object)) if uid.is_empty() || object.uid() == uid => {
                Sight::Here(Arc::new(object.unpack(self.id(namespace, name))))
            }
            Some(None) => Sight::Blind,
            _ if self.departed.lock().unwrap_or_else(PoisonError::into_inner).uids.contains(uid) => {
                Sight::Departed
            }
            _ => Sight::Unseen,
        }
    }

    /// All objects that are known, as far as the index can be trusted.
    #[must_use]
    pub fn all(&self) -> Vec<Summary> {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        if state.full || !self.pulse.is_trusted() {
            return Vec::new();
        }
        let known = state
            .objects
            .iter()
            .filter_map(|(place, object)| Some((place.split_once('/')?, object.as_ref()?)));
        known.map(|((namespace, name), object)| object.unpack(self.id(namespace, name))).collect()
    }

    fn id(&self, namespace: &str, name: &str) -> ObjectId {
        let ApiResource { api_version, kind, .. } = &self.kind.resource;
        ObjectId {
            api_version: api_version.clone(),
            kind: kind.clone(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }

    /// Whether as much is known as will ever be.
    #[must_use]
    pub fn is_synced(&self) -> bool {
        self.pulse.is_synced() || self.state.read().unwrap_or_else(PoisonError::into_inner).full
    }

    /// Changes from here on. To be asked for before a [`look`](Self::look), so that none is missed after it.
    #[must_use]
    pub fn changes(&self) -> Changes {
        Changes(self.changes.subscribe())
    }

    /// How the index is doing.
    #[must_use]
    pub fn health(&self) -> Health {
        self.pulse.health(self.state.read().unwrap_or_else(PoisonError::into_inner).objects.len())
    }

    fn update(&self, change: impl FnOnce(&mut State)) -> ControlFlow<()> {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        change(&mut state);
        if state.objects.len().max(state.arriving.len()) > MAX_OBJECTS {
            *state = State { full: true, ..State::default() };
        }
        let full = state.full;
        drop(state);
        let _ = self.changes.send(());
        if full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn entry(&self, object: &DynamicObject) -> (Place, Entry) {
        let metadata = &object.metadata;
        let place = place(
            metadata.namespace.as_deref().unwrap_or_default(),
            metadata.name.as_deref().unwrap_or_default(),
        );
        let rules = self.rules.read().unwrap_or_else(PoisonError::into_inner).clone();
        match summarise(object, &self.kind.resource, rules) {
            Ok(summary) => {
                if summary.shows_progress() {
                    self.evidence.store(true, Ordering::Relaxed);
                }
                // The next status may come before anybody asks.
                self.pending.see(&summary);
                (place, Some(Box::new(Compact::from(&summary))))
            }
            Err(error) => {
                tracing::warn!(resource = %self.kind.resource.plural, %error, "an object could not be read");
                (place, None)
            }
        }
    }

    fn depart(&self, uids: impl IntoIterator<Item = String>) {
        let mut departed = self.departed.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        uids.into_iter().for_each(|uid| departed.add(&uid, now));
    }
}

impl Mirror for Index {
    fn begin(&self) {
        self.state.write().unwrap_or_else(PoisonError::into_inner).arriving.clear();
    }

    fn arrive(&self, object: DynamicObject) -> ControlFlow<()> {
        let (place, entry) = self.entry(&object);
        self.update(|state| {
            state.arriving.insert(place, entry);
        })
    }

    fn complete(&self) {
        let mut gone = Vec::new();
        let _ = self.update(|state| {
            let arrived = std::mem::take(&mut state.arriving);
            let before = std::mem::replace(&mut state.objects, arrived);
            let still_there = |place: &Place, object: &Compact| match state.objects.get(place) {
                Some(Some(current)) => current.uid() == object.uid(),
                // Whatever it is.
                Some(None) => true,
                None => false,
            };
            let before = before.into_iter().filter_map(|(place, entry)| Some((place, entry?)));
            let before = before.filter(|(place, object)| !still_there(place, object));
            gone = before.map(|(_, object)| object.uid().to_owned()).collect();
        });
        self.depart(gone);
    }

    fn apply(&self, object: DynamicObject) -> ControlFlow<()> {
        let (place, entry) = self.entry(&object);
        let mut replaced = None;
        let outcome = self.update(|state| {
            let before = state.objects.insert(place, entry).flatten();
            replaced = before.map(|before| before.uid().to_owned());
        });
        self.depart(replaced.filter(|before| object.metadata.uid.as_ref() != Some(before)));
        outcome
    }

    fn remove(&self, object: DynamicObject) {
        let (place, entry) = self.entry(&object);
        let uid = object.metadata.uid.unwrap_or_default();
        let _ = self.update(|state| {
            let is_it = |current: &Entry| match current {
                Some(current) => current.uid() == uid,
                None => entry.is_none(),
            };
            if state.objects.get(&place).is_some_and(is_it) {
                state.objects.remove(&place);
            }
        });
        self.depart([uid]);
    }
}

/// Summarises an object, with its status read by these rules. Items of a list do not say what they are; the kind that was asked for does.
pub(crate) fn summarise(
    object: &DynamicObject,
    resource: &ApiResource,
    rules: Rules,
) -> Result<Summary, serde_json::Error> {
    let text = serde_json::to_string(object)?;
    let named = match (&object.types, text.strip_prefix('{')) {
        (None, Some(fields)) => {
            format!(r#"{{"apiVersion":"{}","kind":"{}",{fields}"#, resource.api_version, resource.kind)
        }
        _ => text,
    };
    let mut object = Object::parse(&named)?;
    object.read_by(rules);
    Ok(Summary::of(&object))
}

#[cfg(test)]
mod tests;
