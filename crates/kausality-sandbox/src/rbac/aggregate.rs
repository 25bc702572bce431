//! Cluster roles that are made of others: they have the rules of all that they select.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::rules::{self, Rule};
use super::{CLUSTER_ROLES, Listed};
use crate::store::Store;
use crate::store::selector::Selector;

/// Gives the roles that are made of others their rules. On a cluster a controller does so a moment later.
pub(crate) fn settle(store: &mut Store) {
    let roles = store.list(CLUSTER_ROLES, None);
    for ((_, name), role) in roles.iter().filter(|(_, role)| selectors(role).is_some()) {
        let found = collect(&roles, name, role, &mut BTreeSet::new());
        if found != rules::of(role) {
            let mut role = Value::clone(role);
            role["rules"] = json!(found);
            store.put(CLUSTER_ROLES, (String::new(), name.clone()), role);
        }
    }
}

fn selectors(role: &Value) -> Option<&Vec<Value>> {
    role.pointer("/aggregationRule/clusterRoleSelectors").and_then(Value::as_array)
}

/// The rules of a role, and of those that it is made of, each once.
fn collect<'a>(roles: &'a Listed, name: &'a str, role: &Value, seen: &mut BTreeSet<&'a str>) -> Vec<Rule> {
    let Some(selectors) = selectors(role) else { return rules::of(role) };
    if !seen.insert(name) {
        return Vec::new();
    }
    let selectors: Vec<_> = selectors.iter().map(Selector::of_object).collect();
    let mut found = Vec::new();
    for ((_, other), part) in roles.iter().filter(|((_, other), _)| other != name) {
        if selectors.iter().any(|selector| selector.matches_labels(part.pointer("/metadata/labels"))) {
            for rule in collect(roles, other, part, seen) {
                if !found.contains(&rule) {
                    found.push(rule);
                }
            }
        }
    }
    found
}
