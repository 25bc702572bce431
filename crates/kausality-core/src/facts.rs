//! What a decision must know beyond its request, and how a shell learns what to fetch.

use std::{collections::BTreeSet, sync::Arc};

use jiff::Timestamp;
use kausality_api::{approval::Approval, mode::Mode, selector::Labels};

use crate::{
    annotations,
    authority::{self, Authority, Authorization},
    class::Class,
    exceptions::Exceptions,
    policy::Policies,
    review::Request,
    summary::{ObjectId, Owner, Summary},
};

/// What holds for every decision, until somebody configures it otherwise.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The user names under which Kausality itself writes.
    pub own_users: BTreeSet<String>,
    /// The mode where nothing says another.
    pub default_mode: Mode,
    /// The `Kausality` policies.
    pub policies: Policies,
    /// The rules of `ApprovalPolicy` and `ClusterApprovalPolicy`.
    pub exceptions: Arc<Exceptions>,
    /// Goes into the digests that stand for Secret values.
    pub salt: Vec<u8>,
    /// Who may decide about drifts.
    pub authorization: Authorization,
}

/// What is known for one decision. Missing knowledge is knowledge too.
#[derive(Clone, Debug)]
pub struct Facts<'a> {
    /// The time.
    pub now: Timestamp,
    /// What holds for every decision.
    pub settings: &'a Settings,
    /// The parent of the object that is written.
    pub parent: Parent<'a>,
    /// The object behind a `scale` request, or why it cannot be read.
    pub scaled: Option<Result<&'a Summary, String>>,
    /// The namespace of the object that is written.
    pub namespace: Option<&'a Namespace>,
    /// What else lets this drift pass.
    pub exception: Option<Exception>,
    /// Whether whoever sends the request may decide about drifts.
    pub authority: Authority,
}

impl<'a> Facts<'a> {
    /// Facts of a request that asks no question.
    #[must_use]
    pub fn new(now: Timestamp, settings: &'a Settings) -> Self {
        Self {
            now,
            settings,
            parent: Parent::None,
            scaled: None,
            namespace: None,
            exception: None,
            authority: Authority::Unasked,
        }
    }
}

/// The parent of an object.
#[derive(Clone, Debug)]
pub enum Parent<'a> {
    /// It has none.
    None,
    /// Here it is.
    Found {
        /// The parent.
        summary: &'a Summary,
        /// The plural name of its kind, which policies know it by; empty if unknown.
        resource: &'a str,
    },
    /// It does not exist any more, or another object has its name.
    Gone,
    /// It may exist, but could not be read: why.
    Unreadable(String),
}

impl<'a> Parent<'a> {
    /// The parent, if it was found.
    #[must_use]
    pub fn found(&self) -> Option<&'a Summary> {
        match self {
            Self::Found { summary, .. } => Some(summary),
            Self::None | Self::Gone | Self::Unreadable(_) => None,
        }
    }
}

/// Facts that a shell has gathered, on their own: [`Facts`] borrow from them.
#[derive(Clone, Debug)]
pub struct Known {
    /// The time.
    pub now: Timestamp,
    /// The parent of the object that is written.
    pub parent: KnownParent,
    /// The object behind a `scale` request, or why it cannot be read.
    pub scaled: Option<Result<Arc<Summary>, String>>,
    /// The namespace of the object that is written.
    pub namespace: Option<Arc<Namespace>>,
    /// What else lets this drift pass.
    pub exception: Option<Exception>,
    /// Whether whoever sends the request may decide about drifts.
    pub authority: Authority,
}

/// What a shell has found out about a parent.
#[derive(Clone, Debug, PartialEq)]
pub enum KnownParent {
    /// There is none.
    None,
    /// Here it is.
    Found {
        /// The parent.
        summary: Arc<Summary>,
        /// The plural name of its kind; empty if unknown.
        resource: Arc<str>,
    },
    /// It does not exist any more, or another object has its name.
    Gone,
    /// It may exist, but could not be read: why.
    Unreadable(String),
}

impl Known {
    /// Whether both say the same, if not at the same time: what was decided from one holds by the other.
    #[must_use]
    pub fn agrees_with(&self, other: &Self) -> bool {
        let Self { now: _, parent, scaled, namespace, exception, authority } = self;
        (parent, scaled, namespace, exception, authority)
            == (&other.parent, &other.scaled, &other.namespace, &other.exception, &other.authority)
    }

    /// As facts for a decision.
    #[must_use]
    pub fn facts<'a>(&'a self, settings: &'a Settings) -> Facts<'a> {
        Facts {
            now: self.now,
            settings,
            parent: match &self.parent {
                KnownParent::None => Parent::None,
                KnownParent::Found { summary, resource } => Parent::Found { summary, resource },
                KnownParent::Gone => Parent::Gone,
                KnownParent::Unreadable(why) => Parent::Unreadable(why.clone()),
            },
            scaled: self.scaled.as_ref().map(|scaled| scaled.as_deref().map_err(Clone::clone)),
            namespace: self.namespace.as_deref(),
            exception: self.exception.clone(),
            authority: self.authority.clone(),
        }
    }
}

/// As much of a namespace as matters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Namespace {
    /// Its labels.
    pub labels: Labels,
    /// Its `kausality.io/mode` annotation.
    pub mode: Option<String>,
}

/// What lets a drift pass beside approvals and policies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exception {
    /// An active `UpgradeAllowance`, as `Kind/name`.
    Upgrade(String),
    /// An approval for once that has been used up for this very change, which comes again since it has not happened.
    Used(Box<Approval>),
}

/// What must be known before a request can be decided.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Questions {
    /// The parent: its reference, and the namespace in which it is looked for first.
    pub parent: Option<Owner>,
    /// The object behind a `scale` request, by resource. Its owner is the parent to ask for next.
    pub scaled: Option<ScaledObject>,
    /// The namespace whose labels and mode matter.
    pub namespace: Option<String>,
    /// Whether whoever sends the request may `approve` drifts in its namespace.
    pub authority: bool,
}

/// The object behind a `scale` request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScaledObject {
    /// The API group of the resource.
    pub group: String,
    /// The version of the resource.
    pub version: String,
    /// The plural name of the resource.
    pub resource: String,
    /// The namespace; empty for cluster-scoped kinds.
    pub namespace: String,
    /// The name.
    pub name: String,
}

/// Says what must be known before `request` can be decided. Most requests ask nothing.
#[must_use]
pub fn questions(request: &Request<'_>, settings: &Settings) -> Questions {
    let namespace = || (!request.namespace.is_empty()).then(|| request.namespace.to_string());
    let authority = authority::matters(request, settings);
    let asked = match Class::of(request, settings) {
        Class::Own | Class::Ignored | Class::Status => Questions::default(),
        Class::Metadata if !annotations::user_annotations_differ(request) => Questions::default(),
        Class::Metadata => Questions { parent: parent(request), ..Questions::default() },
        Class::Scale => Questions {
            scaled: Some(ScaledObject {
                group: request.resource.group.to_string(),
                version: request.resource.version.to_string(),
                resource: request.resource.resource.to_string(),
                namespace: request.namespace.to_string(),
                name: request.name.to_string(),
            }),
            namespace: namespace(),
            ..Questions::default()
        },
        Class::Create | Class::Update | Class::Release | Class::Delete => {
            Questions { parent: parent(request), namespace: namespace(), ..Questions::default() }
        }
    };
    Questions { authority, ..asked }
}

/// The controlling owner: the stored one, so that no request can shed its parent, else the one it adds.
pub(crate) fn parent(request: &Request<'_>) -> Option<Owner> {
    let owner = |object: &Option<crate::review::Object<'_>>| {
        object.as_ref()?.metadata.owner.as_ref().map(Owner::from)
    };
    owner(&request.old_object).or_else(|| owner(&request.object))
}

/// Where a parent may be: a namespaced child's parent is in the same namespace, or cluster-scoped.
#[must_use]
pub fn parent_id(owner: &Owner, namespace: &str) -> ObjectId {
    ObjectId {
        api_version: owner.api_version.clone(),
        kind: owner.kind.clone(),
        namespace: namespace.to_owned(),
        name: owner.name.clone(),
    }
}
