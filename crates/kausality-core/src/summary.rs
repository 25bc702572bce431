//! What must be known of an object in its role as a parent: little enough to keep one for each.

mod compact;

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use kausality_api::{
    annotation::{self, Suffix},
    identity::Hashes,
    report::ChildReference,
    selector::{LabelSelector, Labels},
};
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use crate::{
    intent::IntentHash,
    managers::{self, StatusWrite},
    relation,
    review::{Object, OwnerReference},
    settle,
    status::Reading,
    writers,
};

pub use compact::Compact;

/// Names an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectId {
    /// Its apiVersion.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its namespace; empty for cluster-scoped kinds.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl ObjectId {
    /// Names the child of a drift.
    #[must_use]
    pub fn of(child: &ChildReference) -> Self {
        Self {
            api_version: child.api_version.clone(),
            kind: child.kind.clone(),
            namespace: child.namespace.clone(),
            name: child.name.clone(),
        }
    }

    /// Its API group; empty for the core group.
    #[must_use]
    pub fn group(&self) -> &str {
        group(&self.api_version)
    }
}

/// Whether a group is of custom resources: those of Kubernetes itself have no dot, or end in `.k8s.io`.
pub(crate) fn is_custom(group: &str) -> bool {
    group.contains('.') && !group.ends_with(".k8s.io")
}

/// The API group of an apiVersion; empty for the core group.
#[must_use]
pub fn group(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

impl std::fmt::Display for ObjectId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ", self.kind)?;
        if !self.namespace.is_empty() {
            write!(f, "{}/", self.namespace)?;
        }
        f.write_str(&self.name)
    }
}

/// An owner, kept apart from the text that named it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Owner {
    /// The owner's apiVersion.
    pub api_version: String,
    /// The owner's kind.
    pub kind: String,
    /// The owner's name.
    pub name: String,
    /// The owner's uid; empty, where another relation than ownership names it.
    pub uid: String,
    /// Where the owner is, if that is not the child's namespace.
    pub namespace: Option<String>,
}

impl From<&OwnerReference<'_>> for Owner {
    fn from(owner: &OwnerReference<'_>) -> Self {
        Self {
            api_version: owner.api_version.to_string(),
            kind: owner.kind.to_string(),
            name: owner.name.to_string(),
            uid: owner.uid.to_string(),
            namespace: None,
        }
    }
}

/// An object, as its children's decisions see it.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// Which one it is.
    pub id: ObjectId,
    /// Its uid.
    pub uid: String,
    /// The version that was read.
    pub resource_version: String,
    /// Its generation, if its kind has one.
    pub generation: Option<i64>,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// Hash of its intent.
    pub intent: IntentHash,
    /// Its status, read.
    pub status: Reading,
    /// The field managers that report on it in its status, as controllers do.
    pub status_managers: Vec<String>,
    /// Who wrote its status, and when, as far as managed fields tell.
    pub status_writes: Vec<StatusWrite>,
    /// When it was created.
    pub created: Option<Timestamp>,
    /// The suffix of its own facts.
    pub suffix: Suffix,
    /// Its own parent.
    pub owner: Option<Owner>,
    /// The object that it names as made for it, as `Kind/name`; `*` for all that name it.
    pub made_for: Option<Box<str>>,
    /// All of it, where it was read live and a policy may ask for it.
    pub whole: Option<Arc<Value>>,
    annotations: BTreeMap<String, String>,
    /// Its labels, unread: they matter only where it is scaled.
    labels: Option<Box<str>>,
    /// The labels by which it selects its children, one after the other; [`ANY`] for so many that they are not kept.
    selector: Option<Box<str>>,
}

/// Stands for all labels.
const ANY: &str = "*";

/// Bytes of the names of labels that are kept. Few selectors have more than three.
const MAX_SELECTOR: usize = 512;

/// The labels by which an object selects its children, as workloads do.
fn selector(object: &Object<'_>) -> Option<Box<str>> {
    #[derive(Deserialize)]
    struct Spec {
        selector: Option<Value>,
    }
    let spec = object.intent.field("spec").filter(|spec| spec.get().contains("\"selector\""))?;
    let selector = serde_json::from_str::<Spec>(spec.get()).ok()?.selector?;
    let keys: Vec<String> = match serde_json::from_value::<LabelSelector>(selector.clone()) {
        Ok(selector) => selector.keys().map(ToOwned::to_owned).collect(),
        // That of a ReplicationController is a map of labels.
        Err(_) => serde_json::from_value::<Labels>(selector).ok()?.into_keys().collect(),
    };
    let keys = keys.join(",");
    (!keys.is_empty()).then(|| if keys.len() > MAX_SELECTOR { ANY.into() } else { keys.into() })
}

impl Summary {
    /// Summarises an object as it is stored.
    #[must_use]
    pub fn of(object: &Object<'_>) -> Self {
        Self::with_status(object, object.status)
    }

    /// Summarises an object whose status has been written since.
    #[must_use]
    pub fn with_status(object: &Object<'_>, status: Option<&RawValue>) -> Self {
        let metadata = &object.metadata;
        let status_managers = managers::of_status(metadata);
        let counts = writers::counting(metadata, || status_managers.clone());
        let annotations = metadata.annotations.ours().filter(|(key, _)| counts(key));
        let annotations = annotations.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
        drop(counts);
        Self {
            id: ObjectId {
                api_version: object.api_version.to_string(),
                kind: object.kind.to_string(),
                namespace: metadata.namespace.to_string(),
                name: metadata.name.to_string(),
            },
            uid: metadata.uid.to_string(),
            resource_version: metadata.resource_version.to_string(),
            generation: metadata.generation,
            deleting: metadata.is_deleting(),
            intent: object.intent.hash(),
            status: object.reading_with(status),
            owner: relation::parent(object),
            made_for: relation::made_for(object),
            whole: None,
            annotations,
            status_writes: managers::status_writes(metadata),
            created: metadata.creation_timestamp.as_ref().and_then(|time| time.parse().ok()),
            suffix: object.suffix(),
            status_managers,
            labels: metadata.labels.map(|raw| raw.get().into()),
            selector: selector(object),
        }
    }

    /// Whether its status shows, or will show, when its controller is done. Not without the status subresource: every plain write
    /// of a status raises the generation, and none is recorded as an observation of it.
    #[must_use]
    pub fn shows_progress(&self) -> bool {
        let has_plain_status = self.status_writes.is_empty() && !self.status_managers.is_empty();
        self.status.has_evidence() && !has_plain_status
    }

    /// When its status was last written, to the second, as far as managed fields tell.
    #[must_use]
    pub fn status_written(&self) -> Option<Timestamp> {
        self.status_writes.iter().map(|write| write.at).max()
    }

    /// When its intent was last changed, to the second: as its trace tells, else when it was created.
    pub(crate) fn intent_written(&self) -> Option<Timestamp> {
        settle::asked(self).or(self.created)
    }

    /// Its labels. What is not a map of strings counts as none.
    #[must_use]
    pub fn labels(&self) -> Labels {
        self.labels.as_ref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
    }

    /// Whether it selects its children by this label.
    pub(crate) fn selects_by(&self, label: &str) -> bool {
        self.selector.as_deref().is_some_and(|keys| keys == ANY || keys.split(',').any(|key| key == label))
    }

    /// One of Kausality's annotations.
    #[must_use]
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.annotations.get(key).map(String::as_str)
    }

    /// Sets one of Kausality's annotations, or removes it: for shells that know of a write before it shows.
    pub fn annotate(&mut self, key: &str, value: Option<&str>) {
        match value {
            Some(value) => self.annotations.insert(key.to_owned(), value.to_owned()),
            None => self.annotations.remove(key),
        };
    }

    /// All of Kausality's annotations.
    pub fn annotations(&self) -> impl Iterator<Item = (&str, &str)> + Clone {
        self.annotations.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// Who writes its status, as recorded.
    #[must_use]
    pub fn controllers(&self) -> Hashes {
        self.annotation(annotation::CONTROLLERS).map(Hashes::decode).unwrap_or_default()
    }
}
