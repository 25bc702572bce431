//! What sort of request this is, and so how much of the pipeline it goes through.

use std::{collections::BTreeSet, fmt};

use serde_json::value::RawValue;

use crate::{
    decide::is_bound_to_conflict,
    facts::{Parent, Settings},
    intent,
    review::{Operation, OwnerReference, Request},
    summary::{group, is_custom},
};

/// The sort of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Kausality's own: allowed.
    Own,
    /// No change of an object that is watched: allowed.
    Ignored,
    /// An update of `status`: observed, never gated.
    Status,
    /// An update that leaves the intent as it is: never gated, annotations protected.
    Metadata,
    /// An update, be it of the status, that takes an object from the owner that controls it, and leaves the intent as it is.
    Release,
    /// The same that gives an object its first controlling owner.
    Adopt,
    /// The same that changes a label by which a policy, a rule or the parent selects objects.
    Relabel,
    /// A Pod is evicted that could not be read; where it can, its eviction is [its deletion](crate::Review::as_deletion_of).
    Evict,
    /// A Pod is bound to a node: annotations of the Binding end up on the Pod.
    Bind,
    /// An object is created.
    Create,
    /// An object's intent is changed.
    Update,
    /// An object is deleted.
    Delete,
    /// An object's replicas are changed through `scale`.
    Scale,
}

impl Class {
    /// Classifies a request.
    #[must_use]
    pub fn of(request: &Request<'_>, settings: &Settings) -> Self {
        if settings.own_users.contains(&*request.user_info.username) {
            return Self::Own;
        }
        if is_binding(request) {
            return Self::Bind;
        }
        let part = match &*request.sub_resource {
            // Reviews of these carry the whole Pod.
            "ephemeralcontainers" | "resize" if is_core(request, "pods") => "",
            part => part,
        };
        match (request.operation, part) {
            // What is written from a copy that is out of date is not stored.
            (Operation::Update, "status") if !stores_metadata(request) => Self::Status,
            (Operation::Update, "status") if changes_controller(request) => Self::Release,
            (Operation::Update, "status") if adopts(request) => Self::Adopt,
            (Operation::Update, "status") if relabels(request, settings) => Self::Relabel,
            (Operation::Update, "status") => Self::Status,
            (Operation::Update, "scale") if same_intent(request) => Self::Metadata,
            (Operation::Update, "scale") => Self::Scale,
            (Operation::Update, "") if same_intent(request) && changes_controller(request) => Self::Release,
            (Operation::Update, "") if is_adoption(request) => Self::Adopt,
            (Operation::Update, "") if same_intent(request) && relabels(request, settings) => Self::Relabel,
            (Operation::Update, "") if same_intent(request) => Self::Metadata,
            (Operation::Update, "") => Self::Update,
            (Operation::Create, "") => Self::Create,
            (Operation::Delete, "") => Self::Delete,
            (Operation::Create, "eviction") if is_core(request, "pods") => Self::Evict,
            _ => Self::Ignored,
        }
    }

    /// The same, as the parent has it: a label that it selects its children by is more than metadata.
    #[must_use]
    pub(crate) fn below(self, request: &Request<'_>, parent: &Parent<'_>) -> Self {
        let selects = || match parent {
            Parent::Found { summary, .. } => {
                changed_labels(request).iter().any(|label| summary.selects_by(label))
            }
            // It may.
            Parent::Unreadable(_) => true,
            Parent::None | Parent::Gone => false,
        };
        let is_asked = matches!(self, Self::Metadata | Self::Status) && may_leave_selection(request);
        if is_asked && selects() { Self::Relabel } else { self }
    }

    /// The word for it in outputs.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::Ignored => "ignored",
            Self::Status => "status",
            Self::Metadata => "metadata",
            Self::Release => "release",
            Self::Adopt => "adopt",
            Self::Relabel => "relabel",
            Self::Evict => "evict",
            Self::Bind => "bind",
            Self::Create => "create",
            Self::Update => "update",
            Self::Delete => "delete",
            Self::Scale => "scale",
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Whether an object has an owner that controls it, and gets another or none: it would be out of reach of what holds for
/// the children of the first.
pub(crate) fn changes_controller(request: &Request<'_>) -> bool {
    let (Some(old), Some(new)) = (&request.old_object, &request.object) else { return false };
    let (old, new) = (&old.metadata.owner, &new.metadata.owner);
    old.as_ref().is_some_and(|old| !new.as_ref().is_some_and(|new| old.is_same(new)))
}

/// Whether an update changes who owns an object. The garbage collector deletes what has owners, if none of them exists.
pub(crate) fn changes_owners(request: &Request<'_>) -> bool {
    let (Some(old), Some(new)) = (&request.old_object, &request.object) else { return false };
    !old.metadata.same_owners(&new.metadata)
}

/// Whether an update gives an object that no owner controls one, and leaves the intent as it is.
pub(crate) fn is_adoption(request: &Request<'_>) -> bool {
    request.operation == Operation::Update && adopts(request) && same_intent(request)
}

/// Whether an object that no owner controls gets one. Workloads adopt what their selectors match, and stop working where
/// they may not.
pub(crate) fn adopts(request: &Request<'_>) -> bool {
    let (Some(old), Some(new)) = (&request.old_object, &request.object) else { return false };
    old.metadata.owner.is_none() && new.metadata.owner.as_ref().is_some_and(|owner| !is_workload(owner))
}

/// Whether an owner is a workload of Kubernetes, which adopts and lets go of children by their labels.
pub(crate) fn is_workload(owner: &OwnerReference<'_>) -> bool {
    match group(&owner.api_version) {
        "apps" | "batch" => true,
        "" => owner.kind == "ReplicationController",
        _ => false,
    }
}

/// Whether a label changes by which a policy selects objects: the object would come under another policy, or under none; or by
/// which a rule does that lets changes pass or denies them.
fn relabels(request: &Request<'_>, settings: &Settings) -> bool {
    let changed = changed_labels(request);
    let resource = &request.resource;
    !changed.is_empty()
        && (settings
            .policies
            .selecting_labels(&resource.group, &resource.resource, &request.namespace)
            .any(|label| changed.contains(label))
            || settings.exceptions.select_by(&request.kind.kind, &changed))
}

/// Whether a label changes by which the parent may select its children.
pub(crate) fn may_leave_selection(request: &Request<'_>) -> bool {
    let selects = |owner: &OwnerReference<'_>| is_workload(owner) || is_custom(group(&owner.api_version));
    let owner = request.old_object.as_ref().and_then(|old| old.metadata.owner.as_ref());
    (request.sub_resource.is_empty() || request.sub_resource == "status" && stores_metadata(request))
        && owner.is_some_and(selects)
        && !changed_labels(request).is_empty()
}

/// The labels that an update changes.
fn changed_labels(request: &Request<'_>) -> BTreeSet<String> {
    let (Some(old), Some(new)) = (&request.old_object, &request.object) else { return BTreeSet::new() };
    let (old, new) = (&old.metadata, &new.metadata);
    if old.labels.map(RawValue::get) == new.labels.map(RawValue::get) {
        return BTreeSet::new();
    }
    let (old, new) = (old.labels(), new.labels());
    old.keys().chain(new.keys()).filter(|label| old.get(*label) != new.get(*label)).cloned().collect()
}

fn is_core(request: &Request<'_>, resource: &str) -> bool {
    request.resource.group.is_empty() && *request.resource.resource == *resource
}

/// Whether a Pod is bound to a node, by its subresource or by the older way.
fn is_binding(request: &Request<'_>) -> bool {
    request.operation == Operation::Create
        && match &*request.sub_resource {
            "binding" => is_core(request, "pods"),
            "" => is_core(request, "bindings"),
            _ => false,
        }
}

/// Whether an update of a status stores metadata, too.
fn stores_metadata(request: &Request<'_>) -> bool {
    status_stores_metadata(&request.resource.group) && !is_bound_to_conflict(request)
}

/// Whether an update of the status of kinds of this group stores metadata, too. That of custom resources does not.
#[must_use]
pub fn status_stores_metadata(group: &str) -> bool {
    !group.contains('.') || group.ends_with(".k8s.io")
}

pub(crate) fn same_intent(request: &Request<'_>) -> bool {
    match (&request.old_object, &request.object) {
        (Some(old), Some(new)) => {
            let counts = annotations_are_intent(&request.resource.group, &old.kind);
            intent::same(&old.intent, &new.intent)
                && (!counts || old.metadata.annotations.same_others(&new.metadata.annotations))
        }
        _ => false,
    }
}

/// Whether people ask for something by the annotations of a kind: controllers of Ingresses are configured by them.
fn annotations_are_intent(group: &str, kind: &str) -> bool {
    group == "networking.k8s.io" && kind == "Ingress"
}
