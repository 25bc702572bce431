//! The CustomResourceDefinitions, as the API server is to have them.
//!
//! `cargo xtask generate` writes them into `deploy/crds`.

use serde_json::{Value, json};

use crate::{
    GROUP,
    exception::{MAX_FIELD, MAX_SOURCE, PolicyKind},
    policy::{MAX_EVIDENCE, MAX_NAME, MAX_WORD},
};

mod drift;
mod exception;

/// How many entries a list of a policy holds at most, so that the API server can bound what checking them costs.
const MAX_ENTRIES: usize = 64;

/// What a name of a namespace, a plural name, and a value and a name of a label look like.
const NAME: &str = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";
const NAME_OR_STAR: &str = r"^(\*|[a-z0-9]([-a-z0-9]*[a-z0-9])?)$";
const LABEL_VALUE: &str = r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$";
const LABEL_KEY: &str = r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$";

/// All of them, with the names of their files.
#[must_use]
pub fn all() -> Vec<(&'static str, Value)> {
    vec![
        ("kausality.io_approvalpolicies.yaml", exception::definition(PolicyKind::ApprovalPolicy)),
        (
            "kausality.io_clusterapprovalpolicies.yaml",
            exception::definition(PolicyKind::ClusterApprovalPolicy),
        ),
        ("kausality.io_clusterdrifts.yaml", drift::definition(false)),
        ("kausality.io_drifts.yaml", drift::definition(true)),
        ("kausality.io_kausalities.yaml", kausality()),
    ]
}

/// The definition of `Kausality`.
#[must_use]
pub fn kausality() -> Value {
    let column = |name: &str, path: &str, what: &str| {
        let kind = if name == "Age" { "date" } else { "string" };
        json!({"name": name, "type": kind, "jsonPath": path, "description": what})
    };
    let condition = |name: &str, field: &str| format!(".status.conditions[?(@.type==\"{name}\")].{field}");
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("kausalities.{GROUP}")},
        "spec": {
            "group": GROUP,
            "scope": "Cluster",
            "names": {
                "kind": "Kausality", "listKind": "KausalityList", "plural": "kausalities", "singular": "kausality",
            },
            "versions": [{
                "name": "v1alpha1",
                "served": true,
                "storage": true,
                "subresources": {"status": {}},
                "additionalPrinterColumns": [
                    column("Mode", ".spec.mode", "What happens to a drift that nothing lets pass"),
                    column("Ready", &condition("Ready", "status"), "Whether the policy is in force"),
                    column("Reason", &condition("Ready", "reason"), "Why, in a word"),
                    column("Age", ".metadata.creationTimestamp", "How old the policy is"),
                ],
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "description": "What Kausality watches, where, and whether it logs drifts or denies them.",
                    "required": ["spec"],
                    "properties": {
                        "apiVersion": {"type": "string"},
                        "kind": {"type": "string"},
                        "metadata": {"type": "object"},
                        "spec": spec(),
                        "status": status(),
                    },
                    "x-kubernetes-validations": [{
                        "rule": format!("self.metadata.name.size() <= {MAX_NAME}"),
                        "message": format!("the name of a policy has at most {MAX_NAME} characters"),
                    }],
                }},
            }],
        },
    })
}

fn spec() -> Value {
    json!({
        "type": "object",
        "required": ["resources", "mode"],
        "properties": {
            "resources": {
                "type": "array", "minItems": 1, "maxItems": MAX_ENTRIES, "x-kubernetes-list-type": "atomic",
                "description": "The resources that the policy is about.",
                "items": resource_rule(),
            },
            "namespaces": {
                "type": "object",
                "description": "The namespaces that the policy is about; all, if absent.",
                "properties": {
                    "names": names("These namespaces."),
                    "selector": selector("The namespaces with these labels."),
                    "excluded": names("Never these namespaces."),
                },
            },
            "objectSelector": selector("The objects that the policy is about, by label; all, if absent."),
            "mode": mode("What happens to a drift that nothing lets pass."),
            "overrides": {
                "type": "array", "maxItems": MAX_ENTRIES, "x-kubernetes-list-type": "atomic",
                "description": "Other modes for some of it. The first that matches holds; what is left out matches everything.",
                "items": {
                    "type": "object",
                    "required": ["mode"],
                    "properties": {
                        "apiGroups": groups("In these API groups."),
                        "resources": resources("For these resources."),
                        "namespaces": names_of(NAME_OR_STAR, "In these namespaces."),
                        "mode": mode("The mode."),
                    },
                },
            },
            "settle": {
                "type": "string", "enum": ["steady", "observedGeneration", "quiet"],
                "description": "When a parent counts as settled: once it has been seen in steady state (the default); as soon as its \
                    observedGeneration equals its generation; or, where its status tells nothing, once its controller has been quiet \
                    for quietTime.",
            },
            "status": {
                "type": "object", "minProperties": 1,
                "description": "How parents of these resources show in their status how far their controller has got. A rule replaces \
                    the conditions, phases and counters that are known otherwise; observedGeneration must still be the generation.",
                "properties": {
                    "initialized": evidence("What shows that a parent has been set up for the first time."),
                    "settled": evidence("What shows that its controller has finished with its present intent."),
                },
            },
            "quietTime": {
                "type": "string", "pattern": "^([0-9]+(ms|s|m))+$", "maxLength": 20,
                "description": "How long a parent must have been in steady state, with no change to its children, to count as settled: \
                    30s, for instance. 5s if left out, one hour at most.",
            },
            "redact": list(
                &json!({"type": "string", "minLength": 1, "maxLength": MAX_FIELD}),
                "Fields of these resources that hold secrets, as spec.users[*].pin. They are shown as digests, as the values of Secrets \
                are, and as fields are whose names say it: token, password, clientSecret.",
            ),
            "inputs": {
                "type": "array", "maxItems": MAX_ENTRIES, "x-kubernetes-list-type": "atomic",
                "description": "What else the controllers of these resources act on. A change of an input by a person opens the \
                    parents that it reaches, as a change to their spec does, and comes first in the trace.",
                "items": input(),
            },
            "failurePolicy": {
                "type": "string", "enum": ["Ignore", "Fail"],
                "description": "What happens to a request that Kausality does not answer. Left out, it passes (Ignore) where the policy \
                    only logs, and fails where it enforces.",
            },
        },
    })
}

fn evidence(what: &str) -> Value {
    let word =
        |what: &str| json!({"type": "string", "minLength": 1, "maxLength": MAX_WORD, "description": what});
    json!({
        "type": "object", "minProperties": 1,
        "description": format!("{what} All that is named must hold."),
        "properties": {
            "conditions": {
                "type": "array", "minItems": 1, "maxItems": MAX_EVIDENCE, "x-kubernetes-list-type": "atomic",
                "description": "Conditions, each of which must be there with this status.",
                "items": {
                    "type": "object",
                    "required": ["type"],
                    "properties": {
                        "type": word("The type of the condition."),
                        "status": {
                            "type": "string", "enum": ["True", "False", "Unknown"], "default": "True",
                            "description": "Its status.",
                        },
                        "reason": word("Its reason; any, if left out."),
                    },
                },
            },
            "phases": {
                "type": "array", "minItems": 1, "maxItems": MAX_EVIDENCE, "x-kubernetes-list-type": "atomic",
                "description": "One of these must be status.phase, or status.state where there is no phase.",
                "items": {"type": "string", "minLength": 1, "maxLength": MAX_WORD},
            },
            "cel": {
                "type": "string", "minLength": 1, "maxLength": MAX_SOURCE,
                "description": "An expression in CEL over object, the parent with its status. One that cannot be evaluated \
                    is no evidence.",
            },
        },
    })
}

fn input() -> Value {
    json!({
        "type": "object",
        "required": ["apiGroups", "resources", "relation"],
        "properties": {
            "apiGroups": groups("The API groups, each by its name; \"\" is the core group."),
            "resources": resources_of(NAME, "The resources by their plural names."),
            "relation": {
                "type": "string", "enum": ["Namespace", "Cluster", "Reference", "Selector", "Metadata"],
                "description": "Which objects a parent acts on: those in its namespace, all, those that one of its fields names, \
                    those that a label selector in one of its fields selects, or its own labels and annotations.",
            },
            "field": {
                "type": "string", "maxLength": 253,
                "description": "The field of the parent, as spec.secretName, that names the objects or holds the label selector.",
            },
            "operations": list(
                &json!({"type": "string", "enum": ["CREATE", "UPDATE", "DELETE"]}),
                "Which changes count; all, if left out.",
            ),
        },
    })
}

fn resource_rule() -> Value {
    let mut groups = groups("The API groups, each by its name; \"\" is the core group.");
    groups["minItems"] = json!(1);
    groups["x-kubernetes-validations"] = json!([{
        "rule": "!self.exists(group, group == '*')",
        "message": "API groups must be named one by one: \"*\" is for resources only",
    }]);
    let mut resources = resources("The resources by their plural names, or \"*\" for all of the groups.");
    resources["minItems"] = json!(1);
    json!({
        "type": "object",
        "required": ["apiGroups", "resources"],
        "properties": {
            "apiGroups": groups,
            "resources": resources,
            "excluded": resources_of(NAME, "What \"*\" does not mean."),
        },
    })
}

fn list(items: &Value, what: &str) -> Value {
    json!({
        "type": "array", "maxItems": MAX_ENTRIES, "x-kubernetes-list-type": "atomic", "description": what, "items": items,
    })
}

fn groups(what: &str) -> Value {
    list(&json!({"type": "string", "maxLength": 253}), what)
}

fn resources(what: &str) -> Value {
    resources_of(NAME_OR_STAR, what)
}

fn resources_of(pattern: &str, what: &str) -> Value {
    list(&json!({"type": "string", "maxLength": 253, "pattern": pattern}), what)
}

fn names(what: &str) -> Value {
    names_of(NAME, what)
}

fn names_of(pattern: &str, what: &str) -> Value {
    list(&json!({"type": "string", "minLength": 1, "maxLength": 63, "pattern": pattern}), what)
}

fn mode(what: &str) -> Value {
    json!({"type": "string", "enum": ["log", "enforce"], "description": what})
}

/// Keys of `matchLabels` are for admission to check: no schema can speak of them, and a rule would be too expensive.
fn selector(what: &str) -> Value {
    let value = json!({"type": "string", "maxLength": 63, "pattern": LABEL_VALUE});
    json!({
        "type": "object",
        "description": what,
        "x-kubernetes-map-type": "atomic",
        "properties": {
            "matchLabels": {"type": "object", "maxProperties": MAX_ENTRIES, "additionalProperties": value},
            "matchExpressions": {
                "type": "array", "maxItems": MAX_ENTRIES, "x-kubernetes-list-type": "atomic",
                "items": {
                    "type": "object",
                    "required": ["key", "operator"],
                    "properties": {
                        "key": {"type": "string", "maxLength": 317, "pattern": LABEL_KEY},
                        "operator": {"type": "string", "enum": ["In", "NotIn", "Exists", "DoesNotExist"]},
                        "values": list(&value, "What In and NotIn speak of."),
                    },
                    "x-kubernetes-validations": [{
                        "rule": "(self.operator in ['In', 'NotIn']) == (has(self.values) && self.values.size() > 0)",
                        "message": "In and NotIn need values, Exists and DoesNotExist have none",
                    }],
                },
            },
        },
    })
}

fn status() -> Value {
    json!({
        "type": "object",
        "properties": {
            "observedGeneration": {"type": "integer", "format": "int64"},
            "parents": {
                "type": "array",
                "maxItems": MAX_ENTRIES,
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["apiGroup", "kind"],
                "description": "The kinds of parents of what this policy covers that it does not name itself: Kausality may read them, and is asked about decisions on them.",
                "items": {
                    "type": "object",
                    "required": ["apiGroup", "kind", "resource"],
                    "properties": {
                        "apiGroup": {"type": "string", "maxLength": 253},
                        "kind": {"type": "string", "minLength": 1, "maxLength": 63},
                        "resource": {"type": "string", "minLength": 1, "maxLength": 63},
                    },
                },
            },
            "unjudged": {
                "type": "array",
                "maxItems": MAX_ENTRIES,
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["apiGroup", "kind"],
                "description": "The kinds of parents that cannot be judged without settle: quiet or status.settled: nothing in their status shows when their controllers are done.",
                "items": {
                    "type": "object",
                    "required": ["apiGroup", "kind", "resource", "lastSeen"],
                    "properties": {
                        "apiGroup": {"type": "string", "maxLength": 253},
                        "kind": {"type": "string", "minLength": 1, "maxLength": 63},
                        "resource": {"type": "string", "minLength": 1, "maxLength": 63},
                        "lastSeen": {"type": "string", "format": "date-time"},
                    },
                },
            },
            "conditions": conditions(),
        },
    })
}

/// Conditions, as Kubernetes writes them.
fn conditions() -> Value {
    json!({
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "required": ["type", "status", "reason", "message", "lastTransitionTime"],
            "properties": {
                "type": {"type": "string", "maxLength": 316},
                "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
                "reason": {"type": "string", "minLength": 1, "maxLength": 1024},
                "message": {"type": "string", "maxLength": 32768},
                "lastTransitionTime": {"type": "string", "format": "date-time"},
                "observedGeneration": {"type": "integer", "format": "int64", "minimum": 0},
            },
        },
    })
}
