//! Whether anything enforces a decision: annotations can be written to any object, also where no webhook reads them.
//!
//! What the API server asks about is in the MutatingWebhookConfiguration, whoever wrote it: the controller, for policies, or
//! `kausality webhook --register`. Most people who decide about drifts may not read that, and the policies stand in for it.

use std::collections::{BTreeMap, BTreeSet};

use kausality_api::{
    GROUP,
    policy::Kausality,
    selector::{LabelSelector, Labels},
    status::KausalityStatus,
};
use kausality_cluster::{
    Kinds, UnknownKind,
    registration::{self, excluded},
};
use kausality_core::policy;
use kube::Client;
use serde::Deserialize;
use serde_json::Value;

use super::ParentName;
use crate::{ledger::within, output::program};

/// The MutatingWebhookConfiguration of Kausality.
const CONFIGURATION: &str = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/kausality";

/// The policies.
const POLICIES: &str = "/apis/kausality.io/v1alpha1/kausalities";

/// A kind whose objects are changed, as `("apps", "replicasets")`.
type Resource = (String, String);

/// What a decision is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Subject {
    /// `children of Deployment default/web`.
    what: String,
    /// Their parent, by apiVersion and kind, where it alone is known.
    parent: Option<(String, String)>,
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
        let kinds: BTreeSet<_> =
            child.map(|(version, kind)| (version.to_owned(), kind.to_owned())).into_iter().collect();
        Self {
            what: format!("children of {parent}"),
            parent: kinds.is_empty().then(|| (parent.api_version.clone(), parent.kind.clone())),
            kinds,
            namespace: parent.namespace.clone(),
        }
    }

    /// Children of a kind.
    pub(crate) fn of_kind(api_version: &str, kind: &str, namespace: &str) -> Self {
        let place = if namespace.is_empty() { String::new() } else { format!(" in namespace {namespace}") };
        Self {
            what: format!("{kind} objects{place}"),
            parent: None,
            kinds: [(api_version.to_owned(), kind.to_owned())].into(),
            namespace: namespace.to_owned(),
        }
    }
}

/// Whether decisions are enforced, as far as that can be told.
#[derive(Debug, Default)]
pub(crate) struct Coverage {
    /// Why those about these certainly are not.
    uncovered: BTreeMap<Subject, String>,
    /// Why it cannot be told.
    unclear: BTreeSet<String>,
}

impl Coverage {
    /// Why nothing enforces a decision, where that is certain.
    pub(crate) fn fault(&self, subject: &Subject) -> Option<&str> {
        self.uncovered.get(subject).map(String::as_str)
    }

    /// What to tell before anything is done.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let faults: BTreeSet<&String> = self.uncovered.values().collect();
        let faults = faults.into_iter().map(|why| format!("nothing enforces this: {why}"));
        let unclear = self.unclear.iter();
        faults
            .chain(unclear.map(|why| format!("cannot tell whether anything enforces this: {why}")))
            .collect()
    }
}

/// What the API server asks Kausality about.
enum Registered {
    Entries(Vec<Value>),
    /// Nothing, for this reason.
    Nothing(&'static str),
    /// It may not be read, but these policies ask for it.
    Policies(Vec<Policy>),
    /// It cannot be told, for this reason.
    Unclear(String),
    /// It asks nobody, and Kausality may be part of it.
    Embedded,
}

/// A policy that can be understood.
struct Policy {
    it: Kausality,
    status: KausalityStatus,
}

/// Whether anything enforces what is decided about these.
pub(crate) async fn coverage(
    client: &Client,
    kinds: &Kinds,
    subjects: impl IntoIterator<Item = Subject>,
) -> Coverage {
    let mut coverage = Coverage::default();
    let subjects: BTreeSet<Subject> = subjects.into_iter().collect();
    if subjects.is_empty() {
        return coverage;
    }
    let registered = match registered(client, kinds).await {
        Registered::Nothing(why) => {
            coverage.uncovered.extend(subjects.into_iter().map(|subject| (subject, why.to_owned())));
            return coverage;
        }
        Registered::Unclear(why) => {
            coverage.unclear.insert(why);
            return coverage;
        }
        Registered::Embedded => return coverage,
        registered => registered,
    };
    for subject in subjects {
        let Some(resources) = resources(kinds, &subject).await else { continue };
        let labels = match subject.namespace.as_str() {
            "" => None,
            namespace => Some(labels(client, namespace).await),
        };
        let covers = match &registered {
            Registered::Policies(policies) => {
                policies.iter().any(|policy| may_cover(&policy.it, &resources, labels.as_ref()))
            }
            Registered::Entries(entries) => is_covered(entries, &resources, labels.as_ref()),
            _ => true,
        };
        if !covers {
            let why = format!("no Kausality policy covers {} (see `{} policies`)", subject.what, program());
            coverage.uncovered.insert(subject, why);
        } else if is_strange(client, kinds, &subject, labels.as_ref()).await {
            coverage.unclear.insert(format!("no change of {} has been reviewed so far", subject.what));
        }
    }
    coverage
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
            _ => Registered::Embedded,
        },
        Err(error) if crate::ledger::refused(&error) == Some(403) => {
            let unclear = "you may not read the MutatingWebhookConfiguration kausality";
            match policies(client).await {
                // `kausality webhook --register` needs none.
                Ok(policies) if policies.is_empty() => {
                    Registered::Unclear(format!("there are no Kausality policies, and {unclear}"))
                }
                Ok(policies) => Registered::Policies(policies),
                Err(_) => Registered::Unclear(format!("{unclear}, nor list Kausality policies")),
            }
        }
        Err(error) => Registered::Unclear(format!("{error:#}")),
    }
}

async fn policies(client: &Client) -> anyhow::Result<Vec<Policy>> {
    let found = get(client, POLICIES).await?.unwrap_or_default();
    let items = found["items"].as_array().into_iter().flatten();
    // Items of lists do not say what they are.
    let read = |item: &Value| {
        let mut item = item.clone();
        item["apiVersion"] = kausality_api::API_VERSION.into();
        item["kind"] = "Kausality".into();
        let status = KausalityStatus::deserialize(&item["status"]).unwrap_or_default();
        Kausality::deserialize(item).ok().map(|it| Policy { it, status })
    };
    Ok(items.filter_map(read).collect())
}

/// Whether there are policies for the place, and none of them knows the kind of a parent, whose children may be of any kind: it
/// neither names that kind, nor has met it as the parent of something.
async fn is_strange(client: &Client, kinds: &Kinds, subject: &Subject, labels: Option<&Labels>) -> bool {
    let Some((api_version, kind)) = &subject.parent else { return false };
    let Ok(kind) = kinds.of_kind(api_version, kind).await else { return false };
    let (group, plural) = (&kind.resource.group, &kind.resource.plural);
    let mut policies = policies(client).await.unwrap_or_default();
    policies.retain(|policy| may_cover(&policy.it, &[], labels));
    let knows = |Policy { it, status }: &Policy| {
        policy::may_cover(&it.spec, Some((group, plural)), "", None)
            || status.parents.iter().any(|met| met.api_group == *group && met.resource == *plural)
    };
    !policies.is_empty() && !policies.iter().any(knows)
}

/// What is there; nothing, if it is certainly not.
async fn get(client: &Client, path: &str) -> anyhow::Result<Option<Value>> {
    let request = http::Request::get(path).body(Vec::new())?;
    match within(&format!("cannot read {path}"), client.request::<Value>(request)).await {
        Ok(found) => Ok(Some(found)),
        Err(error) if crate::ledger::refused(&error) == Some(404) => Ok(None),
        Err(error) => Err(error),
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
    labels.insert(excluded::NAMESPACE.to_owned(), namespace.to_owned());
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

/// Whether a policy asks for that, as far as can be told without what the controller has made of it.
fn may_cover(policy: &Kausality, resources: &[Resource], labels: Option<&Labels>) -> bool {
    let namespace = labels.and_then(|labels| labels.get(excluded::NAMESPACE)).map_or("", String::as_str);
    let is_excluded = labels.is_some_and(|labels| labels.contains_key(excluded::LABEL))
        || excluded::names().any(|name| name == namespace);
    let is_named =
        || policy.spec.namespaces.as_ref().is_some_and(|it| it.names.iter().any(|it| it == namespace));
    let covers = |resource| policy::may_cover(&policy.spec, resource, namespace, labels);
    (!is_excluded || is_named())
        && (resources.is_empty() && covers(None)
            || resources.iter().any(|(group, plural)| covers(Some((group, plural)))))
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
            json!({"matchExpressions": [{"key": excluded::NAMESPACE, "operator": "In", "values": ["shop"]}]});
        let entries = [
            entry("apps.drift.kausality.io", "apps", "replicasets", shop.clone()),
            entry("apps.drift-1.kausality.io", "batch", "*", json!({})),
            entry("apps.decisions.kausality.io", "*", "*", json!({})),
            entry("apps.inputs.kausality.io", "", "configmaps", json!({})),
        ];
        let labels = |name: &str| -> Labels {
            [(excluded::NAMESPACE.to_owned(), name.to_owned())].into_iter().collect()
        };
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
