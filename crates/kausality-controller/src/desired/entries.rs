//! The webhooks of a policy: who is asked about what, and what happens if nobody answers.

use std::collections::{BTreeMap, BTreeSet};

use kausality_api::{
    mode::Mode,
    policy::{FailurePolicy, KausalitySpec, Namespaces},
    selector::LabelSelector,
    status::ParentKind,
};
use kausality_cluster::registration::{
    self, NOT_A_PLAIN_BINDING, RELABELS, changes_metadata, decision_rule,
    excluded::{self, NAMESPACE, NOT_OF_NODES},
    has_pods, is_plain, matters, of_status, of_status_metadata, part_rules, rules, set_conditions,
    status_decision_rule, status_rules,
};
use kausality_core::class::status_stores_metadata;
use serde_json::{Value, json};

use super::{
    OWN_ROLES, Place, Policy, Resource, client,
    expression::{Division, division},
    overlaps::{Claim, NOBODY, Rank, others},
    roles::{is_secret, names_secrets},
    webhook_name,
};

/// Nobody is asked about roles of ours and their bindings: the webhook needs some of them to be able to answer, and the registration
/// goes with one of them. With a webhook that is down, neither must depend on its answer.
const NOT_OUR_ROLES: &str = "!(request.resource.group == 'rbac.authorization.k8s.io' \
    && request.resource.resource in ['clusterroles', 'clusterrolebindings'] \
    && has(request.name) && (request.name.startsWith('kausality:policy:') || request.name in OURS))";

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
    let stakes = stakes(spec);
    let areas = areas(spec.namespaces.as_ref(), &place.namespace);
    let entries = areas.iter().flat_map(|area| {
        let others = others(name, spec, resources, area.rank, claims);
        let others = others.map(|others| condition_of("no-other-policy", &format!("!({others})")));
        let reviewed = Reviewed { name, spec, resources, area, stakes: &stakes, others, place };
        [reviewed.changes(), reviewed.status()].concat()
    });
    entries.collect()
}

/// What a policy has reviewed in one of its areas.
struct Reviewed<'a> {
    name: &'a str,
    spec: &'a KausalitySpec,
    resources: &'a [&'a Resource],
    area: &'a Area,
    stakes: &'a [Stake],
    /// The condition that no other policy has it reviewed.
    others: Option<Value>,
    place: &'a Place,
}

/// Rules for resources of a group in a version, in a scope.
type Rules = fn(&str, &str, &[&str], &str) -> Vec<Value>;

impl Reviewed<'_> {
    /// The webhooks for changes of objects: of those that API servers look into before they ask, and of those that they ask about
    /// each time.
    fn changes(&self) -> Vec<Value> {
        let objects = selector_of(self.spec.object_selector.as_ref());
        let looks = self.resources.iter().any(|resource| !is_plain(&resource.group, &resource.plural));
        let is_looked_into = |resource: &Resource| looks && !is_plain(&resource.group, &resource.plural);
        let [whole, parts] = [rules as Rules, part_rules].map(|rules| self.rules(rules, is_looked_into));
        let plain = self.rules(rules, |resource| !is_looked_into(resource));
        let entries = self.stakes.iter().flat_map(|stake| {
            let entry = |part: &str, rules: &[Value], objects: &Value| {
                self.change(stake, part, self.conditions(), rules, objects)
            };
            let looked_into = match &self.spec.object_selector {
                _ if !looks => Vec::new(),
                None => vec![entry("", &[whole.clone(), parts.clone()].concat(), &objects)],
                // API servers hold selectors against what is sent, which has not the labels of the object.
                Some(_) => vec![entry("", &whole, &objects), entry("-parts", &parts, &json!({}))],
            };
            let part = if looks { "-plain" } else { "" };
            let plain = (!plain.is_empty()).then(|| self.change(stake, part, Vec::new(), &plain, &objects));
            looked_into.into_iter().chain(plain)
        });
        entries.collect()
    }

    /// What API servers find out before they ask.
    fn conditions(&self) -> Vec<Value> {
        let is_any = |is_such: fn(&Resource) -> bool| self.resources.iter().any(|resource| is_such(resource));
        let matters = match self.relabels() {
            Some(relabels) => format!("{} || {relabels}", matters()),
            None => matters(),
        };
        let mut conditions = vec![
            condition_of("intent-or-kausality-annotations", &matters),
            condition_of("not-of-nodes", NOT_OF_NODES),
        ];
        if is_any(is_role) {
            let ours = json!(OWN_ROLES).to_string();
            conditions.push(condition_of("not-kausalitys-own-roles", &NOT_OUR_ROLES.replace("OURS", &ours)));
        }
        if is_any(|resource| has_pods(&resource.group, &[&resource.plural])) {
            conditions.push(condition_of("not-a-plain-binding", NOT_A_PLAIN_BINDING));
        }
        conditions
    }

    fn change(
        &self,
        stake: &Stake,
        part: &str,
        mut conditions: Vec<Value>,
        rules: &[Value],
        objects: &Value,
    ) -> Value {
        conditions.extend(self.others.clone());
        let condition = stake.condition.as_ref();
        conditions.extend(condition.map(|(name, expression)| condition_of(name, expression)));
        let mut entry = json!({
            "name": webhook_name(&format!("{}.drift{}{}{part}", self.name, self.area.suffix, stake.suffix)),
            "clientConfig": client(self.place, "/admit"),
            "rules": rules,
            "namespaceSelector": self.area.selector,
            "objectSelector": objects,
            "failurePolicy": stake.failure_policy,
            "reinvocationPolicy": "IfNeeded",
            "matchPolicy": "Equivalent",
            "sideEffects": "NoneOnDryRun",
            "admissionReviewVersions": ["v1"],
            "timeoutSeconds": TIMEOUT,
        });
        set_conditions(&mut entry, &conditions);
        entry
    }

    /// The webhooks for updates of the status. Those that change metadata, which are few, are left to the second: it comes
    /// later, so that the first has seen what was sent.
    fn status(&self) -> Vec<Value> {
        let Area { suffix, selector, .. } = self.area;
        let objects = selector_of(self.spec.object_selector.as_ref());
        let client = client(self.place, "/admit");
        let stored = self.rules(status_rules, |resource| status_stores_metadata(&resource.group));
        let strict = self.stakes.iter().find(|stake| stake.failure_policy == FailurePolicy::Fail);
        let changes = strict.filter(|_| !stored.is_empty()).map(|stake| match &stake.condition {
            Some((_, enforced)) => format!("({enforced}) && {}", changes_metadata(self.relabels())),
            None => changes_metadata(self.relabels()),
        });
        let conditions = |own: &[(&str, &str)]| -> Vec<Value> {
            let own = own.iter().map(|(name, expression)| condition_of(name, expression));
            own.chain(self.others.clone()).collect()
        };
        let names =
            ["status", "status-metadata"].map(|part| webhook_name(&format!("{}.{part}{suffix}", self.name)));
        let [of_all, of_metadata] = &names;
        let all = self.rules(status_rules, |_| true);
        let Some(changes) = changes else {
            return vec![of_status(of_all, &client, &all, &conditions(&[]), selector, &objects)];
        };
        let unchanged = conditions(&[("metadata-unchanged", &format!("!({changes})"))]);
        let changed = conditions(&[("metadata-changes", &changes), ("not-of-nodes", NOT_OF_NODES)]);
        vec![
            of_status(of_all, &client, &all, &unchanged, selector, &objects),
            of_status_metadata(of_metadata, &client, &stored, &changed, selector, &objects),
        ]
    }

    /// Rules for some of its resources.
    fn rules(&self, rules: Rules, is_meant: impl Fn(&Resource) -> bool) -> Vec<Value> {
        let meant: Vec<&Resource> = self.resources.iter().copied().filter(|it| is_meant(it)).collect();
        let versions = by_version(&meant);
        let rules = |((group, version), plurals): (&(&str, &str), &Vec<&str>)| {
            rules(group, version, plurals, self.area.scope)
        };
        versions.iter().flat_map(rules).collect()
    }

    /// The condition that labels change, where objects are selected by them.
    fn relabels(&self) -> Option<&'static str> {
        self.spec.object_selector.as_ref().map(|_| RELABELS)
    }
}

/// The webhook that tells of mistakes in annotations of namespaces, which decide for all that is in them.
pub(super) fn of_namespaces(place: &Place) -> Value {
    registration::of_namespaces(&client(place, "/decisions"), &everywhere(&place.namespace))
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
    let of_each = |rule: fn(&str, &str, &[&str]) -> Value| -> Vec<Value> {
        by_version(&parents).iter().map(|((group, version), plurals)| rule(group, version, plurals)).collect()
    };
    let fail_closed = stakes(spec).iter().any(|stake| stake.failure_policy == FailurePolicy::Fail);
    // No status is refused because nobody answers.
    let parts = [
        ("decisions", of_each(decision_rule), fail_closed),
        ("decisions-status", of_each(status_decision_rule), false),
    ];
    let client = client(place, "/decisions");
    let entries = areas.iter().flat_map(|Area { suffix, selector, rank, .. }| {
        let others = others(NOBODY, spec, &parents, *rank, claims);
        let client = &client;
        parts.iter().map(move |(part, rules, fail_closed)| {
            let name = webhook_name(&format!("{}.{part}{suffix}", policy.name));
            registration::of_decisions(&name, client, rules, others.as_deref(), selector, *fail_closed)
        })
    });
    entries.collect()
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
const PARTS: [&str; 22] = [
    "status",
    "status-selected",
    "status-metadata",
    "status-metadata-selected",
    "drift",
    "drift-parts",
    "drift-plain",
    "drift-log",
    "drift-log-parts",
    "drift-log-plain",
    "drift-selected",
    "drift-selected-parts",
    "drift-selected-plain",
    "drift-selected-log",
    "drift-selected-log-parts",
    "drift-selected-log-plain",
    "decisions",
    "decisions-selected",
    "decisions-status",
    "decisions-status-selected",
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
    // Other rules are about parts of objects.
    let of_objects = |rule: &&Value| {
        rule["operations"].as_array().is_some_and(|operations| operations.iter().any(|it| it == "DELETE"))
    };
    let rules = stored.iter().filter_map(|entry| entry["rules"].as_array()).flatten().filter(of_objects);
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

/// The namespaces that a policy does not mean unless it names them; beside those that are labelled so.
pub(super) fn never(own: &str, excluded: &[String]) -> BTreeSet<String> {
    let system = excluded::names().map(ToOwned::to_owned);
    system.chain([own.to_owned()]).chain(excluded.iter().cloned()).collect()
}

/// A selector cannot say "named so, or labelled so". Where a policy says it, there are two.
pub(super) fn areas(namespaces: Option<&Namespaces>, own: &str) -> Vec<Area> {
    let default = Namespaces::default();
    let Namespaces { names, selector, excluded } = namespaces.unwrap_or(&default);
    let mut never = never(own, excluded);
    let mut areas = Vec::new();
    if names.is_empty() && selector.is_none() {
        // Objects outside of namespaces too.
        areas.push(Area { suffix: "", selector: but(None, &never), scope: "*", rank: Rank::Everywhere });
    }
    let is_meant = |name: &&String| *name != own && !excluded.contains(name);
    let named: BTreeSet<String> = names.iter().filter(is_meant).cloned().collect();
    if !named.is_empty() {
        let selector = json!({"matchExpressions": [{"key": NAMESPACE, "operator": "In", "values": named}]});
        areas.push(Area { suffix: "", selector, scope: "Namespaced", rank: Rank::Named });
    }
    if let Some(selector) = selector {
        let suffix = if names.is_empty() { "" } else { "-selected" };
        never.extend(names.iter().cloned());
        let selector = but(Some(selector), &never);
        areas.push(Area { suffix, selector, scope: "Namespaced", rank: Rank::Selected });
    }
    areas
}

/// All namespaces that a policy may mean without naming them.
pub(super) fn everywhere(own: &str) -> Value {
    but(None, &never(own, &[]))
}

/// A selector that also leaves out namespaces, by their names and by the label for that.
fn but(selector: Option<&LabelSelector>, names: &BTreeSet<String>) -> Value {
    let mut whole = selector_of(selector);
    let requirements = excluded::requirements(names.iter().map(String::as_str));
    match whole.get_mut("matchExpressions").and_then(Value::as_array_mut) {
        Some(asked) => asked.extend(requirements),
        None => whole["matchExpressions"] = json!(requirements),
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
    resource.group == "rbac.authorization.k8s.io"
        && ["clusterroles", "clusterrolebindings"].contains(&&*resource.plural)
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
