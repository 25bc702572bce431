//! The definitions of `Drift` and `ClusterDrift`.

use serde_json::{Value, json};

use crate::{
    GROUP,
    drift::{MAX_CHANGES, MAX_EXPLANATION, MAX_STEPS, MAX_VALUE},
};

/// The definition of `Drift`, or of its twin for children without a namespace.
pub(super) fn definition(namespaced: bool) -> Value {
    let (kind, plural, short, scope) = match namespaced {
        true => ("Drift", "drifts", "dr", "Namespaced"),
        false => ("ClusterDrift", "clusterdrifts", "cdr", "Cluster"),
    };
    let column = |name: &str, kind: &str, path: &str, what: &str| json!({"name": name, "type": kind, "jsonPath": path, "description": what});
    let mut wide =
        column("Manager", "string", ".spec.request.fieldManager", "The field manager of the request");
    wide["priority"] = json!(1);
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{GROUP}")},
        "spec": {
            "group": GROUP,
            "scope": scope,
            "names": {
                "kind": kind, "listKind": format!("{kind}List"), "plural": plural, "singular": kind.to_lowercase(),
                // No category: `kausality` is the policy.
                "shortNames": [short],
            },
            "versions": [{
                "name": "v1alpha1",
                "served": true,
                "storage": true,
                "additionalPrinterColumns": [
                    column("State", "string", ".status.state", "What has become of it"),
                    column("Parent", "string", ".spec.summary.parent", "The object whose intent is unchanged"),
                    column("Child", "string", ".spec.summary.child", "The object that changed, or was to"),
                    column("Actor", "string", ".spec.summary.actor", "Who changed it, or wanted to"),
                    column("Change", "string", ".spec.summary.change", "What changed"),
                    column("Count", "integer", ".status.count", "How often it was seen"),
                    column("Age", "date", ".status.firstSeen", "When it was first seen"),
                    wide,
                ],
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "description": "A change by a controller that nobody asked for, and that nothing let pass. Kausality writes it; \
                        people decide about it with `kausality approve` and `kausality reject`.",
                    "required": ["spec", "status"],
                    "properties": {
                        "apiVersion": {"type": "string"},
                        "kind": {"type": "string"},
                        "metadata": {"type": "object"},
                        "spec": spec(),
                        "status": status(),
                    },
                }},
            }],
        },
    })
}

fn text(what: &str) -> Value {
    json!({"type": "string", "description": what})
}

fn number(what: &str) -> Value {
    json!({"type": "integer", "format": "int64", "description": what})
}

fn time(what: &str) -> Value {
    json!({"type": "string", "format": "date-time", "description": what})
}

/// Anything, as a whole: else, managed fields would name each of its fields once more.
fn anything(what: &str) -> Value {
    json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "x-kubernetes-map-type": "atomic",
        "description": what})
}

fn object(what: &str, required: &[&str], properties: &Value) -> Value {
    let mut object = json!({"type": "object", "description": what, "properties": properties});
    if !required.is_empty() {
        object["required"] = json!(required);
    }
    object
}

fn spec() -> Value {
    let reference = json!({
        "apiVersion": text("Its apiVersion."),
        "kind": text("Its kind."),
        "namespace": text("Its namespace, if it has one."),
        "name": text("Its name."),
        "uid": text("Its uid."),
        "generation": number("Its generation."),
    });
    let mut parent = reference.clone();
    parent["observedGeneration"] = number("The generation that its controller has acted on.");
    parent["controllerManager"] = text("The field manager that writes its status.");
    parent["lifecyclePhase"] = text("Its lifecycle phase.");
    let value = |what: &str| json!({"type": "string", "maxLength": 2 * MAX_VALUE, "description": what});
    object(
        "What happened.",
        &["id", "parent", "parentIntent", "child", "request", "diff", "summary"],
        &json!({
            "id": text("Names the drift by its content."),
            "parent": object("The object whose intent is unchanged.", &["apiVersion", "kind", "name"], &parent),
            "parentIntent": text("The hash of the parent's intent. With another one the drift is over."),
            "child": object("The object that changed, or was to.", &["apiVersion", "kind", "name"], &reference),
            "request": object("The request in which it was first seen.", &["user", "uid", "operation"], &json!({
                "user": text("Who sent it."),
                "groups": {"type": "array", "items": {"type": "string"}, "description": "The groups they are in."},
                "uid": text("Its uid."),
                "fieldManager": text("The field manager."),
                "operation": text("CREATE, UPDATE or DELETE."),
                "dryRun": {"type": "boolean", "description": "Whether it was a trial."},
            })),
            "diff": text("The hash of the change, by which exactly this one can be approved."),
            "changes": {
                "type": "array", "maxItems": MAX_CHANGES, "description": "What changed, field by field.",
                "items": {"type": "object", "required": ["path"], "properties": {
                    "path": text("Where."),
                    "old": value("What was there, as JSON; nothing, if it was not there."),
                    "new": value("What is to be there, as JSON; nothing, if it is to go."),
                    "oldOwner": text("The field managers that owned it."),
                    "newOwner": text("Those that will."),
                }},
            },
            "moreChanges": number("How many more changes there are."),
            "trace": {
                "type": "array", "items": anything("A hop."),
                "description": "Who last asked for something of the parent, and how it came to it.",
            },
            "oldObject": anything("The child before, on UPDATE. Values of Secrets are digests."),
            "newObject": anything("The child as the controller wants it; on DELETE, as it is. Absent, as the one before, if both do not fit the entry."),
            "summary": object("The same in a few words.", &[], &json!({
                "parent": text("The parent."),
                "child": text("The child."),
                "actor": text("Who changed it, or wanted to."),
                "change": text("What changed."),
            })),
            "deniedBy": text("The rule of a policy that denied it, where it is not a drift: somebody other than the parent's controller acted."),
        }),
    )
}

fn status() -> Value {
    let line = |what: &str| json!({"type": "string", "maxLength": MAX_EXPLANATION, "description": what});
    object(
        "What has become of it.",
        &["state", "count", "firstSeen", "lastSeen", "countedAt"],
        &json!({
            "state": {
                "type": "string", "enum": ["Blocked", "Rejected", "Denied", "Passed", "Resolved"],
                "description": "Denied for want of an approval; denied, since somebody rejected it or a rule of a policy denies such drifts; not a drift, and denied by a rule of a policy for want of an approval; let pass in log mode; or over.",
            },
            "count": number("How often it was seen."),
            "firstSeen": time("When it was first seen."),
            "lastSeen": time("When it was last seen, as far as has been written: every 30 s at most."),
            "countedAt": time("When the count was last written."),
            "explanation": {
                "type": "array", "maxItems": MAX_STEPS,
                "description": "How it came to that state: the rules that were looked at when it was last seen, in order.",
                "items": {"type": "object", "required": ["rule", "finding"], "properties": {
                    "rule": text("The rule, in a word."),
                    "finding": line("What it found."),
                    "evidence": {"type": "array", "items": line("A line."), "description": "What it looked at to find that."},
                    "decided": {"type": "boolean", "description": "Whether the decision rests on it."},
                }},
            },
            "resolution": object("Why it is over.", &["reason", "at"], &json!({
                "reason": text("In a word."),
                "at": time("When."),
                "by": text("By whom, where somebody decided it."),
                "message": text("For people."),
            })),
            "decision": object("What a person decided about it.", &["action", "at"], &json!({
                "action": text("approve or reject."),
                "mode": text("How long an approval lasts."),
                "by": text("Who."),
                "at": time("When it was noticed."),
                "reason": text("Why."),
            })),
            "deliveries": {
                "type": "array", "description": "What endpoints have been told.",
                "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["endpoint"],
                "items": {"type": "object", "required": ["endpoint"], "properties": {
                    "endpoint": text("The endpoint, by its name."),
                    "detected": time("When it took over that the drift was detected."),
                    "resolved": time("When it took over that the drift was resolved."),
                    "error": text("Why the last attempt failed."),
                }},
            },
        }),
    )
}
