//! A cluster with the kinds of the ledger, and what happens to drifts in it.

use std::{path::Path, time::Duration};

use jiff::{SignedDuration, Timestamp};
use kausality_api::drift::{Delivery, Drift, plural};
use kausality_sandbox::{Sandbox, User};
use kausality_testbed::eventually;
use kube::{
    Api, Client,
    api::{ListParams, Patch, PatchParams, PostParams},
    core::{ApiResource, DynamicObject, GroupVersionKind},
};
use serde_json::{Value, json};

pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A cluster.
pub(crate) struct Stage {
    client: Client,
    /// Who delivers.
    pub(crate) leader: Client,
    sandbox: Sandbox,
    /// The uid of the parent of all drifts.
    parent: String,
}

fn resource(namespace: &str) -> ApiResource {
    let kind = if namespace.is_empty() { "ClusterDrift" } else { "Drift" };
    let kind = GroupVersionKind::gvk("kausality.io", "v1alpha1", kind);
    ApiResource::from_gvk_with_plural(&kind, plural(namespace))
}

fn api_of(client: &Client, namespace: &str) -> Api<DynamicObject> {
    match namespace {
        "" => Api::all_with(client.clone(), &resource("")),
        namespace => Api::namespaced_with(client.clone(), namespace, &resource(namespace)),
    }
}

fn parents(client: &Client) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("", "v1", "ConfigMap");
    Api::default_namespaced_with(client.clone(), &ApiResource::from_gvk_with_plural(&kind, "configmaps"))
}

impl Stage {
    pub(crate) async fn new() -> Self {
        Self::with(Sandbox::builder().build(), &User::admin("leader")).await
    }

    /// One whose leader may do only this.
    pub(crate) async fn restricted(rules: Value) -> Self {
        let stage = Self::with(Sandbox::builder().rbac(true).build(), &User::new("leader", &[])).await;
        stage.permit(rules).await;
        let reference =
            json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "leader"});
        let subject = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "leader"});
        let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": "leader"}, "roleRef": reference, "subjects": [subject]});
        stage.apply("ClusterRoleBinding", "clusterrolebindings", binding).await;
        stage
    }

    /// Permits the leader this, and nothing else.
    pub(crate) async fn permit(&self, rules: Value) {
        let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
            "metadata": {"name": "leader"}, "rules": rules});
        self.apply("ClusterRole", "clusterroles", role).await;
    }

    async fn apply(&self, kind: &str, plural: &str, object: Value) {
        let kind = GroupVersionKind::gvk("rbac.authorization.k8s.io", "v1", kind);
        let resource = ApiResource::from_gvk_with_plural(&kind, plural);
        let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource);
        api.patch("leader", &PatchParams::apply("test").force(), &Patch::Apply(object)).await.unwrap();
    }

    async fn with(sandbox: Sandbox, leader: &User) -> Self {
        let client = sandbox.client(&User::admin("admin"));
        let kind = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
        let definitions: Api<DynamicObject> = Api::all_with(
            client.clone(),
            &ApiResource::from_gvk_with_plural(&kind, "customresourcedefinitions"),
        );
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/crds");
        for name in ["drifts", "clusterdrifts"] {
            let text = std::fs::read_to_string(folder.join(format!("kausality.io_{name}.yaml"))).unwrap();
            let definition: DynamicObject = serde_saphyr::from_str(&text).unwrap();
            definitions.create(&PostParams::default(), &definition).await.unwrap();
        }
        for namespace in ["", "default"] {
            let api = api_of(&client, namespace);
            let served =
                eventually(PATIENCE, "the kinds are served", async || api.list(&ListParams::default()).await);
            served.await.unwrap();
        }
        let parent = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "parent"}});
        let parent: DynamicObject = serde_json::from_value(parent).unwrap();
        let parent = parents(&client).create(&PostParams::default(), &parent).await.unwrap();
        let parent = parent.metadata.uid.unwrap();
        Self { client, leader: sandbox.client(leader), sandbox, parent }
    }

    /// Something drifts.
    pub(crate) async fn drift(&self, namespace: &str, id: &str, deliveries: &[Delivery]) {
        let kind = resource(namespace).kind;
        let now = Timestamp::now();
        let mut drift = json!({
            "apiVersion": "kausality.io/v1alpha1", "kind": kind, "metadata": {"name": id},
            "spec": {
                "id": id, "parentIntent": "i", "diff": "d", "summary": {"parent": "", "child": "", "actor": "", "change": ""},
                "parent": {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "default", "name": "parent",
                    "uid": self.parent, "lifecyclePhase": "Initialized"},
                "child": {"apiVersion": "v1", "kind": "Pod", "namespace": namespace, "name": id},
                "request": {"user": "u", "uid": format!("request-{id}"), "operation": "UPDATE"},
                "newObject": {"spec": {"of": id}},
            },
            "status": {"state": "Blocked", "count": 1, "firstSeen": now, "lastSeen": now, "countedAt": now, "deliveries": deliveries},
        });
        if !namespace.is_empty() {
            drift["metadata"]["namespace"] = json!(namespace);
        }
        let drift: DynamicObject = serde_json::from_value(drift).unwrap();
        api_of(&self.client, namespace).create(&PostParams::default(), &drift).await.unwrap();
    }

    /// It is over.
    pub(crate) async fn resolve(&self, namespace: &str, id: &str) {
        let at = Timestamp::now();
        let status = json!({"state": "Resolved", "resolution": {"reason": "ChildGone", "at": at}});
        self.patch(namespace, id, status).await;
    }

    /// It is seen again.
    pub(crate) async fn reopen(&self, namespace: &str, id: &str) {
        self.patch(namespace, id, json!({"state": "Blocked", "resolution": null, "deliveries": []})).await;
    }

    pub(crate) async fn patch(&self, namespace: &str, id: &str, status: Value) {
        let patch = Patch::Merge(json!({"status": status}));
        api_of(&self.client, namespace).patch(id, &PatchParams::default(), &patch).await.unwrap();
    }

    /// Silences the parent; or not any more.
    pub(crate) async fn snooze(&self, time: Option<SignedDuration>) {
        let until = time.map(|time| (Timestamp::now() + time).to_string());
        let patch = Patch::Merge(json!({"metadata": {"annotations": {"kausality.io/snooze": until}}}));
        parents(&self.client).patch("parent", &PatchParams::default(), &patch).await.unwrap();
    }

    pub(crate) async fn lose_parent(&self) {
        parents(&self.client).delete("parent", &Default::default()).await.unwrap();
    }

    pub(crate) async fn read(&self, namespace: &str, id: &str) -> Drift {
        let found = api_of(&self.client, namespace).get(id).await.unwrap();
        serde_json::from_value(serde_json::to_value(found).unwrap()).unwrap()
    }

    /// What an endpoint was told, as the ledger has it.
    pub(crate) async fn delivery(&self, namespace: &str, id: &str, endpoint: &str) -> Delivery {
        let deliveries = self.read(namespace, id).await.status.deliveries;
        deliveries.into_iter().find(|delivery| delivery.endpoint == endpoint).unwrap_or_default()
    }

    /// Waits until the ledger has what it should have of an endpoint.
    pub(crate) async fn until(
        &self,
        namespace: &str,
        id: &str,
        endpoint: &str,
        holds: impl Fn(&Delivery) -> bool,
    ) -> Delivery {
        let look = async || {
            let delivery = self.delivery(namespace, id, endpoint).await;
            if holds(&delivery) { Ok(delivery) } else { Err(format!("{delivery:?}")) }
        };
        eventually(PATIENCE, format!("{endpoint} has heard of {id}"), look).await.unwrap()
    }

    /// How many calls of this verb on this resource the leader has made.
    pub(crate) fn calls(&self, verb: &str, resource: &str) -> usize {
        let is_such = |user: &str, did: &str, what: &str| (user, did, what) == ("leader", verb, resource);
        let calls = self.sandbox.audit(0).into_iter();
        calls.filter(|call| is_such(&call.user, &call.verb, &call.resource)).count()
    }
}
