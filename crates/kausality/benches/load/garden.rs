//! Stacks and their children: a kind of parents that drift, and who reconciles them.

use std::time::Duration;

use anyhow::Result;
use kausality_testbed::{ControlPlane, MASTERS, eventually};
use kube::{
    Api, Client,
    api::{ListParams, Patch, PatchParams, PostParams},
    core::{ApiResource, DynamicObject, GroupVersionKind},
};
use serde_json::json;

/// Who reconciles stacks.
pub(crate) const OPERATOR: &str = "system:serviceaccount:stacks:operator";

/// How long it may take until a kind is served.
const PATIENCE: Duration = Duration::from_secs(60);

/// Defines stacks, and Kausality's own kinds.
pub(crate) async fn define(plane: &ControlPlane) -> Result<()> {
    let garden = Garden::new(plane, "default")?;
    let anything = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let schema = json!({"type": "object", "properties": {"spec": anything, "status": anything}});
    let stacks = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "stacks.example.com"}, "spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"kind": "Stack", "listKind": "StackList", "plural": "stacks", "singular": "stack"},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": schema}}]}});
    let kind = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    let definitions: Api<DynamicObject> =
        Api::all_with(garden.operator.clone(), &ApiResource::from_gvk(&kind));
    let ours = kausality_api::crd::all().into_iter().map(|(_, definition)| definition);
    for definition in ours.chain([stacks]) {
        definitions.create(&PostParams::default(), &serde_json::from_value(definition)?).await?;
    }
    for (group, version, kind) in [("example.com", "v1", "Stack"), ("kausality.io", "v1alpha1", "Drift")] {
        let served = async || garden.api(group, version, kind).list(&ListParams::default()).await;
        eventually(PATIENCE, format!("{kind} is served"), served).await?;
    }
    Ok(())
}

/// The stacks of a namespace, as who reconciles them sees them.
pub(crate) struct Garden {
    operator: Client,
    namespace: String,
}

impl Garden {
    pub(crate) fn new(plane: &ControlPlane, namespace: &str) -> Result<Self> {
        Ok(Self { operator: plane.client(OPERATOR, &[MASTERS])?, namespace: namespace.to_owned() })
    }

    pub(crate) fn api(&self, group: &str, version: &str, kind: &str) -> Api<DynamicObject> {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        Api::namespaced_with(self.operator.clone(), &self.namespace, &resource)
    }

    /// A child of a stack of the same name that has settled, or has not.
    pub(crate) async fn child(&self, name: &str, settled: bool) -> Result<DynamicObject> {
        let mut children = self.children(name, 1, settled).await?;
        children.pop().ok_or_else(|| anyhow::anyhow!("no child was made"))
    }

    /// So many children of a stack that has settled, or has not: `NAME`, `NAME-1` and so on.
    pub(crate) async fn children(
        &self,
        name: &str,
        count: usize,
        settled: bool,
    ) -> Result<Vec<DynamicObject>> {
        let by =
            |manager: &str| PostParams { field_manager: Some(manager.to_owned()), ..PostParams::default() };
        let stacks = self.api("example.com", "v1", "Stack");
        let stack = json!({"apiVersion": "example.com/v1", "kind": "Stack", "metadata": {"name": name},
            "spec": {"colour": "red"}});
        let stack = stacks.create(&by("kubectl"), &serde_json::from_value(stack)?).await?;
        let owner = json!([{"apiVersion": "example.com/v1", "kind": "Stack", "name": name, "uid": stack.metadata.uid,
            "controller": true}]);
        let api = self.api("", "v1", "ConfigMap");
        let mut children = Vec::new();
        for nth in 0..count {
            let name = if nth == 0 { name.to_owned() } else { format!("{name}-{nth}") };
            let child = json!({"apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": name, "ownerReferences": owner, "annotations": {"made-by": "garden"}},
                "data": {"colour": "red"}});
            children.push(api.create(&by("operator"), &serde_json::from_value(child)?).await?);
        }
        let observed = if settled { 1 } else { 0 };
        let ready = json!([{"type": "Ready", "status": "True"}]);
        let status = json!({"status": {"observedGeneration": observed, "conditions": ready}});
        let manager = PatchParams { field_manager: Some("operator".to_owned()), ..PatchParams::default() };
        stacks.patch_status(name, &manager, &Patch::Merge(status)).await?;
        Ok(children)
    }

    /// Changes a child, as who reconciles its stack.
    pub(crate) async fn change(&self, name: &str, colour: &str) -> Result<DynamicObject, kube::Error> {
        let manager = PatchParams { field_manager: Some("operator".to_owned()), ..PatchParams::default() };
        let patch = Patch::Merge(json!({"data": {"colour": colour}}));
        self.api("", "v1", "ConfigMap").patch(name, &manager, &patch).await
    }
}
