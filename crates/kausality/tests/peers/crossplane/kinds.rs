//! What a platform team installs: definitions, Compositions, the function and access to the "cloud".

use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

/// Where composites, claims and their children are.
pub(super) const NAMESPACE: &str = "shop";

/// Where Crossplane and its provider have their ServiceAccounts.
pub(super) const SYSTEM: &str = "crossplane-system";

/// A composite in a namespace, as version 2 has it.
pub(super) fn shops() -> ApiResource {
    kind("example.org", "v1", "Shop", "shops")
}

/// A claim, and the composite that Crossplane makes for it, as version 1 has them.
pub(super) fn stores() -> ApiResource {
    kind("example.org", "v1", "Store", "stores")
}

pub(super) fn xstores() -> ApiResource {
    kind("example.org", "v1", "XStore", "xstores")
}

/// The children: managed resources of provider-kubernetes.
pub(super) fn objects() -> ApiResource {
    kind("kubernetes.m.crossplane.io", "v1alpha1", "Object", "objects")
}

/// Revisions of Compositions, which are in no namespace.
pub(super) fn revisions() -> ApiResource {
    kind("apiextensions.crossplane.io", "v1", "CompositionRevision", "compositionrevisions")
}

fn kind(group: &str, version: &str, kind: &str, plural: &str) -> ApiResource {
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural)
}

/// How the function makes children: `peers/crossplane/function` says what each means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Plain,
    Reactive,
    Staged,
}

impl Mode {
    pub(super) const ALL: [Self; 3] = [Self::Plain, Self::Reactive, Self::Staged];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Reactive => "reactive",
            Self::Staged => "staged",
        }
    }
}

/// A Composition, and what it makes of a composite.
#[derive(Debug, Clone)]
pub(super) struct Composition {
    pub(super) name: String,
    /// Shop or XStore.
    pub(super) of: &'static str,
    pub(super) mode: Mode,
    pub(super) children: Vec<&'static str>,
    pub(super) text: &'static str,
}

impl Composition {
    /// Three children, and the text `one`.
    pub(super) fn new(of: &'static str, name: &str, mode: Mode) -> Self {
        Self { name: name.to_owned(), of, mode, children: vec!["a", "b", "c"], text: "one" }
    }

    pub(super) fn manifest(&self) -> Value {
        let input = json!({
            "apiVersion": "example.org/v1", "kind": "Children",
            "mode": self.mode.name(), "children": self.children, "text": self.text,
        });
        json!({
            "apiVersion": "apiextensions.crossplane.io/v1", "kind": "Composition",
            "metadata": { "name": self.name },
            "spec": {
                "compositeTypeRef": { "apiVersion": "example.org/v1", "kind": self.of },
                "mode": "Pipeline",
                "pipeline": [{ "step": "children", "functionRef": { "name": "function" }, "input": input }],
            },
        })
    }
}

/// The definitions of both kinds of composites.
pub(super) fn definitions() -> Value {
    let size = json!({ "type": "object", "properties": { "size": { "type": "integer" } } });
    let schema = json!({ "openAPIV3Schema": { "type": "object", "properties": { "spec": size } } });
    let versions = json!([{ "name": "v1", "served": true, "referenceable": true, "schema": schema }]);
    let definition = |version: &str, name: &str, spec: Value| {
        json!({
            "apiVersion": format!("apiextensions.crossplane.io/{version}"),
            "kind": "CompositeResourceDefinition", "metadata": { "name": name }, "spec": spec,
        })
    };
    let shop = json!({
        "group": "example.org", "scope": "Namespaced", "versions": versions,
        "names": { "kind": "Shop", "plural": "shops" },
    });
    let store = json!({
        "group": "example.org", "versions": versions,
        "names": { "kind": "XStore", "plural": "xstores" },
        "claimNames": { "kind": "Store", "plural": "stores" },
    });
    list(vec![definition("v2", "shops.example.org", shop), definition("v1", "xstores.example.org", store)])
}

/// The function, as the package manager would show it. Nobody else may touch it: there is no package to pull.
pub(super) fn function_revision() -> Value {
    json!({
        "apiVersion": "pkg.crossplane.io/v1", "kind": "FunctionRevision",
        "metadata": {
            "name": "function-1",
            "labels": { "pkg.crossplane.io/package": "function" },
            "annotations": { "crossplane.io/paused": "true" },
        },
        "spec": { "desiredState": "Active", "image": "example.org/function:v1", "revision": 1 },
    })
}

/// Lets the provider act as a ServiceAccount on this same cluster, which is so the cloud.
pub(super) fn cloud(kubeconfig: &str) -> Value {
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "cloud", "namespace": SYSTEM },
        "stringData": { "kubeconfig": kubeconfig },
    });
    let reference = json!({ "name": "cloud", "namespace": SYSTEM, "key": "kubeconfig" });
    let config = json!({
        "apiVersion": "kubernetes.m.crossplane.io/v1alpha1", "kind": "ClusterProviderConfig",
        "metadata": { "name": "cloud" },
        "spec": { "credentials": { "source": "Secret", "secretRef": reference } },
    });
    list(vec![secret, config])
}

/// Namespaces, and ServiceAccounts that may do everything: an RBAC manager would give them less.
pub(super) fn accounts(names: &[&str]) -> Value {
    let namespace =
        |name: &str| json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
    let mut items = vec![namespace(NAMESPACE), namespace(SYSTEM)];
    for name in names {
        let metadata = json!({ "name": name, "namespace": SYSTEM });
        items.push(json!({ "apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata }));
        items.push(json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": { "name": name },
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin",
            },
            "subjects": [{ "kind": "ServiceAccount", "name": name, "namespace": SYSTEM }],
        }));
    }
    list(items)
}

fn list(items: Vec<Value>) -> Value {
    json!({ "apiVersion": "v1", "kind": "List", "items": items })
}
