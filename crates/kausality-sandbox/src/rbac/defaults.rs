//! The roles and bindings that every cluster has from the start.

use serde::Deserialize;
use serde_json::{Value, json};

const TEXT: &str = include_str!("defaults.yaml");
const LABEL: &str = "rbac.authorization.k8s.io/aggregate-to-";

#[derive(Default, Deserialize)]
struct Defaults {
    roles: Vec<Role>,
    bindings: Vec<Binding>,
}

#[derive(Deserialize)]
struct Role {
    name: String,
    joins: Option<String>,
    aggregates: Option<String>,
    #[serde(default)]
    rules: Vec<Rule>,
}

#[derive(Deserialize)]
struct Rule {
    #[serde(default)]
    groups: Vec<String>,
    #[serde(default)]
    resources: Vec<String>,
    #[serde(default)]
    paths: Vec<String>,
    verbs: Vec<String>,
}

#[derive(Deserialize)]
struct Binding {
    role: String,
    /// Groups.
    to: Vec<String>,
}

/// The objects: their collection, and what they are.
pub(crate) fn objects() -> Vec<(&'static str, Value)> {
    let defaults: Defaults = serde_saphyr::from_str(TEXT).unwrap_or_default();
    let roles = defaults.roles.iter().map(|role| (super::CLUSTER_ROLES, role.object()));
    let bindings = defaults.bindings.iter().map(|binding| (super::CLUSTER_BINDINGS, binding.object()));
    roles.chain(bindings).collect()
}

impl Role {
    fn object(&self) -> Value {
        let mut role = object("ClusterRole", &self.name);
        if let Some(joins) = &self.joins {
            role["metadata"]["labels"][format!("{LABEL}{joins}")] = "true".into();
        }
        if let Some(aggregates) = &self.aggregates {
            let labels = json!({format!("{LABEL}{aggregates}"): "true"});
            role["aggregationRule"] = json!({"clusterRoleSelectors": [{"matchLabels": labels}]});
        }
        role["rules"] = self.rules.iter().map(Rule::object).collect();
        role
    }
}

impl Rule {
    fn object(&self) -> Value {
        let verbs = self.verbs.iter().flat_map(|verb| match verb.as_str() {
            "read" => vec!["get", "list", "watch"],
            "write" => vec!["create", "delete", "deletecollection", "patch", "update"],
            verb => vec![verb],
        });
        let verbs: Vec<_> = verbs.collect();
        if self.paths.is_empty() {
            json!({"apiGroups": self.groups, "resources": self.resources, "verbs": verbs})
        } else {
            json!({"nonResourceURLs": self.paths, "verbs": verbs})
        }
    }
}

impl Binding {
    fn object(&self) -> Value {
        let mut binding = object("ClusterRoleBinding", &self.role);
        let group = "rbac.authorization.k8s.io";
        binding["roleRef"] = json!({"apiGroup": group, "kind": "ClusterRole", "name": self.role});
        let subjects = self.to.iter().map(|name| json!({"apiGroup": group, "kind": "Group", "name": name}));
        binding["subjects"] = subjects.collect();
        binding
    }
}

fn object(kind: &str, name: &str) -> Value {
    json!({"kind": kind, "apiVersion": "rbac.authorization.k8s.io/v1",
        "metadata": {"name": name, "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
            "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"}}})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_read() {
        let objects = objects();
        let names: Vec<_> = objects.iter().filter_map(|(_, it)| it["metadata"]["name"].as_str()).collect();
        assert_eq!(names.len(), 17, "{names:?}");
        let empty = objects.iter().filter(|(_, it)| it["rules"] == json!([]));
        let empty: Vec<_> = empty.filter_map(|(_, it)| it["metadata"]["name"].as_str()).collect();
        assert_eq!(empty, ["admin", "edit", "view"], "these are made of others");
    }
}
