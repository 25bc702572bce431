//! Registration and rights, as they are written.

use std::collections::{BTreeMap, BTreeSet};

use kube::{
    api::{DeleteParams, ListParams, Patch, PatchParams},
    core::{ApiResource, DynamicObject},
};
use serde_json::{Value, json};

use super::{Controller, Failure, MANAGER, ask, is, kinds, reason};
use crate::desired::{AGGREGATED, Desired, MANAGED, NAME, Policy, role_name};

impl Controller {
    /// Applies the configurations that there should be, and removes those that should not; unless they have been taken away
    /// more often than `left` since it was known what there should be.
    pub(super) async fn register(&self, desired: &Desired, left: u64) -> Result<(), Failure> {
        let now = self.left.lock().await;
        if *now != left {
            return Ok(());
        }
        for (resource, wanted) in
            [(kinds::mutating(), &desired.mutating), (kinds::validating(), &desired.validating)]
        {
            match wanted {
                Some(wanted) => self.configure(&resource, wanted).await?,
                None => self.remove(&resource, NAME).await?,
            }
        }
        Ok(())
    }

    /// The policies whose part of the configuration the API server does not take, and why: each is tried alone, without
    /// doing it.
    ///
    /// # Errors
    /// With the failure itself, where it is nobody's fault.
    pub(super) async fn offenders(
        &self,
        policies: &[Policy],
        desired: &Desired,
        failure: Failure,
    ) -> Result<BTreeMap<String, String>, Failure> {
        let mut refused = BTreeMap::new();
        if !matches!(&failure, Failure::Refused(_, error) if is_of_content(error)) {
            return Err(failure);
        }
        let parameters = PatchParams { dry_run: true, ..PatchParams::apply(MANAGER).force() };
        for policy in policies {
            let Some(alone) = desired.alone(&policy.name) else { continue };
            let what = format!("trying what follows from policy {}", policy.name);
            let api = self.api(&kinds::mutating());
            match ask(&what, api.patch(NAME, &parameters, &Patch::Apply(&alone))).await {
                Err(Failure::Refused(_, error)) if is_of_content(&error) => {
                    tracing::warn!(policy = policy.name, why = reason(&error), "refused");
                    refused.insert(policy.name.clone(), reason(&error));
                }
                other => drop(other?),
            }
        }
        if refused.is_empty() { Err(failure) } else { Ok(refused) }
    }

    /// Grants what policies need. Rights come first and go last, so that nobody is ever asked about what it may not read.
    pub(super) async fn write_roles(&self, desired: &Desired) -> Result<(), Failure> {
        for role in &desired.roles {
            self.apply(&kinds::role(), role).await?;
        }
        Ok(())
    }

    /// Takes back what no policy needs.
    pub(super) async fn remove_roles(&self, policies: &[Policy]) -> Result<(), Failure> {
        let wanted: BTreeSet<String> = policies.iter().map(|policy| role_name(&policy.name)).collect();
        let selector = format!("app.kubernetes.io/managed-by={MANAGED},{AGGREGATED}=true");
        let list = ListParams::default().labels(&selector);
        for role in ask("listing roles", self.api(&kinds::role()).list(&list)).await? {
            let name = role.metadata.name.unwrap_or_default();
            if !wanted.contains(&name) {
                self.remove(&kinds::role(), &name).await?;
            }
        }
        Ok(())
    }

    /// Applies a webhook configuration. What others have added to it would outlive that: one more condition that never
    /// holds, and nobody is asked. So it is written over where anything is left that should not be there.
    async fn configure(&self, resource: &ApiResource, wanted: &Value) -> Result<(), Failure> {
        let applied = self.apply(resource, wanted).await?;
        let unlike = |object: &DynamicObject| object.data.get("webhooks") != wanted.get("webhooks");
        if unlike(&applied) {
            tracing::warn!(kind = resource.kind, "somebody has changed the configuration: it is repaired");
            let parameters =
                PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
            let patch = Patch::Merge(json!({"webhooks": wanted["webhooks"]}));
            let what = format!("repairing {}", resource.kind);
            ask(&what, self.api(resource).patch(NAME, &parameters, &patch)).await?;
        }
        Ok(())
    }

    async fn apply(&self, resource: &ApiResource, wanted: &Value) -> Result<DynamicObject, Failure> {
        let name = wanted["metadata"]["name"].as_str().unwrap_or_default();
        let parameters = PatchParams::apply(MANAGER).force();
        let what = format!("applying {} {name}", resource.kind);
        ask(&what, self.api(resource).patch(name, &parameters, &Patch::Apply(wanted))).await
    }

    pub(super) async fn remove(&self, resource: &ApiResource, name: &str) -> Result<(), Failure> {
        let what = format!("deleting {} {name}", resource.kind);
        match ask(&what, self.api(resource).delete(name, &DeleteParams::default())).await {
            Err(Failure::Refused(_, error)) if is(&error, 404) => Ok(()),
            other => other.map(drop),
        }
    }
}

/// Whether the API server knows who asks for what, and does not take the content.
fn is_of_content(error: &kube::Error) -> bool {
    [400, 413, 422].iter().any(|code| is(error, *code))
}
