//! The object that a request changes, seen from its parent.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kausality_api::{
    annotation,
    identity::{Hashes, UserHash},
    selector::Labels,
    trace::Trace,
};

use crate::{
    class::Class,
    intent, managers, relation,
    review::{Metadata, Object, Request},
    status,
    summary::{ObjectId, Summary},
    trace, writers,
};

/// The object that a request changes: of the request itself or, for `scale`, the object behind it.
#[derive(Clone, Debug)]
pub(crate) struct Child<'a> {
    pub id: ObjectId,
    pub uid: Option<String>,
    /// The generation before the change.
    pub generation: Option<i64>,
    pub deleting: bool,
    pub has_owner: bool,
    /// Whether an update leaves the generation as it is: only annotations change.
    same_generation: bool,
    stored: Stored<'a>,
}

#[derive(Clone, Debug)]
enum Stored<'a> {
    Nothing,
    Object(&'a Metadata<'a>),
    Summary(&'a Summary),
}

impl<'a> Child<'a> {
    /// The child of a request that carries it.
    pub(crate) fn of(request: &'a Request<'a>) -> Option<Self> {
        let shown = request.object.as_ref().or(request.old_object.as_ref())?;
        let old = request.old_object.as_ref();
        let known = old.unwrap_or(shown);
        let owner =
            |object: Option<&Object<'_>>| object.is_some_and(|object| relation::parent(object).is_some());
        Some(Self {
            id: ObjectId {
                api_version: shown.api_version.to_string(),
                kind: shown.kind.to_string(),
                namespace: known.metadata.namespace.to_string(),
                name: known.metadata.any_name().to_owned(),
            },
            uid: (!known.metadata.uid.is_empty()).then(|| known.metadata.uid.to_string()),
            generation: old.and_then(|old| old.metadata.generation),
            deleting: old.is_some_and(|old| old.metadata.is_deleting()),
            has_owner: owner(old) || owner(request.object.as_ref()),
            same_generation: old
                .zip(request.object.as_ref())
                .is_some_and(|(old, new)| intent::same(&old.intent, &new.intent)),
            stored: old.map_or(Stored::Nothing, |old| Stored::Object(&old.metadata)),
        })
    }

    /// The object behind a `scale` request.
    pub(crate) fn scaled(summary: &'a Summary) -> Self {
        Self {
            id: summary.id.clone(),
            uid: (!summary.uid.is_empty()).then(|| summary.uid.clone()),
            generation: summary.generation,
            deleting: summary.deleting,
            has_owner: summary.owner.is_some(),
            same_generation: false,
            stored: Stored::Summary(summary),
        }
    }

    /// One of Kausality's annotations, as stored, if it counts: people's do only where a person wrote them.
    pub(crate) fn stored(&self, key: &str) -> Option<&'a str> {
        match self.stored {
            Stored::Nothing => None,
            Stored::Object(metadata) => metadata.annotations.get(key).filter(|_| counting(metadata)(key)),
            Stored::Summary(summary) => summary.annotation(key),
        }
    }

    /// The labels that it gives to its hop when the request does not carry it.
    pub(crate) fn trace_labels(&self) -> BTreeMap<String, String> {
        match self.stored {
            Stored::Nothing => BTreeMap::new(),
            Stored::Object(metadata) => {
                let counts = counting(metadata);
                trace::labels(metadata.annotations.ours().filter(|(key, _)| counts(key)))
            }
            Stored::Summary(summary) => trace::labels(summary.annotations()),
        }
    }

    /// The labels by which policies know it: the stored ones, so that no request can shed a policy.
    pub(crate) fn labels(&self, request: &Request<'_>) -> Labels {
        if let Stored::Summary(summary) = self.stored {
            return summary.labels();
        }
        let known = request.old_object.as_ref().or(request.object.as_ref());
        known.map(|object| object.metadata.labels()).unwrap_or_default()
    }

    /// Who changed its intent before. Of an object that is older than the record, that is not all.
    pub(crate) fn updaters(&self) -> Hashes {
        match (self.stored(annotation::UPDATERS), &self.stored) {
            (Some(text), _) => Hashes::decode(text),
            (None, Stored::Nothing) => Hashes::default(),
            (None, _) => Hashes::decode(&UserHash::UNRECORDED.to_string()),
        }
    }

    /// When it was created, if it is stored.
    pub(crate) fn created(&self) -> Option<Timestamp> {
        match self.stored {
            Stored::Nothing => None,
            Stored::Object(metadata) => metadata.creation_timestamp.as_ref()?.parse().ok(),
            Stored::Summary(summary) => summary.created,
        }
    }

    /// When it is due to be changed, as its controller has written on it.
    pub(crate) fn due(&self) -> Option<Timestamp> {
        match self.stored {
            Stored::Object(metadata) => {
                status::due_of_child(self.id.group(), &self.id.kind, |key| metadata.annotations.other(key))
            }
            _ => None,
        }
    }

    /// The trace that it carries, if that can be read.
    pub(crate) fn trace(&self) -> Option<Trace> {
        Trace::decode(self.stored(annotation::TRACE)?).ok()
    }

    /// Who writes its status.
    pub(crate) fn controllers(&self) -> Hashes {
        self.stored(annotation::CONTROLLERS).map(Hashes::decode).unwrap_or_default()
    }

    /// The generation that the change will give it: the API server counts after admission.
    pub(crate) fn next_generation(&self, class: Class) -> Option<i64> {
        match class {
            Class::Create if lacks_generation(self.id.group(), &self.id.kind) => None,
            Class::Create => Some(1),
            Class::Delete | Class::Status | Class::Metadata | Class::Adopt | Class::Relabel => {
                self.generation
            }
            Class::Update if self.same_generation => self.generation,
            _ => self.generation.map(|generation| generation.saturating_add(1)),
        }
    }
}

fn counting<'m>(metadata: &'m Metadata<'_>) -> impl Fn(&str) -> bool + 'm {
    writers::counting(metadata, || managers::of_status(metadata))
}

/// Built-in kinds whose objects have no generation: a CREATE review cannot tell.
fn lacks_generation(group: &str, kind: &str) -> bool {
    match group {
        "" => !matches!(kind, "Pod" | "ReplicationController"),
        "apps" => kind == "ControllerRevision",
        "rbac.authorization.k8s.io"
        | "storage.k8s.io"
        | "coordination.k8s.io"
        | "events.k8s.io"
        | "certificates.k8s.io"
        | "node.k8s.io" => true,
        _ => false,
    }
}

/// Whether a change of annotations alone bumps the generation of this kind.
#[must_use]
pub fn annotations_bump_generation(group: &str, kind: &str) -> bool {
    group == "apps" && kind == "Deployment"
}
