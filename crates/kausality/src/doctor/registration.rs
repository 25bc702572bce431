//! Whether the API server asks the webhook, about all that it should and nothing that it should not.

use kausality_api::{
    GROUP,
    selector::{LabelSelector, Labels},
};
use kausality_cluster::registration;
pub(super) use kausality_cluster::registration::OF_POLICIES;
use serde_json::Value;

use super::{
    CONFIGURATION, CONTROLLER, WEBHOOK,
    deployments::{self, ENOUGH},
    finding::{Findings, Verdict},
    logs,
    server::{Seen, list, text, texts},
};

/// The label that names a namespace.
pub(super) const NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";

/// What the API server is told about the webhook.
#[derive(Clone, Copy, Debug)]
pub(super) struct Registered<'a> {
    /// The namespace of Kausality.
    pub(super) namespace: &'a str,
    /// The labels of that namespace.
    pub(super) labels: &'a Labels,
    pub(super) mutating: &'a Seen,
    pub(super) validating: &'a Seen,
    pub(super) policies: &'a Seen<Vec<Value>>,
    /// The Deployment of the webhook.
    pub(super) webhook: &'a Seen,
}

/// The entries of a configuration.
pub(super) fn entries(configuration: &Seen) -> &[Value] {
    configuration.found().map_or(&[], |found| list(found, "/webhooks"))
}

/// Whether a webhook has registered itself, for local use: then nothing is installed in the cluster.
pub(super) fn is_local(mutating: &Seen) -> bool {
    entries(mutating).iter().any(is_own)
}

/// Whether an entry is one that a webhook has written itself: for all that it watches, and for no policy.
fn is_own(entry: &Value) -> bool {
    [
        registration::WEBHOOK,
        registration::OF_PLAIN,
        registration::OF_STATUS,
        registration::OF_STATUS_METADATA,
        registration::OF_DECISIONS,
        registration::OF_STATUS_DECISIONS,
    ]
    .contains(&text(entry, "/name"))
}

/// Whether a selector of labels means these.
pub(super) fn selects(selector: &Value, labels: &Labels) -> bool {
    // Absent, it means all; one that cannot be read is no reason to be calm.
    selector.is_null()
        || serde_json::from_value::<LabelSelector>(selector.clone()).map_or(true, |read| read.matches(labels))
}

/// Judges the registration.
pub(super) fn judge(registered: &Registered<'_>) -> Verdict {
    let Registered { namespace, mutating, validating, policies, .. } = registered;
    let has_policies = policies.found().is_some_and(|policies| !policies.is_empty());
    let mut findings = Findings::default();
    let logs = logs(namespace);
    match mutating {
        Seen::Found(_) => {}
        Seen::Hidden(why) => return Verdict::Skipped(format!("the registration cannot be read: {why}")),
        // Without a policy there is nothing to be asked about.
        Seen::Absent if !has_policies && policies.found().is_some() => {
            return Verdict::Skipped("there is no policy, and so nothing to register for".to_owned());
        }
        Seen::Absent => {
            findings.fail(
                format!(
                    "there is no MutatingWebhookConfiguration {CONFIGURATION}: the API server asks nobody"
                ),
                format!("the controller writes it as soon as there is a policy and a certificate: {logs}"),
            );
            return findings.or_fine("");
        }
    }
    if !is_local(mutating) {
        cover(registered, &logs, &mut findings);
        if entries(validating).iter().all(|entry| text(entry, "/name") != OF_POLICIES) {
            findings.warn(
                format!("ValidatingWebhookConfiguration {CONFIGURATION} has no entry {OF_POLICIES}: policies that make no sense are not refused"),
                format!("the controller writes it: {logs}"),
            );
        }
    }
    for entry in entries(mutating) {
        examine(registered, entry, &mut findings);
    }
    let count = entries(mutating).len();
    let plural = if count == 1 { "entry" } else { "entries" };
    findings.or_fine(format!("{count} {plural} in MutatingWebhookConfiguration {CONFIGURATION}"))
}

/// Every policy has an entry.
fn cover(registered: &Registered<'_>, logs: &str, findings: &mut Findings) {
    for policy in registered.policies.found().into_iter().flatten() {
        let name = text(policy, "/metadata/name");
        if !entries(registered.mutating).iter().any(|entry| is_of(text(entry, "/name"), name)) {
            findings.fail(
                format!("policy {name} has no entry: the API server asks nobody about what it names"),
                format!("see its conditions with kubectl describe kausality {name}, and {logs}"),
            );
        }
    }
}

/// Whether an entry is one of a policy's: `<policy>.drift.kausality.io`, or `<policy>.drift-….kausality.io`.
fn is_of(entry: &str, policy: &str) -> bool {
    let rest = entry.strip_prefix(policy).and_then(|rest| rest.strip_prefix(".drift"));
    let part = rest.and_then(|rest| rest.strip_suffix(GROUP)).and_then(|rest| rest.strip_suffix('.'));
    part.is_some_and(|part| part.is_empty() || (part.starts_with('-') && !part.contains('.')))
}

fn examine(registered: &Registered<'_>, entry: &Value, findings: &mut Findings) {
    let Registered { namespace, labels, webhook, .. } = registered;
    let name = text(entry, "/name");
    let fails = text(entry, "/failurePolicy") != "Ignore";
    let service = |field: &str| text(entry, &format!("/clientConfig/service/{field}"));
    let is_local = is_own(entry);
    let by_url = entry.pointer("/clientConfig/url").is_some();
    if !by_url && (service("namespace"), service("name")) != (*namespace, WEBHOOK) {
        findings.fail(
            format!("{name} asks the Service {}/{}, and not {namespace}/{WEBHOOK}", service("namespace"), service("name")),
            format!("if Kausality is in another namespace, name it with --namespace; else see whether {CONTROLLER} runs"),
        );
    }
    if !is_local && is_about_namespaces(entry) && selects(&entry["namespaceSelector"], labels) {
        let problem = format!("{name} is about namespace {namespace} too, where Kausality itself runs");
        let todo = format!(
            "exclude it: the controller does, so see that it runs, and that nobody edits MutatingWebhookConfiguration {CONFIGURATION}"
        );
        if fails {
            findings.fail(format!("{problem}: once it is down, its own Pods cannot come back"), todo);
        } else {
            findings.warn(problem, todo);
        }
    }
    let ready = deployments::ready(webhook).filter(|_| !is_local && fails);
    if let Some(ready) = ready.filter(|ready| *ready < ENOUGH) {
        let what = if ready == 0 {
            "they fail now, since no webhook is ready"
        } else {
            "they fail whenever the one webhook that is ready restarts"
        };
        // More of what does not start would not help.
        let more = if deployments::wanted(webhook).is_some_and(|wanted| wanted < ENOUGH) {
            format!("kubectl -n {namespace} scale deployment {WEBHOOK} --replicas={ENOUGH}")
        } else {
            format!("see why its Pods are not ready: {}", deployments::look(namespace, WEBHOOK))
        };
        findings.warn(
            format!("{name} has failurePolicy Fail: requests fail while nobody answers, and {what}"),
            format!("{more}; or spec.failurePolicy: Ignore in the policy"),
        );
    }
}

/// Whether it is about objects in namespaces at all.
fn is_about_namespaces(entry: &Value) -> bool {
    list(entry, "/rules").iter().any(|rule| text(rule, "/scope") != "Cluster")
}

/// The resources that the entries are about, with their groups and versions, subresources and bindings aside. Inputs are only
/// observed, mistakes on namespaces only told, and nobody reads either for that.
pub(super) fn resources(mutating: &Seen) -> impl Iterator<Item = (&str, &str, &str)> {
    let is_silent = |name: &str| registration::is_of_inputs(name) || name == registration::OF_NAMESPACES;
    let entries = entries(mutating).iter().filter(move |entry| !is_silent(text(entry, "/name")));
    let rules = entries.flat_map(|entry| list(entry, "/rules"));
    rules.flat_map(|rule| {
        texts(rule, "/apiGroups").flat_map(move |group| {
            let version = texts(rule, "/apiVersions").next().unwrap_or("*");
            let plural = texts(rule, "/resources")
                .filter(move |name| !name.contains(['/', '*']) && (group, *name) != ("", "bindings"));
            plural.map(move |plural| (group, version, plural))
        })
    })
}

#[cfg(test)]
mod tests;
