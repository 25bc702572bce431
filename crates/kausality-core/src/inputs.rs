//! Inputs: what controllers act on beside the parent itself, as policies declare it and as is known of some kinds.
//!
//! What changes how a controller works is none: a Composition, a function, a new version of the controller. That is what
//! drift means.

use jiff::{SignedDuration, Timestamp};
use kausality_api::{
    annotation::TRACE,
    identity::{Hashes, UserHash},
    policy::{Input, InputOperation, Relation},
    selector::{LabelSelector, Labels},
    trace::Trace,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    actor::is_machine,
    cause::Cause,
    child::Child,
    class::Class,
    decide::is_bound_to_conflict,
    decision::Decision,
    facts::{self, InputChange, Settings},
    policy::Policies,
    relation,
    review::Request,
    summary::{ObjectId, Summary, is_custom},
    trace,
};

mod above;
mod candidates;
mod known;
mod recent;
mod references;

pub use above::from_above;
use known::{KNOWN, REFERENCED};
pub use recent::{Hint, Recent};

/// A change of an object that may be an input.
#[derive(Clone, Debug)]
pub struct Changed {
    /// The object.
    pub object: ObjectId,
    /// The plural name of its kind.
    pub resource: String,
    /// What was done to it.
    pub operation: InputOperation,
    /// When.
    pub at: Timestamp,
    /// By whom, as far as known.
    pub user: Option<UserHash>,
    /// How that came about.
    pub trace: Option<Trace>,
    /// What of it.
    pub extent: Extent,
    /// Its labels.
    pub labels: Labels,
    /// The labels that it had before.
    pub labels_before: Labels,
    /// The uid of its parent.
    pub owner: Option<String>,
}

/// What of an object is changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Extent {
    /// Its intent.
    Intent,
    /// Its labels, and not its intent.
    Labels,
    /// Its annotations, and neither its intent nor its labels.
    Annotations,
}

impl Extent {
    /// What a request changes, if that may matter to anybody.
    fn of(request: &Request<'_>, class: Class) -> Option<Self> {
        if class != Class::Metadata {
            return Some(Self::Intent);
        }
        let (stored, sent) = (request.old_object.as_ref()?, request.object.as_ref()?);
        if !request.sub_resource.is_empty() {
            return None;
        }
        if stored.metadata.labels() != sent.metadata.labels() {
            return Some(Self::Labels);
        }
        let differ = sent.metadata.annotations.differ(&stored.metadata.annotations);
        differ.then_some(Self::Annotations)
    }
}

impl Changed {
    /// The change that somebody asks for by a request, if it may be one of an input.
    #[must_use]
    pub fn of(request: &Request<'_>, decision: &Decision, at: Timestamp) -> Option<Self> {
        // Changes of labels and annotations are not judged. The control plane makes them all the time.
        let asked = match decision.class {
            Class::Metadata => asks(request.user()),
            _ => decision.cause == Some(Cause::Origin),
        };
        if !asked || !decision.verdict.is_allowed() {
            return None;
        }
        Self::by(request, decision.class, decision.trace.clone(), at)
    }

    /// The change that a request makes to an object that is only observed, since others may act on it. What a program does to
    /// an object with an owner is taken for what its controller does.
    #[must_use]
    pub fn observed(request: &Request<'_>, settings: &Settings, at: Timestamp) -> Option<Self> {
        let class = Class::of(request, settings);
        let owned = facts::parent(request).is_some();
        if owned && is_machine(request) || class == Class::Metadata && !asks(request.user()) {
            return None;
        }
        Self::by(request, class, None, at)
    }

    fn by(request: &Request<'_>, class: Class, trace: Option<Trace>, at: Timestamp) -> Option<Self> {
        let operation = match class {
            Class::Create => InputOperation::Create,
            Class::Update | Class::Scale | Class::Metadata => InputOperation::Update,
            Class::Delete => InputOperation::Delete,
            _ => return None,
        };
        if request.is_dry_run() || is_bound_to_conflict(request) {
            return None;
        }
        let extent = Extent::of(request, class)?;
        let object = request.object.as_ref().or(request.old_object.as_ref())?;
        let trace = trace.or_else(|| Some(trace::origin(request, &Child::of(request)?, class, at)));
        Some(Self {
            object: ObjectId {
                api_version: object.api_version.to_string(),
                kind: object.kind.to_string(),
                namespace: object.metadata.namespace.to_string(),
                name: object.metadata.name.to_string(),
            },
            resource: request.resource.resource.to_string(),
            operation,
            at,
            user: Some(UserHash::of(&request.user_info.username, &request.user_info.uid)),
            trace,
            extent,
            labels: object.metadata.labels(),
            labels_before: request.old_object.as_ref().map(|old| old.metadata.labels()).unwrap_or_default(),
            owner: relation::parent(object).map(|owner| owner.uid),
        })
    }

    /// The last change of an object of a watched kind, as its trace tells.
    #[must_use]
    pub fn seen(summary: &Summary, resource: &str) -> Option<Self> {
        let trace = summary.annotation(TRACE).and_then(|text| Trace::decode(text).ok())?;
        // What somebody asked for here, not what a controller carried out.
        let [hop] = trace.hops() else { return None };
        if hop.drift {
            return None;
        }
        let is_new = summary.created.is_some_and(|created| created >= hop.timestamp);
        Some(Self {
            object: summary.id.clone(),
            resource: resource.to_owned(),
            operation: if is_new { InputOperation::Create } else { InputOperation::Update },
            // Traces tell seconds only: it may have been at the end of one.
            at: hop.timestamp.saturating_add(SignedDuration::from_secs(1)).unwrap_or(hop.timestamp),
            user: Some(UserHash::of(&hop.user, "")),
            extent: Extent::Intent,
            labels: summary.labels(),
            labels_before: summary.labels(),
            owner: summary.owner.as_ref().map(|owner| owner.uid.clone()),
            trace: Some(trace.clone()),
        })
    }
}

/// Whether a user may ask for anything: a person, or a program outside the control plane, as GitOps tools are.
fn asks(user: &str) -> bool {
    let account = user.strip_prefix("system:serviceaccount:");
    match account {
        Some(account) => !account.starts_with("kube-system:"),
        None => user == "system:admin" || !user.starts_with("system:"),
    }
}

/// Whether any controller that is known, or that a policy speaks of, acts on objects of a kind.
#[must_use]
pub fn is_input(policies: &Policies, group: &str, resource: &str) -> bool {
    let names = |input: &Input| names(input, group, resource);
    names(&REFERENCED) || KNOWN.iter().any(|known| names(&known.input)) || policies.all_inputs().any(names)
}

/// Whether the controllers of anything that policies name act on objects of a kind.
#[must_use]
pub fn matters(policies: &Policies, group: &str, resource: &str) -> bool {
    let names = |input: &Input| names(input, group, resource);
    let covered = |known: &known::Known| known.resources.iter().any(|it| policies.names(known.group, it));
    policies.all_inputs().any(names)
        || KNOWN.iter().any(|known| names(&known.input) && covered(known))
        || names(&REFERENCED) && policies.groups().any(is_custom)
}

fn names(input: &Input, group: &str, resource: &str) -> bool {
    input.api_groups.iter().any(|it| it == group) && input.resources.iter().any(|it| it == resource)
}

/// Whether the controllers of a kind are known or declared to act on particular others, and not only on what their objects name.
pub(crate) fn acts_on_others(policies: &Policies, group: &str, resource: &str) -> bool {
    declared(policies, group, resource).into_iter().any(|input| *input != *REFERENCED)
}

/// What the controllers of a kind act on.
#[must_use]
pub fn declared<'a>(policies: &'a Policies, group: &str, resource: &str) -> Vec<&'a Input> {
    let known = known(group, resource).map(|input| -> &'a Input { input });
    known.chain(policies.inputs(group, resource)).collect()
}

/// What is known of the controllers of a kind, whatever policies say.
pub fn known<'a>(group: &'a str, resource: &'a str) -> impl Iterator<Item = &'static Input> + use<'a> {
    let of = KNOWN.iter().filter(move |known| known.group == group && known.resources.contains(&resource));
    of.map(|known| &known.input).chain(is_custom(group).then(|| &*REFERENCED))
}

/// The last of these changes that opens a parent, by its inputs.
#[must_use]
pub fn last<'a>(
    inputs: &[&Input],
    parent: &Summary,
    controllers: &Hashes,
    changes: impl Iterator<Item = &'a Changed>,
) -> Option<InputChange> {
    let opens = |change: &&Changed| {
        // What a controller does itself is no input of its own.
        let foreign = !change.user.is_some_and(|user| controllers.contains(user));
        foreign && inputs.iter().any(|input| reaches(input, parent, change))
    };
    let change = changes.filter(opens).max_by_key(|change| change.at)?;
    let (object, trace) = (change.object.clone(), change.trace.clone());
    Some(InputChange { object, at: change.at, trace, ongoing: false })
}

/// Whether any of these changes may reach a parent by what is in its fields.
#[must_use]
pub fn depend_on_fields(inputs: &[&Input], parent: &Summary, changes: &[Changed]) -> bool {
    let by_fields = |input: &&&Input| matches!(input.relation, Relation::Reference | Relation::Selector);
    inputs
        .iter()
        .filter(by_fields)
        .any(|input| changes.iter().any(|change| is_meant(input, change) && is_near(parent, change)))
}

/// Whether an input is about the kind of an object that is changed, and about changes of the sort.
fn is_meant(input: &Input, change: &Changed) -> bool {
    names(input, change.object.group(), &change.resource)
        && (input.operations.is_empty() || input.operations.contains(&change.operation))
}

/// Whether both are in one namespace, if they have any.
fn is_near(parent: &Summary, change: &Changed) -> bool {
    parent.id.namespace.is_empty()
        || change.object.namespace.is_empty()
        || parent.id.namespace == change.object.namespace
}

/// Whether a change of an input reaches a parent.
fn reaches(input: &Input, parent: &Summary, change: &Changed) -> bool {
    let same_namespace = is_near(parent, change);
    // Who changes a child asks for nothing from its parent, unless the parent names the child as an input.
    let is_child = change.owner.as_deref() == Some(&*parent.uid);
    let any = matches!(change.extent, Extent::Intent | Extent::Labels);
    is_meant(input, change)
        && match input.relation {
            Relation::Cluster => any && !is_child,
            // What another object controls is its controller's, and asks for nothing from all others around it.
            Relation::Namespace => any && change.owner.is_none() && same_namespace,
            // Who goes by the name does not go by labels.
            Relation::Reference => {
                let is_named = || match input.field {
                    Some(_) => field(input, parent).iter().any(|value| **value == change.object.name),
                    None => {
                        !is_child
                            && parent.whole.as_deref().is_some_and(|whole| {
                                references::refers(whole, &parent.id.namespace, &change.object)
                            })
                    }
                };
                change.extent == Extent::Intent && same_namespace && is_named()
            }
            Relation::Selector => {
                let selects = |value: &&Value| {
                    let selector = serde_json::from_value::<LabelSelector>((*value).clone());
                    selector.is_ok_and(|selector| change.is_selected(&selector))
                };
                !is_child && same_namespace && field(input, parent).iter().any(selects)
            }
            Relation::Metadata => change.extent != Extent::Intent && change.object == parent.id,
        }
}

impl Changed {
    /// Whether the change matters to who selects such objects: what is selected has changed, or another is.
    fn is_selected(&self, selector: &LabelSelector) -> bool {
        let (now, before) = (selector.matches(&self.labels), selector.matches(&self.labels_before));
        match (self.extent, self.operation) {
            (Extent::Intent, InputOperation::Update) => now || before,
            (Extent::Intent, _) => now,
            (Extent::Labels, _) => now != before,
            (Extent::Annotations, _) => false,
        }
    }
}

/// The values of the field of a parent that an input names. A list stands for each of its items.
fn field<'a>(input: &Input, parent: &'a Summary) -> Vec<&'a Value> {
    let Some(whole) = &parent.whole else { return Vec::new() };
    let mut values = vec![&**whole];
    for name in input.field.as_deref().unwrap_or_default().split('.') {
        values = values.into_iter().flat_map(items).filter_map(|value| value.get(name)).collect();
    }
    values.into_iter().flat_map(items).collect()
}

fn items(value: &Value) -> Vec<&Value> {
    value.as_array().map_or_else(|| vec![value], |items| items.iter().collect())
}

#[cfg(test)]
mod tests;
