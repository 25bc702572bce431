//! How a policy could declare a change as an input of a parent.

use kausality_api::{
    policy::{Input, InputOperation, Relation},
    selector::LabelSelector,
};
use serde_json::Value;

use super::{Changed, Extent, reaches};
use crate::summary::Summary;

/// How deep fields are looked for.
const MAX_DEPTH: usize = 16;

/// What changes how controllers work, by group: a change of these is what drift means, and none is ever an input. An empty
/// list stands for all resources of the group.
const MEANS_DRIFT: &[(&str, &[&str])] = &[
    ("apiextensions.crossplane.io", &[]),
    ("pkg.crossplane.io", &[]),
    ("cluster.x-k8s.io", &["clusterclasses"]),
    ("apiextensions.k8s.io", &[]),
    ("admissionregistration.k8s.io", &[]),
    ("apiregistration.k8s.io", &[]),
    ("rbac.authorization.k8s.io", &[]),
    ("operators.coreos.com", &[]),
    ("", &["serviceaccounts", "namespaces"]),
];

/// What controllers run as. An input only of a parent that names or selects it.
const WORKLOADS: &[(&str, &[&str])] = &[
    ("apps", &["deployments", "statefulsets", "daemonsets", "replicasets"]),
    ("batch", &["jobs", "cronjobs"]),
    ("", &["pods"]),
];

fn is_among(table: &[(&str, &[&str])], change: &Changed) -> bool {
    let names = |(group, resources): &(&str, &[&str])| {
        *group == change.object.group()
            && (resources.is_empty() || resources.contains(&change.resource.as_str()))
    };
    table.iter().any(names)
}

/// Every way to declare a change as an input of a parent, the narrowest first.
pub(super) fn candidates(parent: &Summary, change: &Changed) -> Vec<Input> {
    if is_among(MEANS_DRIFT, change) || change.extent == Extent::Annotations {
        return Vec::new();
    }
    let input = |relation, field| Input {
        api_groups: vec![change.object.group().to_owned()],
        resources: vec![change.resource.clone()],
        relation,
        field,
        operations: Vec::<InputOperation>::new(),
    };
    let mut found = Fields { change, references: Vec::new(), selectors: Vec::new() };
    let fields = parent.whole.as_deref().and_then(Value::as_object).into_iter().flatten();
    for (name, value) in fields {
        if !matches!(name.as_str(), "apiVersion" | "kind" | "metadata" | "status") {
            found.look(name, value, MAX_DEPTH);
        }
    }
    let references = found.references.into_iter().map(|field| input(Relation::Reference, Some(field)));
    let selectors = found.selectors.into_iter().map(|field| input(Relation::Selector, Some(field)));
    let mut candidates: Vec<Input> = references.chain(selectors).collect();
    if !is_among(WORKLOADS, change) {
        let is_local = !parent.id.namespace.is_empty() && parent.id.namespace == change.object.namespace;
        candidates.extend(is_local.then(|| input(Relation::Namespace, None)));
        candidates.push(input(Relation::Cluster, None));
    }
    // Items of a list share a path.
    let mut distinct: Vec<Input> = Vec::new();
    for input in candidates {
        if reaches(&input, parent, change) && !distinct.contains(&input) {
            distinct.push(input);
        }
    }
    distinct
}

/// The fields of a parent that name or select an object.
struct Fields<'a> {
    change: &'a Changed,
    references: Vec<String>,
    selectors: Vec<String>,
}

impl Fields<'_> {
    fn look(&mut self, path: &str, value: &Value, depth: usize) {
        match value {
            _ if depth == 0 => {}
            Value::String(text) if *text == self.change.object.name => self.references.push(path.to_owned()),
            // A list stands for each of its items.
            Value::Array(items) => items.iter().for_each(|item| self.look(path, item, depth - 1)),
            Value::Object(fields) => {
                let selector = serde_json::from_value::<LabelSelector>(value.clone());
                let selects = |selector: LabelSelector| {
                    selector != LabelSelector::default() && selector.matches(&self.change.labels)
                };
                if selector.is_ok_and(selects) {
                    self.selectors.push(path.to_owned());
                }
                // Names of fields are told apart by dots.
                for (name, value) in fields.iter().filter(|(name, _)| !name.contains('.')) {
                    self.look(&format!("{path}.{name}"), value, depth - 1);
                }
            }
            _ => {}
        }
    }
}
