//! Whether the webhook and the controller may do what they must, right by right.

use std::collections::BTreeSet;

use kausality_cluster::salt::SECRET as SALT;
use serde_json::{Value, json};

use super::{
    CONFIGURATION, CONTROLLER, SECRET, WEBHOOK,
    finding::{Findings, Verdict},
    registration::resources,
    server::{Refusal, Seen, list, text, texts},
};

/// What is done with the objects of policies and with their parents: they are read and watched, and annotations are
/// written to them.
const OF_KINDS: [&str; 4] = ["get", "list", "watch", "patch"];

/// What is watched.
const OF_READERS: [&str; 3] = ["get", "list", "watch"];

/// What is done with the entries of the ledger.
const OF_THE_LEDGER: [&str; 5] = ["create", "get", "list", "watch", "patch"];

/// What is done with entries of the ledger that are over.
const OF_TIDIERS: [&str; 5] = ["get", "list", "watch", "patch", "delete"];

/// Something that somebody must be allowed to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Right {
    pub(super) what: Object,
    pub(super) verb: &'static str,
}

/// What a right is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Object {
    group: String,
    resource: String,
    subresource: String,
    /// In this namespace only.
    namespace: String,
    /// With this name only.
    name: String,
    role: Role,
}

/// Where a rule belongs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Role {
    /// Follows from policies.
    #[default]
    Policies,
    /// Is in the ClusterRole of this name; or in the Role, where it is about one namespace.
    Of(&'static str),
}

/// A resource, by its group and its plural name.
pub(super) type Resource = (String, String);

/// What policies name one by one, and what they were found to need.
pub(super) fn named(policies: &Seen<Vec<Value>>) -> BTreeSet<Resource> {
    let mut found = BTreeSet::new();
    for policy in policies.found().into_iter().flatten() {
        for rule in list(policy, "/spec/resources") {
            for group in texts(rule, "/apiGroups") {
                let plural = texts(rule, "/resources").filter(|plural| *plural != "*");
                found.extend(plural.map(|plural| (group.to_owned(), plural.to_owned())));
            }
        }
        let parents = list(policy, "/status/parents").iter();
        found.extend(
            parents
                .filter(|parent| !is_secret(text(parent, "/apiGroup"), text(parent, "/resource")))
                .map(|parent| (text(parent, "/apiGroup").to_owned(), text(parent, "/resource").to_owned())),
        );
    }
    found
}

/// All that is needed: for what policies name and what is registered, and what the webhook always needs. Secrets are
/// granted only to a policy that names them, whatever `*` means to others.
pub(super) fn needed(namespace: &str, named: &BTreeSet<Resource>, mutating: &Seen) -> Vec<Right> {
    let registered = resources(mutating).filter(|(group, _, plural)| !is_secret(group, plural));
    let registered = registered.map(|(group, _, plural)| (group.to_owned(), plural.to_owned()));
    let kinds: BTreeSet<Resource> = named.iter().cloned().chain(registered).collect();
    let policies = ["kausalities", "approvalpolicies", "clusterapprovalpolicies"]
        .map(|plural| object("kausality.io", plural, Role::Of(WEBHOOK)));
    let secret = Object { name: SECRET.to_owned(), ..here(namespace, "", "secrets", WEBHOOK) };
    let mut all: Vec<(Object, &[&'static str])> = vec![
        (object("", "namespaces", Role::Of(WEBHOOK)), &OF_READERS),
        (object("kausality.io", "drifts", Role::Of(WEBHOOK)), &OF_THE_LEDGER),
        (object("kausality.io", "clusterdrifts", Role::Of(WEBHOOK)), &OF_THE_LEDGER),
        (object("events.k8s.io", "events", Role::Of(WEBHOOK)), &["create", "patch"]),
        (secret, &OF_READERS),
        (Object { name: SALT.to_owned(), ..here(namespace, "", "secrets", WEBHOOK) }, &["get"]),
    ];
    for policies in policies {
        all.push((policies.clone(), &OF_READERS));
        all.push((Object { subresource: "status".to_owned(), ..policies }, &["patch"]));
    }
    all.extend(kinds.iter().map(|(group, plural)| (object(group, plural, Role::Policies), &OF_KINDS[..])));
    each(all)
}

/// All that the controller needs; more, where it makes the certificate itself.
pub(super) fn of_controller(namespace: &str, makes_certificates: bool) -> Vec<Right> {
    let of = |group: &str, resource: &str| object(group, resource, Role::Of(CONTROLLER));
    let here = |group: &str, resource: &str| here(namespace, group, resource, CONTROLLER);
    let named = |what: Object, name: &str| Object { name: name.to_owned(), ..what };
    let policies = of("kausality.io", "kausalities");
    let mut all: Vec<(Object, &[&'static str])> = vec![
        (of("", "namespaces"), &OF_READERS),
        (of("kausality.io", "drifts"), &OF_TIDIERS),
        (of("kausality.io", "clusterdrifts"), &OF_TIDIERS),
        (policies.clone(), &OF_READERS),
        (Object { subresource: "status".to_owned(), ..policies }, &["patch"]),
        (
            of("rbac.authorization.k8s.io", "clusterroles"),
            &["create", "get", "list", "watch", "patch", "delete", "escalate"],
        ),
        (of("apiextensions.k8s.io", "customresourcedefinitions"), &OF_READERS),
        (here("coordination.k8s.io", "leases"), &["create"]),
        (named(here("coordination.k8s.io", "leases"), CONTROLLER), &["get", "update"]),
        (named(here("", "secrets"), SECRET), &OF_READERS),
        (here("", "secrets"), &["create"]),
        (named(here("", "secrets"), SALT), &["get", "update"]),
    ];
    for plural in ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"] {
        let configurations = of("admissionregistration.k8s.io", plural);
        all.push((configurations.clone(), &["create"]));
        all.push((named(configurations, CONFIGURATION), &["get", "list", "watch", "patch", "delete"]));
    }
    if makes_certificates {
        all.push((named(here("", "secrets"), SECRET), &["update"]));
    }
    each(all)
}

fn object(group: &str, resource: &str, role: Role) -> Object {
    Object { group: group.to_owned(), resource: resource.to_owned(), role, ..Object::default() }
}

/// One in the namespace of Kausality.
fn here(namespace: &str, group: &str, resource: &str, role: &'static str) -> Object {
    Object { namespace: namespace.to_owned(), ..object(group, resource, Role::Of(role)) }
}

fn each(all: Vec<(Object, &[&'static str])>) -> Vec<Right> {
    let rights = all
        .into_iter()
        .flat_map(|(what, verbs)| verbs.iter().map(move |verb| Right { what: what.clone(), verb }));
    rights.collect()
}

fn is_secret(group: &str, plural: &str) -> bool {
    group.is_empty() && plural == "secrets"
}

/// The question whether a service account has a right.
pub(super) fn question(namespace: &str, account: &str, right: &Right) -> Value {
    let Right { what, verb } = right;
    let mut attributes = json!({"verb": verb, "group": what.group, "resource": what.resource});
    if !what.subresource.is_empty() {
        attributes["subresource"] = what.subresource.as_str().into();
    }
    for (field, value) in [("namespace", &what.namespace), ("name", &what.name)] {
        if !value.is_empty() {
            attributes[field] = value.as_str().into();
        }
    }
    json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {
        "user": format!("system:serviceaccount:{namespace}:{account}"),
        "groups": ["system:serviceaccounts", format!("system:serviceaccounts:{namespace}"), "system:authenticated"],
        "resourceAttributes": attributes}})
}

/// The service account that a Deployment runs as; usually one of the same name.
pub(super) fn account<'a>(deployment: &'a Seen, usually: &'a str) -> &'a str {
    let named = deployment.found().map(|found| text(found, "/spec/template/spec/serviceAccountName"));
    named.filter(|name| !name.is_empty()).unwrap_or(usually)
}

/// What the API server says about the rights of somebody.
pub(super) type Answers = Vec<(Right, Result<Value, Refusal>)>;

/// Judges the answers, for each service account.
pub(super) fn judge(asked: &[(&str, &Answers)]) -> Verdict {
    let mut findings = Findings::default();
    let mut fine = Vec::new();
    for (account, answers) in asked {
        let mut missing: Vec<(&Object, Vec<&str>)> = Vec::new();
        for (right, answer) in *answers {
            match answer {
                Err(refusal) => {
                    let why = refusal.text();
                    return Verdict::Skipped(format!(
                        "the API server does not say what {account} may do: {why}"
                    ));
                }
                Ok(review) if review.pointer("/status/allowed") == Some(&Value::Bool(true)) => {}
                Ok(_) => match missing.iter_mut().find(|(what, _)| **what == right.what) {
                    Some((_, verbs)) => verbs.push(right.verb),
                    None => missing.push((&right.what, vec![right.verb])),
                },
            }
        }
        for (what, verbs) in missing {
            findings
                .fail(format!("{account} may not {} {}", verbs.join(", "), what.shown()), what.grant(&verbs));
        }
        fine.push(format!("{account} has all {} rights that it needs", answers.len()));
    }
    findings.or_fine(fine.join(", and "))
}

impl Object {
    /// As kubectl names it.
    fn shown(&self) -> String {
        let Self { group, resource, .. } = self;
        let group = if group.is_empty() { String::new() } else { format!(".{group}") };
        let part = if self.subresource.is_empty() { String::new() } else { format!("/{}", self.subresource) };
        let at = match (&*self.namespace, &*self.name) {
            ("", "") => String::new(),
            ("", name) => format!(" {name}"),
            (namespace, "") => format!(" in namespace {namespace}"),
            (namespace, name) => format!(" {namespace}/{name}"),
        };
        format!("{resource}{group}{part}{at}")
    }

    /// The rule that is missing, and where it belongs.
    fn grant(&self, verbs: &[&str]) -> String {
        let part = if self.subresource.is_empty() { String::new() } else { format!("/{}", self.subresource) };
        let names = match &*self.name {
            "" => String::new(),
            name => format!(", resourceNames: [{name:?}]"),
        };
        let rule = format!(
            "{{apiGroups: [{:?}], resources: [{:?}]{names}, verbs: {verbs:?}}}",
            self.group,
            format!("{}{part}", self.resource)
        );
        match self.role {
            Role::Policies => format!(
                "add the rule {rule} to a ClusterRole with the label kausality.io/aggregate-to-webhook: \"true\"; \
                the controller does so for every policy that is Ready"
            ),
            Role::Of(role) if self.namespace.is_empty() => {
                format!("add the rule {rule} to ClusterRole {role}; installing again does so")
            }
            Role::Of(role) => {
                format!("add the rule {rule} to Role {}/{role}; installing again does so", self.namespace)
            }
        }
    }
}

#[cfg(test)]
mod tests;
