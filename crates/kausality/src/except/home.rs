//! Where a policy is: how it is read and written there, and what else denies.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail};
use kausality_api::{
    API_VERSION,
    exception::{ApprovalPolicy, ApprovalPolicySpec, Metadata, PolicyKind, PolicyRule, Subject, SubjectKind},
};
use kausality_core::exceptions::{self, Compiled};
use kube::{
    Api, Client,
    api::{ListParams, Patch, PatchParams, PostParams},
    core::DynamicObject,
};
use serde::Deserialize;
use serde_json::json;

use super::rules::says_the_same;
use crate::{
    act::DryRun,
    ledger::{Entry, refused, rules::resource, within},
};

/// The field manager of edits.
const MANAGER: &str = "kausality";

/// Where a policy is.
pub(super) struct Home {
    pub kind: PolicyKind,
    pub namespace: String,
    client: Client,
}

/// A policy as it will be.
pub(super) struct Plan {
    pub policy: ApprovalPolicy,
    /// The rules that are not there yet.
    pub added: Vec<PolicyRule>,
    /// The version that it was made from, if there was one.
    pub version: Option<String>,
}

impl Home {
    /// Where the policy of these drifts belongs: beside the children, or above all of them.
    ///
    /// # Errors
    /// If they are in several namespaces.
    pub(super) fn of(client: &Client, cluster_policy: bool, entries: &[Entry]) -> Result<Self> {
        let namespaces: BTreeSet<&str> =
            entries.iter().map(|entry| entry.drift.spec.child.namespace.as_str()).collect();
        let namespaces: Vec<&str> = namespaces.into_iter().collect();
        let (kind, namespace) = match namespaces.as_slice() {
            [""] => (PolicyKind::ClusterApprovalPolicy, ""),
            _ if cluster_policy => (PolicyKind::ClusterApprovalPolicy, ""),
            [namespace] => (PolicyKind::ApprovalPolicy, *namespace),
            several => bail!(
                "these drifts are of children in {} namespaces: except them one namespace after the other, or say \
                 --cluster-policy",
                several.len()
            ),
        };
        Ok(Self { kind, namespace: namespace.to_owned(), client: client.clone() })
    }

    fn api(&self) -> Api<DynamicObject> {
        api(&self.client, self.kind, &self.namespace)
    }

    /// The policy of this name as it is, with those of the rules that it lacks.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(super) async fn plan(&self, name: &str, rules: &[PolicyRule]) -> Result<Plan> {
        let reading = format!("cannot read {} {name}", self.kind.as_str());
        let found = within(&reading, self.api().get_opt(name)).await?;
        let version = found.as_ref().and_then(|object| object.metadata.resource_version.clone());
        let mut policy = match found {
            Some(object) => {
                read(object).with_context(|| format!("{} {name} cannot be understood", self.kind.as_str()))?
            }
            None => ApprovalPolicy {
                api_version: API_VERSION.to_owned(),
                kind: self.kind,
                metadata: Metadata { name: name.to_owned(), namespace: self.namespace.clone() },
                spec: ApprovalPolicySpec { rules: Vec::new() },
            },
        };
        let known = |rule: &&PolicyRule| policy.spec.rules.iter().any(|it| says_the_same(it, rule));
        let added: Vec<PolicyRule> = rules.iter().filter(|rule| !known(rule)).cloned().collect();
        policy.spec.rules.extend(added.iter().cloned());
        Ok(Plan { policy, added, version })
    }

    /// Writes the policy, if nobody else wrote to it since it was read.
    ///
    /// # Errors
    /// If it cannot be written.
    pub(super) async fn write(&self, plan: &Plan, dry_run: DryRun) -> Result<()> {
        if dry_run == DryRun::Client {
            return Ok(());
        }
        let dry_run = dry_run == DryRun::Server;
        let field_manager = Some(MANAGER.to_owned());
        let what = format!("cannot write {}", plan.policy.reference());
        let written = match &plan.version {
            Some(version) => {
                let patch = json!({"metadata": {"resourceVersion": version}, "spec": {"rules": plan.policy.spec.rules}});
                let parameters = PatchParams { dry_run, field_manager, ..PatchParams::default() };
                let name = &plan.policy.metadata.name;
                within(&what, self.api().patch(name, &parameters, &Patch::Merge(patch))).await
            }
            None => {
                let object: DynamicObject = serde_json::from_value(serde_json::to_value(&plan.policy)?)?;
                within(&what, self.api().create(&PostParams { dry_run, field_manager }, &object)).await
            }
        };
        match written {
            Ok(_) => Ok(()),
            Err(error) if refused(&error) == Some(409) => {
                Err(error.context("somebody else wrote to the policy meanwhile: try again"))
            }
            Err(error) => Err(error),
        }
    }

    /// The rules that deny and may speak of these drifts, once the policy is as planned. A policy in a namespace speaks of
    /// the objects there, and of the service accounts of that namespace.
    ///
    /// # Errors
    /// If policies cannot be listed.
    pub(super) async fn prohibitions(&self, plan: &Plan, entries: &[Entry]) -> Result<Vec<Compiled>> {
        let mut homes = BTreeSet::from([(PolicyKind::ClusterApprovalPolicy, String::new())]);
        for Entry { drift, .. } in entries {
            let actor = Subject::of_user(&drift.spec.request.user);
            let account = actor.namespace.filter(|_| actor.kind == SubjectKind::ServiceAccount);
            let namespaces = [Some(drift.spec.child.namespace.clone()), account].into_iter().flatten();
            let namespaces = namespaces.filter(|namespace| !namespace.is_empty());
            homes.extend(namespaces.map(|namespace| (PolicyKind::ApprovalPolicy, namespace)));
        }
        let mut denying = vec![exceptions::prohibitions(&plan.policy)];
        for (kind, namespace) in homes {
            let listing = format!("cannot list {}", kind.plural());
            let listed = api(&self.client, kind, &namespace);
            let listed = within(&listing, listed.list(&ListParams::default())).await?;
            for mut object in listed.items {
                // Items of lists need not say what they are.
                object.types = Some(kube::core::TypeMeta {
                    api_version: API_VERSION.to_owned(),
                    kind: kind.as_str().to_owned(),
                });
                let policy = serde_json::to_value(object)?;
                let compiled = match ApprovalPolicy::deserialize(&policy) {
                    Ok(policy) => Some(exceptions::prohibitions(&policy)),
                    Err(_) => exceptions::salvaged(&policy),
                };
                denying.extend(compiled.filter(|it| it.reference() != plan.policy.reference()));
            }
        }
        Ok(denying)
    }
}

fn api(client: &Client, kind: PolicyKind, namespace: &str) -> Api<DynamicObject> {
    let resource = resource(kind);
    match kind {
        PolicyKind::ApprovalPolicy => Api::namespaced_with(client.clone(), namespace, &resource),
        PolicyKind::ClusterApprovalPolicy => Api::all_with(client.clone(), &resource),
    }
}

fn read(object: DynamicObject) -> Result<ApprovalPolicy, serde_json::Error> {
    serde_json::to_value(object).and_then(serde_json::from_value)
}
