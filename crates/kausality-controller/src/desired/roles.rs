//! What the webhook may do for a policy, and no more.

use std::collections::{BTreeMap, BTreeSet};

use kausality_api::policy::KausalitySpec;
use serde_json::{Value, json};

use super::{Place, Policy, Resource, metadata};

/// The label that makes a role part of what the webhook may do.
pub const AGGREGATED: &str = "kausality.io/aggregate-to-webhook";

/// Who says that it manages what we made.
pub const MANAGED: &str = "kausality-controller";

/// Parents are read and watched; annotations are written to them and to what is scaled or reports its status.
const VERBS: [&str; 4] = ["get", "list", "watch", "patch"];

/// The name of a policy's role.
#[must_use]
pub fn role_name(policy: &str) -> String {
    format!("kausality:policy:{policy}")
}

/// The role of a policy: what it is about, and the kinds of parents that turned out to be needed. Secrets only if it
/// names them.
pub(super) fn of(policy: &Policy, spec: &KausalitySpec, resources: &[&Resource], place: &Place) -> Value {
    let parents = policy.status.parents.iter().map(|parent| (&parent.api_group, &parent.resource));
    let all = resources.iter().map(|resource| (&resource.group, &resource.plural)).chain(parents);
    let mut groups: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (group, plural) in all {
        if !is_secret(group, plural) || names_secrets(spec) {
            groups.entry(group).or_default().insert(plural);
        }
    }
    let rules: Vec<Value> = groups
        .into_iter()
        .map(|(group, resources)| json!({"apiGroups": [group], "resources": resources, "verbs": VERBS}))
        .collect();
    json!({
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": metadata(&role_name(&policy.name), &[(AGGREGATED, "true")], place),
        "rules": rules,
    })
}

/// Whether a role leaves out a kind of parents that was asked for.
pub(super) fn withholds(policy: &Policy, spec: &KausalitySpec) -> bool {
    let asked = policy.status.parents.iter().any(|parent| is_secret(&parent.api_group, &parent.resource));
    asked && !names_secrets(spec)
}

pub(super) fn is_secret(group: &str, plural: &str) -> bool {
    group.is_empty() && plural == "secrets"
}

pub(super) fn names_secrets(spec: &KausalitySpec) -> bool {
    spec.resources.iter().any(|rule| {
        rule.api_groups.iter().any(String::is_empty) && rule.resources.iter().any(|name| name == "secrets")
    })
}
