//! Which policy has a request reviewed where several mean it: the one that wins.
//!
//! One review is enough. A second one costs as much again; and where another replica makes it, it finds an approval
//! for `once` gone that the first one has used up. So each webhook leaves out what another is certainly asked about.
//! Where that cannot be said in a condition, as of labels, requests are reviewed twice.

use std::{cmp::Reverse, collections::BTreeSet};

use kausality_api::policy::{KausalitySpec, Namespaces};

use super::{Resource, entries::never, expression::among};

/// How many others are left out at most: conditions must stay cheap.
const MAX_OTHERS: usize = 16;

/// How many characters the condition on them has at most: API servers take none of more than 100,000.
const MAX_CONDITION: usize = 32 * 1024;

/// No policy's name, and behind all of them: whose requests are left to any other.
pub(super) const NOBODY: &str = "~";

/// How specifically a policy means a namespace, as decisions rank it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    Everywhere,
    Selected,
    Named,
}

/// What a policy certainly has reviewed.
pub(super) struct Claim<'a> {
    name: &'a str,
    spec: &'a KausalitySpec,
    resources: BTreeSet<&'a Resource>,
    rank: Rank,
    /// The condition on the namespace.
    namespaces: String,
}

impl<'a> Claim<'a> {
    /// What a policy claims for all objects of a resource; none, if it means some of them only.
    pub(super) fn of(
        name: &'a str,
        spec: &'a KausalitySpec,
        resources: &[&'a Resource],
        own: &str,
    ) -> Option<Self> {
        if spec.object_selector.is_some() {
            return None;
        }
        // Reviews of namespaces themselves do not always say which.
        let is_plain =
            |resource: &&&Resource| !(resource.group.is_empty() && resource.plural == "namespaces");
        let resources = resources.iter().filter(is_plain).copied().collect();
        let default = Namespaces::default();
        let Namespaces { names, selector, excluded } = spec.namespaces.as_ref().unwrap_or(&default);
        let (rank, namespaces) = if !names.is_empty() {
            let names = names.iter().filter(|name| *name != own && !excluded.contains(name));
            let names: Vec<String> = names.cloned().collect();
            (Rank::Named, format!("has(request.namespace) && {}", among("request.namespace", &names)?))
        } else if selector.is_none() {
            let never: Vec<String> = never(own, excluded).into_iter().collect();
            let among = among("request.namespace", &never)?;
            (Rank::Everywhere, format!("!has(request.namespace) || !({among})"))
        } else {
            return None;
        };
        Some(Self { name, spec, resources, rank, namespaces })
    }
}

/// When a request is another policy's, as a condition; none, if never.
pub(super) fn others(
    name: &str,
    spec: &KausalitySpec,
    resources: &[&Resource],
    rank: Rank,
    claims: &[Claim<'_>],
) -> Option<String> {
    let parts = claims.iter().filter(|claim| claim.name != name).filter_map(|claim| {
        let wins = |resource: &&&Resource| {
            let theirs = (claim.rank, names(claim.spec, resource), Reverse(claim.name));
            // Where a policy names a namespace, it is asked even if that is labelled so that others are not.
            let ours = (rank, name != NOBODY && names(spec, resource), Reverse(name));
            claim.resources.contains(**resource) && theirs > ours
        };
        let lost: Vec<&Resource> = resources.iter().filter(wins).copied().collect();
        let namespaces = &claim.namespaces;
        match lost.len() {
            0 => None,
            some if some == resources.len() => Some(format!("({namespaces})")),
            _ => Some(format!("(({}) && ({namespaces}))", any_of(&lost))),
        }
    });
    let mut left = MAX_CONDITION;
    let fits = |part: &String| {
        let fits = part.len() <= left;
        left = left.saturating_sub(part.len());
        fits
    };
    let parts: Vec<String> = parts.take(MAX_OTHERS).filter(fits).collect();
    (!parts.is_empty()).then(|| parts.join(" || "))
}

/// Whether a policy names a resource, and does not mean it by `*` only.
fn names(spec: &KausalitySpec, resource: &Resource) -> bool {
    spec.resources
        .iter()
        .any(|rule| rule.api_groups.contains(&resource.group) && rule.resources.contains(&resource.plural))
}

fn any_of(resources: &[&Resource]) -> String {
    let groups: BTreeSet<&String> = resources.iter().map(|resource| &resource.group).collect();
    let of_group = |group: &String| {
        let plurals = resources.iter().filter(|resource| resource.group == *group);
        let plurals: Vec<String> = plurals.map(|resource| resource.plural.clone()).collect();
        let parts = [
            among("request.resource.group", std::slice::from_ref(group)),
            among("request.resource.resource", &plurals),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(" && ")
    };
    groups.into_iter().map(of_group).collect::<Vec<_>>().join(" || ")
}

#[cfg(test)]
mod tests;
