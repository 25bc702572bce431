//! The audit log of a suite: who wrote, which writes changed an intent, and what Kausality said of them.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::time::{Duration, Instant};

use kausality_testbed::{AuditEvent, AuditTail, eventually};
use serde_json::Value;

use crate::stage::PATIENCE;

/// How long nothing is written before we say that all is done. Longer than the default of `--quiet-time`, so that a parent
/// has settled by then.
const QUIET: Duration = Duration::from_secs(6);

/// The writes since it was made, and those of what Kausality watches in full.
pub(crate) struct Log {
    tail: AuditTail,
    /// Whether Kausality watches a resource of a group.
    is_watched: fn(&str, &str) -> bool,
    watched: Vec<AuditEvent>,
    /// All writes, by user.
    writes: Writes,
}

/// How many writes each user made, by what was done to which resource.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Writes(BTreeMap<String, BTreeMap<String, usize>>);

/// A point in the log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mark(usize);

/// A change of intent: an object was made or deleted, its generation rose, or, where it has none, its content changed. Also
/// one that was denied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) verb: String,
    pub(crate) user: String,
    pub(crate) resource: String,
    pub(crate) name: String,
    pub(crate) generation: Option<i64>,
    /// What Kausality said, if it was asked.
    pub(crate) cause: Option<String>,
    /// The first hop of the trace that Kausality gave it: the kind and the user.
    pub(crate) origin: Option<(String, String)>,
    pub(crate) denied: bool,
}

impl Change {
    pub(crate) fn is_drift(&self) -> bool {
        self.cause.as_deref() == Some("Drift")
    }
}

impl Log {
    pub(crate) fn new(tail: AuditTail, is_watched: fn(&str, &str) -> bool) -> Self {
        Self { tail, is_watched, watched: Vec::new(), writes: Writes::default() }
    }

    /// This point in the log.
    pub(crate) fn mark(&mut self) -> Mark {
        self.read();
        Mark(self.watched.len())
    }

    /// Waits until nobody has written what Kausality watches for a while.
    pub(crate) async fn quiet(&mut self) {
        self.read();
        let mut last = Instant::now();
        eventually(PATIENCE, format_args!("{QUIET:?} without a write"), async || {
            let before = self.watched.len();
            self.read();
            let new = &self.watched[before..];
            if let Some(event) = new.last() {
                last = Instant::now();
                return Err(format!("{} {} {} by {}", event.verb, event.resource, event.name, event.user));
            }
            if last.elapsed() >= QUIET { Ok(()) } else { Err("a pause".to_owned()) }
        })
        .await
        .unwrap();
    }

    /// All writes since the last call.
    pub(crate) fn take_writes(&mut self) -> Writes {
        self.read();
        std::mem::take(&mut self.writes)
    }

    /// The writes since a mark that changed what is stored, to what Kausality watches.
    pub(crate) fn effective(&mut self, since: Mark) -> Writes {
        self.read();
        let mut versions = HashMap::<&str, u64>::new();
        let mut writes = Writes::default();
        let mut order: Vec<_> = self.watched.iter().enumerate().collect();
        order.sort_by_key(|(index, event)| (resource_version(event), *index));
        for (index, event) in order {
            let uid = event.response.as_ref().and_then(|object| object["metadata"]["uid"].as_str());
            let (Some(uid), Some(version)) = (uid, resource_version(event)) else { continue };
            if versions.insert(uid, version) != Some(version) && index >= since.0 {
                writes.add(event);
            }
        }
        writes
    }

    /// How many writes a user made since a mark to what Kausality watches, with effect or not.
    pub(crate) fn writes_by(&mut self, user: &str, since: Mark) -> usize {
        self.read();
        self.watched[since.0..].iter().filter(|event| event.user == user).count()
    }

    /// The changes since a mark, in the order in which they were made.
    pub(crate) fn changes(&mut self, since: Mark) -> Vec<Change> {
        self.read();
        let mut newest = 0;
        let mut order = Vec::new();
        for (index, event) in self.watched.iter().enumerate() {
            // The order of the log is that of the answers. What was denied has no version, and stays where it is.
            newest = resource_version(event).unwrap_or(newest);
            order.push((newest, index, event));
        }
        order.sort_by_key(|(version, index, _)| (*version, *index));
        let mut intents = HashMap::new();
        let mut changes = Vec::new();
        for (_, index, event) in order {
            let changed = has_changed(event, &mut intents);
            if changed && index >= since.0 {
                changes.push(change(event));
            }
        }
        changes
    }

    fn read(&mut self) {
        for event in self.tail.read().unwrap() {
            if !is_write(&event) {
                continue;
            }
            self.writes.add(&event);
            if (self.is_watched)(&event.group, &event.resource) {
                self.watched.push(event);
            }
        }
    }
}

impl Writes {
    fn add(&mut self, event: &AuditEvent) {
        let slash = if event.subresource.is_empty() { "" } else { "/" };
        let what = format!("{} {}{slash}{}", event.verb, event.resource, event.subresource);
        *self.0.entry(event.user.clone()).or_default().entry(what).or_default() += 1;
    }

    /// The users who wrote, and how much.
    pub(crate) fn users(&self) -> impl Iterator<Item = (&str, usize)> {
        self.0.iter().map(|(user, writes)| (&**user, writes.values().sum()))
    }

    pub(crate) fn of(&self, user: &str) -> usize {
        self.users().find(|(name, _)| *name == user).map_or(0, |(_, count)| count)
    }
}

impl fmt::Display for Writes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return write!(f, "no writes");
        }
        let users = self.0.iter().map(|(user, writes)| {
            let parts: Vec<_> = writes.iter().map(|(what, count)| format!("{count} {what}")).collect();
            format!("{user}: {}", parts.join(", "))
        });
        f.write_str(&users.collect::<Vec<_>>().join("; "))
    }
}

fn is_write(event: &AuditEvent) -> bool {
    ["create", "update", "patch", "delete", "deletecollection"].contains(&&*event.verb)
        && !event.uri.contains("dryRun=")
        // Renewed at all times.
        && event.resource != "leases"
}

fn is_denied(event: &AuditEvent) -> bool {
    annotation(event, "decision").is_some_and(|decision| decision == "deny")
}

/// What an object asks for.
#[derive(Debug, PartialEq)]
enum Intent {
    Generation(i64),
    /// Of a kind without generations, as a Secret.
    Content(Value),
}

fn has_changed(event: &AuditEvent, intents: &mut HashMap<String, Intent>) -> bool {
    if is_denied(event) {
        return true;
    }
    if !(200..300).contains(&event.code) {
        return false;
    }
    let object = event.response.as_ref().unwrap_or(&Value::Null);
    let metadata = &object["metadata"];
    let changed = match (metadata["uid"].as_str(), metadata["generation"].as_i64()) {
        // Also by the first deletion of an object that has finalizers, and not by the next.
        (Some(uid), Some(generation)) => {
            let known = intents.entry(uid.to_owned()).or_insert(Intent::Generation(0));
            let rose = matches!(known, Intent::Generation(known) if generation > *known);
            if rose {
                *known = Intent::Generation(generation);
            }
            rose
        }
        (Some(uid), None) if event.verb != "delete" => {
            let content = Intent::Content(content(object));
            intents.get(uid) != Some(&content) && {
                intents.insert(uid.to_owned(), content);
                true
            }
        }
        _ => event.verb == "delete",
    };
    changed && event.subresource.is_empty()
}

/// All of an object except what names it and what is reported on it.
fn content(object: &Value) -> Value {
    let mut content = object.clone();
    if let Some(fields) = content.as_object_mut() {
        ["apiVersion", "kind", "metadata", "status"].iter().for_each(|field| drop(fields.remove(*field)));
    }
    content
}

fn change(event: &AuditEvent) -> Change {
    Change {
        verb: event.verb.clone(),
        user: event.user.clone(),
        resource: event.resource.clone(),
        name: event.name.clone(),
        generation: event.response.as_ref().and_then(|object| object["metadata"]["generation"].as_i64()),
        cause: annotation(event, "cause").cloned(),
        origin: annotation(event, "trace").and_then(|text| origin(text)),
        denied: is_denied(event),
    }
}

fn origin(trace: &str) -> Option<(String, String)> {
    let trace: Value = serde_json::from_str(trace).ok()?;
    Some((trace[0]["kind"].as_str()?.to_owned(), trace[0]["user"].as_str()?.to_owned()))
}

/// What Kausality noted about a request.
fn annotation<'a>(event: &'a AuditEvent, key: &str) -> Option<&'a String> {
    let of = |webhook: &str| event.annotations.get(&format!("{webhook}.kausality.io/{key}"));
    ["drift", "drift-plain", "status"].into_iter().find_map(of)
}

fn resource_version(event: &AuditEvent) -> Option<u64> {
    event.response.as_ref()?["metadata"]["resourceVersion"].as_str()?.parse().ok()
}
