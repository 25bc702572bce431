//! The annotation table: which annotations an object will have, by what is done to it and by whom.

use std::collections::BTreeMap;

use kausality_api::{
    annotation::{
        self, APPROVALS, CONTROLLERS, EXCEPTED, MODE, OBSERVED_GENERATION, Owner, PHASE, REJECTIONS, SETTLED,
        SNOOZE, SNOOZE_UNTIL, TRACE, UPDATERS, owner,
    },
    approval::{Approval, Entries, Entry, Rejection},
    identity::{Hashes, UserHash},
    mode::Mode,
    phase,
};

use crate::{
    exceptions,
    intent::IntentHash,
    phase as lifecycle,
    review::{Annotations, Object, Request},
    settle,
    status::Reading,
    summary::Summary,
};

/// Our annotations, as they shall be.
pub(crate) type Wanted = BTreeMap<String, String>;

/// Annotations as pairs of texts.
pub(crate) fn pairs(wanted: &Wanted) -> impl Iterator<Item = (&str, &str)> {
    wanted.iter().map(|(key, value)| (key.as_str(), value.as_str()))
}

/// Whether a request changes annotations that belong to people.
pub(crate) fn user_annotations_differ(request: &Request<'_>) -> bool {
    let (Some(old), Some(new)) = (&request.old_object, &request.object) else { return false };
    let of_users = |annotations: &Annotations<'_>| -> Vec<(String, String)> {
        (annotations.ours())
            .filter(|(key, _)| owner(key) == Owner::User)
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect()
    };
    of_users(&old.metadata.annotations) != of_users(&new.metadata.annotations)
}

/// Whether the writer of a request may change the annotations that belong to people.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Writer<'a> {
    /// A person, or anybody who is not known to reconcile the object.
    Free,
    /// The controller of the object itself or of its parent, whose annotations it may have copied.
    Bound(Option<&'a Summary>),
}

/// What the table says.
pub(crate) struct Table {
    pub wanted: Wanted,
    /// Annotations whose change was ignored.
    pub ignored: Vec<String>,
}

/// CREATE: ours are computed; people's are kept, but a controller may only restrain what it creates, and
/// what it copied from the parent is not meant for the child.
pub(crate) fn created(sent: &Annotations<'_>, writer: Writer<'_>) -> Table {
    let mut table = Table { wanted: Wanted::new(), ignored: Vec::new() };
    for (key, value) in sent.ours() {
        let keep = match (owner(key), writer) {
            (Owner::System, _) => false,
            (Owner::Foreign, _) | (Owner::User, Writer::Free) => true,
            (Owner::User, Writer::Bound(parent)) => {
                let copied = parent.is_some_and(copies_annotations) || is_copy(parent, key, value);
                let restrains = match key {
                    APPROVALS | SNOOZE | SNOOZE_UNTIL => false,
                    MODE => value.parse() == Ok(Mode::Enforce),
                    _ => true,
                };
                if !copied && !restrains {
                    table.ignored.push(key.to_owned());
                }
                !copied && restrains
            }
        };
        if keep {
            table.wanted.insert(key.to_owned(), value.to_owned());
        }
    }
    table
}

/// UPDATE: ours as stored; people's as sent by a person, as stored if a controller sends them.
pub(crate) fn updated(stored: &Annotations<'_>, sent: &Annotations<'_>, writer: Writer<'_>) -> Table {
    let mut table = Table { wanted: of(stored, Owner::System), ignored: Vec::new() };
    table.wanted.extend(of(sent, Owner::Foreign));
    let Writer::Bound(parent) = writer else {
        table.wanted.extend(of(sent, Owner::User));
        return table;
    };
    let (before, after) = (of(stored, Owner::User), of(sent, Owner::User));
    for key in before.keys().chain(after.keys().filter(|key| !before.contains_key(*key))) {
        let (old, new) = (before.get(key), after.get(key));
        if old != new && !new.is_some_and(|value| is_copy(parent, key, value)) {
            table.ignored.push(key.clone());
        }
    }
    table.wanted.extend(before);
    table
}

fn is_copy(parent: Option<&Summary>, key: &str, value: &str) -> bool {
    parent.is_some_and(|parent| parent.annotation(key) == Some(value))
}

/// Whether the controller of this object gives its children just the annotations of their parent, as it last saw
/// them: what it sends is a copy even where the parent has another value since.
fn copies_annotations(parent: &Summary) -> bool {
    parent.id.group() == "apps" && parent.id.kind == "Deployment"
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

/// Lets go of approvals and rejections that a change of intent makes stale.
pub(crate) fn prune(wanted: &mut Wanted, generation: Option<i64>) {
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

/// Records what a status update shows: who writes the status, what they have seen, how far they have got.
///
/// The stored object counts for everything but the status itself: the client's copy may be stale.
pub(crate) fn observe(
    wanted: &mut Wanted,
    stored: &Object<'_>,
    sent: &Object<'_>,
    user: UserHash,
) -> Observed {
    let annotations = &stored.metadata.annotations;
    let hashes = |key| annotations.get(key).map(Hashes::decode).unwrap_or_default();
    let mut controllers = hashes(CONTROLLERS);
    controllers.note(user, &hashes(UPDATERS));
    wanted.insert(CONTROLLERS.to_owned(), controllers.encode());

    let reading = stored.reading_with(sent.status);
    let generation = stored.metadata.generation;
    let observed = reading.observed_generation.or_else(|| {
        // The generation of the copy that the controller worked with.
        let seen = sent.metadata.generation?.min(generation?);
        wanted.insert(OBSERVED_GENERATION.to_owned(), seen.to_string());
        Some(seen)
    });
    let busy = settle::busy(generation, observed, reading.standing)
        .unwrap_or_else(|_| Some("nothing says which generation its controller has seen".to_owned()));
    // Whoever should have marked it when it became steady may have died.
    if busy.is_none() || settle::is_steady(stored) {
        wanted.insert(SETTLED.to_owned(), stored.intent.hash().to_string());
    } else if let Some(mark) = wanted.get(SETTLED)
        && IntentHash::parse(mark) != Some(stored.intent.hash())
    {
        // The intent has changed unseen. Should it change back, it would count for more than it says.
        wanted.remove(SETTLED);
    }
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
