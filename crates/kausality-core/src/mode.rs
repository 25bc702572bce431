//! The mode of a change: the most specific setting wins.

use kausality_api::{annotation, mode::Mode, selector::Labels};

use crate::{actor::Actor, child::Child, class::Class, facts::Facts, policy::Target, review::Request};

/// The mode, where it comes from, and settings that could not be understood.
#[derive(Clone, Debug)]
pub(crate) struct Chosen {
    pub mode: Mode,
    pub from: String,
    pub faults: Vec<String>,
}

pub(crate) fn choose(
    request: &Request<'_>,
    class: Class,
    child: &Child<'_>,
    actor: Option<Actor>,
    labels: &Labels,
    facts: &Facts<'_>,
) -> Chosen {
    let mut faults = Vec::new();
    // What cannot be understood may have been meant to protect.
    let mut read = |value: Option<&str>, place: &str| {
        // Templates leave an empty value where nothing was meant.
        value.filter(|value| !value.trim().is_empty()).map(|value| {
            value.parse::<Mode>().unwrap_or_else(|error| {
                faults.push(format!("{} on {place}: {error}: taken for enforce", annotation::MODE));
                Mode::Enforce
            })
        })
    };

    let own = match class {
        Class::Create => {
            let sent =
                request.object.as_ref().and_then(|object| object.metadata.annotations.get(annotation::MODE));
            // What a controller writes there, it may have copied.
            read(sent.filter(|_| actor != Some(Actor::Controller)), "the new object")
        }
        _ => read(child.stored(annotation::MODE), "the object"),
    };
    let parent = facts.parent.found().filter(|_| child.has_owner);
    let of_parent = parent.and_then(|parent| parent.annotation(annotation::MODE));
    let namespace = facts.namespace.and_then(|namespace| namespace.mode.as_deref());
    let (mode, from) = if let Some(mode) = own {
        (mode, "the object's annotation".to_owned())
    } else if let Some(mode) = read(of_parent, "the parent") {
        (mode, "the parent's annotation".to_owned())
    } else if let Some(mode) = read(namespace, "the namespace") {
        (mode, format!("the annotation of namespace {}", request.namespace))
    } else if let Some((mode, policy)) = facts.settings.policies.mode(&target(request, labels, facts)) {
        (mode, format!("policy {policy}"))
    } else {
        (facts.settings.default_mode, "the default".to_owned())
    };
    Chosen { mode, from, faults }
}

/// Whether no policy is for the object that a request is about, which the API server could not tell: it holds selectors
/// against the labels of what is sent, be that a Scale or an Eviction. Where the namespace is not known, nothing is left out.
pub(crate) fn is_left_out(request: &Request<'_>, child: &Child<'_>, facts: &Facts<'_>) -> bool {
    request.is_by_another_kind()
        && (facts.namespace.is_some() || request.namespace.is_empty())
        && facts.settings.policies.leave_out(&target(request, &child.labels(request), facts))
}

fn target<'a>(request: &'a Request<'_>, labels: &'a Labels, facts: &Facts<'a>) -> Target<'a> {
    Target {
        group: &request.resource.group,
        resource: &request.resource.resource,
        namespace: &request.namespace,
        namespace_labels: facts.namespace.map(|namespace| &namespace.labels),
        labels,
    }
}
