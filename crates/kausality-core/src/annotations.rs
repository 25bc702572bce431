//! The annotation table: which annotations an object will have, by what is done to it and by whom.

use std::{collections::BTreeMap, time::Duration};

use jiff::{SignedDuration, Timestamp};
use kausality_api::{
    annotation::{
        self, APPROVALS, CONTROLLERS, EXCEPTED, FREEZE, OBSERVED_GENERATION, Owner, PHASE, REJECTIONS,
        SETTLED, TRACE, UPDATERS, USED, owner,
    },
    approval::{Approval, Entries, Entry, Rejection},
    identity::{Hashes, UserHash},
    phase,
};

use crate::{
    exceptions, managers, phase as lifecycle, reconciler,
    review::{Annotations, Object, Request},
    settle::{self, Calm, Mark, Withdrawn},
    status::{Reading, Standing},
};

/// Our annotations, as they shall be.
pub(crate) type Wanted = BTreeMap<String, String>;

/// Annotations as pairs of texts.
pub(crate) fn pairs(wanted: &Wanted) -> impl Iterator<Item = (&str, &str)> {
    wanted.iter().map(|(key, value)| (key.as_str(), value.as_str()))
}

/// Who sends annotations along with a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Writer {
    /// A person, or anybody who is not known to reconcile the object.
    Free,
    /// The controller of the object itself or of its parent.
    Controller,
}

/// Whether it matters who sends a request that changes metadata alone: it takes off facts, or changes what people write.
pub(crate) fn sender_matters(request: &Request<'_>) -> bool {
    let (Some(old), Some(new)) = (&request.old_object, &request.object) else { return false };
    let (stored, sent) = (&old.metadata.annotations, &new.metadata.annotations);
    let strips = stored.ours().any(|(key, _)| owner(key) == Owner::System && sent.get(key).is_none());
    strips || of(stored, Owner::User) != of(sent, Owner::User)
}

/// CREATE: people's annotations as they were sent; facts are computed.
pub(crate) fn created(sent: &Annotations<'_>) -> Wanted {
    of(sent, Owner::User)
}

/// UPDATE of the intent: facts as stored; people's as sent, but where a controller sends others than are stored, those stay.
pub(crate) fn updated(stored: &Annotations<'_>, sent: &Annotations<'_>, writer: Writer) -> Wanted {
    let mut wanted = of(stored, Owner::System);
    wanted.extend(of(sent, Owner::User));
    if writer == Writer::Controller {
        wanted.extend(of(stored, Owner::User));
    }
    wanted
}

/// UPDATE of nothing but metadata: facts as stored; people's as sent. A controller that takes facts off would do so again
/// if they were put back: they stay off.
pub(crate) fn kept(stored: &Annotations<'_>, sent: &Annotations<'_>, writer: Writer) -> Wanted {
    let facts = of(stored, Owner::System);
    let mut wanted = facts.clone();
    if writer == Writer::Controller {
        wanted.retain(|key, _| sent.get(key).is_some());
    }
    // One that replaces all annotations would do so again; one that takes off a freeze alone has no say in that.
    if writer == Writer::Controller && (facts.is_empty() || !wanted.is_empty()) {
        wanted.extend(of(stored, Owner::User).into_iter().filter(|(key, _)| sent.get(key).is_none()));
    }
    wanted.extend(of(sent, Owner::User));
    if writer == Writer::Controller {
        // An order of a person's stands, whatever is copied over it: what is put back as it was changes nothing.
        wanted.extend(
            of(stored, Owner::User).into_iter().filter(|(key, _)| key == FREEZE || key == REJECTIONS),
        );
    }
    wanted
}

/// UPDATE of the status: all of ours as stored.
pub(crate) fn stored(annotations: &Annotations<'_>) -> Wanted {
    annotations.ours().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

fn of(annotations: &Annotations<'_>, whose: Owner) -> Wanted {
    (annotations.ours())
        .filter(|(key, _)| owner(key) == whose)
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

/// Records a change of intent: who made it and why, and that the object is not settled at it yet.
pub(crate) fn record_change(
    wanted: &mut Wanted,
    trace: String,
    user: UserHash,
    mut updaters: Hashes,
    kept: &Hashes,
) {
    updaters.note(user, kept);
    wanted.insert(UPDATERS.to_owned(), updaters.encode());
    wanted.insert(TRACE.to_owned(), trace);
    wanted.remove(SETTLED);
}

/// Records a change of intent that the object's own controller makes: no new intent, so the trace stays, and the mark goes
/// along with the intent.
pub(crate) fn record_own_change(wanted: &mut Wanted, stored: &Object<'_>, sent: &Object<'_>, user: UserHash) {
    let controllers = wanted.entry(CONTROLLERS.to_owned()).or_default();
    let mut hashes = Hashes::decode(controllers);
    if !hashes.contains(user) {
        let updaters = stored.metadata.annotations.get(UPDATERS).map(Hashes::decode).unwrap_or_default();
        hashes.note(user, &updaters);
        *controllers = hashes.encode();
    }
    let (before, intent) = (stored.intent.hash(), sent.intent.hash());
    let text = wanted.remove(SETTLED).unwrap_or_default();
    let carried = match (Mark::parse(&text), Withdrawn::parse(&text)) {
        (Some(mark), _) if mark.intent == before => Some(Mark { intent, ..mark }.to_string()),
        (_, Some(withdrawn)) if withdrawn.intent == before => {
            Some(Withdrawn { intent, ..withdrawn }.to_string())
        }
        _ => None,
    };
    wanted.extend(carried.map(|text| (SETTLED.to_owned(), text)));
}

/// Lets go of approvals and rejections that a change of intent makes stale, and of those used up: what was to follow needs
/// none any more.
pub(crate) fn prune(wanted: &mut Wanted, generation: Option<i64>) {
    wanted.remove(USED);
    let Some(generation) = generation else { return };
    rewrite::<Approval>(wanted, APPROVALS, |entries| {
        entries.any_stale(generation).then(|| entries.pruned(generation))
    });
    rewrite::<Rejection>(wanted, REJECTIONS, |entries| {
        entries.any_stale(generation).then(|| entries.pruned(generation))
    });
}

/// Carries approvals and rejections over a change of annotations that bumps the generation.
pub(crate) fn restamp(wanted: &mut Wanted, from: i64, to: i64) {
    rewrite::<Approval>(wanted, APPROVALS, |entries| entries.restamped(from, to).map(Some));
    rewrite::<Rejection>(wanted, REJECTIONS, |entries| entries.restamped(from, to).map(Some));
    if let Some(uses) = wanted.get_mut(EXCEPTED)
        && let Some(restamped) = exceptions::restamp(uses, from, to)
    {
        *uses = restamped;
    }
}

fn rewrite<T: Entry>(
    wanted: &mut Wanted,
    key: &str,
    rewritten: impl Fn(&Entries<T>) -> Option<Option<String>>,
) {
    let Some(entries) = wanted.get(key).map(|text| Entries::<T>::decode(text)) else { return };
    match rewritten(&entries) {
        Some(Some(text)) => {
            wanted.insert(key.to_owned(), text);
        }
        Some(None) => {
            wanted.remove(key);
        }
        None => {}
    }
}

/// What a status update shows of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Observed {
    /// What the status says.
    pub reading: Reading,
    /// Why it is not steady; `None` if it is.
    pub busy: Option<String>,
    /// Whether it has been initialized, then or now.
    pub initialized: bool,
}

/// How often at most it is recorded that an object became steady again. Each record may be copied to children, or make a
/// controller look again, and one that reports busy at each look would go on for ever.
const AGAIN_INTERVAL: SignedDuration = SignedDuration::from_secs(30);

/// How long after a change of the intent a controller that writes an unchanged status must have seen it: as long as the change of
/// an input explains what a controller does.
const UNCHANGED_TIMEOUT: SignedDuration = SignedDuration::from_mins(10);

/// Whether a status without `observedGeneration` is about the present intent: it tells something else than the stored one, or
/// its controller has acted on the intent, or had the time to. One that is soon written again as it was, or with the time of a
/// heartbeat, may be another loop's.
fn tells_of_intent(stored: &Object<'_>, sent: &Object<'_>, calm: Calm) -> bool {
    if reconciler::tells_else(stored, sent) {
        return true;
    }
    let Some(written) = settle::asked(stored) else { return calm.last_change.is_some() };
    calm.last_change.is_some_and(|last| last > written)
        || calm.now.is_some_and(|now| now.duration_since(written) >= UNCHANGED_TIMEOUT)
}

/// What a status update is looked at with.
pub(crate) struct Look {
    /// Whether its controller acts on other objects, too.
    pub acts_on_inputs: bool,
    /// For how long the object must be steady to count as settled.
    pub quiet: Duration,
    /// How long it has been quiet below the object.
    pub calm: Calm,
    pub now: Timestamp,
}

/// Records what a status update shows: how far the object's controller has got, and who that is, if its `reporter` does
/// what controllers do.
///
/// The stored object counts for everything but the status itself: the client's copy may be stale. `inputs` is the quiet time,
/// for kinds whose controllers act on inputs.
pub(crate) fn observe(
    wanted: &mut Wanted,
    stored: &Object<'_>,
    sent: &Object<'_>,
    reporter: Option<UserHash>,
    look: &Look,
) -> Observed {
    let annotations = &stored.metadata.annotations;
    let hashes = |key| annotations.get(key).map(Hashes::decode).unwrap_or_default();
    if let Some(user) = reporter {
        let mut controllers = hashes(CONTROLLERS);
        controllers.note(user, &hashes(UPDATERS));
        wanted.insert(CONTROLLERS.to_owned(), controllers.encode());
    }
    let reading = stored.reading_with(sent.status);
    let generation = stored.metadata.generation;
    let observed = reading.observed_generation.or_else(|| {
        let tells = || tells_of_intent(stored, sent, look.calm);
        if reporter.is_none() || matches!(reading.standing, Standing::Silent | Standing::Unclear) || !tells()
        {
            return annotations.get(OBSERVED_GENERATION)?.parse().ok();
        }
        // The generation of the copy that the controller worked with.
        let seen = sent.metadata.generation?.min(generation?);
        wanted.insert(OBSERVED_GENERATION.to_owned(), seen.to_string());
        Some(seen)
    });
    let busy = settle::busy(generation, observed, &reading)
        .unwrap_or_else(|_| Some("nothing says which generation its controller has seen".to_owned()));
    // Hashed only where there is a mark to compare or to set: most status updates of a rollout have neither.
    let hash = || stored.intent.hash();
    let text = wanted.remove(SETTLED).unwrap_or_default();
    let recorded = Mark::parse(&text).filter(|mark| mark.intent == hash());
    let withdrawn = Withdrawn::parse(&text).filter(|mark| mark.intent == hash());
    let new_mark =
        |since| Mark { withdrawn: withdrawn.map_or(0, |mark| mark.times), ..Mark::new(hash(), since) };
    let was_steady = settle::is_steady(stored);
    let (mark, since) = match recorded {
        Some(mark) => {
            let again = match look.acts_on_inputs {
                true if busy.is_none() && !was_steady => Some(look.now),
                // Steady until now. An input that changed within the quiet time may be what makes it busy.
                true if busy.is_some() && was_steady => look.now.checked_sub(look.quiet).ok(),
                _ => None,
            };
            let latest = mark.since.max(mark.again).and_then(|last| last.checked_add(AGAIN_INTERVAL).ok());
            let again = if again > latest { again } else { mark.again };
            (Some(Mark { again, ..mark }), mark.since)
        }
        None if busy.is_none() => (Some(new_mark(look.now)), Some(look.now)),
        // Whoever should have marked it when it became steady may have died.
        None if was_steady => {
            let written = managers::last_status_write(&stored.metadata).map(settle::end_of_second);
            let since = written.max(settle::asked(stored));
            (Some(new_mark(since.unwrap_or(look.now))), since)
        }
        // The intent has changed unseen. Should it change back, it would count for more than it says.
        None => (None, None),
    };
    // Some say done first, and begin then: a steady state that did not last was none.
    let lasts = busy.is_none() || settle::has_lasted(since, look.quiet, look.calm);
    let text = match (mark, recorded.map(Mark::withdraw)) {
        (Some(_), Some(Some(withdrawn))) if !lasts => Some(withdrawn.to_string()),
        (Some(mark), recorded) if lasts || recorded.is_some() => Some(mark.to_string()),
        _ => withdrawn.map(|withdrawn| withdrawn.to_string()),
    };
    wanted.extend(text.map(|text| (SETTLED.to_owned(), text)));
    let marked = lifecycle::is_marked(|key| annotations.get(key));
    let initialized = marked || busy.is_none() || reading.ready;
    if initialized && !marked {
        wanted.insert(PHASE.to_owned(), phase::INITIALIZED.to_owned());
    }
    Observed { reading, busy, initialized }
}

/// The system annotations among `wanted` that are not stored as such yet, and the mark that is, but must not be.
pub(crate) fn new_facts(wanted: &Wanted, stored: &Annotations<'_>) -> BTreeMap<String, Option<String>> {
    let gone = stored.get(SETTLED).filter(|_| !wanted.contains_key(SETTLED));
    (wanted.iter())
        .filter(|(key, value)| {
            annotation::owner(key) == Owner::System
                && stored.get(key).is_none_or(|old| tells_more(key, old, value))
        })
        .map(|(key, value)| (key.clone(), Some(value.clone())))
        .chain(gone.map(|_| (SETTLED.to_owned(), None)))
        .collect()
}

/// Whether a new value tells something that the old one does not. Who was seen last is not worth a write.
fn tells_more(key: &str, old: &str, new: &str) -> bool {
    match key {
        CONTROLLERS | UPDATERS => !Hashes::decode(old).same_members(&Hashes::decode(new)),
        _ => old != new,
    }
}
