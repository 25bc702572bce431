//! `kausality uninstall`: what `kausality install` made goes, and what the controller made.

use std::{
    io::{IsTerminal, Write},
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use clap::Args;
use kube::{
    Api,
    api::ListParams,
    core::{ApiResource, DynamicObject, GroupVersionKind},
};
use serde_json::{Value, json};

use crate::{
    act::agreed,
    connect::Connection,
    install::{
        Installed,
        bundle::{Bundle, NAMESPACE},
        installed, label,
        objects::{Objects, name, text},
        wait,
    },
};

/// Remove Kausality from a cluster: first its registration, so that nobody waits for it, then all else.
#[derive(Debug, Args)]
pub struct Uninstall {
    /// The namespace that it is installed in [default: where it is found]
    #[arg(short, long, value_name = "NAME", value_parser = label)]
    namespace: Option<String>,

    /// Delete the CustomResourceDefinitions and all policies too, without asking
    #[arg(short, long, conflicts_with = "keep_crds")]
    yes: bool,

    /// Keep the CustomResourceDefinitions and the policies
    #[arg(long)]
    keep_crds: bool,

    /// Remove only the registration, as the chart does before `helm uninstall`: writes do not wait for the webhook any more
    #[arg(long, conflicts_with_all = ["yes", "keep_crds"])]
    registration_only: bool,

    /// How long to wait at most until all is gone
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    timeout: u64,

    #[command(flatten)]
    connection: Connection,
}

/// How soon a deletion is tried again that failed for want of the webhook.
const RETRY: Duration = Duration::from_millis(200);

/// The label of the roles that the controller writes.
const POLICY_ROLES: &str = "kausality.io/aggregate-to-webhook=true";

impl Uninstall {
    /// Runs the command.
    ///
    /// # Errors
    /// If the cluster cannot be reached, refuses something, or something does not go.
    pub fn run(&self) -> Result<ExitCode> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(self.remove(&mut anstream::stdout().lock()))?;
        Ok(ExitCode::SUCCESS)
    }

    async fn remove(&self, out: &mut impl Write) -> Result<()> {
        let objects = Objects::new(self.connection.client("uninstall").await?);
        if self.registration_only {
            return unregister(out, &objects, Duration::from_secs(self.timeout)).await;
        }
        let found = installed(&objects).await.context("cannot tell what is installed")?;
        if let Some(Installed { namespace, release: Some(release) }) = &found {
            if is_recorded(&objects, release).await? {
                bail!(
                    "Kausality was installed by Helm: remove it with helm uninstall {release} -n {namespace}\nTo stop API \
                     servers from asking it meanwhile: kausality uninstall --registration-only"
                );
            }
            writeln!(
                out,
                "Helm has no record of the release {release} any more, so its objects are removed here."
            )?;
        }
        let namespace = self.namespace.clone().or_else(|| found.map(|found| found.namespace));
        let namespace = namespace.as_deref().unwrap_or(NAMESPACE);
        let mut bundle = Bundle::shipped()?;
        bundle.move_to(namespace);
        if !self.with_definitions(&objects, &bundle).await? {
            bundle.definitions.clear();
        }

        let mut gone = Vec::new();
        let patience = Duration::from_secs(self.timeout);
        for object in in_order(&objects, &bundle, namespace).await? {
            if delete(&objects, &object, patience).await? {
                writeln!(out, "{}: deleted", name(&object))?;
                gone.push(object);
            }
        }
        if gone.is_empty() {
            writeln!(out, "Nothing of Kausality was found.")?;
            return Ok(());
        }
        wait::until_gone(&objects, &gone, patience).await?;
        writeln!(
            out,
            "\nKausality is gone. What it noted on your objects, kausality.io/… annotations, stays there."
        )?;
        Ok(())
    }

    /// Whether definitions, and with them all policies, are to go too.
    async fn with_definitions(&self, objects: &Objects, bundle: &Bundle) -> Result<bool> {
        if self.yes || self.keep_crds {
            return Ok(self.yes);
        }
        let mut there = false;
        for definition in &bundle.definitions {
            there |= objects.get(definition).await?.is_some();
        }
        if !there {
            return Ok(false);
        }
        if !std::io::stdin().is_terminal() {
            bail!(
                "there is nobody to ask: say --yes to delete all policies and their definition too, or --keep-crds"
            );
        }
        let policies = policies(objects).await?;
        agreed(&format!("Delete the definition of policies too, and with it {policies} policies?"))
    }
}

/// Removes the registration, and sees that it stays away.
async fn unregister(out: &mut impl Write, objects: &Objects, patience: Duration) -> Result<()> {
    // Without its rights the controller cannot put the registration back, or not for long.
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": "kausality-controller"},
    });
    for object in registrations().into_iter().chain([binding]) {
        if delete(objects, &object, patience).await? {
            writeln!(out, "{}: deleted", name(&object))?;
        }
    }
    wait::until_away(objects, &registrations(), patience).await
}

/// Deletes an object; false if it is not there. API servers ask the webhook for a moment after its registration has gone, or
/// has been put back, and it may not answer any more.
async fn delete(objects: &Objects, object: &Value, patience: Duration) -> Result<bool> {
    let since = Instant::now();
    loop {
        match objects.delete(object).await {
            Err(error) if is_unanswered(&error) && since.elapsed() < patience => {
                for registration in registrations() {
                    objects.delete(&registration).await?;
                }
                tokio::time::sleep(RETRY).await;
            }
            outcome => return outcome,
        }
    }
}

/// Whether a write failed since our webhook did not answer.
fn is_unanswered(error: &anyhow::Error) -> bool {
    let said = format!("{error:#}");
    said.contains("failed calling webhook") && said.contains(&format!(".{}\"", kausality_api::GROUP))
}

/// Whether Helm has a record of a release, in whichever namespace.
async fn is_recorded(objects: &Objects, release: &str) -> Result<bool> {
    let labels = format!("owner=helm,name={release}");
    for (kind, plural) in [("Secret", "secrets"), ("ConfigMap", "configmaps")] {
        if !list(objects, "", "v1", kind, plural, &labels).await?.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// What is to be deleted, in this order.
async fn in_order(objects: &Objects, bundle: &Bundle, namespace: &str) -> Result<Vec<Value>> {
    let is = |object: &Value, kind: &str| object["kind"] == kind;
    let (controller, rest): (Vec<Value>, Vec<Value>) = bundle.objects.iter().cloned().partition(|one| {
        is(one, "ClusterRoleBinding") && text(one, "/metadata/name") == "kausality-controller"
    });
    let (namespaces, rest): (Vec<Value>, Vec<Value>) = rest.into_iter().partition(|one| is(one, "Namespace"));

    // First of all: no later step may wait for a webhook that does not answer.
    let registrations = registrations();
    let mut order = registrations.clone();
    // Without its rights the controller cannot put them back, or not for long.
    order.extend(controller);
    order.extend(registrations.clone());
    // Who comes last needs the others.
    order.extend(rest.into_iter().rev());
    order.extend(policy_roles(objects).await?);
    order.extend(kept_in(namespace));
    // It may have put them back in its last moment, before the API server knew of its new rights.
    order.extend(registrations);
    for one in namespaces {
        // One that somebody else made holds other things, too.
        let found = objects.get(&one).await?.unwrap_or_default();
        if text(&found, "/metadata/labels/app.kubernetes.io~1name") == "kausality" {
            order.push(one);
        }
    }
    order.extend(bundle.definitions.iter().cloned());
    Ok(order)
}

/// What has the API server call the webhook.
fn registrations() -> Vec<Value> {
    ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"]
        .map(|kind| {
            json!({
                "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": "kausality"},
            })
        })
        .to_vec()
}

/// What the controller keeps in its namespace.
fn kept_in(namespace: &str) -> [Value; 3] {
    [
        ("v1", "Secret", "kausality-webhook-tls"),
        ("v1", "Secret", "kausality-salt"),
        ("coordination.k8s.io/v1", "Lease", "kausality-controller"),
    ]
    .map(|(version, kind, name)| {
        json!({"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": namespace}})
    })
}

/// The roles of policies.
async fn policy_roles(objects: &Objects) -> Result<Vec<Value>> {
    let found =
        list(objects, "rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", POLICY_ROLES).await?;
    let role = |name: &str| {
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": name},
        })
    };
    Ok(found.iter().map(|name| role(name)).collect())
}

/// How many policies there are.
async fn policies(objects: &Objects) -> Result<usize> {
    Ok(list(objects, kausality_api::GROUP, "v1alpha1", "Kausality", "kausalities", "").await?.len())
}

/// The names of all objects of a kind with a label.
async fn list(
    objects: &Objects,
    group: &str,
    version: &str,
    kind: &str,
    plural: &str,
    labels: &str,
) -> Result<Vec<String>> {
    let kind = GroupVersionKind::gvk(group, version, kind);
    let resource = ApiResource::from_gvk_with_plural(&kind, plural);
    let api: Api<DynamicObject> = Api::all_with(objects.client.clone(), &resource);
    let found = api.list_metadata(&ListParams::default().labels(labels)).await;
    let found = found.with_context(|| format!("cannot list {plural}"))?;
    Ok(found.items.into_iter().filter_map(|item| item.metadata.name).collect())
}

#[cfg(test)]
mod tests;
