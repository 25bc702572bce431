//! The defaults of the built-in kinds.

use serde_json::{Map, Value, json};

use crate::metadata::{self, as_map, member};

mod pod;

pub(crate) use pod::{at_create as pod_at_create, tolerate};

/// Sets what is not set, as the API server does when it reads an object.
pub(crate) fn apply(kind: &str, object: &mut Value) {
    match kind {
        "Namespace" => namespace(object),
        "Pod" => pod::pod(object),
        "Deployment" => deployment(object),
        "ReplicaSet" | "ReplicationController" => workload(object, &json!({"replicas": 1})),
        "StatefulSet" => stateful_set(object),
        "DaemonSet" => daemon_set(object),
        "Job" => job(object),
        "CronJob" => cron_job(object),
        "Service" => service(object),
        "Secret" => secret(object),
        "PersistentVolumeClaim" => fill(member(object, "spec"), &json!({"volumeMode": "Filesystem"})),
        "MutatingWebhookConfiguration" => webhooks(object, &json!({"reinvocationPolicy": "Never"})),
        "ValidatingWebhookConfiguration" => webhooks(object, &json!({})),
        "RoleBinding" | "ClusterRoleBinding" => binding(object),
        "HorizontalPodAutoscaler" => fill(member(object, "spec"), &json!({"minReplicas": 1})),
        "CustomResourceDefinition" => definition(object),
        "APIService" => {
            if let Some(service) = object.pointer_mut("/spec/service").filter(|it| it.is_object()) {
                fill(as_map(service), &json!({"port": 443}));
            }
        }
        _ => {}
    }
}

/// Sets the fields that are not set.
fn fill(map: &mut Map<String, Value>, defaults: &Value) {
    for (key, value) in defaults.as_object().into_iter().flatten() {
        if map.get(key).is_none_or(Value::is_null) {
            map.insert(key.clone(), value.clone());
        }
    }
}

fn items<'o>(map: &'o mut Map<String, Value>, key: &str) -> impl Iterator<Item = &'o mut Value> {
    map.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten()
}

fn namespace(object: &mut Value) {
    let name = metadata::name(object).to_owned();
    if !name.is_empty() {
        let labels = as_map(metadata::of(object).entry("labels").or_insert_with(|| json!({})));
        labels.insert("kubernetes.io/metadata.name".to_owned(), name.into());
    }
}

/// A kind with a template.
fn workload(object: &mut Value, defaults: &Value) {
    let spec = member(object, "spec");
    fill(spec, defaults);
    if let Some(template) = spec.get_mut("template") {
        pod::spec(member(template, "spec"));
    }
}

fn deployment(object: &mut Value) {
    workload(object, &json!({"replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600}));
    let strategy = as_map(member(object, "spec").entry("strategy").or_insert_with(|| json!({})));
    fill(strategy, &json!({"type": "RollingUpdate"}));
    if strategy.get("type").is_some_and(|kind| kind == "RollingUpdate") {
        let rolling = as_map(strategy.entry("rollingUpdate").or_insert_with(|| json!({})));
        fill(rolling, &json!({"maxUnavailable": "25%", "maxSurge": "25%"}));
    }
}

fn stateful_set(object: &mut Value) {
    let retain = json!({"whenDeleted": "Retain", "whenScaled": "Retain"});
    workload(
        object,
        &json!({"replicas": 1, "revisionHistoryLimit": 10, "podManagementPolicy": "OrderedReady",
            "persistentVolumeClaimRetentionPolicy": retain}),
    );
    let spec = member(object, "spec");
    let strategy = as_map(spec.entry("updateStrategy").or_insert_with(|| json!({})));
    fill(strategy, &json!({"type": "RollingUpdate"}));
    if strategy.get("type").is_some_and(|kind| kind == "RollingUpdate") {
        fill(as_map(strategy.entry("rollingUpdate").or_insert_with(|| json!({}))), &json!({"partition": 0}));
    }
    for claim in items(spec, "volumeClaimTemplates") {
        fill(as_map(claim), &json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim"}));
        fill(member(claim, "spec"), &json!({"volumeMode": "Filesystem"}));
        fill(member(claim, "status"), &json!({"phase": "Pending"}));
    }
}

/// Where a DaemonSet counts the versions of its template.
pub(crate) const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

fn daemon_set(object: &mut Value) {
    let annotations = as_map(metadata::of(object).entry("annotations").or_insert_with(|| json!({})));
    annotations.entry(TEMPLATE_GENERATION).or_insert_with(|| "0".into());
    workload(object, &json!({"revisionHistoryLimit": 10}));
    let strategy = as_map(member(object, "spec").entry("updateStrategy").or_insert_with(|| json!({})));
    fill(strategy, &json!({"type": "RollingUpdate"}));
    if strategy.get("type").is_some_and(|kind| kind == "RollingUpdate") {
        let rolling = as_map(strategy.entry("rollingUpdate").or_insert_with(|| json!({})));
        fill(rolling, &json!({"maxUnavailable": 1, "maxSurge": 0}));
    }
}

fn job(object: &mut Value) {
    let spec = member(object, "spec");
    if !spec.contains_key("completions") && !spec.contains_key("parallelism") {
        spec.insert("completions".to_owned(), 1.into());
    }
    let mut defaults = json!({
        "parallelism": 1, "backoffLimit": 6, "completionMode": "NonIndexed", "suspend": false,
        "manualSelector": false, "podReplacementPolicy": "TerminatingOrFailed",
    });
    if spec.contains_key("backoffLimitPerIndex") {
        defaults["backoffLimit"] = i32::MAX.into();
    }
    if spec.contains_key("podFailurePolicy") {
        defaults["podReplacementPolicy"] = "Failed".into();
    }
    workload(object, &defaults);
    let labels = object.pointer("/spec/template/metadata/labels").cloned();
    let fields = metadata::of(object);
    if let (None, Some(labels)) = (fields.get("labels"), labels) {
        fields.insert("labels".to_owned(), labels);
    }
}

/// The labels and the selector by which a Job finds its Pods. Its uid must be known.
pub(crate) fn job_at_create(object: &mut Value) {
    if object.pointer("/spec/manualSelector") == Some(&Value::Bool(true)) {
        return;
    }
    let (uid, name) = (metadata::field(object, "uid").to_owned(), metadata::name(object).to_owned());
    let spec = member(object, "spec");
    let labels = spec.entry("template").or_insert_with(|| json!({}));
    let labels = as_map(member(labels, "metadata").entry("labels").or_insert_with(|| json!({})));
    for prefix in ["", "batch.kubernetes.io/"] {
        labels.insert(format!("{prefix}controller-uid"), uid.as_str().into());
        labels.insert(format!("{prefix}job-name"), name.as_str().into());
    }
    let selector = as_map(spec.entry("selector").or_insert_with(|| json!({})));
    let labels = as_map(selector.entry("matchLabels").or_insert_with(|| json!({})));
    labels.insert("batch.kubernetes.io/controller-uid".to_owned(), uid.into());
}

fn cron_job(object: &mut Value) {
    let spec = member(object, "spec");
    fill(
        spec,
        &json!({"concurrencyPolicy": "Allow", "suspend": false, "successfulJobsHistoryLimit": 3,
            "failedJobsHistoryLimit": 1}),
    );
    if let Some(template) = spec.get_mut("jobTemplate").and_then(|job| job.pointer_mut("/spec/template")) {
        pod::spec(member(template, "spec"));
    }
}

fn service(object: &mut Value) {
    let spec = member(object, "spec");
    fill(spec, &json!({"sessionAffinity": "None", "type": "ClusterIP"}));
    let kind = spec.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
    for port in items(spec, "ports") {
        let target = port.get("port").cloned().unwrap_or_default();
        fill(as_map(port), &json!({"protocol": "TCP", "targetPort": target}));
    }
    if kind != "ExternalName" {
        fill(spec, &json!({"internalTrafficPolicy": "Cluster"}));
    }
    if kind == "NodePort" || kind == "LoadBalancer" {
        fill(spec, &json!({"externalTrafficPolicy": "Cluster"}));
    }
    if spec.get("sessionAffinity").is_some_and(|affinity| affinity == "ClientIP") {
        let config = as_map(spec.entry("sessionAffinityConfig").or_insert_with(|| json!({})));
        let address = as_map(config.entry("clientIP").or_insert_with(|| json!({})));
        fill(address, &json!({"timeoutSeconds": 10_800}));
    }
    if kind == "LoadBalancer" {
        fill(spec, &json!({"allocateLoadBalancerNodePorts": true}));
        let ingress = object.pointer_mut("/status/loadBalancer/ingress").and_then(Value::as_array_mut);
        for address in ingress.into_iter().flatten().filter(|address| address.get("ip").is_some()) {
            fill(as_map(address), &json!({"ipMode": "VIP"}));
        }
    }
}

/// `stringData` is written as `data`, and never read back.
fn secret(object: &mut Value) {
    use base64::Engine as _;
    let secret = as_map(object);
    fill(secret, &json!({"type": "Opaque"}));
    let Some(Value::Object(texts)) = secret.remove("stringData") else { return };
    let data = as_map(secret.entry("data").or_insert_with(|| json!({})));
    for (key, text) in texts {
        let text = text.as_str().unwrap_or_default();
        data.insert(key, base64::engine::general_purpose::STANDARD.encode(text).into());
    }
}

fn webhooks(object: &mut Value, more: &Value) {
    for webhook in items(as_map(object), "webhooks") {
        let webhook = as_map(webhook);
        fill(
            webhook,
            &json!({"failurePolicy": "Fail", "matchPolicy": "Equivalent", "namespaceSelector": {},
                "objectSelector": {}, "timeoutSeconds": 10}),
        );
        fill(webhook, more);
        if let Some(service) = webhook.get_mut("clientConfig").and_then(|client| client.get_mut("service")) {
            fill(as_map(service), &json!({"port": 443}));
        }
        items(webhook, "rules").for_each(|rule| fill(as_map(rule), &json!({"scope": "*"})));
    }
}

fn binding(object: &mut Value) {
    const GROUP: &str = "rbac.authorization.k8s.io";
    let binding = as_map(object);
    if let Some(role) = binding.get_mut("roleRef") {
        let role = as_map(role);
        if role.get("apiGroup").is_none_or(|group| group == "") {
            role.insert("apiGroup".to_owned(), GROUP.into());
        }
    }
    for subject in items(binding, "subjects") {
        if subject["kind"] == "User" || subject["kind"] == "Group" {
            fill(as_map(subject), &json!({"apiGroup": GROUP}));
        }
    }
}

fn definition(object: &mut Value) {
    let spec = member(object, "spec");
    fill(spec, &json!({"conversion": {"strategy": "None"}}));
    if let Some(names) = spec.get_mut("names") {
        let kind = names["kind"].as_str().unwrap_or_default().to_owned();
        fill(as_map(names), &json!({"singular": kind.to_lowercase(), "listKind": format!("{kind}List")}));
    }
}
