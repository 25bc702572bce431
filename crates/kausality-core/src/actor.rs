//! The actor: whether the parent's controller sends a request, or somebody else.

use std::fmt;

use kausality_api::identity::{Hashes, UserHash};

use crate::{managers, review::Request, summary::Summary};

/// Who sends a request, in relation to the parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Actor {
    /// The parent's controller.
    Controller,
    /// Somebody else: a person, another controller, a GitOps tool.
    Other,
    /// There is no evidence.
    Unknown,
}

impl Actor {
    /// The word for it in outputs.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Controller => "Controller",
            Self::Other => "Other",
            Self::Unknown => "Unknown",
        }
    }
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The actor, with the evidence that was looked at; the last piece decided.
#[derive(Clone, Debug)]
pub struct Identified {
    /// Who it is.
    pub actor: Actor,
    /// What each piece of evidence showed.
    pub evidence: Vec<String>,
}

/// Identifies the actor by the first evidence that decides. `updaters` are those of the child as stored.
#[must_use]
pub fn identify(
    request: &Request<'_>,
    user: UserHash,
    parent: Option<&Summary>,
    updaters: &Hashes,
    creates: bool,
) -> Identified {
    let mut evidence = Vec::new();
    // Where many are known to act, a manager that several share tells nothing, and whoever creates a child may be anybody.
    let many = parent.is_some_and(|parent| parent.controllers().is_full());
    let by_others = |evidence: &mut Vec<String>| {
        let reports = by_managers(request, parent, evidence);
        // A program may name any manager, and so look like a person's tool.
        let by_tool =
            || managers::of_request(request).is_some_and(|manager| managers::is_of_people(&manager));
        let by_hand = || !is_machine(request) && (creates || by_tool());
        if reports == Some(Actor::Controller) || reports.is_some() && by_hand() {
            return reports;
        }
        // A manager that does not report may still be the controller's: Crossplane and Cluster API have one for each purpose.
        by_creation(creates, evidence)
            .or_else(|| by_updaters(user, updaters, evidence))
            .or_else(|| by_manager_of_owner(request, evidence))
            .or_else(|| {
                evidence.extend(reports.map(|_| "nothing else tells that it is the controller's".to_owned()));
                reports
            })
    };
    let actor = by_recorded_controllers(user, parent, updaters, &mut evidence)
        .or_else(|| if many { by_updaters(user, updaters, &mut evidence) } else { by_others(&mut evidence) })
        .unwrap_or(Actor::Unknown);
    Identified { actor, evidence }
}

/// Whether a user is a program that runs in the cluster: a service account, a node or a part of the control plane. Some
/// distributions give `system:admin` to people.
pub(crate) fn is_machine(request: &Request<'_>) -> bool {
    request.user_info.username.starts_with("system:") && request.user_info.username != "system:admin"
}

/// Whether a request is sent by the garbage collector or the namespace controller: they delete for whoever deleted an owner or
/// the namespace. Without an account for each controller, all of them share one.
pub(crate) fn deletes_for_others(request: &Request<'_>) -> bool {
    matches!(
        &*request.user_info.username,
        "system:serviceaccount:kube-system:generic-garbage-collector"
            | "system:serviceaccount:kube-system:namespace-controller"
            | "system:kube-controller-manager"
    )
}

fn controller_if(holds: bool) -> Option<Actor> {
    Some(if holds { Actor::Controller } else { Actor::Other })
}

fn by_recorded_controllers(
    user: UserHash,
    parent: Option<&Summary>,
    updaters: &Hashes,
    evidence: &mut Vec<String>,
) -> Option<Actor> {
    let controllers = parent.map(Summary::controllers).unwrap_or_default();
    if controllers.is_empty() {
        evidence.push("no controllers are recorded on the parent".to_owned());
        return None;
    }
    let both = controllers.intersection(updaters);
    if both.is_empty() && controllers.is_full() && !controllers.contains(user) {
        // Whoever writes children more often than the parent's status may have been pushed out by others who write it.
        evidence.push(format!(
            "none of the recorded controllers ({controllers}) updates this child, and no more fit"
        ));
        return None;
    }
    let (set, name) = if both.is_empty() { (&controllers, "") } else { (&both, " that update this child") };
    let is = if set.contains(user) { "is" } else { "is not" };
    evidence.push(format!("user {user} {is} among the recorded controllers{name} ({set})"));
    controller_if(set.contains(user))
}

fn by_managers(request: &Request<'_>, parent: Option<&Summary>, evidence: &mut Vec<String>) -> Option<Actor> {
    let status_managers = parent.map(|parent| parent.status_managers.as_slice()).unwrap_or_default();
    if status_managers.is_empty() {
        evidence.push("no field manager reports in the parent's status".to_owned());
        return None;
    }
    let Some(manager) = managers::of_request(request) else {
        evidence.push("the request's field manager is not known".to_owned());
        return None;
    };
    let known = status_managers.join(", ");
    evidence.push(format!("field manager {manager:?}; {known:?} report in the parent's status"));
    controller_if(status_managers.contains(&manager))
}

/// A user who creates a child with its controlling owner is that owner's controller.
fn by_creation(creates: bool, evidence: &mut Vec<String>) -> Option<Actor> {
    creates.then(|| {
        evidence.push("who creates a child is taken for its controller".to_owned());
        Actor::Controller
    })
}

/// The field manager that made the parent the child's controller is the parent's controller. A person who uses the same tool
/// as a script that acts for the parent is not.
fn by_manager_of_owner(request: &Request<'_>, evidence: &mut Vec<String>) -> Option<Actor> {
    let stored = &request.old_object.as_ref()?.metadata;
    let creators = managers::of_owner(stored, &stored.owner.as_ref()?.uid);
    let manager = managers::of_request(request).filter(|manager| creators.contains(manager))?;
    if managers::is_of_people(&manager) && !is_machine(request) {
        evidence.push(format!("field manager {manager:?} is a tool that people use, too"));
        return None;
    }
    evidence.push(format!("field manager {manager:?} made the parent the child's controller"));
    Some(Actor::Controller)
}

fn by_updaters(user: UserHash, updaters: &Hashes, evidence: &mut Vec<String>) -> Option<Actor> {
    let Some(only) = updaters.only().filter(|only| *only != UserHash::UNRECORDED) else {
        evidence.push("the child is not known to have exactly one updater".to_owned());
        return None;
    };
    evidence.push(format!("the child's only updater is {only}, the user is {user}"));
    controller_if(only == user)
}
