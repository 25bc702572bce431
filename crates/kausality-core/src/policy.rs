//! The `Kausality` policies, indexed so that a request meets only those that name its resource, and that do not name
//! other namespaces.

use std::{cmp::Reverse, collections::BTreeMap, time::Duration};

use kausality_api::{
    mode::Mode,
    policy::{Input, Kausality, KausalitySpec, Namespaces, Override, ResourceRule, Settle},
    selector::{LabelSelector, Labels},
    status::UnjudgedKind,
};

use kausality_fields::Path;

use crate::{
    settle::Settling,
    status::{self, Rules},
};

/// What a policy may match.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// The API group; empty for the core group.
    pub group: &'a str,
    /// The plural name of the resource.
    pub resource: &'a str,
    /// The namespace; empty for cluster-scoped objects.
    pub namespace: &'a str,
    /// The labels of the namespace.
    pub namespace_labels: Option<&'a Labels>,
    /// The labels of the object.
    pub labels: &'a Labels,
}

/// All policies.
#[derive(Clone, Debug, Default)]
pub struct Policies {
    all: Vec<Kausality>,
    by_resource: Places,
    /// Those that say when objects count as settled, which every change of a child asks for: mostly few.
    settling: Places,
    /// How those that say so have statuses read, compiled, by their places.
    status_rules: BTreeMap<usize, Rules>,
    /// The memory that their expressions take.
    size: usize,
    /// The fields that those that say so have redacted, by their places.
    redacted: BTreeMap<usize, Vec<Path>>,
}

/// Places in the list of all policies, by group, resource and namespace.
type Places = BTreeMap<String, BTreeMap<String, BTreeMap<String, Vec<usize>>>>;

/// The most memory that expressions which read statuses take, of all policies together.
const MAX_STATUS_RULES: usize = 16 << 20;

/// Where those are that do not say by name which namespaces they are for.
const ANYWHERE: &str = "";

impl Policies {
    /// Indexes policies.
    #[must_use]
    pub fn new(all: Vec<Kausality>) -> Self {
        let by_resource = places(&all, |policy| match &policy.spec.namespaces {
            Some(Namespaces { names, selector: None, .. }) if !names.is_empty() => {
                names.iter().map(String::as_str).collect()
            }
            _ => vec![ANYWHERE],
        });
        let settles = |Kausality { spec, .. }: &Kausality| {
            spec.settle.is_some()
                || spec.quiet_time.is_some()
                || spec.status.is_some()
                || !spec.redact.is_empty()
                || !spec.inputs.is_empty()
        };
        let settling = places(&all, |policy| if settles(policy) { vec![ANYWHERE] } else { Vec::new() });
        let rules = all.iter().enumerate();
        let mut room = MAX_STATUS_RULES;
        let rules = rules
            .filter_map(|(place, policy)| Some((place, Rules::new(policy.spec.status.as_ref()?, &mut room))));
        let status_rules = rules.collect();
        let fields = |policy: &Kausality| -> Vec<Path> {
            policy.spec.redact.iter().filter_map(|field| redacted_field(field).ok()).collect()
        };
        let redacted = all.iter().enumerate().filter(|(_, policy)| !policy.spec.redact.is_empty());
        let redacted = redacted.map(|(place, policy)| (place, fields(policy)));
        let redacted = redacted.collect();
        Self { status_rules, size: MAX_STATUS_RULES - room, redacted, all, by_resource, settling }
    }

    /// The memory that their expressions take.
    #[must_use]
    pub fn size(&self) -> usize {
        self.size
    }

    /// The mode that the most specific matching policy gives, with that policy's name.
    #[must_use]
    pub fn mode(&self, target: &Target<'_>) -> Option<(Mode, &str)> {
        let best = self.policy(target)?;
        let overridden = best.spec.overrides.iter().find(|entry| applies(entry, target));
        Some((overridden.map_or(best.spec.mode, |entry| entry.mode), &best.metadata.name))
    }

    /// The most specific matching policy.
    #[must_use]
    pub fn policy(&self, target: &Target<'_>) -> Option<&Kausality> {
        let best = self
            .naming(&self.by_resource, target.group, target.resource, target.namespace)
            .filter(|(_, policy, _)| selects(&policy.spec, target))
            .filter_map(|(_, policy, explicit)| {
                let place = namespace_rank(policy.spec.namespaces.as_ref(), target)?;
                Some(((place, explicit, Reverse(policy.metadata.name.as_str())), policy))
            })
            .max_by_key(|(rank, _)| *rank)?;
        Some(best.1)
    }

    /// Whether an object is left out by its labels: some policy is for its resource and namespace, and none is for its labels.
    pub(crate) fn leave_out(&self, target: &Target<'_>) -> bool {
        let is_meant = |spec: &KausalitySpec| namespace_rank(spec.namespaces.as_ref(), target).is_some();
        let mut meant = self
            .naming(&self.by_resource, target.group, target.resource, target.namespace)
            .filter(|(_, policy, _)| is_meant(&policy.spec))
            .peekable();
        meant.peek().is_some() && !meant.any(|(_, policy, _)| selects(&policy.spec, target))
    }

    /// The labels by which policies select objects of a resource, as far as they may be for a namespace.
    pub(crate) fn selecting_labels<'a>(
        &'a self,
        group: &'a str,
        resource: &'a str,
        namespace: &'a str,
    ) -> impl Iterator<Item = &'a str> {
        let naming = self.all.iter().filter(move |Kausality { spec, .. }| {
            spec.object_selector.is_some()
                && may_mean(spec.namespaces.as_ref(), namespace)
                && (names(spec, group, resource) || star_means(spec, group, resource))
        });
        naming.filter_map(|policy| policy.spec.object_selector.as_ref()).flat_map(LabelSelector::keys)
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// When objects of a kind count as settled: each part by the most specific policy that names the kind and says so, else
    /// as is usual for the kind.
    #[must_use]
    pub fn settling(&self, group: &str, resource: &str, quiet: Duration) -> Settling {
        Settling {
            rule: self
                .most_specific(group, resource, |spec| spec.settle)
                .unwrap_or_else(|| usual(group, resource)),
            quiet: self
                .most_specific(group, resource, |spec| spec.quiet_time.map(|time| time.0))
                .unwrap_or(quiet),
        }
    }

    /// Whether it still takes another policy to judge a kind whose status tells nothing.
    #[must_use]
    pub fn leave_unjudged(&self, kind: &UnjudgedKind) -> bool {
        let UnjudgedKind { api_group, resource, .. } = kind;
        self.settling(api_group, resource, Duration::ZERO).rule != Settle::Quiet
            && self.status_rules(api_group, resource).settled.is_none()
    }

    /// By which rules statuses of a kind are read: each by the most specific policy that names the kind and has one.
    #[must_use]
    pub fn status_rules(&self, group: &str, resource: &str) -> Rules {
        if self.status_rules.is_empty() {
            return Rules::default();
        }
        let by_place = |place: usize| self.status_rules.get(&place);
        Rules {
            initialized: self.best(group, resource, |place, _| by_place(place)?.initialized.clone()),
            settled: self.best(group, resource, |place, _| by_place(place)?.settled.clone()),
        }
    }

    /// The fields of a kind that hold secrets, as any policy says that names it.
    pub fn redacted<'a>(&'a self, group: &str, resource: &str) -> impl Iterator<Item = &'a Path> + use<'a> {
        let naming: Vec<usize> = match self.redacted.is_empty() {
            true => Vec::new(),
            false => {
                self.naming(&self.settling, group, resource, ANYWHERE).map(|(place, ..)| place).collect()
            }
        };
        naming.into_iter().filter_map(|place| self.redacted.get(&place)).flatten()
    }

    /// Whether any policy is about a resource, wherever.
    pub(crate) fn names(&self, group: &str, resource: &str) -> bool {
        let mut rules = self.all.iter().flat_map(|policy| &policy.spec.resources);
        let names = |rule: &ResourceRule| {
            rule.api_groups.iter().any(|it| it == group)
                && rule.resources.iter().any(|it| it == resource || it == "*")
                && !rule.excluded.iter().any(|it| it == resource)
        };
        rules.any(names)
    }

    /// The groups that policies name.
    pub(crate) fn groups(&self) -> impl Iterator<Item = &str> {
        let rules = self.all.iter().flat_map(|policy| &policy.spec.resources);
        rules.flat_map(|rule| &rule.api_groups).map(String::as_str)
    }

    /// All that policies declare as inputs.
    pub(crate) fn all_inputs(&self) -> impl Iterator<Item = &Input> {
        self.all.iter().flat_map(|policy| &policy.spec.inputs)
    }

    /// What policies declare that the controllers of a kind act on, beside its objects.
    pub(crate) fn inputs<'a>(
        &'a self,
        group: &str,
        resource: &str,
    ) -> impl Iterator<Item = &'a Input> + use<'a> {
        let naming: Vec<_> = self.naming(&self.settling, group, resource, ANYWHERE).collect();
        naming.into_iter().flat_map(|(_, policy, _)| &policy.spec.inputs)
    }

    /// What the most specific policy that names a kind says of it.
    fn most_specific<T>(
        &self,
        group: &str,
        resource: &str,
        says: impl Fn(&KausalitySpec) -> Option<T>,
    ) -> Option<T> {
        self.best(group, resource, |_, spec| says(spec))
    }

    /// The same, by the place of the policy.
    fn best<T>(
        &self,
        group: &str,
        resource: &str,
        says: impl Fn(usize, &KausalitySpec) -> Option<T>,
    ) -> Option<T> {
        self.naming(&self.settling, group, resource, ANYWHERE)
            .filter_map(|(place, policy, explicit)| {
                Some(((explicit, Reverse(policy.metadata.name.as_str())), says(place, &policy.spec)?))
            })
            .max_by_key(|(rank, _)| *rank)
            .map(|(_, said)| said)
    }

    /// The policies among these that name a resource and may be for a namespace, each with its place and whether it names the
    /// resource explicitly.
    fn naming<'a>(
        &'a self,
        among: &'a Places,
        group: &str,
        resource: &str,
        namespace: &str,
    ) -> impl Iterator<Item = (usize, &'a Kausality, bool)> {
        let places = |group: &str, resource: &str| {
            let of_resource = among.get(group).and_then(|places| places.get(resource));
            let at = |namespace: &str| of_resource.and_then(|places| places.get(namespace));
            let named = at(namespace).filter(|_| namespace != ANYWHERE);
            at(ANYWHERE).into_iter().chain(named).flatten().copied()
        };
        let (group, resource) = (group.to_owned(), resource.to_owned());
        let named = places(&group, &resource).map(|place| (place, true));
        let starred = places(&group, "*").map(|place| (place, false));
        named.chain(starred).filter_map(move |(place, explicit)| {
            let policy = self.all.get(place)?;
            (explicit || star_means(&policy.spec, &group, &resource)).then_some((place, policy, explicit))
        })
    }
}

/// What keeps a policy from being understood: what its kind says, and what is wrong with its expressions.
#[must_use]
pub fn fault(policy: &Kausality) -> Option<String> {
    let of_field = |(number, field): (usize, &String)| {
        let fault = redacted_field(field).err()?;
        Some(format!("spec.redact[{number}]: {fault}"))
    };
    policy
        .fault()
        .or_else(|| status::fault(policy.spec.status.as_ref()?))
        .or_else(|| policy.spec.redact.iter().enumerate().find_map(of_field))
}

/// A field that is redacted: as diffs show it, with `[*]` for all items of a list.
fn redacted_field(text: &str) -> Result<Path, String> {
    // Items are not told apart, so any will do.
    kausality_fields::parse_path(&text.replace("[*]", "[0]"))
}

/// When objects of a kind count as settled, where no policy says. The status of an Ingress never tells what has been done
/// about it.
fn usual(group: &str, resource: &str) -> Settle {
    match (group, resource) {
        ("networking.k8s.io", "ingresses") => Settle::Quiet,
        _ => Settle::Steady,
    }
}

/// Where the policies are, each in the namespaces that it is looked for in.
fn places<'a>(all: &'a [Kausality], namespaces: impl Fn(&'a Kausality) -> Vec<&'a str>) -> Places {
    let mut found = Places::new();
    for (place, policy) in all.iter().enumerate() {
        let namespaces = namespaces(policy);
        for rule in &policy.spec.resources {
            for (group, resource) in
                rule.api_groups.iter().flat_map(|group| rule.resources.iter().map(move |it| (group, it)))
            {
                let of_resource =
                    found.entry(group.clone()).or_default().entry(resource.clone()).or_default();
                for namespace in &namespaces {
                    let places = of_resource.entry((*namespace).to_owned()).or_default();
                    if places.last() != Some(&place) {
                        places.push(place);
                    }
                }
            }
        }
    }
    found
}

/// Whether a policy is certainly for the parent of every object that it is for: it names the parent's resource, and depends
/// on no labels of objects, nor, where the parent is in none, on namespaces.
#[must_use]
pub fn covers_parents(spec: &KausalitySpec, group: &str, resource: &str, namespaced: bool) -> bool {
    let anywhere = |it: &Namespaces| it.names.is_empty() && it.selector.is_none();
    spec.object_selector.is_none()
        && (namespaced || spec.namespaces.as_ref().is_none_or(anywhere))
        && (names(spec, group, resource) || star_means(spec, group, resource))
}

/// Whether a policy is for some objects of a resource, or of any, in a namespace; in any, where that has no name. Which of them,
/// their labels say.
#[must_use]
pub fn may_cover(
    spec: &KausalitySpec,
    resource: Option<(&str, &str)>,
    namespace: &str,
    namespace_labels: Option<&Labels>,
) -> bool {
    let labels = Labels::new();
    let target = Target { group: "", resource: "", namespace, namespace_labels, labels: &labels };
    resource.is_none_or(|(group, resource)| names(spec, group, resource) || star_means(spec, group, resource))
        && (namespace.is_empty() || namespace_rank(spec.namespaces.as_ref(), &target).is_some())
}

/// Whether a policy names a resource, and does not mean it by `*` only.
#[must_use]
pub fn names(spec: &KausalitySpec, group: &str, resource: &str) -> bool {
    spec.resources.iter().any(|rule| {
        rule.api_groups.iter().any(|name| name == group) && rule.resources.iter().any(|name| name == resource)
    })
}

/// Whether some `*` of the policy means this resource.
fn star_means(spec: &KausalitySpec, group: &str, resource: &str) -> bool {
    spec.resources.iter().any(|rule| {
        rule.api_groups.iter().any(|name| name == group)
            && rule.resources.iter().any(|name| name == "*")
            && !rule.excluded.iter().any(|name| name == resource)
    })
}

fn selects(spec: &KausalitySpec, target: &Target<'_>) -> bool {
    spec.object_selector.as_ref().is_none_or(|selector| selector.matches(target.labels))
}

/// How specifically a policy means the target's namespace: by name, by label, or as any; `None`: not at all.
fn namespace_rank(namespaces: Option<&Namespaces>, target: &Target<'_>) -> Option<u8> {
    let Some(namespaces) = namespaces else { return Some(0) };
    let is_target = |name: &String| name == target.namespace;
    if namespaces.excluded.iter().any(is_target) {
        return None;
    }
    if namespaces.names.is_empty() && namespaces.selector.is_none() {
        return Some(0);
    }
    if target.namespace.is_empty() {
        return None;
    }
    if namespaces.names.iter().any(is_target) {
        return Some(2);
    }
    let labels = target.namespace_labels?;
    namespaces.selector.as_ref()?.matches(labels).then_some(1)
}

/// Whether a policy may mean a namespace, whichever labels that has.
fn may_mean(namespaces: Option<&Namespaces>, namespace: &str) -> bool {
    let is = |name: &String| name == namespace;
    namespaces.is_none_or(|it| {
        let anywhere = it.names.is_empty() && it.selector.is_none();
        let by_labels = it.selector.is_some() && !namespace.is_empty();
        !it.excluded.iter().any(is) && (anywhere || by_labels || it.names.iter().any(is))
    })
}

fn applies(entry: &Override, target: &Target<'_>) -> bool {
    let within = |names: &[String], name: &str| {
        names.is_empty() || names.iter().any(|candidate| candidate == name || candidate == "*")
    };
    within(&entry.api_groups, target.group)
        && within(&entry.resources, target.resource)
        && within(&entry.namespaces, target.namespace)
}

#[cfg(test)]
mod tests;
