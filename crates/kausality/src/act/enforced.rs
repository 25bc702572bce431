//! Whether anything enforces a decision: annotations can be written to any object, also where no webhook reads them.
//!
//! What the API server asks about is in the MutatingWebhookConfiguration, whoever wrote it: the controller, for policies, or
//! `kausality webhook --register`. Who may not read that is told nothing: most people who decide about drifts may not.

use std::collections::BTreeSet;

use kausality_api::{
    GROUP,
    selector::{LabelSelector, Labels},
};
use kausality_cluster::{Kinds, UnknownKind, registration};
use kube::Client;
use serde_json::Value;

use super::ParentName;
use crate::{ledger::within, output::program};

/// The MutatingWebhookConfiguration of Kausality.
const CONFIGURATION: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/kausality";

/// The label that names a namespace.
const NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";

/// A kind whose objects are changed, as `("apps", "replicasets")`.
type Resource = (String, String);

/// What a decision is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Subject {
    /// `children of Deployment default/web`.
    what: String,
    /// The kinds of the children, by apiVersion and kind. Empty, where they are not known.
    kinds: BTreeSet<(String, String)>,
    /// Where the children are; empty for those without a namespace, or in any.
    namespace: String,
}

impl Subject {
    /// All children of a parent. Of kinds that are not known, it is only known where their children are.
    pub(crate) fn children(parent: &ParentName) -> Self {
        let group = parent.api_version.split_once('/').map_or("", |(group, _)| group);
        let child = match (group, parent.kind.as_str()) {
            ("apps", "Deployment") => Some(("apps/v1", "ReplicaSet")),
            ("apps", "ReplicaSet" | "StatefulSet" | "DaemonSet")
            | ("batch", "Job")
            | ("", "ReplicationController") => Some(("v1", "Pod")),
            ("batch", "CronJob") => Some(("batch/v1", "Job")),
            _ => None,
        };
        let kinds = child.map(|(version, kind)| (version.to_owned(), kind.to_owned())).into_iter().collect();
        Self { what: format!("children of {parent}"), kinds, namespace: parent.namespace.clone() }
    }

    /// Children of a kind.
    pub(crate) fn of_kind(api_version: &str, kind: &str, namespace: &str) -> Self {
        let place = if namespace.is_empty() { String::new() } else { format!(" in namespace {namespace}") };
        Self {
            what: format!("{kind} objects{place}"),
            kinds: [(api_version.to_owned(), kind.to_owned())].into(),
            namespace: namespace.to_owned(),
        }
    }
}

/// What the API server asks Kausality about.
enum Registered {
    Entries(Vec<Value>),
    /// Nothing, for this reason.
    Nothing(&'static str),
    /// It cannot be told.
    Unknown,
}

/// Why nothing enforces a decision, where that is certain.
pub(crate) async fn warnings(
    client: &Client,
    kinds: &Kinds,
    subjects: impl IntoIterator<Item = Subject>,
) -> Vec<String> {
    let entries = match registered(client, kinds).await {
        Registered::Entries(entries) => entries,
        Registered::Nothing(why) => return vec![format!("nothing enforces this: {why}")],
        Registered::Unknown => return Vec::new(),
    };
    let mut warnings = Vec::new();
    for subject in subjects.into_iter().collect::<BTreeSet<_>>() {
        let Some(resources) = resources(kinds, &subject).await else { continue };
        let labels = match subject.namespace.as_str() {
            "" => None,
            namespace => Some(labels(client, namespace).await),
        };
        if !is_covered(&entries, &resources, labels.as_ref()) {
            warnings.push(format!(
                "nothing enforces this: no Kausality policy covers {} (see `{} policies`)",
                subject.what,
                program()
            ));
        }
    }
    warnings
}

async fn registered(client: &Client, kinds: &Kinds) -> Registered {
    if let Err(UnknownKind::NotServed(_)) = kinds.of_resource(GROUP, "kausalities").await {
        return Registered::Nothing("Kausality is not installed in this cluster");
    }
    match get(client, CONFIGURATION).await {
        Ok(Some(found)) => {
            let entries = found["webhooks"].as_array().cloned().unwrap_or_default();
            Registered::Entries(entries)
        }
        // In a sandbox, Kausality may be part of the API server, which then has nobody to ask.
        Ok(None) => match get(client, "/version").await {
            Ok(Some(version)) if version["gitCommit"] != "sandbox" => Registered::Nothing(
                "the API server does not ask Kausality about anything: no policy is in force, or its controller does not run",
            ),
            _ => Registered::Unknown,
        },
        Err(()) => Registered::Unknown,
    }
}

/// What is there; nothing, if it is certainly not.
async fn get(client: &Client, path: &str) -> Result<Option<Value>, ()> {
    let request = http::Request::get(path).body(Vec::new()).map_err(drop)?;
    match within("cannot read", client.request::<Value>(request)).await {
        Ok(found) => Ok(Some(found)),
        Err(error) if crate::ledger::refused(&error) == Some(404) => Ok(None),
        Err(_) => Err(()),
    }
}

/// The resources of the kinds that a decision is about; nothing, if they cannot be told.
async fn resources(kinds: &Kinds, subject: &Subject) -> Option<Vec<Resource>> {
    let mut resources = Vec::new();
    for (api_version, kind) in &subject.kinds {
        let kind = kinds.of_kind(api_version, kind).await.ok()?;
        resources.push((kind.resource.group.clone(), kind.resource.plural.clone()));
    }
    Some(resources)
}

/// The labels of a namespace. Its name is one of them, also where it may not be read.
async fn labels(client: &Client, namespace: &str) -> Labels {
    let found =
        get(client, &format!("/api/v1/namespaces/{namespace}")).await.ok().flatten().unwrap_or_default();
    let labels = found.pointer("/metadata/labels").cloned().unwrap_or_default();
    let mut labels: Labels = serde_json::from_value(labels).unwrap_or_default();
    labels.insert(NAMESPACE_NAME.to_owned(), namespace.to_owned());
    labels
}

/// Whether an entry may be about one of these resources, or any, in a namespace with these labels, or in any.
fn is_covered(entries: &[Value], resources: &[Resource], labels: Option<&Labels>) -> bool {
    let texts = |value: &Value, field: &str, wanted: &str| {
        let list = value[field].as_array().into_iter().flatten();
        list.filter_map(Value::as_str).any(|text| text == wanted || text == "*" || text == "*/*")
    };
    let is_rule = |rule: &Value, (group, plural): &Resource| {
        texts(rule, "apiGroups", group) && texts(rule, "resources", plural)
    };
    entries.iter().any(|entry| {
        let name = entry["name"].as_str().unwrap_or_default();
        let judges = !registration::is_of_decisions(name) && !registration::is_of_inputs(name);
        let rules = entry["rules"].as_array().map_or(&[][..], Vec::as_slice);
        let is_named =
            resources.is_empty() || rules.iter().any(|rule| resources.iter().any(|it| is_rule(rule, it)));
        judges && is_named && labels.is_none_or(|labels| selects(&entry["namespaceSelector"], labels))
    })
}

/// Whether a selector means these labels. What cannot be read is no reason for a warning.
fn selects(selector: &Value, labels: &Labels) -> bool {
    selector.is_null()
        || serde_json::from_value::<LabelSelector>(selector.clone()).map_or(true, |read| read.matches(labels))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn covered_is_what_an_entry_judges_where_it_does() {
        let entry = |name: &str, group: &str, resource: &str, selector: Value| {
            json!({"name": name, "namespaceSelector": selector,
                "rules": [{"apiGroups": [group], "resources": [resource, format!("{resource}/scale")]}]})
        };
        let shop =
            json!({"matchExpressions": [{"key": NAMESPACE_NAME, "operator": "In", "values": ["shop"]}]});
        let entries = [
            entry("apps.drift.kausality.io", "apps", "replicasets", shop.clone()),
            entry("apps.drift-1.kausality.io", "batch", "*", json!({})),
            entry("apps.decisions.kausality.io", "*", "*", json!({})),
            entry("apps.inputs.kausality.io", "", "configmaps", json!({})),
        ];
        let labels =
            |name: &str| -> Labels { [(NAMESPACE_NAME.to_owned(), name.to_owned())].into_iter().collect() };
        let covered = |group: &str, plural: &str, namespace: &str| {
            let resource = (group.to_owned(), plural.to_owned());
            is_covered(&entries, &[resource], Some(&labels(namespace)))
        };
        assert!(covered("apps", "replicasets", "shop"));
        assert!(!covered("apps", "replicasets", "bank"));
        assert!(
            !covered("apps", "deployments", "shop"),
            "decisions about it are looked at, its changes are not"
        );
        assert!(covered("batch", "jobs", "bank"));
        assert!(!covered("", "configmaps", "shop"), "inputs are observed only");
        // Where the kinds of children are not known, anything may be one.
        assert!(is_covered(&entries, &[], Some(&labels("bank"))));
        assert!(!is_covered(&entries[..1], &[], Some(&labels("bank"))));
        assert!(is_covered(&entries[..1], &[], None));
    }
}
