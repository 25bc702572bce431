//! What sort of request this is, and so how much of the pipeline it goes through.

use std::fmt;

use crate::{
    facts::Settings,
    intent,
    review::{Operation, Request},
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
        match (request.operation, &*request.sub_resource) {
            (Operation::Update, "status")
                if changes_controller(request) && status_stores_metadata(&request.resource.group) =>
            {
                Self::Release
            }
            (Operation::Update, "status") => Self::Status,
            (Operation::Update, "scale") if same_intent(request) => Self::Metadata,
            (Operation::Update, "scale") => Self::Scale,
            (Operation::Update, "") if same_intent(request) && changes_controller(request) => Self::Release,
            (Operation::Update, "") if same_intent(request) => Self::Metadata,
            (Operation::Update, "") => Self::Update,
            (Operation::Create, "") => Self::Create,
            (Operation::Delete, "") => Self::Delete,
            _ => Self::Ignored,
        }
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

/// Whether an update of the status of this kind stores metadata, too. That of custom resources does not.
fn status_stores_metadata(group: &str) -> bool {
    !group.contains('.') || group.ends_with(".k8s.io")
}

fn same_intent(request: &Request<'_>) -> bool {
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
