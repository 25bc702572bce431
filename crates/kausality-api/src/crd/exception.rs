//! The definitions of `ApprovalPolicy` and `ClusterApprovalPolicy`.

use serde_json::{Value, json};

use super::conditions;
use crate::{
    GROUP,
    exception::{MAX_FIELD, MAX_NAMED, MAX_RULES, MAX_SOURCE, PolicyKind},
};

/// The definition of one of the two.
pub(super) fn definition(of: PolicyKind) -> Value {
    let (kind, plural, short, scope) = match of {
        PolicyKind::ApprovalPolicy => (of.as_str(), of.plural(), "ap", "Namespaced"),
        PolicyKind::ClusterApprovalPolicy => (of.as_str(), of.plural(), "cap", "Cluster"),
    };
    let column = |name: &str, kind: &str, path: &str, what: &str| json!({"name": name, "type": kind, "jsonPath": path, "description": what});
    let compiled = |field: &str| format!(".status.conditions[?(@.type==\"Compiled\")].{field}");
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{GROUP}")},
        "spec": {
            "group": GROUP,
            "scope": scope,
            "names": {
                "kind": kind, "listKind": format!("{kind}List"), "plural": plural, "singular": kind.to_lowercase(),
                "shortNames": [short],
            },
            "versions": [{
                "name": "v1alpha1",
                "served": true,
                "storage": true,
                "subresources": {"status": {}},
                "additionalPrinterColumns": [
                    column("Compiled", "string", &compiled("status"), "Whether its rules hold"),
                    column("Reason", "string", &compiled("reason"), "Why, in a word"),
                    column("Matches", "integer", ".status.matches", "How often its rules have matched"),
                    column("Last Matched", "date", ".status.lastMatched", "When one last did"),
                    column("Age", "date", ".metadata.creationTimestamp", "How old the policy is"),
                ],
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "description": "Changes that pass, or must not, without anybody being asked each time.",
                    "required": ["spec"],
                    "properties": {
                        "apiVersion": {"type": "string"},
                        "kind": {"type": "string"},
                        "metadata": {"type": "object"},
                        "spec": {
                            "type": "object",
                            "required": ["rules"],
                            "properties": {"rules": {
                                "type": "array", "minItems": 1, "maxItems": MAX_RULES, "x-kubernetes-list-type": "atomic",
                                "description": "Each holds by itself. Those that deny come first.",
                                "items": rule(of),
                            }},
                        },
                        "status": status(),
                    },
                }},
            }],
        },
    })
}

fn text(max: usize, what: &str) -> Value {
    json!({"type": "string", "minLength": 1, "maxLength": max, "description": what})
}

fn words(words: &[&str], what: &str) -> Value {
    json!({"type": "string", "enum": words, "description": what})
}

fn list(items: &Value, what: &str) -> Value {
    json!({
        "type": "array", "maxItems": MAX_NAMED, "x-kubernetes-list-type": "atomic", "description": what, "items": items,
    })
}

/// What a misspelt field is kept in: without it, the rule would mean more than was written. It is refused by whoever reads
/// the whole.
const KEPT: &str = "x-kubernetes-preserve-unknown-fields";

fn rule(of: PolicyKind) -> Value {
    let subject = json!({
        "type": "object",
        KEPT: true,
        "required": ["kind", "name"],
        "properties": {
            "kind": words(&["User", "Group", "ServiceAccount"], "What they are."),
            "name": text(253, "Their name; for users and service accounts, \"*\" stands for anything."),
            "namespace": text(63, "Of a service account."),
        },
    });
    let (required, who, place) = match of {
        PolicyKind::ApprovalPolicy => (
            json!(["apiVersion", "kind"]),
            "Who makes the change; by default the service account that has the policy's name and namespace.",
            "The child's namespace; by default the policy's own. Others can be named only where the subjects are service accounts \
                of the policy's namespace.",
        ),
        PolicyKind::ClusterApprovalPolicy => (
            json!(["apiVersion", "kind", "subjects"]),
            "Who makes the change.",
            "The child's namespace; by default any.",
        ),
    };
    let cel = |what: &str| text(MAX_SOURCE, what);
    json!({
        "type": "object",
        KEPT: true,
        "required": required,
        "properties": {
            "action": words(&["allow", "deny"], "Whether matching changes pass (the default), or are denied."),
            "causes": list(
                &words(&["drift", "origin"], "A cause."),
                "Which changes it is about: drifts (the default), or changes by others than the controller.",
            ),
            "apiVersion": text(317, "The child's apiVersion. \"*\" stands for anything, here and in the next three."),
            "kind": text(63, "The child's kind."),
            "namespace": text(63, place),
            "name": text(253, "The child's name."),
            "subjects": list(&subject, who),
            "exceptSubjects": list(&subject, "But not these."),
            "operations": list(
                &words(&["CREATE", "UPDATE", "DELETE"], "An operation."),
                "What is done to the child; by default anything.",
            ),
            "prereqs": {
                "type": "object",
                KEPT: true,
                "description": "What must hold before the change.",
                "required": ["cel"],
                "properties": {"cel": cel("In CEL, where `object` is the child as it is stored.")},
            },
            "match": {
                "type": "object",
                KEPT: true,
                "description": "What must hold of the change. All that is there must.",
                "properties": {
                    "cel": cel("In CEL, where `object` is the child as it will be, and `oldObject` as it is stored."),
                    "regexp": text(MAX_SOURCE, "A pattern for all that is wanted of the child, as JSON without blanks and with sorted keys."),
                    "fields": list(&text(MAX_FIELD, "A path."), "Only these fields, and what lies below them, change."),
                },
            },
            "mode": words(&["once", "generation", "always"], "For how long a child may be changed once it has been let pass: for one change, while \
                the parent's generation stays the same, or always (the default)."),
            "expiry": {"type": "string", "format": "date-time", "description": "Void from this time on."},
            "reason": text(1024, "Why, for people."),
            "dryRun": {"type": "boolean", "description": "Whether it is only told what the rule would do."},
        },
    })
}

fn status() -> Value {
    let number =
        |what: &str| json!({"type": "integer", "format": "int64", "minimum": 0, "description": what});
    let time = |what: &str| json!({"type": "string", "format": "date-time", "description": what});
    json!({
        "type": "object",
        "properties": {
            "observedGeneration": {"type": "integer", "format": "int64"},
            "matches": number("How often its rules have matched."),
            "lastMatched": time("When one last did, as far as has been written: every 30 s at most."),
            "rules": {
                "type": "array", "maxItems": MAX_RULES,
                "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["rule"],
                "items": {
                    "type": "object",
                    "required": ["rule", "matches", "lastMatched"],
                    "properties": {
                        "rule": number("Its place in the policy."),
                        "matches": number("How often it has matched."),
                        "lastMatched": time("When it last did."),
                        "mark": {
                            "type": "string",
                            "description": "What the rule is about, as a digest. Its count follows it to another place.",
                        },
                    },
                },
            },
            "conditions": conditions(),
        },
    })
}
