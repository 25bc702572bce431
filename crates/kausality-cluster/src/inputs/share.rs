//! Changes of inputs that every replica knows, and when controllers last acted below parents that look done. The API server tells
//! one replica of each; that one writes it into a ConfigMap of Kausality's own namespace, which all follow.
//!
//! A watch of the inputs themselves would tell neither who deleted one nor, but for a field manager, who changed it; and it
//! would need the right to read every Secret and node of the cluster.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash, Hasher},
    ops::ControlFlow,
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use kausality_api::{identity::UserHash, policy::InputOperation, selector::Labels, trace::Trace};
use kausality_core::{
    inputs::{Changed, Extent},
    summary::ObjectId,
};
use kube::{
    Api, Client,
    api::{Patch, PatchParams},
    core::{ApiResource, DynamicObject},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::{
    feed::{Mirror, Which, follow},
    reads::Reads,
};

/// The ConfigMap.
const NAME: &str = "kausality-inputs";

/// For how long a change is kept: as long as it explains anything.
const HORIZON: SignedDuration = SignedDuration::from_mins(10);

/// How many changes are kept. The oldest go first.
const MAX_RECORDS: usize = 256;

/// How many bytes they take at most: the API server takes 1 MiB in all.
const MAX_BYTES: usize = 512 * 1024;

/// How many letters of a name a key shows: the API server takes keys of up to 253.
const MAX_KEY: usize = 200;

/// How the keys of parents begin below which something was done; the rest is the uid.
const BELOW: &str = "below.";

/// How often it is written down at most that something was done below a parent: often enough for any quiet time.
const STEP: SignedDuration = SignedDuration::from_secs(1);

/// How soon a write that failed is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// How long writes are apart at least: each is one of the whole ConfigMap, and every replica reads it.
const WRITE_INTERVAL: Duration = Duration::from_millis(250);

/// How soon it is tried again to write where that is not allowed, or where there is no ConfigMap.
const ABSENT_INTERVAL: Duration = Duration::from_secs(60);

/// How long the API server may take to answer.
const DEADLINE: Duration = Duration::from_secs(2);

/// The last change of an object, as it is written down.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Record {
    api_version: String,
    kind: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    namespace: String,
    name: String,
    resource: String,
    operation: InputOperation,
    extent: Extent,
    at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    user: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    trace: Option<Trace>,
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    labels: Labels,
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    labels_before: Labels,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    owner: Option<String>,
}

impl From<&Changed> for Record {
    fn from(change: &Changed) -> Self {
        let ObjectId { api_version, kind, namespace, name } = change.object.clone();
        Self {
            api_version,
            kind,
            namespace,
            name,
            resource: change.resource.clone(),
            operation: change.operation,
            extent: change.extent,
            at: change.at,
            user: change.user.map(|user| user.to_string()),
            trace: change.trace.clone(),
            labels: change.labels.clone(),
            labels_before: change.labels_before.clone(),
            owner: change.owner.clone(),
        }
    }
}

impl From<&Record> for Changed {
    fn from(record: &Record) -> Self {
        Self {
            object: ObjectId {
                api_version: record.api_version.clone(),
                kind: record.kind.clone(),
                namespace: record.namespace.clone(),
                name: record.name.clone(),
            },
            resource: record.resource.clone(),
            operation: record.operation,
            extent: record.extent,
            at: record.at,
            user: record.user.as_deref().and_then(UserHash::parse),
            trace: record.trace.clone(),
            labels: record.labels.clone(),
            labels_before: record.labels_before.clone(),
            owner: record.owner.clone(),
        }
    }
}

impl Record {
    /// Names the object.
    fn key(&self) -> String {
        let Self { api_version, resource, namespace, name, .. } = self;
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        let whole = format!("{resource}.{group}_{namespace}_{name}");
        let mut hasher = DefaultHasher::new();
        whole.hash(&mut hasher);
        let fits = |letter: &char| letter.is_ascii_alphanumeric() || "-._".contains(*letter);
        let shown: String = whole.chars().filter(fits).take(MAX_KEY).collect();
        format!("{shown}.{:016x}", hasher.finish())
    }
}

/// What replicas tell each other.
#[derive(Clone, Debug, Default, PartialEq)]
struct Records {
    /// The last changes of inputs.
    inputs: BTreeMap<String, Record>,
    /// When something was last done below a parent, by its key.
    below: BTreeMap<String, Timestamp>,
    /// The version of the ConfigMap that held them.
    version: u64,
}

/// Tells other replicas, and hears from them. Does nothing until it is [kept](Self::keep).
#[derive(Debug, Default)]
pub(crate) struct Share {
    api: OnceLock<Api<DynamicObject>>,
    /// What all have written, as far as is known here.
    known: Mutex<Records>,
    /// What is still to be written.
    unwritten: Mutex<Records>,
    more: Notify,
    reads: Reads<()>,
}

impl Share {
    /// Has the others know of a change, soon.
    pub(crate) fn tell(&self, change: &Changed) {
        if self.api.get().is_none() {
            return;
        }
        let record = Record::from(change);
        let mut unwritten = lock(&self.unwritten);
        if unwritten.inputs.len() < MAX_RECORDS {
            unwritten.inputs.insert(record.key(), record);
            self.more.notify_one();
        }
    }

    /// Has the others know that something was done below a parent, soon.
    pub(crate) fn tell_of_step(&self, parent: &str, at: Timestamp) {
        if self.api.get().is_none()
            || self.last_step(parent).is_some_and(|last| at.duration_since(last) < STEP)
        {
            return;
        }
        let mut unwritten = lock(&self.unwritten);
        if unwritten.below.len() < MAX_RECORDS {
            unwritten.below.insert(format!("{BELOW}{parent}"), at);
            self.more.notify_one();
        }
    }

    /// When something was last done below a parent, as far as replicas have told.
    pub(crate) fn last_step(&self, parent: &str) -> Option<Timestamp> {
        let known = lock(&self.known);
        if known.below.is_empty() { None } else { known.below.get(&format!("{BELOW}{parent}")).copied() }
    }

    /// Reads what is stored now: the watch may lag behind.
    pub(crate) async fn refresh(&self) {
        if let Some(api) = self.api.get() {
            let read = async {
                if let Ok(Ok(object)) = tokio::time::timeout(DEADLINE, api.get(NAME)).await {
                    self.learn(&object);
                }
            };
            self.reads.share(NAME, read).await;
        }
    }

    /// All changes that are known.
    pub(crate) fn all(&self) -> Vec<Changed> {
        lock(&self.known).inputs.values().map(Changed::from).collect()
    }

    /// Follows and writes, for ever.
    pub(crate) async fn keep(&self, client: Client, namespace: &str, now: impl Fn() -> Timestamp) {
        let api = self.api.get_or_init(|| Api::namespaced_with(client, namespace, &resource())).clone();
        let which = Which::named(NAME);
        tokio::join!(follow(api.clone(), &which, "inputs", self), self.write(&api, now));
    }

    async fn write(&self, api: &Api<DynamicObject>, now: impl Fn() -> Timestamp) {
        loop {
            self.more.notified().await;
            let batch = std::mem::take(&mut *lock(&self.unwritten));
            if batch == Records::default() {
                continue;
            }
            let known = lock(&self.known).clone();
            let patch = patch(&known, &batch, now());
            let parameters = PatchParams::default();
            let merge = Patch::Merge(&patch);
            let written = tokio::time::timeout(DEADLINE, api.patch(NAME, &parameters, &merge)).await;
            let (failed, again) = match written {
                Ok(Ok(object)) => {
                    self.learn(&object);
                    tokio::time::sleep(WRITE_INTERVAL).await;
                    continue;
                }
                // Until somebody installs it.
                Ok(Err(kube::Error::Api(status))) if matches!(status.code, 403 | 404) => {
                    (status.to_string(), false)
                }
                Ok(Err(error)) => (error.to_string(), true),
                Err(_) => ("no answer in time".to_owned(), true),
            };
            tracing::warn!(
                error = failed,
                "other replicas cannot be told of changes of inputs (ConfigMap {NAME})"
            );
            if !again {
                tokio::time::sleep(ABSENT_INTERVAL).await;
                continue;
            }
            self.put_back(batch);
            tokio::time::sleep(RETRY).await;
            self.more.notify_one();
        }
    }

    /// Keeps what could not be written, unless something newer is there.
    fn put_back(&self, batch: Records) {
        let mut unwritten = lock(&self.unwritten);
        for (key, record) in batch.inputs {
            unwritten.inputs.entry(key).or_insert(record);
        }
        for (key, at) in batch.below {
            unwritten.below.entry(key).or_insert(at);
        }
    }

    /// Takes what an object holds, unless something newer is known.
    fn learn(&self, object: &DynamicObject) {
        let version = object.metadata.resource_version.as_deref().and_then(|version| version.parse().ok());
        let mut known = lock(&self.known);
        if version.unwrap_or(0) >= known.version {
            *known = Records { version: version.unwrap_or(0), ..read(&object.data) };
        }
    }
}

impl Mirror for Share {
    fn begin(&self) {}

    fn arrive(&self, object: DynamicObject) -> ControlFlow<()> {
        self.apply(object)
    }

    fn complete(&self) {}

    fn apply(&self, object: DynamicObject) -> ControlFlow<()> {
        self.learn(&object);
        ControlFlow::Continue(())
    }

    fn remove(&self, _: DynamicObject) {
        *lock(&self.known) = Records::default();
    }
}

/// The records of a ConfigMap. What is not one is passed over.
fn read(object: &Value) -> Records {
    let mut records = Records::default();
    for (key, value) in object.get("data").and_then(Value::as_object).into_iter().flatten() {
        let text = value.as_str().unwrap_or_default();
        if key.starts_with(BELOW) {
            records.below.extend(text.parse().ok().map(|at| (key.clone(), at)));
        } else {
            records.inputs.extend(serde_json::from_str(text).ok().map(|record| (key.clone(), record)));
        }
    }
    records
}

/// What is to be written: new records, and that those go which are old or too many. The newest are kept.
fn patch(known: &Records, new: &Records, now: Timestamp) -> Value {
    let mut data = serde_json::Map::new();
    let text = |record: &Record| serde_json::to_string(record).unwrap_or_default();
    let kept = known.inputs.iter().filter(|(key, _)| !new.inputs.contains_key(*key));
    let mut inputs: Vec<(&String, &Record)> = new.inputs.iter().chain(kept).collect();
    inputs.sort_by_key(|(_, record)| std::cmp::Reverse(record.at));
    let mut bytes = 0;
    for (place, (key, record)) in inputs.into_iter().enumerate() {
        let (is_new, text) = (new.inputs.contains_key(key), text(record));
        bytes += key.len() + text.len();
        let fits = place < MAX_RECORDS && bytes <= MAX_BYTES && now.duration_since(record.at) < HORIZON;
        match (is_new, fits) {
            (true, true) => data.insert(key.clone(), Value::String(text)),
            (false, true) => None,
            (_, false) => data.insert(key.clone(), Value::Null),
        };
    }
    let kept = known.below.iter().filter(|(key, _)| !new.below.contains_key(*key));
    let mut below: Vec<(&String, &Timestamp)> = new.below.iter().chain(kept).collect();
    below.sort_by_key(|(_, at)| std::cmp::Reverse(**at));
    for (place, (key, at)) in below.into_iter().enumerate() {
        let fits = place < MAX_RECORDS && now.duration_since(*at) < HORIZON;
        match (new.below.contains_key(key), fits) {
            (true, true) => data.insert(key.clone(), Value::String(at.to_string())),
            (false, true) => None,
            (_, false) => data.insert(key.clone(), Value::Null),
        };
    }
    json!({ "data": data })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn resource() -> ApiResource {
    ApiResource {
        group: String::new(),
        version: "v1".to_owned(),
        api_version: "v1".to_owned(),
        kind: "ConfigMap".to_owned(),
        plural: "configmaps".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deleted(name: &str, second: i64) -> Changed {
        let trace = json!([{"apiVersion": "v1", "kind": "Secret", "name": name, "user": "alice",
            "timestamp": "2026-01-01T00:00:00Z"}]);
        Changed {
            object: ObjectId {
                api_version: "v1".to_owned(),
                kind: "Secret".to_owned(),
                namespace: "shop".to_owned(),
                name: name.to_owned(),
            },
            resource: "secrets".to_owned(),
            operation: InputOperation::Delete,
            extent: Extent::Intent,
            at: Timestamp::from_second(second).unwrap(),
            user: Some(UserHash::of("alice", "")),
            trace: Trace::decode(&trace.to_string()).ok(),
            labels: Labels::from([("app".to_owned(), "a".to_owned())]),
            labels_before: Labels::new(),
            owner: Some("owner".to_owned()),
        }
    }

    fn records(changes: impl IntoIterator<Item = Changed>) -> Records {
        let records = changes.into_iter().map(|change| Record::from(&change));
        Records { inputs: records.map(|it| (it.key(), it)).collect(), ..Records::default() }
    }

    /// What one replica writes is what another reads, who did it included.
    #[test]
    fn replicas_know_who_deleted_what() {
        let patch = patch(&Records::default(), &records([deleted("tls", 0)]), Timestamp::UNIX_EPOCH);
        let [record] = &*read(&patch).inputs.into_values().collect::<Vec<_>>() else { panic!("{patch}") };
        let (told, change) = (Changed::from(record), deleted("tls", 0));
        assert_eq!(format!("{told:?}"), format!("{change:?}"));
        assert_eq!(told.trace.unwrap().hops()[0].user, "alice");
    }

    #[test]
    fn what_is_old_goes_and_there_are_never_too_many() {
        let now = Timestamp::from_second(1000).unwrap();
        let known = records([deleted("old", 399), deleted("young", 401), deleted("again", 500)]);
        let written = patch(&known, &records([deleted("again", 1000)]), now);
        let data = written["data"].as_object().unwrap();
        let gone = data.iter().filter(|(_, value)| value.is_null()).map(|(key, _)| key);
        assert_eq!(gone.collect::<Vec<_>>(), [&Record::from(&deleted("old", 0)).key()]);
        assert_eq!(data.len(), 2, "{written}");

        let known = records((0..300).map(|number| deleted(&format!("s{number}"), 500 + number)));
        let written = patch(&known, &records([deleted("one-more", 1000)]), now);
        let gone = written["data"].as_object().unwrap().values().filter(|value| value.is_null()).count();
        assert_eq!(known.inputs.len() - gone + 1, MAX_RECORDS);
    }

    /// Nodes have labels by the dozen.
    #[test]
    fn they_never_take_more_than_a_config_map_holds() {
        let labels: Labels = (0..100).map(|number| (format!("{number:0100}"), "x".repeat(60))).collect();
        let large =
            |number: i64| Changed { labels: labels.clone(), ..deleted(&format!("n{number}"), number) };
        let written = patch(&records((0..100).map(large)), &records((100..256).map(large)), at(300));
        let kept: usize =
            written["data"].as_object().unwrap().values().filter_map(Value::as_str).map(str::len).sum();
        assert!(kept > MAX_BYTES / 2 && kept <= MAX_BYTES, "{kept}");
        assert!(written["data"].as_object().unwrap()[&Record::from(&large(0)).key()].is_null());
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// What one replica saw being done below a parent, another knows.
    #[test]
    fn replicas_know_when_something_was_done_below_a_parent() {
        let below = |steps: &[(&str, i64)]| Records {
            below: steps.iter().map(|(uid, second)| (format!("{BELOW}{uid}"), at(*second))).collect(),
            ..Records::default()
        };
        let known = below(&[("a", 500), ("b", 100), ("c", 900)]);
        let written = patch(&known, &below(&[("a", 1000)]), at(1000));
        assert_eq!(written, json!({"data": {"below.a": at(1000).to_string(), "below.b": null}}));
        let share = Share { known: Mutex::new(read(&written)), ..Share::default() };
        assert_eq!(share.last_step("a"), Some(at(1000)));
        assert_eq!(share.last_step("b"), None);
    }

    #[test]
    fn what_somebody_else_wrote_there_is_passed_over() {
        let strange = json!({"data": {"a": "no record", "b": "{}", "below.c": "yesterday"}});
        assert_eq!(read(&strange), Records::default());
        assert_eq!(read(&json!({})), Records::default());
    }
}
