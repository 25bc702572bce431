//! The kinds of objects that programs are about, and what the API server does to each.

use kausality_fields::managed::Wire;
use serde_json::{Value, json};

pub(crate) const GROUP: &str = "ownership.kausality.io";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Deployment,
    Service,
    ConfigMap,
    /// A custom resource with every kind of list and map, defaults, and a status of its own.
    Widget,
    /// A custom resource with an embedded object and lists in lists. Its status is a field like any other.
    Fleet,
}

pub(crate) const KINDS: [Kind; 5] =
    [Kind::Deployment, Kind::Service, Kind::ConfigMap, Kind::Widget, Kind::Fleet];

impl Kind {
    pub(crate) fn api_version(self) -> &'static str {
        match self {
            Self::Deployment => "apps/v1",
            Self::Service | Self::ConfigMap => "v1",
            Self::Widget | Self::Fleet => "ownership.kausality.io/v1",
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Deployment => "Deployment",
            Self::Service => "Service",
            Self::ConfigMap => "ConfigMap",
            Self::Widget => "Widget",
            Self::Fleet => "Fleet",
        }
    }

    /// Where objects of the kind are.
    pub(crate) fn path(self) -> String {
        let plural = format!("{}s", self.name().to_lowercase());
        let root = if self.api_version() == "v1" { "api" } else { "apis" };
        format!("/{root}/{}/namespaces/default/{plural}", self.api_version())
    }

    pub(crate) fn is_built_in(self) -> bool {
        !matches!(self, Self::Widget | Self::Fleet)
    }

    pub(crate) fn wire(self) -> Wire {
        if self.is_built_in() { Wire::BuiltIn } else { Wire::Custom }
    }

    /// Whether the status is written apart from the rest.
    pub(crate) fn has_status(self) -> bool {
        matches!(self, Self::Deployment | Self::Service | Self::Widget)
    }

    /// What Go makes of an object that nothing is in.
    pub(crate) fn empty(self) -> Value {
        match self {
            Self::Deployment => json!({"metadata": {}, "spec": {"selector": null, "strategy": {},
                "template": {"metadata": {}, "spec": {"containers": null}}}, "status": {}}),
            Self::Service => json!({"metadata": {}, "spec": {}, "status": {"loadBalancer": {}}}),
            Self::ConfigMap => json!({"metadata": {}}),
            Self::Widget | Self::Fleet => json!({"apiVersion": self.api_version(), "kind": self.name()}),
        }
    }

    /// The fields that a request for this part of the object cannot write.
    pub(crate) fn ignored(self, subresource: &str) -> &'static [&'static [&'static str]] {
        match (self, subresource) {
            (Self::Deployment | Self::Service | Self::Widget, "") => &[&["status"]],
            (Self::Deployment, "status") => &[&["spec"], &["metadata", "labels"]],
            (Self::Service, "status") => &[&["spec"]],
            (Self::Widget, "status") => &[&["spec"]],
            _ => &[],
        }
    }

    /// Fields that are chosen after it is decided who owns what, if the request does not have them.
    pub(crate) fn allocated(self) -> &'static [&'static str] {
        match self {
            Self::Service => &["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"],
            _ => &[],
        }
    }

    /// The field that holds what is wanted.
    pub(crate) fn body(self) -> &'static str {
        if self == Self::ConfigMap { "data" } else { "spec" }
    }
}

/// The definitions of our own kinds.
pub(crate) fn definitions() -> [Value; 2] {
    let string = json!({"type": "string"});
    let widget = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {
            "size": {"type": "integer", "default": 3},
            "mode": {"type": "string", "default": "auto"},
            "ratio": {"type": "number"},
            "note": {"type": "string", "nullable": true},
            "amount": {"x-kubernetes-int-or-string": true},
            "ports": {"type": "array", "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["port", "protocol"],
                "items": {"type": "object", "required": ["port"], "properties": {
                    "port": {"type": "integer"}, "protocol": {"type": "string", "default": "TCP"},
                    "name": string, "options": {"type": "object", "properties": {
                        "a": string, "b": {"type": "boolean", "default": true}}}}}},
            "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": string},
            "numbers": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "integer"}},
            "args": {"type": "array", "x-kubernetes-list-type": "atomic", "items": string},
            "labels": {"type": "object", "additionalProperties": string},
            "frozen": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": string},
            "sub": {"type": "object", "properties": {"a": string, "b": {"type": "integer", "default": 1}}},
            "extra": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        }},
        "status": {"type": "object", "properties": {"phase": string, "count": {"type": "integer"},
            "conditions": {"type": "array", "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["type"], "items": {"type": "object", "required": ["type"],
                    "properties": {"type": string, "status": string}}}}},
    }});
    let fleet = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {
            "template": {"type": "object", "x-kubernetes-embedded-resource": true,
                "x-kubernetes-preserve-unknown-fields": true},
            "groups": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                "items": {"type": "object", "required": ["name"], "properties": {"name": string,
                    "weight": {"type": "integer"},
                    "members": {"type": "array", "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["id"],
                        "items": {"type": "object", "required": ["id"], "properties": {
                            "id": {"type": "integer"}, "host": string,
                            "roles": {"type": "array", "x-kubernetes-list-type": "set", "items": string}}}}}}},
        }},
        "status": {"type": "object", "properties": {"phase": string, "count": {"type": "integer"}}},
    }});
    [(Kind::Widget, widget), (Kind::Fleet, fleet)].map(|(kind, schema)| {
        let singular = kind.name().to_lowercase();
        let subresources = if kind.has_status() { json!({"status": {}}) } else { json!({}) };
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{singular}s.{GROUP}")},
            "spec": {"group": GROUP, "scope": "Namespaced",
                "names": {"kind": kind.name(), "listKind": format!("{}List", kind.name()),
                    "plural": format!("{singular}s"), "singular": singular},
                "versions": [{"name": "v1", "served": true, "storage": true, "subresources": subresources,
                    "schema": {"openAPIV3Schema": schema}}]}})
    })
}
