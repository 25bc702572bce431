//! What each kind does to an object before it is stored: whose word counts for which part, and its generation.

use serde_json::{Value, json};

use crate::defaults::TEMPLATE_GENERATION;
use crate::kinds::{Definition, Generation};
use crate::metadata;
use crate::types::quantity;

/// What is not intent.
const NOT_INTENT: [&str; 4] = ["apiVersion", "kind", "metadata", "status"];

/// An object that is about to be created.
pub(crate) fn create(definition: &Definition, object: &mut Value, now: &str) {
    let fields = metadata::of(object);
    for key in
        ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "resourceVersion", "generation"]
    {
        fields.remove(key);
    }
    fields.insert("creationTimestamp".to_owned(), now.into());
    if definition.generation != Generation::None {
        fields.insert("generation".to_owned(), 1.into());
    }
    // A node is registered with its status.
    let registered = definition.is("", "nodes") && object.get("status").is_some_and(Value::is_object);
    if definition.status && !registered {
        let status = definition.empty.get("status").filter(|_| !definition.is_custom()).cloned();
        metadata::set(metadata::as_map(object), "status", status);
    }
    match definition.kind.as_str() {
        _ if definition.is_custom() => {}
        "Namespace" => {
            // A generated name is known only now.
            crate::defaults::apply("Namespace", object);
            let finalizers =
                metadata::member(object, "spec").entry("finalizers").or_insert_with(|| json!([]));
            if let Some(list) = finalizers.as_array_mut()
                && !list.iter().any(|finalizer| finalizer == "kubernetes")
            {
                list.push("kubernetes".into());
            }
            object["status"] = json!({"phase": "Active"});
        }
        "Pod" => object["status"] = json!({"phase": "Pending", "qosClass": quality(object)}),
        "PersistentVolumeClaim" => object["status"] = json!({"phase": "Pending"}),
        "PersistentVolume" => object["status"] = json!({"phase": "Pending"}),
        "CustomResourceDefinition" => crate::kinds::custom::establish(object, now),
        "APIService" => crate::aggregation::judge(object, now),
        "Job" => {
            crate::defaults::job_at_create(object);
            let labels = object.pointer("/spec/template/metadata/labels").cloned();
            let fields = metadata::of(object);
            if fields.get("labels").is_none() {
                metadata::set(fields, "labels", labels);
            }
        }
        "DaemonSet" => set_template_generation(object, 1),
        _ => {}
    }
}

fn set_template_generation(object: &mut Value, generation: u64) {
    let annotations = metadata::of(object).entry("annotations").or_insert_with(|| json!({}));
    metadata::as_map(annotations).insert(TEMPLATE_GENERATION.to_owned(), generation.to_string().into());
}

fn template_generation(object: &Value) -> u64 {
    let annotation = object["metadata"]["annotations"][TEMPLATE_GENERATION].as_str();
    annotation.and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// An object that is about to be stored in place of another. Gives it the generation that it deserves.
pub(crate) fn update(
    definition: &Definition,
    subresource: &str,
    live: &Value,
    object: &mut Value,
    now: &str,
) {
    for key in [
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
        "selfLink",
    ] {
        metadata::take(object, live, key);
    }
    match subresource {
        "status" if definition.is_custom() => {
            let status = object.get("status").cloned();
            let entries = metadata::member_of(object, "managedFields").cloned();
            *object = live.clone();
            metadata::set(metadata::as_map(object), "status", status);
            metadata::set(metadata::of(object), "managedFields", entries);
        }
        "status" => {
            keep_intent(live, object);
            match definition.kind.as_str() {
                "Deployment" => metadata::take(object, live, "labels"),
                "Pod" => metadata::take(object, live, "ownerReferences"),
                _ => {}
            }
        }
        "finalize" => keep(live, object, "status"),
        _ => {
            if definition.status {
                keep(live, object, "status");
            }
            match definition.kind.as_str() {
                _ if definition.is_custom() => {}
                "Namespace" => {
                    let finalizers = live.pointer("/spec/finalizers").cloned();
                    metadata::set(metadata::member(object, "spec"), "finalizers", finalizers);
                }
                "CustomResourceDefinition" => crate::kinds::custom::establish(object, now),
                "APIService" => crate::aggregation::judge(object, now),
                "Service" => drop_of_other_types(live, object),
                "DaemonSet" => {
                    let changed = live["spec"]["template"] != object["spec"]["template"];
                    set_template_generation(object, template_generation(live) + u64::from(changed));
                }
                _ => {}
            }
            if bumps(definition.generation, live, object) {
                let generation = metadata::generation(live) + 1;
                metadata::of(object).insert("generation".to_owned(), generation.into());
            }
        }
    }
}

/// A service that becomes one of another type loses what only the old type has, if nobody has changed that, too.
fn drop_of_other_types(live: &Value, object: &mut Value) {
    const ADDRESSED: [&str; 3] = ["ClusterIP", "NodePort", "LoadBalancer"];
    let fields: [(&str, &[&str]); 8] = [
        ("clusterIP", &ADDRESSED),
        ("clusterIPs", &ADDRESSED),
        ("ipFamilies", &ADDRESSED),
        ("ipFamilyPolicy", &ADDRESSED),
        ("internalTrafficPolicy", &ADDRESSED),
        ("externalTrafficPolicy", &ADDRESSED[1..]),
        ("allocateLoadBalancerNodePorts", &ADDRESSED[2..]),
        ("loadBalancerClass", &ADDRESSED[2..]),
    ];
    let type_of = |service: &Value| metadata::text(service, "/spec/type").to_owned();
    let (old, new) = (type_of(live), type_of(object));
    let spec = metadata::member(object, "spec");
    for (field, types) in fields {
        let lost = types.contains(&old.as_str()) && !types.contains(&new.as_str());
        if lost && spec.get(field) == live["spec"].get(field) {
            spec.remove(field);
        }
    }
    if old == "LoadBalancer" && new != old {
        metadata::member(object, "status").insert("loadBalancer".to_owned(), json!({}));
    }
    let spec = metadata::member(object, "spec");
    if ADDRESSED[1..].contains(&old.as_str()) && !ADDRESSED[1..].contains(&new.as_str()) {
        let before = live["spec"]["ports"].as_array().cloned().unwrap_or_default();
        for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
            if before.iter().any(|old| old["port"] == port["port"] && old["nodePort"] == port["nodePort"]) {
                metadata::as_map(port).remove("nodePort");
            }
        }
    }
}

/// Whether a change gets a generation of its own.
fn bumps(generation: Generation, live: &Value, object: &Value) -> bool {
    let intent = || differs(live, object, &NOT_INTENT);
    match generation {
        Generation::None => false,
        Generation::Intent => intent(),
        Generation::IntentOrAnnotations => intent() || annotations(live) != annotations(object),
        Generation::AllButMetadata => differs(live, object, &NOT_INTENT[..3]),
    }
}

fn annotations(object: &Value) -> Option<&serde_json::Map<String, Value>> {
    let annotations = metadata::member_of(object, "annotations").and_then(Value::as_object);
    annotations.filter(|annotations| !annotations.is_empty())
}

/// Whether two objects differ outside of some fields.
fn differs(one: &Value, other: &Value, except: &[&str]) -> bool {
    let (Some(one), Some(other)) = (one.as_object(), other.as_object()) else { return one != other };
    let kept = |object: &serde_json::Map<String, Value>| {
        object.iter().filter(|(key, _)| !except.contains(&key.as_str())).count()
    };
    kept(one) != kept(other)
        || one
            .iter()
            .filter(|(key, _)| !except.contains(&key.as_str()))
            .any(|(key, value)| other.get(key) != Some(value))
}

fn keep(live: &Value, object: &mut Value, key: &str) {
    let value = live.get(key).cloned();
    metadata::set(metadata::as_map(object), key, value);
}

fn keep_intent(live: &Value, object: &mut Value) {
    let Some(live) = live.as_object() else { return };
    let fields = metadata::as_map(object);
    fields.retain(|key, _| NOT_INTENT.contains(&key.as_str()));
    for (key, value) in live.iter().filter(|(key, _)| !NOT_INTENT.contains(&key.as_str())) {
        fields.insert(key.clone(), value.clone());
    }
}

/// The quality of service that a Pod asks for.
fn quality(pod: &Value) -> &'static str {
    let containers = ["containers", "initContainers"];
    let containers = containers.iter().filter_map(|key| pod["spec"][key].as_array()).flatten();
    let (mut any, mut all) = (false, true);
    for container in containers {
        let amount = |value: &Value| value.as_str().and_then(quantity::amount).filter(|amount| *amount > 0);
        let part = |part: &str, name: &str| container["resources"][part].get(name).and_then(amount);
        for name in ["cpu", "memory"] {
            let (limit, request) = (part("limits", name), part("requests", name));
            any |= limit.is_some() || request.is_some();
            all &= limit.is_some() && (request.is_none() || request == limit);
        }
    }
    match (any, all) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::Registry;

    fn check(path: (&str, &str), subresource: &str, change: impl Fn(&mut Value), expected: u64) {
        let registry = Registry::built_in();
        let definition = registry.get(path.0, "v1", path.1).unwrap();
        let live = json!({"metadata": {"name": "x", "generation": 3}, "spec": {"replicas": 1}, "status": {}});
        let mut new = live.clone();
        change(&mut new);
        update(definition, subresource, &live, &mut new, "");
        assert_eq!(metadata::generation(&new), expected, "{path:?} {new}");
    }

    /// Facts 10 and 11.
    #[test]
    fn generations_follow_the_rules_of_their_kinds() {
        let annotate = |object: &mut Value| object["metadata"]["annotations"] = json!({"a": "b"});
        let scale = |object: &mut Value| object["spec"]["replicas"] = json!(2);
        let observe = |object: &mut Value| object["status"]["observedGeneration"] = json!(2);
        for kind in [("apps", "deployments"), ("apps", "replicasets"), ("batch", "jobs")] {
            check(kind, "", scale, 4);
            check(kind, "", observe, 3);
            check(kind, "status", scale, 3);
            check(kind, "status", annotate, 3);
        }
        check(("apps", "deployments"), "", annotate, 4);
        check(("apps", "replicasets"), "", annotate, 3);
    }
}
