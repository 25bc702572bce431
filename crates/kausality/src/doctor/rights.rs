//! Whether the webhook may do what it must, right by right.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{
    SECRET, WEBHOOK,
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

/// Something that the webhook must be allowed to do.
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
    /// In one namespace only, by name.
    at: Option<(String, String)>,
    role: Role,
}

/// Where a rule belongs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Role {
    /// Follows from policies.
    #[default]
    Policies,
    /// Is always needed.
    Webhook,
    /// Is needed in the namespace of Kausality.
    Namespace,
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
    let object = |group: &str, resource: &str, role: Role| Object {
        group: group.to_owned(),
        resource: resource.to_owned(),
        role,
        ..Object::default()
    };
    let policies = object("kausality.io", "kausalities", Role::Webhook);
    let secret = Object {
        at: Some((namespace.to_owned(), SECRET.to_owned())),
        ..object("", "secrets", Role::Namespace)
    };
    let mut all: Vec<(Object, &[&'static str])> = vec![
        (object("", "namespaces", Role::Webhook), &OF_READERS),
        (policies.clone(), &OF_READERS),
        (Object { subresource: "status".to_owned(), ..policies }, &["patch"]),
        (object("kausality.io", "drifts", Role::Webhook), &OF_THE_LEDGER),
        (object("kausality.io", "clusterdrifts", Role::Webhook), &OF_THE_LEDGER),
        (object("events.k8s.io", "events", Role::Webhook), &["create", "patch"]),
        (secret, &OF_READERS),
    ];
    all.extend(kinds.iter().map(|(group, plural)| (object(group, plural, Role::Policies), &OF_KINDS[..])));
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
    if let Some((namespace, name)) = &what.at {
        attributes["namespace"] = namespace.as_str().into();
        attributes["name"] = name.as_str().into();
    }
    json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {
        "user": format!("system:serviceaccount:{namespace}:{account}"),
        "groups": ["system:serviceaccounts", format!("system:serviceaccounts:{namespace}"), "system:authenticated"],
        "resourceAttributes": attributes}})
}

/// The service account that the webhook runs as.
pub(super) fn account(webhook: &Seen) -> &str {
    let named = webhook.found().map(|found| text(found, "/spec/template/spec/serviceAccountName"));
    named.filter(|name| !name.is_empty()).unwrap_or(WEBHOOK)
}

/// Judges the answers.
pub(super) fn judge(account: &str, answers: &[(Right, Result<Value, Refusal>)]) -> Verdict {
    let mut missing: Vec<(&Object, Vec<&str>)> = Vec::new();
    for (right, answer) in answers {
        match answer {
            Err(refusal) => {
                let why = refusal.text();
                return Verdict::Skipped(format!("the API server does not say what {account} may do: {why}"));
            }
            Ok(review) if review.pointer("/status/allowed") == Some(&Value::Bool(true)) => {}
            Ok(_) => match missing.iter_mut().find(|(what, _)| **what == right.what) {
                Some((_, verbs)) => verbs.push(right.verb),
                None => missing.push((&right.what, vec![right.verb])),
            },
        }
    }
    let mut findings = Findings::default();
    for (what, verbs) in missing {
        findings.fail(format!("{account} may not {} {}", verbs.join(", "), what.shown()), what.grant(&verbs));
    }
    findings.or_fine(format!("{account} has all {} rights that it needs", answers.len()))
}

impl Object {
    /// As kubectl names it.
    fn shown(&self) -> String {
        let Self { group, resource, .. } = self;
        let group = if group.is_empty() { String::new() } else { format!(".{group}") };
        let part = if self.subresource.is_empty() { String::new() } else { format!("/{}", self.subresource) };
        let at = self.at.as_ref().map(|(namespace, name)| format!(" {namespace}/{name}")).unwrap_or_default();
        format!("{resource}{group}{part}{at}")
    }

    /// The rule that is missing, and where it belongs.
    fn grant(&self, verbs: &[&str]) -> String {
        let part = if self.subresource.is_empty() { String::new() } else { format!("/{}", self.subresource) };
        let names = match &self.at {
            Some((_, name)) => format!(", resourceNames: [{name:?}]"),
            None => String::new(),
        };
        let rule = format!(
            "{{apiGroups: [{:?}], resources: [{:?}]{names}, verbs: {verbs:?}}}",
            self.group,
            format!("{}{part}", self.resource)
        );
        match (self.role, &self.at) {
            (Role::Policies, _) => format!(
                "add the rule {rule} to a ClusterRole with the label kausality.io/aggregate-to-webhook: \"true\"; \
                the controller does so for every policy that is Ready"
            ),
            (Role::Namespace, Some((namespace, _))) => {
                format!("add the rule {rule} to Role {namespace}/{WEBHOOK}; installing again does so")
            }
            (Role::Webhook | Role::Namespace, _) => {
                format!("add the rule {rule} to ClusterRole {WEBHOOK}; installing again does so")
            }
        }
    }
}

#[cfg(test)]
mod tests;
