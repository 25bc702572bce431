//! A composite or a claim, what people do with it, and what becomes of it.

use std::collections::BTreeMap;

use kausality_testbed::eventually;
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::ApiResource;
use serde_json::{Value, json};

use super::kinds::{Composition, NAMESPACE, objects, revisions, shops, stores, xstores};
use super::world::World;
use crate::stage::PATIENCE;

/// A composite, or a claim, that a person made.
pub(super) struct Shop<'a> {
    world: &'a World,
    kind: ApiResource,
    pub(super) name: String,
    pub(super) composition: Composition,
    pub(super) size: i64,
    /// The version of the function that children show.
    pub(super) version: &'static str,
}

impl<'a> Shop<'a> {
    /// Creates a composite in a namespace.
    pub(super) async fn create(world: &'a World, user: &str, name: &str, composition: &Composition) -> Self {
        let reference =
            json!({ "crossplane": { "compositionRef": { "name": composition.name } }, "size": 1 });
        Self::create_as(world, user, shops(), name, composition, reference).await
    }

    /// Creates a claim.
    pub(super) async fn claim(world: &'a World, user: &str, name: &str, composition: &Composition) -> Self {
        let reference = json!({ "compositionRef": { "name": composition.name }, "size": 1 });
        Self::create_as(world, user, stores(), name, composition, reference).await
    }

    async fn create_as(
        world: &'a World,
        user: &str,
        kind: ApiResource,
        name: &str,
        composition: &Composition,
        spec: Value,
    ) -> Self {
        let object = json!({
            "apiVersion": kind.api_version, "kind": kind.kind,
            "metadata": { "name": name, "namespace": NAMESPACE }, "spec": spec,
        });
        let object: DynamicObject = serde_json::from_value(object).unwrap();
        world.api(user, &kind).create(&PostParams::default(), &object).await.unwrap();
        let composition = composition.clone();
        Self { world, kind, name: name.to_owned(), composition, size: 1, version: "v1" }
    }

    /// A person asks for another size.
    pub(super) async fn resize(&mut self, user: &str, size: i64) {
        self.patch(user, json!({ "spec": { "size": size } })).await;
        self.size = size;
    }

    /// A person tells Crossplane to leave it alone.
    pub(super) async fn pause(&self, user: &str) {
        self.patch(user, json!({ "metadata": { "annotations": { "crossplane.io/paused": "true" } } })).await;
    }

    pub(super) async fn unpause(&self, user: &str) {
        self.patch(user, json!({ "metadata": { "annotations": { "crossplane.io/paused": null } } })).await;
    }

    /// A person has Crossplane look at it every second, and not only when something happens.
    pub(super) async fn poll(&self, user: &str) {
        self.patch(user, json!({ "metadata": { "annotations": { "crossplane.io/poll-interval": "1s" } } }))
            .await;
    }

    /// A person changes the composite that Crossplane made for a claim.
    pub(super) async fn edit_composite(&self, user: &str, size: i64) {
        let own = self.object().await;
        let patch = Patch::Merge(json!({ "spec": { "size": size } }));
        let api = self.world.api(user, &xstores());
        api.patch(self.composite_of(&own), &PatchParams::default(), &patch).await.unwrap();
    }

    /// A person wants no other revision of the Composition until somebody chooses one.
    pub(super) async fn hold_revision(&self, user: &str) {
        self.patch(user, json!({ "spec": { "crossplane": { "compositionUpdatePolicy": "Manual" } } })).await;
    }

    pub(super) async fn choose_newest_revision(&self, user: &str) {
        let ours = format!("crossplane.io/composition-name={}", self.composition.name);
        let revisions = self.world.api("watcher", &revisions());
        let revisions = revisions.list(&ListParams::default().labels(&ours)).await.unwrap();
        let newest = revisions.items.iter().max_by_key(|revision| revision.data["spec"]["revision"].as_i64());
        let reference = json!({ "name": newest.unwrap().metadata.name });
        self.patch(user, json!({ "spec": { "crossplane": { "compositionRevisionRef": reference } } })).await;
    }

    async fn patch(&self, user: &str, patch: Value) {
        let api = self.world.api(user, &self.kind);
        api.patch(&self.name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    /// A person changes the text in a child.
    pub(super) async fn edit_child(&self, user: &str, child: &str, text: &str) {
        let patch = json!({ "spec": { "forProvider": { "manifest": { "data": { "text": text } } } } });
        let children = self.children().await;
        let name = children[child]["metadata"]["name"].as_str().unwrap();
        let api = self.world.api(user, &objects());
        api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    pub(super) async fn delete(&self, user: &str) {
        self.world.api(user, &self.kind).delete(&self.name, &DeleteParams::default()).await.unwrap();
    }

    /// Whether neither it nor a child of it is left.
    pub(super) async fn is_gone(&self) -> Result<(), String> {
        let own = self.world.api("watcher", &self.kind).get_opt(&self.name).await.unwrap();
        let ours = ListParams::default().labels(&format!("crossplane.io/composite={}", self.name));
        let children = self.world.api("watcher", &objects()).list(&ours).await.unwrap().items.len();
        match own {
            None if children == 0 => Ok(()),
            own => Err(format!(
                "{} {}, {children} children",
                self.name,
                if own.is_some() { "is there" } else { "is gone" }
            )),
        }
    }

    /// The platform team applies its Composition.
    pub(super) fn recompose(&self) {
        self.world.apply(&self.composition.manifest());
    }

    /// Waits until it is ready at its present generation, and its children are what the Composition makes of it.
    pub(super) async fn is_done(&self) {
        let what =
            format_args!("{} {} ready, with all children at size {}", self.kind.kind, self.name, self.size);
        eventually(PATIENCE, what, async || self.look().await).await.unwrap();
    }

    async fn look(&self) -> Result<(), String> {
        let own = self.object().await;
        let generation = own["metadata"]["generation"].as_i64();
        for condition in ["Synced", "Ready"] {
            let found = condition_of(&own, condition);
            let up_to_date = found["observedGeneration"].as_i64() == generation;
            if found["status"] != "True" || !up_to_date {
                return Err(format!("{condition} at generation {generation:?}: {found}"));
            }
        }
        let children = self.children().await;
        let names: Vec<&str> = children.keys().map(String::as_str).collect();
        if names != self.composition.children {
            return Err(format!("children {names:?}"));
        }
        let expected = json!({
            "text": self.composition.text, "size": self.size.to_string(), "version": self.version,
        });
        for (name, child) in &children {
            let mut data = child["spec"]["forProvider"]["manifest"]["data"].clone();
            let previous = data.as_object_mut().and_then(|data| data.remove("previous"));
            let resolved = previous.is_none_or(|previous| previous != "");
            let ready = condition_of(child, "Ready")["status"] == "True";
            if data != expected || !resolved || !ready {
                return Err(format!("child {name}: {data}, ready: {ready}, resolved: {resolved}"));
            }
        }
        Ok(())
    }

    /// Whether it says that Kausality denied a change.
    pub(super) async fn is_stuck(&self) -> Result<(), String> {
        let synced = condition_of(&self.composite().await, "Synced").clone();
        let message = synced["message"].as_str().unwrap_or_default();
        let denied = synced["status"] == "False" && message.contains("kausality");
        if denied { Ok(()) } else { Err(synced.to_string()) }
    }

    /// The object itself.
    pub(super) async fn object(&self) -> Value {
        json!(self.world.api("watcher", &self.kind).get(&self.name).await.unwrap())
    }

    /// The composite: the object itself, or the one that Crossplane made for a claim.
    pub(super) async fn composite(&self) -> Value {
        let own = self.object().await;
        if self.kind == shops() {
            return own;
        }
        json!(self.world.api("watcher", &xstores()).get(self.composite_of(&own)).await.unwrap())
    }

    fn composite_of<'b>(&'b self, own: &'b Value) -> &'b str {
        own["spec"]["resourceRef"]["name"].as_str().unwrap_or(&self.name)
    }

    /// The children that are not being deleted, by the names that the Composition has for them.
    pub(super) async fn children(&self) -> BTreeMap<String, Value> {
        let own = self.object().await;
        let ours =
            ListParams::default().labels(&format!("crossplane.io/composite={}", self.composite_of(&own)));
        let children = self.world.api("watcher", &objects()).list(&ours).await.unwrap();
        let children = children.items.into_iter().map(|child| json!(child));
        let present = children.filter(|child| child["metadata"]["deletionTimestamp"].is_null());
        present
            .map(|child| {
                let annotations = &child["metadata"]["annotations"];
                let name = annotations["crossplane.io/composition-resource-name"].as_str().unwrap();
                (name.to_owned(), child)
            })
            .collect()
    }
}

/// A condition in the status; null if there is none.
fn condition_of<'a>(object: &'a Value, name: &str) -> &'a Value {
    let conditions = object["status"]["conditions"].as_array();
    let mut conditions = conditions.into_iter().flatten();
    conditions.find(|condition| condition["type"] == name).unwrap_or(&Value::Null)
}
