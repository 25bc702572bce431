//! What a decision must know beyond its request, and how a shell learns what to fetch.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use kausality_api::{
    approval::Approval,
    identity::{Hashes, UserHash},
    mode::Mode,
    policy::QuietTime,
    selector::Labels,
    trace::Trace,
};

use kausality_fields::Redaction;

use crate::{
    annotations,
    authority::{self, Authority, Authorization},
    class::{self, Class},
    exceptions::Exceptions,
    inputs::Hint,
    policy::Policies,
    relation,
    review::Request,
    settle::Settling,
    summary::{ObjectId, Owner, Summary},
};

/// What holds for every decision, until somebody configures it otherwise.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The user names under which Kausality itself writes.
    pub own_users: BTreeSet<String>,
    /// The mode where nothing says another.
    pub default_mode: Mode,
    /// For how long a parent must have been quiet to count as settled, where no policy says otherwise.
    pub quiet_time: Duration,
    /// The `Kausality` policies.
    pub policies: Policies,
    /// The rules of `ApprovalPolicy` and `ClusterApprovalPolicy`.
    pub exceptions: Arc<Exceptions>,
    /// Goes into the digests that stand for secrets.
    pub salt: Vec<u8>,
    /// Who may decide about drifts.
    pub authorization: Authorization,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            own_users: BTreeSet::new(),
            default_mode: Mode::default(),
            quiet_time: QuietTime::default().0,
            policies: Policies::default(),
            exceptions: Arc::default(),
            salt: Vec::new(),
            authorization: Authorization::default(),
        }
    }
}

impl Settings {
    /// How secrets in the objects of a request are made unreadable.
    pub(crate) fn redaction(&self, request: &Request<'_>) -> Redaction {
        let fields = self.policies.redacted(&request.resource.group, &request.resource.resource);
        Redaction::new(self.salt.as_slice()).with_fields(fields)
    }
}

/// What is known for one decision. Missing knowledge is knowledge too.
#[derive(Clone, Debug)]
pub struct Facts<'a> {
    /// The time.
    pub now: Timestamp,
    /// What holds for every decision.
    pub settings: &'a Settings,
    /// Whether the time is known. A recording without times is judged as if whatever must last had lasted.
    pub timed: bool,
    /// The parent of the object that is written.
    pub parent: Parent<'a>,
    /// What was seen below the parent.
    pub below_parent: Activity,
    /// What was seen below the object itself.
    pub below: Activity,
    /// The last change of something else that the parent's controller acts on, as policies declare it.
    pub input: Option<&'a InputChange>,
    /// What else changed shortly before. No decision rests on it.
    pub hints: &'a [Hint],
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
            timed: true,
            parent: Parent::None,
            below_parent: Activity::default(),
            below: Activity::default(),
            input: None,
            hints: Default::default(),
            scaled: None,
            namespace: None,
            exception: None,
            authority: Authority::Unasked,
        }
    }
}

/// For how long a change of an input explains what a controller does. What it has not done by then, it did not do for that.
const INPUT_HORIZON: SignedDuration = SignedDuration::from_mins(10);

impl Facts<'_> {
    /// The last change of an input, if it may still explain anything.
    pub(crate) fn recent_input(&self) -> Option<&InputChange> {
        self.input.filter(|input| self.now.duration_since(input.at) < INPUT_HORIZON)
    }

    /// When parents of a kind count as settled.
    pub(crate) fn settling(&self, group: &str, resource: &str) -> Settling {
        self.settings.policies.settling(group, resource, self.settings.quiet_time)
    }
}

/// A change of an input by somebody who is not the parent's controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputChange {
    /// What was changed.
    pub object: ObjectId,
    /// When.
    pub at: Timestamp,
    /// How that came about, as far as known.
    pub trace: Option<Trace>,
    /// Whether it is still being carried out, so that it counts as if it had just been made.
    pub ongoing: bool,
}

/// What has been seen of the controller of an object: changes of the object that it carried out on its children.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    /// When it last did so.
    pub last: Option<Timestamp>,
    /// Under which users.
    pub users: Hashes,
    /// The change of an input that it last acted on: what it does next is for that, too.
    pub input: Option<InputChange>,
}

impl Activity {
    /// Notes that a user has carried out a change on a child.
    pub fn note(&mut self, user: UserHash, now: Timestamp) {
        self.last = self.last.max(Some(now));
        if !self.users.contains(user) {
            self.users.note(user, &Hashes::default());
        }
    }

    /// Notes the change of an input that a change of a child was for. One that is still being carried out is looked for each
    /// time.
    pub fn act_on(&mut self, input: Option<&InputChange>) {
        let input = input.filter(|input| !input.ongoing);
        let later = |known: &InputChange| input.is_some_and(|input| input.at > known.at);
        if input.is_some() && self.input.as_ref().is_none_or(later) {
            self.input = input.cloned();
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
    /// Whether the time is known.
    pub timed: bool,
    /// The parent of the object that is written.
    pub parent: KnownParent,
    /// What was seen below the parent.
    pub below_parent: Activity,
    /// What was seen below the object itself.
    pub below: Activity,
    /// The last change of something else that the parent's controller acts on: one that it is known to act on, else asked for
    /// only where a decision [may follow](crate::Decision::may_follow_input) it.
    pub input: Option<InputChange>,
    /// What else changed shortly before. Asked for only where a change is drift, and no decision rests on it.
    pub hints: Vec<Hint>,
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
    /// What is known of a request that asks no question.
    #[must_use]
    pub fn new(now: Timestamp) -> Self {
        Self {
            now,
            timed: true,
            parent: KnownParent::None,
            below_parent: Activity::default(),
            below: Activity::default(),
            input: None,
            hints: Default::default(),
            scaled: None,
            namespace: None,
            exception: None,
            authority: Authority::Unasked,
        }
    }

    /// Whether both say the same, if not at the same time: what was decided from one holds by the other.
    #[must_use]
    pub fn agrees_with(&self, other: &Self) -> bool {
        let Self { now: _, timed: _, below_parent, below: _, input, parent, scaled, namespace, .. } = self;
        let Self { exception, authority, .. } = self;
        (parent, below_parent, input, scaled, namespace, exception, authority)
            == (
                &other.parent,
                &other.below_parent,
                &other.input,
                &other.scaled,
                &other.namespace,
                &other.exception,
                &other.authority,
            )
    }

    /// As facts for a decision.
    #[must_use]
    pub fn facts<'a>(&'a self, settings: &'a Settings) -> Facts<'a> {
        Facts {
            now: self.now,
            settings,
            timed: self.timed,
            below_parent: self.below_parent.clone(),
            below: self.below.clone(),
            input: self.input.as_ref(),
            hints: &self.hints,
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
        Class::Metadata | Class::Status if class::may_leave_selection(request) => {
            Questions { parent: parent(request), namespace: namespace(), ..Questions::default() }
        }
        Class::Own | Class::Ignored | Class::Status | Class::Bind => Questions::default(),
        Class::Metadata if !annotations::sender_matters(request) => Questions::default(),
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
        Class::Evict => Questions { namespace: namespace(), ..Questions::default() },
        Class::Create | Class::Update | Class::Release | Class::Adopt | Class::Relabel | Class::Delete => {
            Questions { parent: parent(request), namespace: namespace(), ..Questions::default() }
        }
    };
    Questions { authority, ..asked }
}

/// The parent: the stored one, so that no request can shed it, else the one that it adds; and for an adoption the one that
/// controls the object from then on.
pub(crate) fn parent(request: &Request<'_>) -> Option<Owner> {
    let of = |object: &Option<crate::review::Object<'_>>| relation::parent(object.as_ref()?);
    if class::is_adoption(request) {
        return of(&request.object);
    }
    of(&request.old_object).or_else(|| of(&request.object))
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
