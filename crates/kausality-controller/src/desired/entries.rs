//! The webhooks of a policy: who is asked about what, and what happens if nobody answers.

use std::collections::{BTreeMap, BTreeSet};

use kausality_api::{
    mode::Mode,
    policy::{FailurePolicy, KausalitySpec, Namespaces},
    selector::LabelSelector,
    status::ParentKind,
};
use kausality_cluster::registration::{self, MATTERS, decision_rule, rules};
use serde_json::{Value, json};

use super::{
    Place, Policy, Resource, client,
    expression::{Division, division},
    overlaps::{Claim, NOBODY, Rank, others},
    roles::{is_secret, names_secrets},
    webhook_name,
};

/// The label that names a namespace.
const NAMESPACE: &str = "kubernetes.io/metadata.name";

/// Watched only by a policy that names them: what keeps the cluster alive is there.
const SYSTEM: [&str; 2] = ["kube-node-lease", "kube-system"];

/// The roles that the controller writes, which the webhook needs to be able to answer: nobody is asked about them.
const NOT_OUR_ROLES: &str = "!(request.resource.group == 'rbac.authorization.k8s.io' \
    && request.resource.resource == 'clusterroles' \
    && has(request.name) && request.name.startsWith('kausality:policy:'))";

/// How long the API server waits for an answer, in seconds.
const TIMEOUT: u32 = 10;

/// The webhooks of a policy: for each way to say where it holds, and for each thing that may happen without an answer.
pub(super) fn of(
    name: &str,
    spec: &KausalitySpec,
    resources: &[&Resource],
    claims: &[Claim<'_>],
    place: &Place,
) -> Vec<Value> {
    if resources.is_empty() {
        return Vec::new();
    }
    let mut entries = Vec::new();
    for Area { suffix, selector, scope, rank } in areas(spec.namespaces.as_ref(), &place.namespace) {
        let others = others(name, spec, resources, rank, claims);
        for Stake { suffix: stake, failure_policy, condition } in stakes(spec) {
            let mut conditions = vec![condition_of("intent-or-kausality-annotations", MATTERS)];
            let others =
                others.as_ref().map(|others| condition_of("no-other-policy", &format!("!({others})")));
            conditions.extend(others);
            if resources.iter().any(|resource| is_role(resource)) {
                conditions.push(condition_of("not-kausalitys-own-roles", NOT_OUR_ROLES));
            }
            conditions.extend(condition.map(|(name, expression)| condition_of(name, &expression)));
            entries.push(json!({
                "name": webhook_name(&format!("{name}.drift{suffix}{stake}")),
                "clientConfig": client(place, "/admit"),
                "rules": rules_of(resources, scope),
                "namespaceSelector": selector,
                "objectSelector": selector_of(spec.object_selector.as_ref()),
                "matchConditions": conditions,
                "failurePolicy": failure_policy,
                "reinvocationPolicy": "IfNeeded",
                "matchPolicy": "Equivalent",
                "sideEffects": "NoneOnDryRun",
                "admissionReviewVersions": ["v1"],
                "timeoutSeconds": TIMEOUT,
            }));
        }
    }
    entries
}

/// The webhooks for decisions about drifts on parents of what a policy is about, where it does not have them reviewed.
pub(super) fn of_decisions(
    policy: &Policy,
    spec: &KausalitySpec,
    (resources, served): (&[&Resource], &BTreeSet<Resource>),
    claims: &[Claim<'_>],
    place: &Place,
) -> Vec<Value> {
    let areas = areas(spec.namespaces.as_ref(), &place.namespace);
    let all = spec.object_selector.is_none() && areas.iter().any(|area| area.rank == Rank::Everywhere);
    let is_meant = |resource: &&Resource| {
        let Resource { group, plural, .. } = resource;
        let known = |parent: &ParentKind| parent.api_group == *group && parent.resource == *plural;
        policy.status.parents.iter().any(known)
            && (!is_secret(group, plural) || names_secrets(spec))
            && !(all && resources.contains(resource))
    };
    let parents: Vec<&Resource> = served.iter().filter(is_meant).collect();
    if parents.is_empty() {
        return Vec::new();
    }
    let rules: Vec<Value> = by_version(&parents)
        .iter()
        .map(|((group, version), plurals)| decision_rule(group, version, plurals))
        .collect();
    let others = others(NOBODY, spec, &parents, Rank::Everywhere, claims);
    let fail_closed = stakes(spec).iter().any(|stake| stake.failure_policy == FailurePolicy::Fail);
    let client = client(place, "/decisions");
    let entry = |Area { suffix, selector, .. }| {
        let name = webhook_name(&format!("{}.decisions{suffix}", policy.name));
        registration::of_decisions(&name, &client, &rules, others.as_deref(), &selector, fail_closed)
    };
    areas.into_iter().map(entry).collect()
}

/// The webhooks that are stored for a policy, at the webhook's present place.
pub(super) fn kept(name: &str, stored: &[Value], place: &Place) -> Vec<Value> {
    let moved = |entry: &Value| {
        let mut entry = entry.clone();
        let path = match entry["name"].as_str().unwrap_or_default() {
            name if registration::is_of_decisions(name) => "/decisions",
            name if registration::is_of_inputs(name) => "/inputs",
            _ => "/admit",
        };
        entry["clientConfig"] = client(place, path);
        entry
    };
    stored.iter().filter(|entry| is_of(entry, name)).map(moved).collect()
}

/// What the names of a policy's webhooks end with.
const PARTS: [&str; 8] = [
    "drift",
    "drift-log",
    "drift-selected",
    "drift-selected-log",
    "decisions",
    "decisions-selected",
    "inputs",
    "inputs-selected",
];

/// Whether a webhook is one of a policy.
pub(super) fn is_of(entry: &Value, policy: &str) -> bool {
    PARTS.iter().any(|part| entry["name"] == webhook_name(&format!("{policy}.{part}")).as_str())
}

/// Whether a webhook is one of decisions about drifts.
pub(super) fn is_of_decisions(entry: &Value) -> bool {
    entry["name"].as_str().is_some_and(registration::is_of_decisions)
}

/// The resources that are watched by what is stored.
pub(super) fn watched(stored: &[Value]) -> impl Iterator<Item = Resource> + '_ {
    let texts = |rule: &Value, field: &str| {
        let values = rule[field].as_array().cloned().unwrap_or_default();
        values.iter().filter_map(|value| value.as_str().map(ToOwned::to_owned)).collect::<Vec<String>>()
    };
    let rules = stored.iter().filter_map(|entry| entry["rules"].as_array()).flatten();
    rules.flat_map(move |rule| {
        let (groups, versions) = (texts(rule, "apiGroups"), texts(rule, "apiVersions"));
        let plurals = texts(rule, "resources").into_iter().filter(|name| !name.contains('/'));
        let one = groups.first().cloned().zip(versions.first().cloned());
        plurals.filter_map(move |plural| {
            let (group, version) = one.clone()?;
            Some(Resource { group, plural, version })
        })
    })
}

/// The webhook that refuses policies which cannot be understood.
pub(super) fn of_policies(place: &Place) -> Value {
    registration::of_policies(&client(place, "/validate"))
}

/// Where a policy holds, as one selector of namespaces can say it.
pub(super) struct Area {
    pub suffix: &'static str,
    pub selector: Value,
    scope: &'static str,
    pub rank: Rank,
}

/// The namespaces that a policy does not mean unless it names them.
pub(super) fn never(own: &str, excluded: &[String]) -> BTreeSet<String> {
    [own]
        .into_iter()
        .chain(SYSTEM)
        .chain(excluded.iter().map(String::as_str))
        .map(ToOwned::to_owned)
        .collect()
}

/// A selector cannot say "named so, or labelled so". Where a policy says it, there are two.
pub(super) fn areas(namespaces: Option<&Namespaces>, own: &str) -> Vec<Area> {
    let default = Namespaces::default();
    let Namespaces { names, selector, excluded } = namespaces.unwrap_or(&default);
    let mut never = never(own, excluded);
    let mut areas = Vec::new();
    if names.is_empty() && selector.is_none() {
        // Objects outside of namespaces too.
        areas.push(Area {
            suffix: "",
            selector: with(None, "NotIn", &never),
            scope: "*",
            rank: Rank::Everywhere,
        });
    }
    let is_meant = |name: &&String| *name != own && !excluded.contains(name);
    let named: BTreeSet<String> = names.iter().filter(is_meant).cloned().collect();
    if !named.is_empty() {
        let selector = with(None, "In", &named);
        areas.push(Area { suffix: "", selector, scope: "Namespaced", rank: Rank::Named });
    }
    if let Some(selector) = selector {
        let suffix = if names.is_empty() { "" } else { "-selected" };
        never.extend(names.iter().cloned());
        let selector = with(Some(selector), "NotIn", &never);
        areas.push(Area { suffix, selector, scope: "Namespaced", rank: Rank::Selected });
    }
    areas
}

/// All namespaces that a policy may mean without naming them.
pub(super) fn everywhere(own: &str) -> Value {
    with(None, "NotIn", &never(own, &[]))
}

/// A selector that also asks for the name of the namespace.
fn with(selector: Option<&LabelSelector>, operator: &str, names: &BTreeSet<String>) -> Value {
    let mut whole = selector_of(selector);
    let requirement = json!({"key": NAMESPACE, "operator": operator, "values": names});
    match whole.get_mut("matchExpressions").and_then(Value::as_array_mut) {
        Some(requirements) => requirements.push(requirement),
        None => whole["matchExpressions"] = json!([requirement]),
    }
    whole
}

fn selector_of(selector: Option<&LabelSelector>) -> Value {
    selector.and_then(|selector| serde_json::to_value(selector).ok()).unwrap_or_else(|| json!({}))
}

/// What happens to some of the requests if nobody answers.
struct Stake {
    suffix: &'static str,
    failure_policy: FailurePolicy,
    condition: Option<(&'static str, String)>,
}

fn stakes(spec: &KausalitySpec) -> Vec<Stake> {
    let all = |failure_policy| vec![Stake { suffix: "", failure_policy, condition: None }];
    match (spec.failure_policy, division(spec)) {
        (Some(failure_policy), _) => all(failure_policy),
        (None, Division::All(Mode::Enforce)) => all(FailurePolicy::Fail),
        (None, Division::All(Mode::Log)) => all(FailurePolicy::Ignore),
        (None, Division::When(enforced)) => vec![
            Stake {
                suffix: "-log",
                failure_policy: FailurePolicy::Ignore,
                condition: Some(("not-enforced", format!("!({enforced})"))),
            },
            Stake {
                suffix: "",
                failure_policy: FailurePolicy::Fail,
                condition: Some(("enforced", enforced)),
            },
        ],
    }
}

fn is_role(resource: &Resource) -> bool {
    resource.group == "rbac.authorization.k8s.io" && resource.plural == "clusterroles"
}

fn condition_of(name: &str, expression: &str) -> Value {
    json!({"name": name, "expression": expression})
}

pub(super) fn by_version<'a>(resources: &[&'a Resource]) -> BTreeMap<(&'a str, &'a str), Vec<&'a str>> {
    let mut versions: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for Resource { group, version, plural } in resources {
        versions.entry((group, version)).or_default().push(plural);
    }
    versions
}

fn rules_of(resources: &[&Resource], scope: &str) -> Vec<Value> {
    let versions = by_version(resources);
    versions.iter().flat_map(|((group, version), plurals)| rules(group, version, plurals, scope)).collect()
}
