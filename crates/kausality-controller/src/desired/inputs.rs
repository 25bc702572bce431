//! The webhooks that observe inputs: what else the controllers of a policy's resources act on.

use std::collections::BTreeSet;

use kausality_api::policy::{Input, KausalitySpec, Relation};
use kausality_cluster::registration;
use serde_json::Value;

use super::{
    Place, Policy, Resource, client,
    entries::{areas, by_version, everywhere},
    overlaps::Rank,
    roles::is_secret,
    webhook_name,
};

/// The webhooks of a policy that only observe. What is reviewed anyway is left out, and Secrets, unless the policy names them.
pub(super) fn of(
    policy: &Policy,
    spec: &KausalitySpec,
    (resources, served): (&[&Resource], &BTreeSet<Resource>),
    place: &Place,
) -> Vec<Value> {
    let parents = policy.status.parents.iter().map(|parent| (&*parent.api_group, &*parent.resource));
    let parents = resources.iter().map(|it| (&*it.group, &*it.plural)).chain(parents);
    let mut inputs: Vec<&Input> = spec.inputs.iter().collect();
    for (group, plural) in parents {
        for input in registration::known_inputs(group, plural) {
            inputs.push(input);
        }
    }
    let areas = areas(spec.namespaces.as_ref(), &place.namespace);
    let all = spec.object_selector.is_none() && areas.iter().any(|area| area.rank == Rank::Everywhere);
    let names = |input: &Input, Resource { group, plural, .. }: &Resource| {
        input.api_groups.contains(group) && input.resources.contains(plural)
    };
    let is_meant = |resource: &&Resource| {
        inputs.iter().any(|input| names(input, resource))
            && !(all && resources.contains(resource))
            && (!is_secret(&resource.group, &resource.plural) || names_secrets(spec))
    };
    let observed: Vec<&Resource> = served.iter().filter(is_meant).collect();
    if observed.is_empty() {
        return Vec::new();
    }
    let reaching = |input: &&&Input| observed.iter().any(|resource| names(input, resource));
    let wide = inputs.iter().filter(reaching).any(|input| input.relation == Relation::Cluster);
    let of_itself = |resource: &&&Resource| {
        inputs.iter().any(|input| input.relation == Relation::Metadata && names(input, resource))
    };
    let annotated: Vec<&str> = observed.iter().filter(of_itself).map(|it| &*it.plural).collect();
    let rules: Vec<Value> = by_version(&observed)
        .iter()
        .map(|((group, version), plurals)| registration::input_rule(group, version, plurals))
        .collect();
    let client = client(place, "/inputs");
    let entry = |suffix: &str, selector: &Value| {
        let name = webhook_name(&format!("{}.inputs{suffix}", policy.name));
        registration::of_inputs(&name, &client, &rules, &annotated, selector)
    };
    match wide {
        true => vec![entry("", &everywhere(&place.namespace))],
        false => areas.iter().map(|area| entry(area.suffix, &area.selector)).collect(),
    }
}

/// Whether a policy names Secrets, as resources or as inputs.
fn names_secrets(spec: &KausalitySpec) -> bool {
    let named = |input: &Input| {
        input.api_groups.iter().any(String::is_empty) && input.resources.iter().any(|name| name == "secrets")
    };
    super::roles::names_secrets(spec) || spec.inputs.iter().any(named)
}
