//! Which objects are refused, in the words of the API server, for the mistakes that people make.

use serde_json::{Value, json};

use crate::kinds::structural;
use crate::kinds::{Definition, Shape};
use crate::metadata;
use crate::status::{Cause, Failure};
use crate::store::selector::Selector;

mod container;
pub(crate) mod names;
mod pod;
mod service;
mod traffic;
mod webhook;
mod workload;

/// Kinds whose updates are looked at as if they were created. The others look at what is new alone.
const LOOKS_AGAIN: [&str; 8] =
    ["Namespace", "Service", "ConfigMap", "Secret", "ServiceAccount", "Pod", "Role", "ClusterRole"];

/// Whether a kind has finalizers of known names.
fn names_finalizers(definition: &Definition) -> bool {
    let free = ["Lease", "CustomResourceDefinition"];
    let kind = definition.kind.as_str();
    !definition.is_custom() && !free.contains(&kind) && !kind.ends_with("WebhookConfiguration")
}

/// Whether an object may be created.
pub(crate) fn create(definition: &Definition, object: &Value) -> Result<(), Failure> {
    let mut causes = names::of(definition, object);
    causes.extend(owners(object));
    if names_finalizers(definition) {
        causes.extend(names::finalizers(object));
    }
    match &definition.shape {
        Shape::Custom(custom) => {
            if let Some(cause) = other_kind(definition, object) {
                return refuse(definition, object, &[cause]);
            }
            causes.extend(custom.schema.iter().flat_map(|schema| structural::validate(schema, object)));
        }
        Shape::BuiltIn(_) => causes.extend(content(definition, object)),
    }
    refuse(definition, object, &causes)
}

/// Whether an object may take the place of another.
pub(crate) fn update(
    definition: &Definition,
    subresource: &str,
    live: &Value,
    object: &Value,
) -> Result<(), Failure> {
    let mut causes = owners(object);
    if metadata::is_deleting(live) {
        let old = metadata::finalizers(live);
        let new: Vec<_> = metadata::finalizers(object).into_iter().filter(|it| !old.contains(it)).collect();
        if !new.is_empty() {
            let list = new.iter().map(|it| format!("{it:?}")).collect::<Vec<_>>().join(", ");
            let why = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{list}}}"
            );
            causes.push(Cause::forbidden("metadata.finalizers", &why));
        }
    }
    causes.extend(names::metadata(object));
    match &definition.shape {
        Shape::Custom(custom) => {
            if let Some(cause) = other_kind(definition, object) {
                return refuse(definition, object, &[cause]);
            }
            causes.extend(custom.schema.iter().flat_map(|schema| structural::validate(schema, object)));
        }
        Shape::BuiltIn(_) if subresource != "status" => {
            causes.extend(content(definition, object));
            causes.extend(immutable(definition, live, object));
            if LOOKS_AGAIN.contains(&definition.kind.as_str()) {
                causes.extend(names::name(definition, object));
                causes.extend(names::finalizers(object));
            }
        }
        Shape::BuiltIn(_) => causes.extend(status(definition, object)),
    }
    refuse(definition, object, &causes)
}

/// Faults of the status of a built-in kind.
fn status(definition: &Definition, object: &Value) -> Vec<Cause> {
    let ingress = object.pointer("/status/loadBalancer/ingress").and_then(Value::as_array);
    let balanced = object["spec"]["type"] == "LoadBalancer";
    if definition.is("", "namespaces") {
        let deleting = metadata::is_deleting(object);
        let (wanted, is) = if deleting { ("Terminating", "not empty") } else { ("Active", "empty") };
        let phase = &object["status"]["phase"];
        if !phase.is_null() && phase != wanted {
            let why = format!("may only be '{wanted}' if `deletionTimestamp` is {is}");
            return vec![Cause::invalid("status.Phase", phase, &why)];
        }
    }
    if definition.is("", "services") && !balanced && ingress.is_some_and(|ingress| !ingress.is_empty()) {
        let why = "may only be used when `spec.type` is 'LoadBalancer'";
        return vec![Cause::forbidden("status.loadBalancer.ingress", why)];
    }
    Vec::new()
}

fn refuse(definition: &Definition, object: &Value, causes: &[Cause]) -> Result<(), Failure> {
    if causes.is_empty() {
        return Ok(());
    }
    let mut subject = definition.kind_subject(metadata::name(object));
    if definition.is_custom() {
        metadata::text(object, "/kind").clone_into(&mut subject.kind);
    }
    Err(Failure::invalid(&subject, causes))
}

/// A custom resource must be of the kind and version that are served where it is sent.
fn other_kind(definition: &Definition, object: &Value) -> Option<Cause> {
    let (said, version) = (metadata::text(object, "/apiVersion"), definition.api_version());
    if said != version {
        return Some(Cause::invalid("apiVersion", &json!(said), &format!("must be {version}")));
    }
    let kind = metadata::text(object, "/kind");
    let why = format!("must be {}", definition.kind);
    (kind != definition.kind).then(|| Cause::invalid("kind", &json!(kind), &why))
}

fn owners(object: &Value) -> Vec<Cause> {
    let owners = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    let owners = owners.map(Vec::as_slice).unwrap_or_default();
    let mut causes = Vec::new();
    for owner in owners {
        for (key, what) in [
            ("apiVersion", "version must not be empty"),
            ("kind", "must not be empty"),
            ("name", "must not be empty"),
            ("uid", "must not be empty"),
        ] {
            if owner[key].as_str().unwrap_or_default().is_empty() {
                causes.push(Cause::invalid(format!("metadata.ownerReferences.{key}"), &json!(""), what));
            }
        }
    }
    if owners.iter().filter(|owner| owner["controller"] == true).count() > 1 {
        let why = "Only one reference can have Controller set to true";
        causes.push(Cause::invalid("metadata.ownerReferences", &json!(owners), why));
    }
    causes
}

/// Faults of what a built-in kind wants.
fn content(definition: &Definition, object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let spec = &object["spec"];
    match definition.kind.as_str() {
        "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet" => {
            causes.extend(workload::faults(definition, spec));
            selector(definition, spec, &mut causes);
            for (nth, claim) in spec["volumeClaimTemplates"].as_array().into_iter().flatten().enumerate() {
                causes
                    .extend(claim_faults(&claim["spec"], &format!("spec.volumeClaimTemplates[{nth}].spec")));
            }
            pod::spec(&with_claims(spec), "spec.template.spec", &mut causes);
        }
        "Job" => {
            pod::spec(&spec["template"]["spec"], "spec.template.spec", &mut causes);
            causes.extend(workload::job(spec));
        }
        "CronJob" => {
            causes.extend(workload::cron_job(object));
            let at = "spec.jobTemplate.spec.template.spec";
            pod::spec(&spec["jobTemplate"]["spec"]["template"]["spec"], at, &mut causes);
        }
        "Pod" => pod::spec(spec, "spec", &mut causes),
        "Service" => causes.extend(service::faults(spec)),
        "Ingress" => causes.extend(traffic::ingress(spec)),
        "HorizontalPodAutoscaler" => causes.extend(traffic::autoscaler(spec)),
        "Secret" => causes.extend(secret(object)),
        "PersistentVolumeClaim" => causes.extend(claim_faults(spec, "spec")),
        "Role" | "ClusterRole" => causes.extend(rules(definition, object)),
        "CustomResourceDefinition" => {
            let name = format!(
                "{}.{}",
                spec["names"]["plural"].as_str().unwrap_or_default(),
                spec["group"].as_str().unwrap_or_default()
            );
            if metadata::name(object) != name {
                let why = "must be spec.names.plural+\".\"+spec.group";
                causes.push(Cause::invalid("metadata.name", &object["metadata"]["name"], why));
            }
            let versions = spec["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
            if versions.iter().filter(|version| version["storage"] == true).count() != 1 {
                let why = "must have exactly one version marked as storage version";
                causes.push(Cause::invalid("spec.versions", &spec["versions"], why));
            }
        }
        "APIService" => {
            let text = |key: &str| spec[key].as_str().unwrap_or_default();
            let name = format!("{}.{}", text("version"), text("group"));
            if metadata::name(object) != name {
                let why = format!("must be `spec.version+\".\"+spec.group`: {name:?}");
                causes.push(Cause::invalid("metadata.name", &object["metadata"]["name"], &why));
            }
        }
        "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => {
            causes.extend(webhook::faults(object));
        }
        "PodDisruptionBudget"
            if spec.get("minAvailable").is_some() && spec.get("maxUnavailable").is_some() =>
        {
            causes.push(Cause::invalid("spec", spec, "minAvailable and maxUnavailable cannot be both set"));
        }
        "RoleBinding" | "ClusterRoleBinding" if metadata::text(object, "/roleRef/name").is_empty() => {
            causes.push(Cause::required("roleRef.name", ""));
        }
        _ => {}
    }
    causes
}

/// The spec of a template, with volumes for the claims of a StatefulSet.
fn with_claims(spec: &Value) -> Value {
    let mut pod = spec["template"]["spec"].clone();
    let claims = spec["volumeClaimTemplates"].as_array().into_iter().flatten();
    for name in claims.map(metadata::name) {
        let volumes = metadata::as_map(&mut pod).entry("volumes").or_insert_with(|| json!([]));
        if let Some(volumes) = volumes.as_array_mut().filter(|all| all.iter().all(|it| it["name"] != name)) {
            volumes.push(json!({"name": name, "persistentVolumeClaim": {"claimName": name}}));
        }
    }
    pod
}

/// What a claim for storage lacks.
fn claim_faults(spec: &Value, at: &str) -> Vec<Cause> {
    let mut causes = Vec::new();
    if spec["accessModes"].as_array().is_none_or(Vec::is_empty) {
        causes.push(Cause::required(format!("{at}.accessModes"), "at least 1 access mode is required"));
    }
    let storage = spec["resources"]["requests"].get("storage");
    let field = format!("{at}.resources[storage]");
    let amount = |value: &Value| value.as_str().and_then(crate::types::quantity::amount);
    match storage {
        None => causes.push(Cause::required(field, "")),
        Some(value) if amount(value).is_none_or(|amount| amount <= 0) => {
            causes.push(Cause::invalid(field, value, "must be greater than zero"));
        }
        Some(_) => {}
    }
    causes
}

/// What the rules of a role lack.
fn rules(definition: &Definition, object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    for (nth, rule) in object["rules"].as_array().into_iter().flatten().enumerate() {
        let at = |key: &str| format!("rules[{nth}].{key}");
        let empty = |key: &str| rule[key].as_array().is_none_or(Vec::is_empty);
        if empty("verbs") {
            causes.push(Cause::required(at("verbs"), "verbs must contain at least one value"));
        }
        if !empty("nonResourceURLs") {
            if definition.namespaced {
                let why = "namespaced rules cannot apply to non-resource URLs";
                causes.push(Cause::invalid(at("nonResourceURLs"), &rule["nonResourceURLs"], why));
            }
            continue;
        }
        if empty("apiGroups") {
            causes
                .push(Cause::required(at("apiGroups"), "resource rules must supply at least one api group"));
        }
        if empty("resources") {
            causes.push(Cause::required(at("resources"), "resource rules must supply at least one resource"));
        }
    }
    causes
}

/// What the types of secrets want.
fn secret(object: &Value) -> Vec<Cause> {
    let has = |key: &str| object["data"].get(key).is_some();
    let required = |keys: &[&str]| -> Vec<Cause> {
        keys.iter().map(|key| Cause::required(format!("data[{key}]"), "")).collect()
    };
    let missing = |keys: &[&'static str]| -> Vec<&'static str> {
        keys.iter().copied().filter(|key| !has(key)).collect()
    };
    match metadata::text(object, "/type") {
        "kubernetes.io/basic-auth" if !has("username") && !has("password") => {
            required(&["username", "password"])
        }
        "kubernetes.io/ssh-auth" => required(&missing(&["ssh-privatekey"])),
        "kubernetes.io/tls" => required(&missing(&["tls.crt", "tls.key"])),
        "kubernetes.io/dockerconfigjson" => required(&missing(&[".dockerconfigjson"])),
        _ => Vec::new(),
    }
}

fn selector(definition: &Definition, spec: &Value, causes: &mut Vec<Cause>) {
    let template = &spec["template"];
    let found = &spec["selector"];
    if found.is_null() {
        if definition.kind != "DaemonSet" {
            causes.push(Cause::required("spec.selector", ""));
        }
    } else if found["matchLabels"].as_object().is_none_or(|labels| labels.is_empty())
        && found["matchExpressions"].as_array().is_none_or(Vec::is_empty)
    {
        let why = "empty selector is invalid for deployment";
        causes.push(Cause::invalid("spec.selector", found, why));
    }
    let labels = template.pointer("/metadata/labels");
    if found.is_null() || !Selector::of_object(found).matches_labels(labels) {
        let why = "`selector` does not match template `labels`";
        causes.push(Cause::invalid("spec.template.metadata.labels", labels.unwrap_or(&Value::Null), why));
    }
}

const POD_FIELDS: &str = "pod updates may not change fields other than `spec.containers[*].image`,\
    `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing \
    tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";
const STATEFUL_SET_FIELDS: &str = "updates to statefulset spec for fields other than 'replicas', 'ordinals', \
    'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and \
    'minReadySeconds' are forbidden";

/// What may not change.
fn immutable(definition: &Definition, live: &Value, object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let mut fixed = |pointer: &str, why: &str| {
        if live.pointer(pointer) != object.pointer(pointer) {
            let field = pointer.trim_start_matches('/').replace("/0", "[0]").replace('/', ".");
            let value = object.pointer(pointer).unwrap_or(&Value::Null);
            causes.push(Cause::invalid(field, value, why));
        }
    };
    match definition.kind.as_str() {
        "Deployment" | "ReplicaSet" | "DaemonSet" => fixed("/spec/selector", "field is immutable"),
        "Job" => {
            for pointer in ["/spec/completions", "/spec/selector", "/spec/template", "/spec/completionMode"] {
                let suspended = live["spec"]["suspend"] == true && pointer == "/spec/template";
                if !suspended || scheduled_apart(live) != scheduled_apart(object) {
                    fixed(pointer, "field is immutable");
                }
            }
        }
        "RoleBinding" | "ClusterRoleBinding" => fixed("/roleRef", "cannot change roleRef"),
        "Service" if [live, object].iter().all(|it| it["spec"]["type"] != "ExternalName") => {
            fixed("/spec/clusterIPs/0", "may not change once set");
        }
        "Secret" => fixed("/type", "field is immutable"),
        _ => {}
    }
    match definition.kind.as_str() {
        "StatefulSet" => {
            let free = [
                "replicas",
                "ordinals",
                "template",
                "updateStrategy",
                "revisionHistoryLimit",
                "persistentVolumeClaimRetentionPolicy",
                "minReadySeconds",
            ];
            if without(&live["spec"], &free) != without(&object["spec"], &free) {
                causes.push(Cause::forbidden("spec", STATEFUL_SET_FIELDS));
            }
        }
        "Pod" => {
            let tolerations =
                |pod: &Value| pod["spec"]["tolerations"].as_array().cloned().unwrap_or_default();
            let new = tolerations(object);
            let more_tolerated = tolerations(live).iter().all(|old| new.contains(old));
            let plain = |pod: &Value| {
                let free: &[&str] = if more_tolerated {
                    &["tolerations", "activeDeadlineSeconds"]
                } else {
                    &["activeDeadlineSeconds"]
                };
                let mut spec = without(&pod["spec"], free);
                for key in ["containers", "initContainers"] {
                    for container in spec.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten() {
                        metadata::as_map(container).remove("image");
                    }
                }
                spec
            };
            let count = |pod: &Value, key: &str| pod["spec"][key].as_array().map_or(0, Vec::len);
            for key in ["containers", "initContainers"] {
                if count(live, key) != count(object, key) {
                    let why = "pod updates may not add or remove containers";
                    return vec![Cause::forbidden(format!("spec.{key}"), why)];
                }
            }
            if plain(live) != plain(object) {
                causes.push(Cause::forbidden("spec", POD_FIELDS));
            }
        }
        "ConfigMap" | "Secret" if live["immutable"] == true => {
            for key in ["data", "binaryData", "immutable"] {
                if live.get(key) != object.get(key) {
                    causes.push(Cause::forbidden(key, "field is immutable when `immutable` is set"));
                }
            }
        }
        _ => {}
    }
    causes
}

/// The template of a Job without what says where its Pods may run: that may change as long as none does.
fn scheduled_apart(job: &Value) -> Value {
    let template = &job["spec"]["template"];
    let spec = without(&template["spec"], &["nodeSelector", "tolerations", "affinity", "schedulingGates"]);
    json!({"metadata": without(&template["metadata"], &["labels", "annotations"]), "spec": spec})
}

fn without(value: &Value, keys: &[&str]) -> Value {
    let mut value = value.clone();
    if let Some(map) = value.as_object_mut() {
        map.retain(|key, _| !keys.contains(&key.as_str()));
    }
    value
}

#[cfg(test)]
mod tests;
