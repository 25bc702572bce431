//! What follows from policies: a pure function from what there is to what there should be.
//!
//! ```text
//!  policies ─┐                   ┌─▶ MutatingWebhookConfiguration    who is asked about what (entries, expression)
//!  served  ──┼──▶ desired ───────┼─▶ ValidatingWebhookConfiguration  policies themselves
//!  place   ──┘                   ├─▶ ClusterRoles                    what the webhook may read (roles)
//!                                └─▶ findings ──▶ conditions         what people are told
//! ```

use std::collections::{BTreeMap, BTreeSet};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use kausality_api::{
    API_VERSION, GROUP,
    policy::{Kausality, KausalitySpec, Metadata},
    status::{KausalityStatus, UnjudgedKind},
};
use kausality_cluster::Listing;
use kausality_core::policy::{self, Policies};
use serde_json::{Map, Value, json};

pub mod conditions;
mod entries;
mod expression;
mod inputs;
mod overlaps;
mod roles;

use overlaps::Claim;
pub use roles::{AGGREGATED, MANAGED, role_name};

/// The name of both webhook configurations.
pub const NAME: &str = "kausality";

/// How many bytes all webhooks may have: what etcd stores in one object, with some room for what else is in it.
const MAX_SIZE: usize = 1 << 20;

/// What `*` does not mean: what nodes and controllers write all the time to stay alive, and must be able to write while no
/// webhook answers; and what Kausality itself is made of.
const LEFT_OUT: [(&str, &str); 12] = [
    ("", "events"),
    ("", "nodes"),
    ("coordination.k8s.io", "leases"),
    ("events.k8s.io", "events"),
    // By which a node joins.
    ("certificates.k8s.io", "certificatesigningrequests"),
    // By which Cilium and Calico give a Pod its address.
    ("cilium.io", "ciliumendpoints"),
    ("cilium.io", "ciliumendpointslices"),
    ("cilium.io", "ciliumidentities"),
    ("cilium.io", "ciliumnodes"),
    ("crd.projectcalico.org", "blockaffinities"),
    ("crd.projectcalico.org", "ipamblocks"),
    ("crd.projectcalico.org", "ipamhandles"),
];

/// The ClusterRoles and ClusterRoleBindings of an installation, those of Helm's hooks among them.
pub const OWN_ROLES: [&str; 7] = [
    "kausality-approver",
    "kausality-controller",
    "kausality-crds",
    "kausality-unregister",
    "kausality-viewer",
    "kausality-webhook",
    "kausality-webhook-policies",
];

/// A policy as it is stored.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Its name.
    pub name: String,
    /// Its generation.
    pub generation: i64,
    /// What it says, or why that cannot be understood.
    pub spec: Result<KausalitySpec, String>,
    /// What is known about it.
    pub status: KausalityStatus,
}

impl Policy {
    /// Reads a policy as the API server has it.
    #[must_use]
    pub fn read(object: &Value) -> Self {
        let text =
            |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let name = text("/metadata/name");
        let spec = match serde_json::from_value::<Kausality>(object.clone()) {
            Err(error) => Err(error.to_string()),
            Ok(policy) => policy::fault(&policy).map_or(Ok(policy.spec), Err),
        };
        let status = object.get("status").cloned().unwrap_or_default();
        Self {
            generation: object.pointer("/metadata/generation").and_then(Value::as_i64).unwrap_or_default(),
            spec,
            status: serde_json::from_value(status).unwrap_or_default(),
            name,
        }
    }

    /// As decisions know it.
    fn kausality(&self) -> Option<Kausality> {
        Some(Kausality {
            api_version: API_VERSION.to_owned(),
            kind: "Kausality".to_owned(),
            metadata: Metadata { name: self.name.clone() },
            spec: self.spec.as_ref().ok()?.clone(),
        })
    }
}

/// A resource that is served, in the version that its group prefers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Resource {
    /// Its group.
    pub group: String,
    /// Its plural name.
    pub plural: String,
    /// The version.
    pub version: String,
}

/// Where the webhook is.
#[derive(Clone, Debug)]
pub enum Target {
    /// In the cluster, behind a Service.
    Service {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// Elsewhere: the URL without a path.
    Url(String),
}

/// The object with which everything goes. It goes with the namespace of Kausality itself.
#[derive(Clone, Debug)]
pub struct Anchor {
    /// The name of a ClusterRole.
    pub name: String,
    /// Its uid.
    pub uid: String,
}

/// What policies do not say.
#[derive(Clone, Debug)]
pub struct Place {
    /// The namespace of Kausality itself, which is never watched.
    pub namespace: String,
    /// Where the webhook is.
    pub target: Target,
    /// The CAs that API servers are to trust, PEM.
    pub bundle: String,
    /// What owns everything.
    pub anchor: Option<Anchor>,
}

/// What there should be.
#[derive(Clone, Debug)]
pub struct Desired {
    /// The MutatingWebhookConfiguration, if anything is to be watched.
    pub mutating: Option<Value>,
    /// The ValidatingWebhookConfiguration, if there is a certificate: the first policy is to be looked at, too.
    pub validating: Option<Value>,
    /// The ClusterRoles.
    pub roles: Vec<Value>,
    /// What was found out about each policy, by name.
    pub findings: BTreeMap<String, Finding>,
}

/// What was found out about a policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Finding {
    /// Why it cannot be understood. What it said before holds on.
    pub fault: Option<String>,
    /// Why the API server does not take what follows from it. What it said before holds on.
    pub refused: Option<String>,
    /// The resources that are watched for it, as `deployments.apps`.
    pub watched: Vec<String>,
    /// The resources, or groups, that it names and nobody serves.
    pub missing: Vec<String>,
    /// Whether parents are Secrets, which it does not name.
    pub withheld: bool,
    /// Why it watches no namespace.
    pub nowhere: Option<&'static str>,
    /// The kinds of parents that no policy has judged.
    pub unjudged: Vec<UnjudgedKind>,
}

/// What there should be. `served` are all resources; `stored` are the webhooks of the configuration as it is, which
/// hold on for a policy that cannot be understood, and for one that the API server has `refused`: an edit must not lift
/// protection by mistake, and the mistake of one must not keep others from being protected.
#[must_use]
pub fn desired(
    policies: &[Policy],
    served: &BTreeSet<Resource>,
    stored: &[Value],
    place: &Place,
    refused: &BTreeMap<String, String>,
) -> Desired {
    let faults = faults(policies, served, place);
    let takes_part =
        |policy: &Policy| !faults.contains_key(&*policy.name) && !refused.contains_key(&policy.name);
    let claims: Vec<Claim<'_>> = policies
        .iter()
        .filter(|policy| takes_part(policy))
        .filter_map(|policy| {
            let spec = policy.spec.as_ref().ok()?;
            Claim::of(&policy.name, spec, &expand(spec, served).0, &place.namespace)
        })
        .collect();
    let all = Policies::new(policies.iter().filter_map(Policy::kausality).collect());
    let mut webhooks = Vec::new();
    let mut roles = Vec::new();
    let mut findings = BTreeMap::new();
    for policy in policies {
        let mut finding = Finding {
            fault: faults.get(&*policy.name).cloned(),
            refused: refused.get(&policy.name).cloned(),
            ..Finding::default()
        };
        match &policy.spec {
            Ok(spec) if takes_part(policy) => {
                let (resources, missing) = expand(spec, served);
                let entries = entries::of(&policy.name, spec, &resources, &claims, place);
                if entries.is_empty() && !resources.is_empty() {
                    finding.nowhere = Some("it names no namespace but Kausality's own");
                }
                webhooks.extend(entries::of_decisions(policy, spec, (&resources, served), &claims, place));
                webhooks.extend(entries);
                webhooks.extend(inputs::of(policy, spec, (&resources, served), place));
                roles.push(roles::of(policy, spec, &resources, place));
                finding.watched =
                    resources.iter().map(|found| full_name(&found.group, &found.plural)).collect();
                finding.missing = missing;
                finding.withheld = roles::withholds(policy, spec);
                let unjudged = policy.status.unjudged.iter().filter(|kind| all.leave_unjudged(kind));
                finding.unjudged = unjudged.cloned().collect();
            }
            _ => webhooks.extend(entries::kept(&policy.name, stored, place)),
        }
        findings.insert(policy.name.clone(), finding);
    }
    // They are to see what was sent.
    webhooks.sort_by_key(|entry| !entries::is_of_decisions(entry));
    let reviews_namespaces =
        findings.values().any(|finding| finding.watched.iter().any(|it| it == "namespaces"));
    if !webhooks.is_empty() && !reviews_namespaces {
        webhooks.push(entries::of_namespaces(place));
    }
    let mutating =
        (!webhooks.is_empty()).then(|| configuration("MutatingWebhookConfiguration", webhooks, place));
    let validating = (!place.bundle.is_empty())
        .then(|| configuration("ValidatingWebhookConfiguration", vec![entries::of_policies(place)], place));
    Desired { mutating, validating, roles, findings }
}

impl Desired {
    /// The MutatingWebhookConfiguration with what follows from one policy alone; none, if nothing does.
    #[must_use]
    pub fn alone(&self, policy: &str) -> Option<Value> {
        let mut alone = self.mutating.clone()?;
        let webhooks = alone.get_mut("webhooks")?.as_array_mut()?;
        webhooks.retain(|entry| entries::is_of(entry, policy));
        (!webhooks.is_empty()).then_some(alone)
    }
}

/// Which policies have no part in it, and why: they cannot be understood, or there is no room for what follows from them.
fn faults<'a>(
    policies: &'a [Policy],
    served: &BTreeSet<Resource>,
    place: &Place,
) -> BTreeMap<&'a str, String> {
    let mut room = MAX_SIZE;
    let fault = |policy: &'a Policy| {
        let fault = match &policy.spec {
            Err(fault) => fault.clone(),
            Ok(spec) => {
                let resources = expand(spec, served).0;
                let mut entries = entries::of(&policy.name, spec, &resources, &[], place);
                entries.extend(entries::of_decisions(policy, spec, (&resources, served), &[], place));
                entries.extend(inputs::of(policy, spec, (&resources, served), place));
                let size = Value::Array(entries).to_string().len();
                if let Some(left) = room.checked_sub(size) {
                    room = left;
                    return None;
                }
                format!(
                    "what follows from it does not fit into the webhook configuration beside what follows from other \
                    policies: it has {} KiB, and {} of {} are left; name fewer resources or namespaces",
                    size >> 10,
                    room >> 10,
                    MAX_SIZE >> 10
                )
            }
        };
        Some((policy.name.as_str(), fault))
    };
    policies.iter().filter_map(fault).collect()
}

/// All resources that the stored webhooks are about: what is known while nobody says what is served.
#[must_use]
pub fn watched(stored: &[Value]) -> BTreeSet<Resource> {
    entries::watched(stored).collect()
}

/// All resources that are served: those that were found, and, of groups whose servers do not answer, those that are
/// watched already. What cannot be told now must not take anything out of protection.
#[must_use]
pub fn known(listing: &Listing, stored: &[Value]) -> BTreeSet<Resource> {
    let found = listing.kinds.iter().map(|kind| Resource {
        group: kind.resource.group.clone(),
        plural: kind.resource.plural.clone(),
        version: kind.resource.version.clone(),
    });
    let mut known: BTreeSet<Resource> = found.collect();
    for resource in entries::watched(stored).filter(|resource| listing.uncertain.contains(&resource.group)) {
        let is_it = |other: &Resource| other.group == resource.group && other.plural == resource.plural;
        if !known.iter().any(is_it) {
            known.insert(resource);
        }
    }
    known
}

/// The resources that a policy means, and those that it names though nobody serves them.
fn expand<'a>(spec: &KausalitySpec, served: &'a BTreeSet<Resource>) -> (Vec<&'a Resource>, Vec<String>) {
    let mut found = BTreeSet::new();
    let mut missing = BTreeSet::new();
    for rule in &spec.resources {
        for group in &rule.api_groups {
            let of_group = || served.iter().filter(|resource| resource.group == *group);
            for name in &rule.resources {
                let before = found.len();
                if name == "*" {
                    let is_meant = |resource: &&Resource| {
                        !rule.excluded.contains(&resource.plural) && !is_left_out(resource)
                    };
                    found.extend(of_group().filter(is_meant));
                    if of_group().next().is_none() {
                        missing.insert(full_name(group, "*"));
                    }
                } else {
                    found.extend(of_group().filter(|resource| resource.plural == *name));
                    if found.len() == before && !of_group().any(|resource| resource.plural == *name) {
                        missing.insert(full_name(group, name));
                    }
                }
            }
        }
    }
    (found.into_iter().collect(), missing.into_iter().collect())
}

fn is_left_out(resource: &Resource) -> bool {
    resource.group == GROUP || LEFT_OUT.contains(&(&*resource.group, &*resource.plural))
}

fn configuration(kind: &str, webhooks: Vec<Value>, place: &Place) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": metadata(NAME, &[], place),
        "webhooks": webhooks,
    })
}

fn metadata(name: &str, labels: &[(&str, &str)], place: &Place) -> Value {
    let ours = [("app.kubernetes.io/name", "kausality"), ("app.kubernetes.io/managed-by", MANAGED)];
    let labels: Map<String, Value> =
        ours.iter().chain(labels).map(|(key, value)| ((*key).to_owned(), (*value).into())).collect();
    let mut metadata = json!({"name": name, "labels": labels});
    if let Some(Anchor { name, uid }) = &place.anchor {
        metadata["ownerReferences"] = json!([{
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "name": name, "uid": uid,
        }]);
    }
    metadata
}

/// How the API server reaches a path of the webhook.
fn client(place: &Place, path: &str) -> Value {
    let bundle = STANDARD.encode(&place.bundle);
    match &place.target {
        Target::Service { namespace, name } => json!({
            "service": {"namespace": namespace, "name": name, "path": path, "port": 443}, "caBundle": bundle,
        }),
        Target::Url(url) => {
            json!({"url": format!("{}{path}", url.trim_end_matches('/')), "caBundle": bundle})
        }
    }
}

fn full_name(group: &str, plural: &str) -> String {
    match group {
        "" => plural.to_owned(),
        _ => format!("{plural}.{group}"),
    }
}

/// The name of a webhook of ours.
fn webhook_name(prefix: &str) -> String {
    format!("{prefix}.{GROUP}")
}

#[cfg(test)]
mod tests;
