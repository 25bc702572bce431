//! The leader's part of the ledger: entries that are over are closed, those that nobody needs any more are removed.

use std::{
    collections::BTreeMap,
    ops::ControlFlow,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use kausality_api::drift::{
    Drift as Entry, DriftResolution, DriftState, MAX_RESOLVED, MAX_RESOLVED_BYTES, ResolutionReason,
};
use kausality_core::{
    Summary,
    ledger::{self, ChildNow, ParentNow},
};
use kube::{
    Api,
    api::{DeleteParams, Patch, Preconditions},
    core::DynamicObject,
};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    api, moment, parameters, resource,
    shelf::{Key, bytes, key, until_served},
};
use crate::{
    cluster::Cluster,
    feed::{Mirror, feed},
    index::Sight,
    kinds::UnknownKind,
    pulse::Pulse,
};

/// How often entries are looked at.
const TICK: Duration = Duration::from_millis(500);

/// How often a child is read, and a parent that no watch shows: once for each open entry.
const ASK: Duration = Duration::from_secs(30);

/// How long an entry that is over is kept.
const KEPT: SignedDuration = SignedDuration::from_hours(24);

/// How long an entry whose parent is gone is kept once every endpoint knows, and where no endpoint has been told anything.
const KEPT_WHEN_TOLD: SignedDuration = SignedDuration::from_mins(1);
const KEPT_WITHOUT_ENDPOINTS: SignedDuration = SignedDuration::from_hours(1);

/// How long the API server may take for a write.
const WRITE_DEADLINE: Duration = Duration::from_secs(5);

/// Closes and removes entries, for ever. For one process at a time; a second one does no harm.
pub async fn keep(cluster: Arc<Cluster>) {
    let book = Book::default();
    tokio::join!(
        follow(&cluster, "drifts", &book.namespaced),
        follow(&cluster, "clusterdrifts", &book.cluster),
        tend(&cluster, &book),
    );
}

async fn follow(cluster: &Cluster, plural: &str, page: &Page) {
    until_served(&cluster.kinds, plural, || ()).await;
    feed(Api::all_with(cluster.fresh.clone(), &resource(plural)), plural, &page.pulse, page).await;
}

/// All entries.
#[derive(Default)]
struct Book {
    namespaced: Page,
    cluster: Page,
}

/// The entries of one kind.
#[derive(Default)]
struct Page {
    pulse: Pulse,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    known: BTreeMap<Key, Arc<Noted>>,
    arriving: BTreeMap<Key, Arc<Noted>>,
}

/// An entry, without its objects, and how many bytes it takes with them.
struct Noted {
    entry: Entry,
    bytes: usize,
}

impl Page {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read(object: &DynamicObject) -> Option<(Key, Arc<Noted>)> {
    let entry = super::entry(object);
    match entry {
        // The objects are of no use here.
        Ok(mut entry) => {
            (entry.spec.old_object, entry.spec.new_object) = (None, None);
            if !entry.status.state.is_open() {
                (entry.spec.trace, entry.spec.changes) = (None, Vec::new());
            }
            Some((key(object), Arc::new(Noted { entry, bytes: bytes(object) })))
        }
        Err(error) => {
            let (namespace, name) = key(object);
            tracing::warn!(namespace, name, %error, "an entry of the ledger cannot be understood");
            None
        }
    }
}

impl Mirror for Page {
    fn begin(&self) {
        self.lock().arriving.clear();
    }

    fn arrive(&self, object: DynamicObject) -> ControlFlow<()> {
        self.lock().arriving.extend(read(&object));
        ControlFlow::Continue(())
    }

    fn complete(&self) {
        let mut state = self.lock();
        state.known = std::mem::take(&mut state.arriving);
    }

    fn apply(&self, object: DynamicObject) -> ControlFlow<()> {
        self.lock().known.extend(read(&object));
        ControlFlow::Continue(())
    }

    fn remove(&self, object: DynamicObject) {
        self.lock().known.remove(&key(&object));
    }
}

/// What was last looked at of an entry.
#[derive(Default)]
struct Look {
    /// The version of the entry, and of its parent.
    versions: Option<(String, String)>,
    /// When the API server was last asked.
    asked: Option<Instant>,
}

async fn tend(cluster: &Cluster, book: &Book) {
    let mut looks: BTreeMap<Key, Look> = BTreeMap::new();
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let mut all = book.namespaced.lock().known.clone();
        all.extend(book.cluster.lock().known.clone());
        looks.retain(|key, _| all.contains_key(key));
        for (key, noted) in superfluous(&all) {
            remove(cluster, &key, &noted.entry).await;
        }
        for (key, noted) in all {
            let entry = &noted.entry;
            let look = looks.entry(key.clone()).or_default();
            if entry.status.state.is_open() {
                attend(cluster, &key, entry, look).await;
            } else if is_outdated(entry, moment(&cluster.clock)) {
                remove(cluster, &key, entry).await;
            }
        }
    }
}

/// Looks at an open entry, if anything is new.
async fn attend(cluster: &Cluster, key: &Key, entry: &Entry, look: &mut Look) {
    let (seen, trusted) = glance(cluster, entry).await;
    let of_parent = seen.as_ref().map(|parent| parent.resource_version.clone()).unwrap_or_default();
    let versions = (entry.metadata.resource_version.clone().unwrap_or_default(), of_parent);
    let is_due = look.asked.is_none_or(|asked| asked.elapsed() >= ASK);
    let is_new = look.versions.as_ref() != Some(&versions);
    if !(is_due || is_new && trusted) {
        return;
    }
    let now = moment(&cluster.clock);
    let glanced = seen.as_deref().map(ParentNow::Here);
    let over = |parent: &ParentNow<'_>, child: ChildNow<'_>| ledger::resolution(entry, parent, child, now);
    // What a watch shows may be older than the entry: before anything is closed, the API server is asked.
    let suspects = glanced.as_ref().is_none_or(|parent| over(parent, ChildNow::Unknown).is_some());
    let told = seen.as_deref().and_then(|parent| news(entry, parent, now));
    if !is_due && !suspects && told.is_none() {
        look.versions = Some(versions);
        return;
    }
    let live = parent(cluster, entry).await;
    let parent = match &live {
        Ok(Some(parent)) => ParentNow::Here(parent),
        Ok(None) => ParentNow::Gone,
        Err(_) => ParentNow::Unknown,
    };
    let child = if is_due { child(cluster, entry).await } else { Child::Unknown };
    // A parent that changes again and again is read each time, and must not keep its children from being read.
    if is_due {
        look.asked = Some(Instant::now());
    }
    let decided = match &parent {
        ParentNow::Here(parent) => news(entry, parent, now),
        _ => None,
    };
    let resolution = over(&parent, child.now());
    if resolution.is_none() && decided.is_none() {
        look.versions = Some(versions);
        return;
    }
    write(cluster, key, entry, resolution.as_ref(), decided).await;
}

/// What a person has decided, or taken back, since it was last written: as fields of the status.
fn news(entry: &Entry, parent: &Summary, now: Timestamp) -> Option<Value> {
    let Entry { spec, status, .. } = entry;
    let mut news = serde_json::Map::new();
    let known = status.decision.as_ref();
    match ledger::decision(spec, parent, now) {
        Some(decided) => {
            let is_known = known.is_some_and(|known| {
                (&known.action, &known.by, &known.mode, &known.reason)
                    == (&decided.action, &decided.by, &decided.mode, &decided.reason)
            });
            // Nobody may ever try it again.
            if decided.action == "reject" && status.state == entry.undecided() {
                news.insert("state".to_owned(), json!(DriftState::Rejected));
            }
            if !is_known {
                news.insert("decision".to_owned(), json!(decided));
            }
        }
        None if known.is_some_and(|known| known.action == "reject")
            && ledger::is_unrejected(spec, parent, now) =>
        {
            if status.state == DriftState::Rejected && !entry.is_barred() {
                news.insert("state".to_owned(), json!(entry.undecided()));
            }
            news.insert("decision".to_owned(), Value::Null);
        }
        None => {}
    }
    (!news.is_empty()).then_some(Value::Object(news))
}

/// The parent as a watch shows it, and whether that can be trusted.
async fn glance(cluster: &Cluster, entry: &Entry) -> (Option<Arc<Summary>>, bool) {
    let parent = &entry.spec.parent;
    let Ok(kind) = cluster.kinds.of_kind(&parent.api_version, &parent.kind).await else {
        return (None, false);
    };
    let uid = parent.uid.as_deref().unwrap_or_default();
    match cluster.watch(&kind).look(&parent.namespace, &parent.name, uid) {
        Sight::Here(summary) => (Some(summary), true),
        Sight::Departed => (None, true),
        Sight::Unseen | Sight::Blind => (None, false),
    }
}

/// The parent as the API server has it; none, if it is gone.
async fn parent(cluster: &Cluster, entry: &Entry) -> Result<Option<Arc<Summary>>, String> {
    let parent = &entry.spec.parent;
    let kind = match cluster.kinds.of_kind(&parent.api_version, &parent.kind).await {
        Ok(kind) => kind,
        Err(UnknownKind::NotServed(_)) => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    let found = cluster.read(&kind, &parent.namespace, &parent.name, false).await;
    let found = found.map_err(|why| why.to_string())?;
    Ok(found.filter(|found| parent.uid.as_ref().is_none_or(|uid| found.uid == *uid)))
}

/// The child as the API server has it.
enum Child {
    Here(Arc<Summary>),
    Gone,
    Unknown,
}

impl Child {
    fn now(&self) -> ChildNow<'_> {
        match self {
            Self::Here(summary) => summary.whole.as_deref().map_or(ChildNow::Unknown, ChildNow::Here),
            Self::Gone => ChildNow::Gone,
            Self::Unknown => ChildNow::Unknown,
        }
    }
}

async fn child(cluster: &Cluster, entry: &Entry) -> Child {
    let child = &entry.spec.child;
    // What was to be created is known by its name, unless the API server was to choose it; what was created is not looked for.
    let is_named = entry.spec.request.operation == "CREATE"
        && entry.status.state != DriftState::Passed
        && !child.name.ends_with('-');
    if child.uid.is_none() && !is_named {
        return Child::Unknown;
    }
    let kind = match cluster.kinds.of_kind(&child.api_version, &child.kind).await {
        Ok(kind) => kind,
        Err(UnknownKind::NotServed(_)) => return Child::Gone,
        Err(_) => return Child::Unknown,
    };
    match cluster.read(&kind, &child.namespace, &child.name, true).await {
        Ok(Some(found)) if child.uid.as_ref().is_none_or(|uid| found.uid == *uid) => Child::Here(found),
        Ok(_) => Child::Gone,
        Err(_) => Child::Unknown,
    }
}

async fn write(
    cluster: &Cluster,
    key: &Key,
    entry: &Entry,
    resolution: Option<&DriftResolution>,
    decided: Option<Value>,
) {
    let mut status = decided.unwrap_or_else(|| json!({}));
    if let Some(resolution) = resolution {
        status["state"] = json!(DriftState::Resolved);
        status["resolution"] = json!(resolution);
    }
    let patch = json!({"metadata": {"resourceVersion": entry.metadata.resource_version}, "status": status});
    let api = api(&cluster.client, key);
    let patch = Patch::Merge(&patch);
    let written = tokio::time::timeout(WRITE_DEADLINE, api.patch(&key.1, &parameters(), &patch)).await;
    match written {
        Ok(Ok(_)) => {
            if let Some(resolution) = resolution {
                tracing::info!(drift = key.1, reason = resolution.reason.as_str(), "a drift is over");
            }
        }
        // It has changed meanwhile, or is gone: the watch tells, and it is looked at again.
        Ok(Err(kube::Error::Api(status))) if matches!(status.code, 404 | 409) => {}
        Ok(Err(error)) => {
            tracing::warn!(drift = key.1, %error, "an entry of the ledger could not be written")
        }
        Err(_) => tracing::warn!(drift = key.1, "an entry of the ledger could not be written: no answer"),
    }
}

/// The oldest entries that are over, where a namespace has too many of them, or they take too many bytes.
fn superfluous(all: &BTreeMap<Key, Arc<Noted>>) -> Vec<(Key, Arc<Noted>)> {
    type Closed<'a> = (Timestamp, &'a Key, &'a Arc<Noted>);
    let mut closed: BTreeMap<&str, Vec<Closed<'_>>> = BTreeMap::new();
    for (key, noted) in all {
        let status = &noted.entry.status;
        if let (false, Some(resolution)) = (status.state.is_open(), &status.resolution) {
            closed.entry(&key.0).or_default().push((resolution.at, key, noted));
        }
    }
    let mut oldest = Vec::new();
    for mut closed in closed.into_values() {
        closed.sort_unstable_by_key(|(at, key, _)| (*at, *key));
        let (mut kept, mut bytes) = (0, 0_usize);
        let fits = |(_, _, noted): &&Closed<'_>| {
            kept += 1;
            bytes = bytes.saturating_add(noted.bytes);
            kept <= MAX_RESOLVED && bytes <= MAX_RESOLVED_BYTES
        };
        let kept = closed.iter().rev().take_while(fits).count();
        let too_many = closed.len() - kept;
        oldest.extend(closed.into_iter().take(too_many).map(|(_, key, noted)| (key.clone(), noted.clone())));
    }
    oldest
}

/// Whether nobody needs an entry any more.
fn is_outdated(entry: &Entry, now: Timestamp) -> bool {
    let Some(resolution) = &entry.status.resolution else { return false };
    let age = now.duration_since(resolution.at);
    if resolution.reason != ResolutionReason::ParentGone {
        return age >= KEPT;
    }
    let deliveries = &entry.status.deliveries;
    age >= match deliveries.iter().all(|it| it.resolved.is_some()) {
        true if deliveries.is_empty() => KEPT_WITHOUT_ENDPOINTS,
        true => KEPT_WHEN_TOLD,
        false => KEPT,
    }
}

async fn remove(cluster: &Cluster, key: &Key, entry: &Entry) {
    let preconditions = Preconditions {
        uid: entry.metadata.uid.clone(),
        resource_version: entry.metadata.resource_version.clone(),
    };
    let parameters = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
    let api = api(&cluster.client, key);
    let removed = tokio::time::timeout(WRITE_DEADLINE, api.delete(&key.1, &parameters)).await;
    match removed {
        Ok(Err(kube::Error::Api(status))) if matches!(status.code, 404 | 409) => {}
        Ok(Err(error)) => tracing::warn!(drift = key.1, %error, "an old entry could not be removed"),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(status: Value) -> Entry {
        let mut entry = json!({
            "apiVersion": "kausality.io/v1alpha1", "kind": "Drift", "metadata": {"name": "d", "namespace": "shop"},
            "spec": {
                "id": "d", "parentIntent": "0", "diff": "0", "summary": {"parent": "", "child": "", "actor": "", "change": ""},
                "parent": {"apiVersion": "v1", "kind": "A", "name": "a", "lifecyclePhase": "Initialized"},
                "child": {"apiVersion": "v1", "kind": "B", "name": "b"},
                "request": {"user": "u", "uid": "1", "operation": "UPDATE"},
            },
            "status": {"state": "Resolved", "count": 1, "firstSeen": "2026-01-01T00:00:00Z",
                "lastSeen": "2026-01-01T00:00:00Z", "countedAt": "2026-01-01T00:00:00Z"},
        });
        if let (Some(all), Value::Object(more)) = (entry["status"].as_object_mut(), status) {
            all.extend(more);
        }
        serde_json::from_value(entry).unwrap()
    }

    fn noted(status: Value, bytes: usize) -> Arc<Noted> {
        Arc::new(Noted { entry: entry(status), bytes })
    }

    #[test]
    fn of_those_that_are_over_and_take_too_many_bytes_the_oldest_go() {
        let closed = |nth: i64| {
            let at = Timestamp::UNIX_EPOCH + SignedDuration::from_secs(nth);
            let name = format!("{nth}");
            (
                ("shop".to_owned(), name),
                noted(json!({"resolution": {"reason": "Approved", "at": at}}), MAX_RESOLVED_BYTES / 3),
            )
        };
        let gone = |count: i64| {
            let all = (0..count).map(closed).collect();
            superfluous(&all).into_iter().map(|((_, name), _)| name).collect::<Vec<_>>()
        };
        assert_eq!(gone(3), [""; 0]);
        assert_eq!(gone(5), ["0", "1"]);
    }

    #[test]
    fn of_too_many_that_are_over_the_oldest_go() {
        let closed = |nth: i64| {
            let at = Timestamp::UNIX_EPOCH + SignedDuration::from_secs(nth);
            noted(json!({"resolution": {"reason": "Approved", "at": at}}), 1_000)
        };
        let many = i64::try_from(MAX_RESOLVED).unwrap() + 2;
        let key = |namespace: &str, nth: i64| (namespace.to_owned(), format!("{:05}", many - nth));
        let mut all: BTreeMap<Key, Arc<Noted>> =
            (0..many).map(|nth| (key("full", nth), closed(nth))).collect();
        all.extend((2..many).map(|nth| (key("just", nth), closed(nth))));
        let open = noted(json!({"state": "Blocked"}), 1_000);
        all.extend((0..many).map(|nth| (("full".to_owned(), format!("open-{nth}")), open.clone())));
        let gone: Vec<Key> = superfluous(&all).into_iter().map(|(key, _)| key).collect();
        assert_eq!(gone, [key("full", 0), key("full", 1)]);
    }

    #[test]
    fn a_rejection_shows_at_once_and_so_does_that_it_was_taken_back() {
        let parent = |annotations: Value| {
            let object = json!({"apiVersion": "v1", "kind": "A", "metadata": {"name": "a", "annotations": annotations}});
            Summary::of(&kausality_core::review::Object::parse(&object.to_string()).unwrap())
        };
        let rejecting = |text: &str| parent(json!({"kausality.io/rejections": text}));
        let rejected =
            rejecting(r#"[{"apiVersion": "v1", "kind": "B", "name": "b", "reason": "no", "by": "dave"}]"#);
        let free = parent(json!({}));
        let told = |status: Value, parent: &Summary| {
            news(&entry(status), parent, Timestamp::UNIX_EPOCH).unwrap_or_default()
        };
        let decision =
            json!({"action": "reject", "by": "dave", "at": "1970-01-01T00:00:00Z", "reason": "no"});
        let status = |state: &str, rule: &str| {
            json!({"state": state, "decision": decision,
                "explanation": [{"rule": rule, "finding": "", "decided": true}]})
        };

        assert_eq!(
            told(json!({"state": "Blocked"}), &rejected),
            json!({"state": "Rejected", "decision": decision})
        );
        // A count has put back what was seen before.
        assert_eq!(told(status("Blocked", "mode"), &rejected), json!({"state": "Rejected"}));
        // That has happened.
        assert_eq!(told(json!({"state": "Passed"}), &rejected), json!({"decision": decision}));
        assert_eq!(told(status("Rejected", "rejection"), &rejected), Value::Null);

        assert_eq!(told(status("Rejected", "mode"), &free), json!({"state": "Blocked", "decision": null}));
        assert_eq!(told(status("Rejected", "policy"), &free), json!({"decision": null}));
        assert_eq!(told(json!({"state": "Rejected"}), &free), Value::Null);
        // What cannot be read blocks.
        assert_eq!(told(status("Rejected", "rejection"), &rejecting("[")), Value::Null);
    }

    #[test]
    fn entries_are_kept_for_a_day_and_those_without_a_parent_until_everybody_knows() {
        let over = |reason: &str, deliveries: Value| {
            entry(
                json!({"resolution": {"reason": reason, "at": "2026-01-01T10:00:00Z"}, "deliveries": deliveries}),
            )
        };
        let at = |time: &str| format!("2026-01-{time}Z").parse::<Timestamp>().unwrap();
        let told = json!([{"endpoint": "a", "detected": "2026-01-01T10:00:00Z", "resolved": "2026-01-01T10:00:01Z"}]);
        let telling = json!([{"endpoint": "a", "detected": "2026-01-01T10:00:00Z"}]);

        let approved = over("Approved", told.clone());
        assert!(!is_outdated(&approved, at("02T09:59:59")));
        assert!(is_outdated(&approved, at("02T10:00:00")));
        let orphan = over("ParentGone", told);
        assert!(!is_outdated(&orphan, at("01T10:00:59")));
        assert!(is_outdated(&orphan, at("01T10:01:00")));
        let untold = over("ParentGone", telling);
        assert!(!is_outdated(&untold, at("01T23:00:00")));
        assert!(is_outdated(&untold, at("02T10:00:00")));
        let silent = over("ParentGone", json!([]));
        assert!(!is_outdated(&silent, at("01T10:59:59")));
        assert!(is_outdated(&silent, at("01T11:00:00")));
        let failing = over("ParentGone", json!([{"endpoint": "a", "error": "connection refused"}]));
        assert!(!is_outdated(&failing, at("01T23:00:00")));
        assert!(!is_outdated(&entry(json!({})), at("09T00:00:00")));
    }
}
