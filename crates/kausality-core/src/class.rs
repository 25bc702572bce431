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
            (Operation::Update, "status") => Self::Status,
            (Operation::Update, "scale") if same_intent(request) => Self::Metadata,
            (Operation::Update, "scale") => Self::Scale,
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

fn same_intent(request: &Request<'_>) -> bool {
    match (&request.old_object, &request.object) {
        (Some(old), Some(new)) => intent::same(&old.intent, &new.intent),
        _ => false,
    }
}
