//! The ledger, as each replica of the webhook keeps it: a drift is entered before its answer goes out, and counted
//! afterwards.
//!
//! ```text
//!  drift ──▶ Tab (one per drift: what is not written yet) ──first time──▶ create ─┐
//!             ▲                                                                   ├──▶ Drift, ClusterDrift
//!             └── Shelf (what is entered, from a watch)      ──every 30 s──▶ count┘
//! ```
//!
//! The name of an entry follows from what it says, so replicas and retries meet in one object. A controller in a hot loop
//! costs two writes a minute, however many replicas see it. The same drift on another `Ground`, or after it was
//! over, begins anew: its entry is written whole.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use jiff::{SignedDuration, Timestamp, Unit};
use kausality_api::{
    GROUP,
    approval::Approval,
    drift::{Drift as Entry, DriftState, plural},
};
use kausality_core::{Decision, Drift, ledger};
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
    core::{ApiResource, DynamicObject},
};
use serde_json::json;
use tokio::time::{Instant, timeout_at};

use crate::{clock::Clock, kinds::Kinds};

pub(crate) mod bounds;
mod ground;
pub mod keep;
mod patch;
mod shelf;
mod tab;

use bounds::{Bound, Refused};
use ground::Ground;
use patch::Found;
use shelf::{Key, Shelf, Stored};
use tab::{Sighting, Tab};

/// How long an answer waits for its entry.
const PATIENCE: Duration = Duration::from_secs(2);

/// The time between two writes of a count, by whichever replica.
const BETWEEN: Duration = Duration::from_secs(30);

/// How often it is looked whether there is anything to write.
const TICK: Duration = Duration::from_secs(1);

/// How often it is looked whether entries are known, while a drift waits for that.
const MOMENT: Duration = Duration::from_millis(5);

/// How soon an entry that could not be written is tried again.
const AGAIN: Duration = Duration::from_secs(1);

/// How long the API server may take to take a count.
const WRITE_DEADLINE: Duration = Duration::from_secs(5);

/// How often it is tried to close an entry while others write to it.
const CLOSINGS: usize = 5;

/// How many drifts are remembered between two writes.
const MAX_TABS: usize = 10_000;

/// Where drifts are entered. Until somebody [keeps](Self::keep) it, it takes nothing.
pub(crate) struct Ledger {
    client: Client,
    clock: Clock,
    shelf: Shelf,
    tabs: Mutex<BTreeMap<Key, Arc<Tab>>>,
    pub(crate) refused: Refused,
}

/// An occurrence that is to be entered.
struct First {
    ground: Ground,
    child: u64,
    entry: Entry,
    sighting: Sighting,
}

/// What became of an attempt to enter a drift.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entered {
    /// It is there.
    Yes,
    /// There are too many.
    Full(Bound),
    /// It has been written so often that it is written later.
    Later,
    /// It could not be written; the next sighting tries again.
    No,
    /// Nobody keeps a ledger here.
    Off,
}

impl Ledger {
    pub(crate) fn new(client: Client, clock: Clock) -> Self {
        Self { client, clock, shelf: Shelf::default(), tabs: Mutex::default(), refused: Refused::default() }
    }

    /// Somebody is about to [keep](Self::keep) it.
    pub(crate) fn expect(&self) {
        self.shelf.expect();
    }

    /// Follows what is entered and writes counts, for ever.
    pub(crate) async fn keep(&self, fresh: &Client, kinds: &Kinds) {
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let count = async {
            loop {
                ticks.tick().await;
                self.count_all(false).await;
            }
        };
        let follow = |plural| self.shelf.follow(fresh, kinds, plural);
        tokio::join!(follow("drifts"), follow("clusterdrifts"), count);
    }

    /// Writes all counts at once: nobody will do it later.
    pub(crate) async fn flush(&self) {
        self.count_all(true).await;
    }

    /// Enters a drift, or counts it once more. Returns when it is in the cluster, or will not be in time.
    pub(crate) async fn enter(
        self: &Arc<Self>,
        drift: &Drift,
        decision: &Decision,
        until: Instant,
    ) -> Entered {
        if !self.opens(until.min(Instant::now() + PATIENCE)).await {
            return Entered::Off;
        }
        let key: Key = (drift.report.spec.child.namespace.clone(), drift.id().to_owned());
        let Some(tab) = self.tab(&key) else { return self.refuse(&key, Bound::Replica) };
        let ground = Ground::of(drift);
        let sighting = Sighting {
            at: moment(&self.clock),
            state: ledger::state(decision),
            explanation: ledger::explanation(decision),
        };
        if self.is_entered(&key, &tab, ground) {
            tab.notes().see(sighting);
            return Entered::Yes;
        }
        let until = until.min(Instant::now() + PATIENCE);
        let entering = async {
            let writing = tab.writing.clone().lock_owned().await;
            // Whoever wrote before has perhaps done it.
            if self.is_entered(&key, &tab, ground) {
                tab.notes().see(sighting);
                return Entered::Yes;
            }
            if tab.notes().failed_until.is_some_and(|until| until > Instant::now()) {
                return Entered::No;
            }
            let first = First {
                ground,
                child: ground::child(&drift.report.spec.child),
                entry: ledger::entry(drift, decision, sighting.at),
                sighting,
            };
            // The API server may store an entry after its answer was waited for in vain, so the write goes on without the
            // request, and the sighting counts.
            let (ledger, key, tab) = (self.clone(), key.clone(), tab.clone());
            let written = tokio::spawn(async move {
                let _writing = writing;
                ledger.write_in_time(&key, &tab, first).await
            });
            written.await.unwrap_or(Entered::No)
        };
        match timeout_at(until, entering).await {
            Ok(Entered::Full(bound)) => self.refuse(&key, bound),
            Ok(entered) => entered,
            Err(_) => {
                tracing::warn!(drift = key.1, "a drift could not be entered into the ledger in time");
                Entered::No
            }
        }
    }

    /// A drift is not entered. In a loop, that is not said each time.
    fn refuse(&self, (namespace, drift): &Key, bound: Bound) -> Entered {
        if self.refused.count(namespace, bound) {
            let full = bound.as_str();
            tracing::warn!(
                drift,
                namespace,
                full,
                "the ledger is full: so many drifts wait for somebody that no more are entered"
            );
        }
        Entered::Full(bound)
    }

    /// Closes the entry of a drift that an approval has let pass: by the time that the leader looks, the approval may be
    /// used up.
    pub(crate) async fn close(&self, key: &Key, approval: &Approval) {
        if !self.shelf.get(key).is_some_and(|stored| stored.state.is_open()) {
            return;
        }
        match tokio::time::timeout(WRITE_DEADLINE, self.close_it(key, approval)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(drift = key.1, %error, "an entry could not be closed"),
            Err(_) => tracing::warn!(drift = key.1, "an entry could not be closed: no answer"),
        }
    }

    async fn close_it(&self, key: &Key, approval: &Approval) -> Result<(), kube::Error> {
        let api = api(&self.client, key);
        let passed = moment(&self.clock);
        let (resolution, decision) = ledger::passed(approval, passed);
        let mut conflict = None;
        for _ in 0..CLOSINGS {
            let Some(object) = api.get_opt(&key.1).await? else { return Ok(()) };
            let Ok(Entry { status, .. }) = entry(&object) else { return Ok(()) };
            // Whoever wrote meanwhile has closed it, or has counted: what was seen before, or what has been seen since.
            if !status.state.is_open() || conflict.is_some() && status.last_seen > passed {
                return Ok(());
            }
            let patch = json!({
                "metadata": {"resourceVersion": object.metadata.resource_version},
                "status": {"state": DriftState::Resolved, "resolution": resolution, "decision": decision},
            });
            match api.patch(&key.1, &parameters(), &Patch::Merge(&patch)).await {
                Ok(closed) => {
                    self.shelf.wrote(&closed);
                    return Ok(());
                }
                Err(kube::Error::Api(status)) if status.code == 409 => {
                    conflict = Some(kube::Error::Api(status));
                }
                Err(error) => return Err(error),
            }
        }
        conflict.map_or(Ok(()), Err)
    }

    /// Waits until it is known what is entered, where that is a matter of moments. Who was killed and comes back is asked
    /// about a drift at once, and nobody may ever ask again.
    async fn opens(&self, until: Instant) -> bool {
        while !self.shelf.is_open() {
            if !self.shelf.is_opening() || Instant::now() >= until {
                return false;
            }
            tokio::time::sleep(MOMENT).await;
        }
        true
    }

    /// Whether a drift is entered and open, as far as can be known without asking, on the ground on which it is seen.
    fn is_entered(&self, key: &Key, tab: &Tab, seen: Ground) -> bool {
        let written = tab.notes().entered;
        match (self.shelf.get(key), written) {
            // What the watch shows may be older than what was written from here.
            (Some(stored), Some((version, ground))) if stored.version <= version => ground.covers(seen),
            (Some(stored), _) => stored.state.is_open() && stored.ground.covers(seen),
            (None, Some((_, ground))) => !self.shelf.has_lost(key) && ground.covers(seen),
            (None, None) => false,
        }
    }

    /// The tab of a drift. None, if there are too many.
    fn tab(&self, key: &Key) -> Option<Arc<Tab>> {
        let mut tabs = self.tabs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tab) = tabs.get(key) {
            return Some(tab.clone());
        }
        if tabs.len() >= MAX_TABS {
            tabs.retain(|_, tab| tab.notes().unwritten > 0 || Arc::strong_count(tab) > 1);
        }
        (tabs.len() < MAX_TABS).then(|| tabs.entry(key.clone()).or_default().clone())
    }

    /// Writes an occurrence, unless the API server does not take it.
    async fn write_in_time(&self, key: &Key, tab: &Tab, first: First) -> Entered {
        let why = match tokio::time::timeout(WRITE_DEADLINE, self.write_first(key, tab, first)).await {
            Ok(Ok(entered)) => return entered,
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no answer within {WRITE_DEADLINE:?}"),
        };
        tracing::warn!(drift = key.1, error = why, "a drift could not be entered into the ledger");
        tab.notes().failed_until = Some(Instant::now() + AGAIN);
        Entered::No
    }

    /// Creates an entry, opens it again, or writes what it rests on now.
    async fn write_first(&self, key: &Key, tab: &Tab, first: First) -> Result<Entered, kube::Error> {
        let First { ground, child, entry, sighting } = first;
        let spent = tab.notes().spent_until();
        let stored = self.shelf.get(key);
        if !stored.is_some_and(|stored| stored.state.is_open())
            && let Some(bound) = self.shelf.bound(key, child, sighting.at)
        {
            return Ok(Entered::Full(bound));
        }
        if spent.is_none() && stored.is_none() {
            match self.create(key, &entry).await {
                Ok(created) => {
                    let version = version(&created);
                    let stored = Stored {
                        state: sighting.state,
                        version,
                        ground,
                        child,
                        closed: None,
                        is_superseded: false,
                        bytes: shelf::bytes(&created),
                    };
                    self.shelf.found(key, stored);
                    let mut notes = tab.notes();
                    notes.clear();
                    notes.entered = Some((version, ground));
                    notes.wrote(BETWEEN);
                    return Ok(Entered::Yes);
                }
                // Another replica was quicker, or it is there since long ago.
                Err(kube::Error::Api(status)) if status.code == 409 => {}
                Err(error) => return Err(error),
            }
        }
        {
            let mut notes = tab.notes();
            notes.begin(ground, stored.and_then(|stored| stored.closed), || entry);
            notes.see(sighting);
            if let Some(spent) = spent {
                notes.rest_until = Some(spent);
                return Ok(Entered::Later);
            }
        }
        Ok(if self.count(key, tab, false).await? { Entered::Yes } else { Entered::No })
    }

    async fn create(&self, key: &Key, entry: &Entry) -> Result<DynamicObject, kube::Error> {
        let entry = serde_json::to_value(entry).and_then(serde_json::from_value);
        let entry = entry.map_err(kube::Error::SerdeError)?;
        api(&self.client, key).create(&PostParams::default(), &entry).await
    }

    /// Writes what has been counted. Tells whether the entry is there and open.
    async fn count(&self, key: &Key, tab: &Tab, at_once: bool) -> Result<bool, kube::Error> {
        let api = api(&self.client, key);
        let Some(object) = api.get_opt(&key.1).await? else {
            // It was cleaned up. The next sighting enters it anew.
            self.shelf.forget(key);
            tab.notes().clear();
            return Ok(false);
        };
        let version = version(&object);
        let notes = tab.notes().clone();
        let Ok(entry) = entry(&object) else {
            tracing::warn!(drift = key.1, "an entry of the ledger cannot be understood: it is left alone");
            tab.notes().settle(notes.unwritten);
            return Ok(true);
        };
        let Some(last) = &notes.last else { return Ok(true) };
        let ground = Ground::of_entry(&entry.spec);
        // Unless somebody has seen a later one meanwhile.
        let is_another = (notes.fresh.as_ref())
            .is_some_and(|fresh| !ground.covers(fresh.ground) && last.at >= entry.status.last_seen);
        let closed = entry.status.resolution.as_ref().filter(|_| !entry.status.state.is_open());
        let found = if closed.is_some() { Found::Over } else { Found::Open };
        // Whoever closed it may be another replica, which knows nothing of what has been seen here before. What came in while
        // this one knew of the closure is another occurrence; clocks are asked only where it did not know the entry.
        let is_later = (notes.fresh.as_ref().zip(closed))
            .is_some_and(|(fresh, closed)| fresh.after == Some(closed.at) || last.at > closed.at);
        let begins = is_another || is_later;
        let now = moment(&self.clock);
        let waited = now.duration_since(entry.status.counted_at);
        let left = SignedDuration::try_from(BETWEEN).unwrap_or_default().saturating_sub(waited);
        if !begins && found == Found::Open && !at_once && left.is_positive() {
            // Another replica has counted a moment ago.
            let mut notes = tab.notes();
            notes.entered = Some((version, ground));
            notes.fresh = None;
            notes.rest_until = Some(Instant::now() + left.unsigned_abs());
            return Ok(true);
        }
        let (ground, written) = match notes.fresh.as_ref().filter(|_| begins) {
            Some(fresh) => {
                let patch = serde_json::from_value(patch::renewed(&object, fresh, last, now));
                let patch = Patch::Json::<()>(patch.map_err(kube::Error::SerdeError)?);
                (fresh.ground, api.patch(&key.1, &parameters(), &patch).await)
            }
            None => {
                let patch = Patch::Merge(patch::counted(&entry, notes.unwritten, last, now, found));
                (ground, api.patch(&key.1, &parameters(), &patch).await)
            }
        };
        let written = match written {
            Ok(written) => written,
            // Somebody else has written meanwhile: next time.
            Err(kube::Error::Api(status)) if status.code == 409 => return Ok(false),
            Err(error) => return Err(error),
        };
        let mut now = tab.notes();
        now.settle(notes.unwritten);
        now.entered = (begins || found == Found::Open).then(|| (crate::ledger::version(&written), ground));
        if now.entered.is_none() {
            self.shelf.wrote(&written);
        }
        now.wrote(BETWEEN);
        Ok(true)
    }

    async fn count_all(&self, at_once: bool) {
        let due: Vec<(Key, Arc<Tab>)> = {
            let mut tabs = self.tabs.lock().unwrap_or_else(PoisonError::into_inner);
            // What has been written and not seen since is known from the watch.
            tabs.retain(|_, tab| tab.notes().is_needed() || Arc::strong_count(tab) > 1);
            let is_due = |key: &Key, tab: &Tab| tab.notes().is_due(at_once, || self.shelf.get(key));
            tabs.iter()
                .filter(|(key, tab)| is_due(key, tab))
                .map(|(key, tab)| (key.clone(), tab.clone()))
                .collect()
        };
        for (key, tab) in due {
            let _writing = tab.writing.lock().await;
            let counted = tokio::time::timeout(WRITE_DEADLINE, self.count(&key, &tab, at_once)).await;
            if !matches!(counted, Ok(Ok(true))) {
                tab.notes().rest_until = Some(Instant::now() + AGAIN);
            }
            if let Ok(Err(error)) = counted {
                tracing::warn!(drift = key.1, %error, "a drift could not be counted");
            }
        }
    }
}

/// Reads an entry. Items of lists do not say what they are.
fn entry(object: &DynamicObject) -> Result<Entry, serde_json::Error> {
    let mut value = serde_json::to_value(object)?;
    let namespace = object.metadata.namespace.as_deref().unwrap_or_default();
    if let Some(fields) = value.as_object_mut() {
        fields.insert("apiVersion".to_owned(), kausality_api::API_VERSION.into());
        fields.insert("kind".to_owned(), resource(plural(namespace)).kind.into());
    }
    serde_json::from_value(value)
}

/// How entries are written.
fn parameters() -> PatchParams {
    PatchParams { field_manager: Some("kausality".to_owned()), ..PatchParams::default() }
}

/// The time, as precisely as entries need it.
fn moment(clock: &Clock) -> Timestamp {
    let now = clock.now();
    now.round(Unit::Millisecond).unwrap_or(now)
}

fn version(object: &DynamicObject) -> u64 {
    object.metadata.resource_version.as_deref().and_then(|version| version.parse().ok()).unwrap_or_default()
}

/// How entries of a plural name are reached.
pub(crate) fn resource(plural: &str) -> ApiResource {
    let kind = if plural == "drifts" { "Drift" } else { "ClusterDrift" };
    ApiResource {
        group: GROUP.to_owned(),
        version: "v1alpha1".to_owned(),
        api_version: kausality_api::API_VERSION.to_owned(),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
    }
}

fn api(client: &Client, (namespace, _): &Key) -> Api<DynamicObject> {
    let resource = resource(plural(namespace));
    match namespace.as_str() {
        "" => Api::all_with(client.clone(), &resource),
        _ => Api::namespaced_with(client.clone(), namespace, &resource),
    }
}

#[cfg(test)]
mod tests;
