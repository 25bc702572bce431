//! What is entered, from a watch: as little as a replica must know of each entry.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::ControlFlow,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use kausality_api::{
    GROUP,
    drift::{DriftState, MAX_OPEN, MAX_OPEN_BYTES, MAX_OPEN_OF_CHILD, ResolutionReason},
};
use kube::{Api, Client, core::DynamicObject};
use serde_json::Value;

use super::{
    bounds::Bound,
    ground::{self, Ground},
    resource, version,
};
use crate::{
    feed::{Mirror, feed},
    kinds::{Kinds, UnknownKind},
    pulse::Pulse,
};

/// The namespace, empty for what has none, and the id.
pub(crate) type Key = (String, String);

/// How often it is looked whether the kinds are served, while they are not.
const LOOK: Duration = Duration::from_secs(30);

/// How soon it is tried again after the API server did not answer.
const RETRY: Duration = Duration::from_secs(1);

/// How long a superseded entry counts against its child: one that changes again and again has so many new ones an hour, and
/// what it does next is still told.
const SUPERSEDED: SignedDuration = SignedDuration::from_hours(1);

/// An entry, in brief.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stored {
    pub state: DriftState,
    pub version: u64,
    pub ground: Ground,
    /// Whose it is.
    pub child: u64,
    /// Since when it is over. Tells one closure from another.
    pub closed: Option<Timestamp>,
    /// Whether it is over since its child was changed.
    pub is_superseded: bool,
    /// How many bytes it takes, as JSON.
    pub bytes: usize,
}

/// All entries, in brief.
#[derive(Debug, Default)]
pub(crate) struct Shelf {
    namespaced: Side,
    cluster: Side,
}

/// The entries of one kind.
#[derive(Debug, Default)]
struct Side {
    pulse: Pulse,
    /// Whether somebody looks for them, and found nothing so far that speaks against it.
    expected: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    known: BTreeMap<Key, Stored>,
    arriving: BTreeMap<Key, Stored>,
    /// Those that were there, and are not any more.
    lost: BTreeSet<Key>,
}

/// How many entries that are gone are remembered.
const MAX_LOST: usize = 10_000;

impl Shelf {
    /// Follows the entries of one kind, for ever; waits while the kind is not served.
    pub(super) async fn follow(&self, client: &Client, kinds: &Kinds, plural: &str) {
        let side = if plural == "drifts" { &self.namespaced } else { &self.cluster };
        until_served(kinds, plural, || side.expected.store(false, Ordering::Relaxed)).await;
        side.expected.store(true, Ordering::Relaxed);
        feed(Api::all_with(client.clone(), &resource(plural)), plural, &side.pulse, side).await;
    }

    /// Somebody is about to follow the entries.
    pub(super) fn expect(&self) {
        for side in [&self.namespaced, &self.cluster] {
            side.expected.store(true, Ordering::Relaxed);
        }
    }

    /// Whether it is a matter of moments until it is known what is entered.
    pub(super) fn is_opening(&self) -> bool {
        [&self.namespaced, &self.cluster].into_iter().all(Side::is_near)
    }

    /// Whether it is known what is entered.
    pub(super) fn is_open(&self) -> bool {
        self.namespaced.pulse.is_synced() && self.cluster.pulse.is_synced()
    }

    pub(super) fn get(&self, key: &Key) -> Option<Stored> {
        self.side(&key.0).lock().known.get(key).copied()
    }

    /// Whether an entry was there and has been removed.
    pub(super) fn has_lost(&self, key: &Key) -> bool {
        self.side(&key.0).lock().lost.contains(key)
    }

    /// Takes note of an entry that has just been created: the watch may take its time.
    pub(super) fn found(&self, key: &Key, stored: Stored) {
        let mut state = self.side(&key.0).lock();
        state.lost.remove(key);
        state.known.entry(key.clone()).or_insert(stored);
    }

    /// Takes note of an entry as it was written from here.
    pub(super) fn wrote(&self, object: &DynamicObject) {
        let (key, stored) = brief(object);
        self.side(&key.0).lock().learn(key, stored);
    }

    /// Takes note of an entry that is certainly not there.
    pub(super) fn forget(&self, key: &Key) {
        self.side(&key.0).lock().known.remove(key);
    }

    /// Why an entry of a child must not be opened, if so. Superseded entries of a child count for a while as if they were open: a
    /// child that changes again and again would have new ones without end.
    pub(super) fn bound(&self, key: &Key, child: u64, now: Timestamp) -> Option<Bound> {
        let namespace = key.0.as_str();
        let state = self.side(namespace).lock();
        let all = state.known.range((namespace.to_owned(), String::new())..);
        let there = all.take_while(|((of, _), _)| of == namespace).filter(|(of, _)| *of != key);
        let (mut open, mut bytes, mut of_child) = (0, 0_usize, 0);
        for (_, stored) in there {
            let is_open = stored.state.is_open();
            if is_open {
                open += 1;
                bytes = bytes.saturating_add(stored.bytes);
            }
            let is_recent = || stored.closed.is_some_and(|at| now.duration_since(at) < SUPERSEDED);
            let counts = is_open || stored.is_superseded && is_recent();
            of_child += usize::from(stored.child == child && counts);
        }
        match (of_child >= MAX_OPEN_OF_CHILD, open >= MAX_OPEN || bytes >= MAX_OPEN_BYTES) {
            (true, _) => Some(Bound::Child),
            (false, true) => Some(Bound::Namespace),
            (false, false) => None,
        }
    }

    fn side(&self, namespace: &str) -> &Side {
        if namespace.is_empty() { &self.cluster } else { &self.namespaced }
    }
}

/// Waits until a kind of entries is served. Each time that it is not, `unserved` is told.
pub(super) async fn until_served(kinds: &Kinds, plural: &str, unserved: impl Fn()) {
    while let Err(error) = kinds.of_resource(GROUP, plural).await {
        unserved();
        let pause = match error {
            UnknownKind::NotServed(_) => LOOK,
            error => {
                tracing::warn!(%error, "the ledger cannot be looked for");
                RETRY
            }
        };
        tokio::time::sleep(pause).await;
    }
}

impl Side {
    /// Whether its entries are known, or will be as soon as they are listed: nothing has failed yet.
    fn is_near(&self) -> bool {
        let fails = || self.pulse.health(0).outage.is_some();
        self.pulse.is_synced() || self.expected.load(Ordering::Relaxed) && !fails()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Names an entry.
pub(super) fn key(object: &DynamicObject) -> Key {
    let metadata = &object.metadata;
    (metadata.namespace.clone().unwrap_or_default(), metadata.name.clone().unwrap_or_default())
}

/// How many bytes an object takes, as JSON: what etcd holds of it, but for a few.
pub(super) fn bytes(object: &DynamicObject) -> usize {
    serde_json::to_vec(object).map_or(0, |text| text.len())
}

fn brief(object: &DynamicObject) -> (Key, Stored) {
    let state = object.data.pointer("/status/state").cloned().unwrap_or_default();
    let state = serde_json::from_value(state).unwrap_or(DriftState::Blocked);
    let (ground, child) = (Ground::of_object(object), ground::child_of(object));
    let reason = object.data.pointer("/status/resolution/reason").and_then(Value::as_str);
    let is_superseded = !state.is_open() && reason == Some(ResolutionReason::Superseded.as_str());
    let closed = object.data.pointer("/status/resolution/at").and_then(Value::as_str);
    let closed = closed.and_then(|at| at.parse().ok()).filter(|_| !state.is_open());
    let (version, bytes) = (version(object), bytes(object));
    (key(object), Stored { state, version, ground, child, closed, is_superseded, bytes })
}

impl Mirror for Side {
    fn begin(&self) {
        self.lock().arriving.clear();
    }

    fn arrive(&self, object: DynamicObject) -> ControlFlow<()> {
        self.lock().arriving.extend([brief(&object)]);
        ControlFlow::Continue(())
    }

    fn complete(&self) {
        let mut state = self.lock();
        let arrived = std::mem::take(&mut state.arriving);
        let before = std::mem::replace(&mut state.known, arrived);
        let gone: Vec<Key> = before.into_keys().filter(|key| !state.known.contains_key(key)).collect();
        state.lose(gone);
    }

    fn apply(&self, object: DynamicObject) -> ControlFlow<()> {
        let mut state = self.lock();
        let (key, stored) = brief(&object);
        state.learn(key, stored);
        ControlFlow::Continue(())
    }

    fn remove(&self, object: DynamicObject) {
        let mut state = self.lock();
        let key = key(&object);
        state.known.remove(&key);
        state.lose([key]);
    }
}

impl State {
    /// Takes over what is later than what is known: a watch may show what was before the last write from here.
    fn learn(&mut self, key: Key, stored: Stored) {
        self.lost.remove(&key);
        if self.known.get(&key).is_none_or(|known| known.version <= stored.version) {
            self.known.insert(key, stored);
        }
    }

    fn lose(&mut self, keys: impl IntoIterator<Item = Key>) {
        self.lost.extend(keys);
        while self.lost.len() > MAX_LOST {
            self.lost.pop_first();
        }
    }
}
