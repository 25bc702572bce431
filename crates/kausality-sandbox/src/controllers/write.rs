//! What a controller asks its driver to do to the API, and how the API may refuse.

use serde_json::{Value, json};

use super::{Key, Resource, object};

/// One write.
#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    /// What it is done to.
    pub key: Key,
    /// What is done.
    pub action: Action,
}

/// What is done to an object.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// POST. The name may be left to the API (`generateName`).
    Create(Value),
    /// PUT, which fails with a conflict unless the resourceVersion is the stored one.
    Update(Value),
    /// PUT of the subresource `status`, with the same rule.
    UpdateStatus(Value),
    /// PUT of the subresource `finalize` of a namespace, with the same rule.
    Finalize(Value),
    /// POST to the subresource `binding` of a Pod.
    Bind(Value),
    /// A merge patch. With `metadata.resourceVersion` in it, the same rule holds; `metadata.uid` must be the object's.
    Patch(Value),
    /// A merge patch of the subresource `status`.
    PatchStatus(Value),
    /// DELETE.
    Delete(Delete),
}

/// The options of a deletion.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delete {
    /// Only if the object has this uid.
    pub uid: Option<String>,
    /// Only if the object has this resourceVersion.
    pub resource_version: Option<String>,
    /// What becomes of the dependents; unset, the API decides.
    pub propagation: Option<Propagation>,
    /// How long a Pod may take to end; unset, the Pod decides.
    pub grace_period_seconds: Option<u64>,
}

/// What becomes of the dependents of a deleted object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// They are deleted after it.
    Background,
    /// Those that block it are deleted before it.
    Foreground,
    /// They stay.
    Orphan,
}

impl Propagation {
    /// As the API spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Background => "Background",
            Self::Foreground => "Foreground",
            Self::Orphan => "Orphan",
        }
    }
}

/// A live read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Read {
    /// One object: found or not.
    Object(Key),
    /// All objects of a resource in a namespace.
    Collection {
        /// The resource.
        resource: Resource,
        /// The namespace.
        namespace: String,
    },
}

/// How the API refuses a write.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// 409: the object has changed since it was read, or is another one.
    #[error("conflict")]
    Conflict,
    /// 409: there is an object of this name.
    #[error("already exists")]
    AlreadyExists,
    /// 404.
    #[error("not found")]
    NotFound,
    /// Admission or validation said no.
    #[error("{0}")]
    Denied(String),
    /// Nobody knows whether it happened: a timeout, a broken connection.
    #[error("{0}")]
    Unknown(String),
}

impl Refusal {
    /// Whether a sync ends at a write that is refused like this. Only the deletion of what is gone already does not
    /// count as a failure.
    pub fn stops(&self, write: &Write) -> bool {
        !(matches!(self, Self::NotFound) && matches!(write.action, Action::Delete(_)))
    }
}

impl Write {
    /// Creates an object.
    pub fn create(resource: &Resource, object: Value) -> Self {
        Self { key: resource.key_of(&object), action: Action::Create(object) }
    }

    /// Replaces an object.
    pub fn update(resource: &Resource, object: Value) -> Self {
        Self { key: resource.key_of(&object), action: Action::Update(object) }
    }

    /// Replaces an object's status.
    pub fn update_status(resource: &Resource, object: Value) -> Self {
        Self { key: resource.key_of(&object), action: Action::UpdateStatus(object) }
    }

    /// Patches an object.
    pub fn patch(resource: &Resource, object: &Value, patch: Value) -> Self {
        Self { key: resource.key_of(object), action: Action::Patch(patch) }
    }

    /// Patches an object's status.
    pub fn patch_status(resource: &Resource, object: &Value, patch: Value) -> Self {
        Self { key: resource.key_of(object), action: Action::PatchStatus(patch) }
    }

    /// Deletes this very object, whatever has become of it.
    pub fn delete(resource: &Resource, object: &Value, propagation: Option<Propagation>) -> Self {
        let uid = Some(object::uid(object).to_owned());
        let action = Action::Delete(Delete { uid, propagation, ..Delete::default() });
        Self { key: resource.key_of(object), action }
    }

    /// Takes a finalizer off an object, if it is still as it was seen.
    pub(super) fn remove_finalizer(resource: &Resource, object: &Value, finalizer: &str) -> Self {
        let left: Vec<_> = object::finalizers(object).filter(|it| *it != finalizer).collect();
        let left = if left.is_empty() { Value::Null } else { json!(left) };
        let metadata = json!({
            "uid": object::uid(object), "resourceVersion": object::version(object), "finalizers": left
        });
        Self::patch(resource, object, json!({ "metadata": metadata }))
    }
}
