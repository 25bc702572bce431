//! What is known of controllers that many clusters have.
//!
//! The nodes of a `DaemonSet` and the issuer of a `Certificate` are inputs; a `Composition`, a function, a `ClusterClass` or a new
//! version of a controller are not, and must not be added.

use std::sync::LazyLock;

use kausality_api::policy::{
    Input,
    InputOperation::{self, Create, Delete},
    Relation::{self, Cluster, Metadata, Namespace, Reference},
};

/// The group of a parent, its resources, and what its controller acts on beside it.
struct Row(&'static str, &'static [&'static str], Acts);

/// The group and the resources, how they relate, the field of the parent that names them, and which changes count (all, if
/// none is named).
struct Acts(&'static str, &'static [&'static str], Relation, &'static str, &'static [InputOperation]);

const PROMETHEUS: &[&str] = &["prometheuses", "prometheusagents", "alertmanagers", "thanosrulers"];
const MONITORS: &[&str] =
    &["servicemonitors", "podmonitors", "probes", "scrapeconfigs", "prometheusrules", "alertmanagerconfigs"];
const ISSUERS: &[&str] = &["issuers", "clusterissuers"];
const TEMPLATES: &[&str] = &["analysistemplates", "clusteranalysistemplates"];
const STORES: &[&str] = &["secretstores", "clustersecretstores"];

/// The fields of issuers that name Secrets.
const SECRETS_OF_ISSUERS: [&str; 5] = [
    "spec.ca.secretName",
    "spec.acme.privateKeySecretRef.name",
    "spec.acme.externalAccountBinding.keySecretRef.name",
    "spec.vault.auth.tokenSecretRef.name",
    "spec.vault.auth.appRole.secretRef.name",
];

/// The fields of a Rollout that name analysis templates.
const ANALYSES: [&str; 4] = [
    "spec.strategy.canary.analysis.templates.templateName",
    "spec.strategy.canary.steps.analysis.templates.templateName",
    "spec.strategy.blueGreen.prePromotionAnalysis.templates.templateName",
    "spec.strategy.blueGreen.postPromotionAnalysis.templates.templateName",
];

fn rows() -> Vec<Row> {
    let secrets = |field| Acts("", &["secrets"], Reference, field, &[]);
    let mut rows = vec![
        // Kubernetes: a DaemonSet has a Pod on each node that fits, by labels and taints.
        Row("apps", &["daemonsets"], Acts("", &["nodes"], Cluster, "", &[])),
        // prometheus-operator selects monitors and rules by their labels and those of their namespaces, and reads what its objects
        // name in their namespace.
        Row("monitoring.coreos.com", PROMETHEUS, Acts("monitoring.coreos.com", MONITORS, Cluster, "", &[])),
        Row("monitoring.coreos.com", PROMETHEUS, Acts("", &["secrets", "configmaps"], Namespace, "", &[])),
        Row("monitoring.coreos.com", PROMETHEUS, Acts("", &["namespaces"], Cluster, "", &[])),
        // cert-manager.
        Row(
            "cert-manager.io",
            &["certificates"],
            Acts("cert-manager.io", ISSUERS, Reference, "spec.issuerRef.name", &[]),
        ),
        // Whoever deletes it wants another certificate; whoever changes it does not.
        Row(
            "cert-manager.io",
            &["certificates"],
            Acts("", &["secrets"], Reference, "spec.secretName", &[Create, Delete]),
        ),
        Row("cert-manager.io", &["certificates"], secrets("spec.keystores.pkcs12.passwordSecretRef.name")),
        Row("cert-manager.io", &["certificates"], secrets("spec.keystores.jks.passwordSecretRef.name")),
        // Its annotations are its intent (`class`).
        Row(
            "networking.k8s.io",
            &["ingresses"],
            Acts("networking.k8s.io", &["ingressclasses"], Reference, "spec.ingressClassName", &[]),
        ),
        // cert-manager makes Certificates of annotations.
        Row(
            "gateway.networking.k8s.io",
            &["gateways"],
            Acts("gateway.networking.k8s.io", &["gateways"], Metadata, "", &[]),
        ),
        // Argo Rollouts runs the Pods of a Deployment that a Rollout names.
        Row(
            "argoproj.io",
            &["rollouts"],
            Acts("apps", &["deployments"], Reference, "spec.workloadRef.name", &[]),
        ),
        // External Secrets makes Secrets of what a store holds.
        Row(
            "external-secrets.io",
            &["externalsecrets"],
            Acts("external-secrets.io", STORES, Reference, "spec.secretStoreRef.name", &[]),
        ),
    ];
    rows.extend(SECRETS_OF_ISSUERS.map(|field| Row("cert-manager.io", ISSUERS, secrets(field))));
    rows.extend(ANALYSES.map(|field| {
        Row("argoproj.io", &["rollouts"], Acts("argoproj.io", TEMPLATES, Reference, field, &[]))
    }));
    rows
}

/// What a controller acts on beside its parents.
pub(super) struct Known {
    /// The group of the parents.
    pub group: &'static str,
    /// Their resources.
    pub resources: &'static [&'static str],
    /// What else it acts on.
    pub input: Input,
}

/// Controllers of custom resources read the ConfigMaps that their objects name.
pub(super) static REFERENCED: LazyLock<Input> = LazyLock::new(|| Input {
    api_groups: vec![String::new()],
    resources: vec!["configmaps".to_owned()],
    relation: Reference,
    field: None,
    operations: Vec::new(),
});

pub(super) static KNOWN: LazyLock<Vec<Known>> = LazyLock::new(|| {
    let known = |Row(group, resources, Acts(of, names, relation, field, operations))| Known {
        group,
        resources,
        input: Input {
            api_groups: vec![of.to_owned()],
            resources: names.iter().map(|name| (*name).to_owned()).collect(),
            relation,
            field: (!field.is_empty()).then(|| field.to_owned()),
            operations: operations.to_vec(),
        },
    };
    rows().into_iter().map(known).collect()
});
