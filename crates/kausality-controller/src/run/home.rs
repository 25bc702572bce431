//! The namespace of Kausality: everything goes with it, also where nobody uninstalls anything.
//!
//! The leader takes the registration away as soon as the namespace is being deleted, and without a detour: its own service
//! account may be the next to go. Where no leader lives to see that, Kubernetes' garbage collector does the same after the
//! namespace has gone, which owns the anchor, and the anchor the registration.

use std::ops::ControlFlow;

use kausality_cluster::Mirror;
use kube::{
    api::{Patch, PatchParams},
    core::DynamicObject,
};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::{Controller, Failure, MANAGER, ask, is, kinds};
use crate::desired::NAME;

/// The namespace of Kausality.
pub(super) enum Home {
    /// It is there, with this uid.
    There(String),
    /// It is being deleted, or has been.
    Going,
}

impl Controller {
    /// Looks at the namespace.
    pub(super) async fn home(&self) -> Result<Home, Failure> {
        let api = self.api(&kinds::namespace());
        let found = ask("reading the namespace", api.get_opt(&self.settings.namespace)).await?;
        let living = found.filter(|found| found.metadata.deletion_timestamp.is_none());
        Ok(living.and_then(|found| found.metadata.uid).map_or(Home::Going, Home::There))
    }

    /// Takes the registration away whenever the namespace is said to be going, for ever.
    pub(super) async fn guard(&self, going: &Notify) {
        going.notified().await;
        tracing::warn!(
            namespace = self.settings.namespace,
            "the namespace is being deleted: the registration is removed, and nobody is asked any more"
        );
        loop {
            if let Err(error) = self.leave().await {
                tracing::warn!(%error, "the registration may be left: delete mutatingwebhookconfiguration/{NAME} by hand");
            }
            going.notified().await;
        }
    }

    /// Takes the registration away: who would answer is being deleted, and no write may wait for that.
    pub(super) async fn leave(&self) -> Result<(), Failure> {
        let mut left = self.left.lock().await;
        *left += 1;
        let (mutating, validating) = (kinds::mutating(), kinds::validating());
        tokio::try_join!(self.remove(&mutating, NAME), self.remove(&validating, NAME)).map(drop)
    }

    /// Has the namespace own the anchor. Nothing waits for that: it matters when the namespace goes.
    pub(super) async fn tie(&self, anchor: &DynamicObject, home: &str) {
        let Some(patch) = tied(anchor, &self.settings.namespace, home) else { return };
        let name = anchor.metadata.name.as_deref().unwrap_or_default();
        let parameters = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
        let api = self.api(&kinds::role());
        match ask("tying the anchor to the namespace", api.patch(name, &parameters, &Patch::Merge(&patch)))
            .await
        {
            Ok(_) => {}
            // Somebody else has just written it: it is looked at again.
            Err(Failure::Refused(_, error)) if is(&error, 409) => {}
            Err(error) => tracing::warn!(
                %error,
                "if the namespace is deleted while no controller runs, the registration stays and has to be deleted by hand"
            ),
        }
    }
}

/// Says when the namespace is going, and when it has changed in any way.
pub(super) struct Watchman<'a> {
    pub(super) going: &'a Notify,
    pub(super) changed: &'a Notify,
}

impl Mirror for Watchman<'_> {
    fn begin(&self) {}

    fn arrive(&self, namespace: DynamicObject) -> ControlFlow<()> {
        self.apply(namespace)
    }

    fn complete(&self) {
        self.changed.notify_one();
    }

    fn apply(&self, namespace: DynamicObject) -> ControlFlow<()> {
        if namespace.metadata.deletion_timestamp.is_some() {
            self.going.notify_one();
        }
        self.changed.notify_one();
        ControlFlow::Continue(())
    }

    fn remove(&self, _: DynamicObject) {
        self.going.notify_one();
        self.changed.notify_one();
    }
}

/// What makes a namespace, by name and uid, the owner of an anchor; nothing, if it is. A namespace of this name that is gone
/// owns nothing any more. Other owners are left as they are.
fn tied(anchor: &DynamicObject, name: &str, uid: &str) -> Option<Value> {
    let owners = anchor.metadata.owner_references.clone().unwrap_or_default();
    if owners.iter().any(|owner| owner.uid == uid) {
        return None;
    }
    let others = owners.into_iter().filter(|owner| (&*owner.kind, &*owner.name) != ("Namespace", name));
    let owner = json!({"apiVersion": "v1", "kind": "Namespace", "name": name, "uid": uid});
    let owners: Vec<Value> =
        others.filter_map(|owner| serde_json::to_value(owner).ok()).chain([owner]).collect();
    Some(json!({"metadata": {
        "uid": anchor.metadata.uid, "resourceVersion": anchor.metadata.resource_version, "ownerReferences": owners,
    }}))
}

#[cfg(test)]
mod tests;
