//! Annotations that Kausality has decided on but that do not show on their objects yet.
//!
//! A patch returned for a status update is dropped on custom resources, and one for `scale` cannot reach the
//! scaled object: both are written later. Until then this replica knows them from here.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use kausality_api::{
    annotation::{CONTROLLERS, SETTLED, TRACE, UPDATERS},
    identity::{Hashes, UserHash},
};
use kausality_core::{
    Summary,
    intent::IntentHash,
    managers::StatusWrite,
    review,
    settle::{self, Seen},
    status::Reading,
    summary::ObjectId,
};
use tokio::time::Instant;

/// What is held back for want of a place is held back no longer than this.
const MAX_WAITING: usize = 10_000;

/// How long the next attempt waits after one that failed, at first and at most.
const PAUSES: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(300));

/// Annotations by key; `None` removes one.
pub(crate) type Annotations = BTreeMap<String, Option<String>>;

/// What waits to be written.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    waiting: Mutex<ByUid>,
}

/// What waits, by the uid of its object.
#[derive(Debug, Default)]
struct ByUid {
    quiet: BTreeMap<String, Arc<Waiting>>,
    scaled: BTreeMap<String, Arc<Waiting>>,
}

impl ByUid {
    fn all(&self, until: Until) -> &BTreeMap<String, Arc<Waiting>> {
        match until {
            Until::Quiet => &self.quiet,
            Until::Scaled => &self.scaled,
        }
    }

    fn all_mut(&mut self, until: Until) -> &mut BTreeMap<String, Arc<Waiting>> {
        match until {
            Until::Quiet => &mut self.quiet,
            Until::Scaled => &mut self.scaled,
        }
    }

    /// What waits for an object to be quiet.
    fn quiet(&mut self, uid: &str) -> Option<&mut Waiting> {
        self.quiet.get_mut(uid).map(Arc::make_mut)
    }
}

/// What annotations wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Until {
    /// Their object is quiet.
    Quiet,
    /// A `scale` has happened.
    Scaled,
}

/// What shows that the request behind annotations has been stored. A review is no proof of that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Proof {
    /// The object has this status.
    Status(Reading),
    /// The object has another intent than it had at this generation, and nobody has left a trace on it since: a `scale`
    /// cannot.
    Scale { generation: Option<i64>, intent: IntentHash, traces: Vec<Option<String>> },
}

impl Proof {
    /// What will show that an object like this has been scaled.
    pub(crate) fn of_scale(before: &Summary) -> Self {
        let traces = vec![before.annotation(TRACE).map(ToOwned::to_owned)];
        Self::Scale { generation: before.generation, intent: before.intent, traces }
    }

    /// Whether an object shows it.
    pub(crate) fn shows_in(&self, seen: &impl Seen) -> bool {
        match self {
            Self::Status(status) => status == seen.reading(),
            Self::Scale { generation, intent, traces } => {
                let trace = seen.annotation(TRACE);
                let untraced = traces.iter().any(|known| known.as_deref() == trace);
                seen.generation() > *generation && seen.intent() != *intent && untraced
            }
        }
    }

    /// Comes after another. Both may leave their traces.
    fn follow(&mut self, earlier: Option<&Self>) {
        if let (Self::Scale { traces, .. }, Some(Self::Scale { traces: earlier, .. })) = (self, earlier) {
            let new: Vec<_> = earlier.iter().filter(|trace| !traces.contains(trace)).cloned().collect();
            traces.extend(new);
        }
    }
}

/// How many claims wait for one object at most. The oldest go first.
const MAX_CLAIMS: usize = 16;

/// What a review is said to tell of an object, beside what its status shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Claim {
    pub fact: Fact,
    pub shown_by: Evidence,
}

/// What shows that a claim holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Evidence {
    /// The status that was sent: nothing else tells who wrote it.
    Status,
    /// Such a write of the status.
    Write(StatusWrite),
    /// This trace, which the object was given by mistake, and still carries.
    Trace(String),
}

/// A fact about who wrote a status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fact {
    /// It is one of the object's controllers.
    Controller(UserHash),
    /// It is an origin, with this trace.
    Trace(String),
}

impl Claim {
    /// Whether an object shows it, which has been seen to have the status, or not.
    fn shows_in(&self, seen: &impl Seen, proven: bool) -> bool {
        match &self.shown_by {
            Evidence::Status => proven,
            Evidence::Write(write) => {
                seen.status_writes().iter().any(|seen| seen.manager == write.manager && seen.at >= write.at)
            }
            Evidence::Trace(given) => seen.annotation(TRACE) == Some(given),
        }
    }

    fn write(&self) -> Option<&StatusWrite> {
        match &self.shown_by {
            Evidence::Write(write) => Some(write),
            Evidence::Status | Evidence::Trace(_) => None,
        }
    }

    fn is_of_manager(&self, other: &Self) -> bool {
        let manager = |claim: &Self| claim.write().map(|write| write.manager.clone());
        manager(self) == manager(other)
    }
}

/// What of all that waits holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Held {
    pub annotations: Annotations,
    /// The claims that are among them.
    pub claims: Vec<Claim>,
}

#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    pub object: ObjectId,
    pub annotations: Annotations,
    /// Who is said to have written the status.
    pub claims: Vec<Claim>,
    /// The generation at which the annotations were decided on.
    pub generation: Option<i64>,
    /// What shows that it has come to be; nothing does, if none.
    proof: Option<Proof>,
    /// Whether the object has been seen to show it.
    proven: bool,
    /// When the first of them came.
    first: Instant,
    /// When the last of them came, or their object was last written to.
    pub since: Instant,
    /// How often they could not be written.
    failures: u32,
    /// Not to be tried before then.
    rest_until: Option<Instant>,
}

impl Waiting {
    /// Nothing yet.
    fn new(object: &ObjectId, generation: Option<i64>, proof: Option<Proof>) -> Self {
        Self {
            object: object.clone(),
            annotations: Annotations::new(),
            claims: Vec::new(),
            generation,
            proof,
            proven: false,
            first: Instant::now(),
            since: Instant::now(),
            failures: 0,
            rest_until: None,
        }
    }

    fn claim(&mut self, claim: Claim) {
        let same = |known: &&mut Claim| match (&known.shown_by, &claim.shown_by) {
            (Evidence::Trace(known), Evidence::Trace(given)) => known == given,
            (Evidence::Trace(_), _) | (_, Evidence::Trace(_)) => false,
            _ => known.fact == claim.fact && known.is_of_manager(&claim),
        };
        if let Some(known) = self.claims.iter_mut().find(same) {
            // What shows a later write shows that there was an earlier one.
            let at = |claim: &Claim| claim.write().map(|write| write.at);
            if at(&claim) < at(known) {
                known.shown_by = claim.shown_by;
            }
            return;
        }
        if self.claims.len() >= MAX_CLAIMS {
            self.claims.remove(0);
        }
        self.claims.push(claim);
    }

    /// The annotations that hold for an object as it is seen, which has been seen to show what must be, or not. A change of
    /// intent takes the mark off, also one back to the intent that it speaks of; but not from an object that has arrived since.
    pub(crate) fn holding(&self, seen: &impl Seen, proven: bool) -> Held {
        let generation = seen.generation();
        let scaled = matches!(self.proof, Some(Proof::Scale { .. }));
        let arrived = scaled && proven && settle::is_steady(seen);
        let holds = |key: &str| match key {
            SETTLED if scaled => !arrived,
            SETTLED => generation == self.generation,
            _ => true,
        };
        let carried = |key: &str, value: &String| match scaled {
            true => settle::carried(seen, key, value),
            false => value.clone(),
        };
        let annotations = self.annotations.iter().filter(|(key, _)| proven && holds(key));
        let annotations =
            annotations.map(|(key, value)| (key.clone(), value.as_ref().map(|value| carried(key, value))));
        let mut annotations: Annotations = annotations.collect();
        let shown = self.claims.iter().filter(|claim| claim.shows_in(seen, proven));
        let claims: Vec<Claim> = shown.cloned().collect();
        let stored = |key| seen.annotation(key).map(Hashes::decode).unwrap_or_default();
        let mut controllers = stored(CONTROLLERS);
        for claim in &claims {
            match &claim.fact {
                Fact::Trace(trace) => {
                    annotations.insert(TRACE.to_owned(), Some(trace.clone()));
                }
                Fact::Controller(user) if controllers.contains(*user) => {}
                Fact::Controller(user) => {
                    controllers.note(*user, &stored(UPDATERS));
                    annotations.insert(CONTROLLERS.to_owned(), Some(controllers.encode()));
                }
            }
        }
        Held { annotations, claims }
    }

    /// Whether an object shows what must be proven, now or earlier.
    fn is_shown_by(&self, seen: &impl Seen) -> bool {
        self.proven || self.proof.as_ref().is_some_and(|proof| proof.shows_in(seen))
    }

    /// All of it, whether it holds or not.
    pub(crate) fn everything(&self) -> Held {
        Held { annotations: self.annotations.clone(), claims: self.claims.clone() }
    }
}

impl Pending {
    /// Notes annotations that an object, named by its uid, must come to carry. Tells whether it is the first note of
    /// this sort on that object.
    pub(crate) fn note(
        &self,
        object: &ObjectId,
        uid: &str,
        generation: Option<i64>,
        annotations: &Annotations,
        until: Until,
        proof: Option<Proof>,
    ) -> bool {
        let mut lists = self.lock();
        let waiting = lists.all_mut(until);
        let first = !waiting.contains_key(uid);
        if waiting.len() >= MAX_WAITING && first {
            return false;
        }
        let new = || Arc::new(Waiting::new(object, generation, proof.clone()));
        let entry = Arc::make_mut(waiting.entry(uid.to_owned()).or_insert_with(new));
        // One that was under way for longer than another knows less than that.
        let late = generation < entry.generation;
        if entry.generation != generation && !late {
            entry.annotations.remove(SETTLED);
            entry.proven = false;
        }
        if entry.proof != proof && !late {
            let earlier = std::mem::replace(&mut entry.proof, proof);
            entry.proven = false;
            if let Some(proof) = &mut entry.proof {
                proof.follow(earlier.as_ref());
            }
        }
        for (key, value) in annotations.iter().filter(|_| !late) {
            let value = match (key.as_str(), value, entry.annotations.get(key)) {
                // Somebody else has asked for another scale a moment before.
                (SETTLED, Some(_), Some(None)) if until == Until::Scaled => None,
                _ => value.clone(),
            };
            entry.annotations.insert(key.clone(), value);
        }
        entry.generation = entry.generation.max(generation);
        entry.since = Instant::now();
        first
    }

    /// Notes what a status update tells of its sender, beside what was noted of its object.
    pub(crate) fn claim(&self, uid: &str, claim: Claim) {
        if let Some(entry) = self.lock().quiet(uid) {
            entry.claim(claim);
        }
    }

    /// Notes that an object must come to carry another trace than the one that it was given by mistake.
    pub(crate) fn mend(&self, object: &ObjectId, uid: &str, given: String, right: String) {
        let mut lists = self.lock();
        if lists.quiet.len() >= MAX_WAITING && !lists.quiet.contains_key(uid) {
            return;
        }
        let entry =
            lists.quiet.entry(uid.to_owned()).or_insert_with(|| Arc::new(Waiting::new(object, None, None)));
        let entry = Arc::make_mut(entry);
        entry.claim(Claim { fact: Fact::Trace(right), shown_by: Evidence::Trace(given) });
        entry.since = Instant::now();
    }

    /// What waits for an object.
    pub(crate) fn get(&self, uid: &str, until: Until) -> Option<Arc<Waiting>> {
        self.lock().all(until).get(uid).cloned()
    }

    /// All that waits for an object, whatever for.
    fn all(&self, uid: &str) -> Vec<Arc<Waiting>> {
        let waiting = self.lock();
        waiting.quiet.get(uid).into_iter().chain(waiting.scaled.get(uid)).cloned().collect()
    }

    /// An object as it will be once everything is written.
    pub(crate) fn over(&self, summary: Arc<Summary>) -> Arc<Summary> {
        let waiting = self.all(&summary.uid);
        if waiting.is_empty() {
            return summary;
        }
        let mut dressed = Summary::clone(&summary);
        for waiting in &waiting {
            let proven = self.prove(&summary.uid, waiting, &*summary);
            for (key, value) in waiting.holding(&*summary, proven).annotations {
                dressed.annotate(&key, value.as_deref());
            }
        }
        Arc::new(dressed)
    }

    /// Whether an object has been seen to show what waits for it: now, or earlier. What a `scale` did is over when
    /// somebody else has left a trace.
    pub(crate) fn prove(&self, uid: &str, waiting: &Waiting, stored: &impl Seen) -> bool {
        if matches!(waiting.proof, Some(Proof::Scale { .. })) || !waiting.is_shown_by(stored) {
            return waiting.is_shown_by(stored);
        }
        if !waiting.proven
            && let Some(entry) = self.lock().quiet(uid)
        {
            entry.proven |= entry.proof == waiting.proof;
        }
        true
    }

    /// Notes what an object shows of what waits for it, as its watch tells.
    pub(crate) fn see(&self, stored: &Summary) {
        if let Some(waiting) = self.get(&stored.uid, Until::Quiet) {
            self.prove(&stored.uid, &waiting, stored);
        }
    }

    /// Gives a review's copy of an object the annotations that wait for it. Unless reviews are `believed`, it proves nothing to
    /// others.
    pub(crate) fn dress(&self, object: &mut review::Object<'_>, believed: bool) {
        let waiting = self.all(&object.metadata.uid);
        if waiting.is_empty() {
            return;
        }
        self.stir(&object.metadata.uid);
        let holding = waiting.iter().map(|waiting| {
            let proven = match believed {
                true => self.prove(&object.metadata.uid, waiting, object),
                false => waiting.is_shown_by(object),
            };
            waiting.holding(object, proven).annotations
        });
        for (key, value) in holding.collect::<Vec<_>>().into_iter().flatten() {
            match value {
                Some(value) => object.metadata.annotations.set(key, value),
                None => object.metadata.annotations.remove(&key),
            }
        }
    }

    /// Notes that an object is being written to.
    fn stir(&self, uid: &str) {
        if let Some(entry) = self.lock().quiet(uid) {
            entry.since = Instant::now();
        }
    }

    /// Whether anything waits for a `scale` to happen.
    pub(crate) fn is_scaling(&self) -> bool {
        !self.lock().scaled.is_empty()
    }

    /// What has waited for its object to be quiet for so long, by uid; or for so much longer that it never will be.
    pub(crate) fn ripe(&self, quiet: Duration, at_most: Duration) -> Vec<(String, Arc<Waiting>)> {
        let waiting = self.lock();
        let now = Instant::now();
        let is_ripe = |entry: &Waiting| {
            (entry.since.elapsed() >= quiet || entry.first.elapsed() >= at_most)
                && entry.rest_until.is_none_or(|until| until <= now)
        };
        let ripe = waiting.quiet.iter().filter(|(_, entry)| is_ripe(entry));
        ripe.map(|(uid, entry)| (uid.clone(), entry.clone())).collect()
    }

    /// What could not be written is tried again later, and ever later: the reason may be one that lasts.
    pub(crate) fn postpone(&self, uid: &str) {
        if let Some(entry) = self.lock().quiet(uid) {
            let pause = PAUSES.0 * 2u32.saturating_pow(entry.failures.min(16));
            entry.failures = entry.failures.saturating_add(1);
            entry.rest_until = Some(Instant::now() + pause.min(PAUSES.1));
        }
    }

    /// Lets go of what has been written, unless more has come since then.
    pub(crate) fn done(&self, uid: &str, until: Until, written: &Held, since: Instant) {
        let mut lists = self.lock();
        let waiting = lists.all_mut(until);
        if let Some(entry) = waiting.get_mut(uid).filter(|entry| entry.since == since).map(Arc::make_mut) {
            let before = entry.annotations.len() + entry.claims.len();
            entry.annotations.retain(|key, value| written.annotations.get(key) != Some(value));
            entry.claims.retain(|claim| !written.claims.contains(claim));
            let left = entry.annotations.len() + entry.claims.len();
            if left < before {
                (entry.first, entry.failures, entry.rest_until) = (Instant::now(), 0, None);
            }
            if left == 0 {
                waiting.remove(uid);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, ByUid> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
