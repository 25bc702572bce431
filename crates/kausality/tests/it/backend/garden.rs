//! A cluster in which things drift: stacks, each with a ConfigMap that its operator wants otherwise.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use futures::{FutureExt as _, future::BoxFuture};
use kausality_sandbox::{Sandbox, Served, User};
use kausality_testbed::eventually;
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    core::{ApiResource, DynamicObject, GroupVersionKind},
};
use serde_json::{Value, json};

pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// Who drifts, and under which name it writes.
const OPERATOR: (&str, &str) = ("system:serviceaccount:stacks:operator", "operator");
const ALICE: (&str, &str) = ("alice", "kubectl");

/// How soon somebody tries again whose request was neither allowed nor denied.
const AGAIN: Duration = Duration::from_millis(20);

/// As many drifts as a namespace holds are too many for one: its ledger would be full.
const IN_ONE_NAMESPACE: u64 = 250;

/// The cluster.
pub(crate) struct Garden {
    sandbox: Sandbox,
    served: Served,
    pub(crate) admin: Client,
    operator: Client,
    alice: Client,
}

/// Which of all stacks, and of all children.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Plot(pub(crate) u64);

impl Plot {
    pub(crate) fn namespace(self) -> String {
        format!("garden-{}", self.0 / IN_ONE_NAMESPACE)
    }

    /// The name of the stack, and of its child.
    pub(crate) fn name(self) -> String {
        format!("plot-{}", self.0)
    }

    /// What its operator wants.
    pub(crate) fn colour(self) -> String {
        format!("drifted {}", self.0)
    }
}

/// What became of a request.
pub(crate) struct Outcome {
    /// The id of the drift, if it was denied as one.
    pub(crate) drift: Option<String>,
    /// How often nobody was there to decide.
    pub(crate) undecided: u64,
}

pub(crate) fn resource(group: &str, version: &str, kind: &str, plural: &str) -> ApiResource {
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural)
}

fn stack() -> ApiResource {
    resource("example.com", "v1", "Stack", "stacks")
}

fn object(value: Value) -> DynamicObject {
    serde_json::from_value(value).unwrap()
}

impl Garden {
    /// A cluster with all kinds of Kausality and a policy, and no plot yet.
    pub(crate) async fn new() -> Self {
        let sandbox = Sandbox::builder().build();
        let served = sandbox.serve(([127, 0, 0, 1], 0).into()).await.unwrap();
        let [admin, operator, alice] =
            ["admin", OPERATOR.0, ALICE.0].map(|name| sandbox.client(&User::admin(name)));
        let garden = Self { sandbox, served, admin, operator, alice };
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/crds");
        for entry in root.read_dir().unwrap() {
            let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
            garden.define(serde_saphyr::from_str(&text).unwrap()).await;
        }
        let anything = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let schema = json!({"type": "object", "properties": {"spec": anything, "status": anything}});
        garden
            .define(object(json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {"name": "stacks.example.com"},
                "spec": {"group": "example.com", "scope": "Namespaced",
                    "names": {"kind": "Stack", "listKind": "StackList", "plural": "stacks", "singular": "stack"},
                    "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                        "schema": {"openAPIV3Schema": schema}}]}})))
            .await;
        for served in [drifts(), stack()] {
            let api: Api<DynamicObject> = Api::all_with(garden.admin.clone(), &served);
            let served = async || api.list(&ListParams::default()).await;
            eventually(PATIENCE, "the kinds are served", served).await.unwrap();
        }
        garden.namespace("kausality-system").await;
        let watched = json!([{"apiGroups": ["example.com"], "resources": ["stacks"]},
            {"apiGroups": [""], "resources": ["configmaps", "secrets"]}]);
        let policy = json!({"apiVersion": "kausality.io/v1alpha1", "kind": "Kausality",
            "metadata": {"name": "garden"}, "spec": {"resources": watched, "mode": "enforce"}});
        let policies = Api::all_with(
            garden.admin.clone(),
            &resource("kausality.io", "v1alpha1", "Kausality", "kausalities"),
        );
        policies.create(&PostParams::default(), &object(policy)).await.unwrap();
        garden
    }

    async fn define(&self, definition: DynamicObject) {
        let kind =
            resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions");
        let api = Api::all_with(self.admin.clone(), &kind);
        api.create(&PostParams::default(), &definition).await.unwrap();
    }

    pub(crate) async fn namespace(&self, name: &str) {
        let api = Api::all_with(self.admin.clone(), &resource("", "v1", "Namespace", "namespaces"));
        api.create(&PostParams::default(), &object(json!({"metadata": {"name": name}}))).await.unwrap();
    }

    /// The way in for a process.
    pub(crate) fn kubeconfig(&self, user: &str) -> String {
        self.served.kubeconfig(&User::admin(user))
    }

    /// Makes a stack that has settled, with a child of this kind; before anybody looks, if that is to be no drift.
    pub(crate) async fn plant(&self, plot: Plot, mut child: DynamicObject) {
        let by = |(_, manager): (&str, &str)| PostParams {
            field_manager: Some(manager.to_owned()),
            ..PostParams::default()
        };
        let stacks = Api::namespaced_with(self.alice.clone(), &plot.namespace(), &stack());
        let made = json!({"apiVersion": "example.com/v1", "kind": "Stack", "metadata": {"name": plot.name()},
            "spec": {"colour": "red"}});
        let made = stacks.create(&by(ALICE), &object(made)).await.unwrap();
        let owner = json!([{"apiVersion": "example.com/v1", "kind": "Stack", "name": plot.name(),
            "uid": made.metadata.uid, "controller": true}]);
        child.metadata.name = Some(plot.name());
        child.metadata.owner_references = serde_json::from_value(owner).unwrap();
        let children = self.children(plot, &child.types.as_ref().unwrap().kind);
        children.create(&by(OPERATOR), &child).await.unwrap();
        self.settle(plot).await;
    }

    /// Its operator says that all is done. Whoever looks knows it by that.
    pub(crate) async fn settle(&self, plot: Plot) {
        let condition =
            json!({"type": "Ready", "status": "True", "message": format!("{:?}", Instant::now())});
        let status = json!({"observedGeneration": 1, "conditions": [condition]});
        let stacks: Api<DynamicObject> =
            Api::namespaced_with(self.operator.clone(), &plot.namespace(), &stack());
        let patch = Patch::Merge(json!({"status": status}));
        stacks.patch_status(&plot.name(), &patching(OPERATOR, false), &patch).await.unwrap();
    }

    fn children(&self, plot: Plot, kind: &str) -> Api<DynamicObject> {
        let plural = format!("{}s", kind.to_lowercase());
        Api::namespaced_with(self.operator.clone(), &plot.namespace(), &resource("", "v1", kind, &plural))
    }

    /// A ConfigMap to plant.
    pub(crate) fn config_map() -> DynamicObject {
        object(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}, "data": {"colour": "red"}}))
    }

    /// Its operator drifts until somebody decides. Whatever else is answered is a fault.
    pub(crate) async fn drift(&self, plot: Plot, kind: &str, patch: &Value) -> Outcome {
        let (api, by, patch) = (self.children(plot, kind), patching(OPERATOR, false), Patch::Merge(patch));
        decided(|| async { api.patch(&plot.name(), &by, &patch).await.map(drop) }.boxed()).await
    }

    /// The same, with the child's end.
    pub(crate) async fn drift_away(&self, plot: Plot, kind: &str) -> Outcome {
        let api = self.children(plot, kind);
        decided(|| async { api.delete(&plot.name(), &DeleteParams::default()).await.map(drop) }.boxed()).await
    }

    /// Waits until drifts of this plot are denied; enters none.
    pub(crate) async fn guarded(&self, plot: Plot, kind: &str) {
        let api = self.children(plot, kind);
        let patch = Patch::Merge(json!({"data": {"colour": "Z3VhcmRlZA=="}}));
        let denied = async || match api.patch(&plot.name(), &patching(OPERATOR, true), &patch).await {
            Err(kube::Error::Api(status)) if status.code == 403 => Ok(()),
            other => Err(format!("{other:?}")),
        };
        eventually(PATIENCE, "drifts are denied", denied).await.unwrap();
    }

    /// Somebody changes the stack, so that what its operator does is no drift any more.
    pub(crate) async fn change(&self, plot: Plot) -> Outcome {
        let api: Api<DynamicObject> = Api::namespaced_with(self.alice.clone(), &plot.namespace(), &stack());
        let (by, patch) = (patching(ALICE, false), Patch::Merge(json!({"spec": {"colour": "green"}})));
        decided(|| async { api.patch(&plot.name(), &by, &patch).await.map(drop) }.boxed()).await
    }

    /// All entries of the ledger.
    pub(crate) async fn ledger(&self) -> Vec<DynamicObject> {
        let api = Api::all_with(self.admin.clone(), &drifts());
        api.list(&ListParams::default()).await.unwrap().items
    }

    /// What was said in events.
    pub(crate) async fn events(&self) -> String {
        let api: Api<DynamicObject> =
            Api::all_with(self.admin.clone(), &resource("events.k8s.io", "v1", "Event", "events"));
        serde_json::to_string(&api.list(&ListParams::default()).await.unwrap()).unwrap()
    }

    /// What admission told the audit log.
    pub(crate) fn audit(&self) -> String {
        self.sandbox.audit(0).iter().map(|call| format!("{:?}\n", call.annotations)).collect()
    }
}

fn drifts() -> ApiResource {
    resource("kausality.io", "v1alpha1", "Drift", "drifts")
}

fn patching((_, manager): (&str, &str), dry_run: bool) -> PatchParams {
    PatchParams { field_manager: Some(manager.to_owned()), dry_run, ..PatchParams::default() }
}

/// Asks until there is a decision: while no webhook answers, the API server fails what it should have asked it about.
async fn decided<'a>(ask: impl Fn() -> BoxFuture<'a, Result<(), kube::Error>>) -> Outcome {
    let mut undecided = 0;
    loop {
        match ask().await {
            Ok(()) => return Outcome { drift: None, undecided },
            Err(kube::Error::Api(status)) if status.code == 403 => {
                let id =
                    status.message.split_once("kausality: drift ").and_then(|(_, rest)| rest.split_once(':'));
                let (id, _) = id.unwrap_or_else(|| panic!("{}", status.message));
                return Outcome { drift: Some(id.to_owned()), undecided };
            }
            Err(kube::Error::Api(status)) if status.code == 500 => undecided += 1,
            Err(error) => panic!("{error}"),
        }
        tokio::time::sleep(AGAIN).await;
    }
}
