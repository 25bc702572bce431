//! Who reconciles the object that is written: whether a change of its intent is its own controller's, and so no new intent,
//! and whether who writes its status is its controller.

use kausality_api::{annotation::TRACE, identity::UserHash, trace::Trace};

use crate::{
    actor::is_machine,
    child::Child,
    facts::Activity,
    managers,
    review::{Object, Request},
    status::{self, Difference},
    summary::{Summary, group, is_custom},
};

/// What shows who an object's controller is.
const REPORTS: &str = "reports on this object in its status";
const ACTS_BELOW: &str = "acts on the children of this object";

/// Why a change of an object's intent is one of its own controller's; nothing, if it is not.
///
/// Crossplane writes references into composites, providers write defaults, Cluster API writes provider ids: whoever
/// reconciles an object completes it, and asks for nothing.
pub(crate) fn of_change(
    request: &Request<'_>,
    user: UserHash,
    child: &Child<'_>,
    parent: Option<&Summary>,
    below: &Activity,
) -> Option<&'static str> {
    let (stored, sent) = (request.old_object.as_ref()?, request.object.as_ref()?);
    let by = |managers: Vec<String>| {
        !managers.is_empty()
            && managers::of_request(request).is_some_and(|manager| managers.contains(&manager))
    };
    // Before anybody has reported on it, and by a program that has not asked for anything of it so far.
    let is_fresh =
        || is_machine(request) && child.controllers().is_empty() && !child.updaters().contains(user);
    let why = if child.controllers().contains(user) {
        REPORTS
    } else if is_machine(request) && below.users.contains(user) {
        ACTS_BELOW
    } else if is_fresh() && sends_first_status(stored, sent) {
        "sends a status of this object along"
    } else if is_fresh() && by(managers::of_finalizers(&stored.metadata)) {
        "has a finalizer on this object"
    } else {
        return None;
    };
    let Some(parent) = parent else { return Some(why) };
    // One user may run the controllers of both: their field managers tell them apart.
    let uid = stored.metadata.owner.as_ref().map_or("", |owner| &owner.uid);
    if by(managers::of_owner(&stored.metadata, uid)) {
        return None;
    }
    let runs_both = parent.controllers().contains(user);
    (!runs_both || by(managers::of_status(&stored.metadata))).then_some(why)
}

/// Why a `scale` is its object's own controller's; nothing, if it is not. Only what is recorded of that tells: a Scale shows no
/// field managers.
pub(crate) fn of_scale(
    request: &Request<'_>,
    user: UserHash,
    child: &Child<'_>,
    parent: Option<&Summary>,
    below: &Activity,
) -> Option<&'static str> {
    let runs_both = parent.is_some_and(|parent| parent.controllers().contains(user));
    let reports = child.controllers().contains(user);
    let acts_below = is_machine(request) && below.users.contains(user);
    match reports || acts_below {
        true if runs_both => None,
        true if reports => Some(REPORTS),
        true => Some(ACTS_BELOW),
        false => None,
    }
}

/// Whether an update carries a status of an object that has none yet, as reconcilers with typed clients do. The API server
/// leaves it out. Clients of built-in kinds always send one.
fn sends_first_status(stored: &Object<'_>, sent: &Object<'_>) -> bool {
    let has_status =
        |object: &Object<'_>| object.status.is_some_and(|raw| !matches!(raw.get(), "null" | "{}"));
    is_custom(group(&stored.api_version)) && has_status(sent) && !has_status(stored)
}

/// Who writes a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reporter {
    /// The object's controller, or one of them.
    Controller,
    /// A person, who asks for something by it: to promote, to renew, to abort.
    Person,
    /// Anybody else: a load balancer that tells its address, for instance.
    Bystander,
}

impl Reporter {
    /// Who sends a status update.
    pub(crate) fn of(request: &Request<'_>, stored: &Object<'_>, sent: &Object<'_>, user: UserHash) -> Self {
        let Some(child) = Child::of(request) else { return Self::Bystander };
        let controllers = child.controllers();
        if controllers.contains(user) {
            return Self::Controller;
        }
        // Whoever keeps its conditions fresh is its controller, even if they say the same.
        let reports =
            sent.status.is_some() && tells(stored, sent, |difference| difference != Difference::None);
        if is_machine(request) && matches!(&*request.resource.group, "apps" | "batch") {
            // Nobody but their controllers writes the status of these, and some of it is only counters.
            return Self::Controller;
        }
        let manager = managers::of_request(request);
        // Pipelines promote and renew by tools that are made for it. A script that reports by kubectl itself is a controller.
        let by_plugin = manager.as_deref().is_some_and(managers::is_plugin);
        if is_machine(request) && !by_plugin {
            return if reports { Self::Controller } else { Self::Bystander };
        }
        let reporters = managers::of_status(&stored.metadata);
        let as_reporters_do = match &manager {
            Some(manager) if managers::is_of_people(manager) => false,
            Some(manager) => controllers.is_empty() || reporters.is_empty() || reporters.contains(manager),
            None => controllers.is_empty() || reporters.is_empty(),
        };
        if reports && as_reporters_do && !is_origin(&child, request) {
            Self::Controller
        } else if changes_status(stored, sent) {
            Self::Person
        } else {
            Self::Bystander
        }
    }
}

/// Whether a status that differs so from the stored one tells something else about how far the controller has got: by what
/// kinds share, or by what a policy reads this kind by.
fn tells(stored: &Object<'_>, sent: &Object<'_>, differs: impl Fn(Difference) -> bool) -> bool {
    differs(status::difference(stored.status, sent.status))
        || !stored.rules().is_empty() && *stored.reading() != stored.reading_with(sent.status)
}

/// Whether a status tells something else about how far the controller has got than the stored one. A heartbeat does not.
pub(crate) fn tells_else(stored: &Object<'_>, sent: &Object<'_>) -> bool {
    tells(stored, sent, |difference| difference == Difference::Meaning)
}

/// Whether who sends a request is the one whose change the object's intent began with.
fn is_origin(child: &Child<'_>, request: &Request<'_>) -> bool {
    let trace = child.stored(TRACE).and_then(|text| Trace::decode(text).ok());
    trace.is_some_and(|trace| trace.hops().first().is_some_and(|hop| hop.user == request.user()))
}

fn changes_status(stored: &Object<'_>, sent: &Object<'_>) -> bool {
    stored.status.map(|raw| raw.get()) != sent.status.map(|raw| raw.get())
}
