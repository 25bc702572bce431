//! Faults of Pods and of what they are made from.

use serde_json::{Value, json};

use super::{container, names};
use crate::status::Cause;
use crate::types::quantity;

/// Resources that containers have.
const RESOURCES: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

/// What items of lists must have, if they have what holds it.
const REQUIRED: &[(&str, &[&str])] = &[
    ("/volumes", &["name", "configMap/name", "secret/secretName", "hostPath/path"]),
    ("/topologySpreadConstraints", &["topologyKey"]),
];
const REQUIRED_OF_CONTAINER: [(&str, &str); 3] =
    [("env", "name"), ("ports", "containerPort"), ("volumeMounts", "name")];

/// Faults of the spec of a Pod or of a template.
pub(super) fn spec(spec: &Value, path: &str, causes: &mut Vec<Cause>) {
    let list = |key: &str| spec[key].as_array().map(Vec::as_slice).unwrap_or_default();
    if list("containers").is_empty() {
        causes.push(Cause::required(format!("{path}.containers"), ""));
    }
    container::word(
        &spec["restartPolicy"],
        format!("{path}.restartPolicy"),
        &["Always", "OnFailure", "Never"],
        causes,
    );
    container::word(
        &spec["dnsPolicy"],
        format!("{path}.dnsPolicy"),
        &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"],
        causes,
    );
    let volumes: Vec<&str> = list("volumes").iter().filter_map(|volume| volume["name"].as_str()).collect();
    for (nth, name) in volumes.iter().enumerate() {
        if volumes[..nth].contains(name) {
            causes.push(Cause::duplicate(format!("{path}.volumes[{nth}].name"), &json!(name)));
        }
    }
    let mut seen: Vec<&str> = Vec::new();
    for key in ["containers", "initContainers"] {
        for (nth, it) in list(key).iter().enumerate() {
            let at = format!("{path}.{key}[{nth}]");
            faults(it, &at, causes);
            container::mounts(it, &volumes, &at, causes);
            if key == "initContainers" && it["restartPolicy"] != "Always" {
                for field in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
                    if it.get(field).is_some() {
                        let why = "may not be set for init containers without restartPolicy=Always";
                        causes.push(Cause::forbidden(format!("{at}.{field}"), why));
                    }
                }
            }
            let name = it["name"].as_str().unwrap_or_default();
            if !name.is_empty() && seen.contains(&name) {
                causes.push(Cause::duplicate(format!("{at}.name"), &json!(name)));
            }
            seen.push(name);
        }
    }
    for (list, fields) in REQUIRED {
        let all = spec.pointer(list).and_then(Value::as_array).into_iter().flatten().enumerate();
        for (nth, it) in all {
            let at = format!("{path}.{}[{nth}]", list.trim_start_matches('/').replace('/', "."));
            for field in *fields {
                let (holder, name) = field.rsplit_once('/').unwrap_or(("", field));
                let missing = |value: Option<&Value>| value.is_none_or(|value| value == "" || value == 0);
                let holder_value =
                    if holder.is_empty() { Some(it) } else { it.pointer(&format!("/{holder}")) };
                if holder_value.is_some_and(|holder| missing(holder.get(name))) {
                    causes.push(Cause::required(format!("{at}.{}", field.replace('/', ".")), ""));
                }
            }
        }
    }
    if let Some(grace) = spec["terminationGracePeriodSeconds"].as_i64().filter(|grace| *grace < 0) {
        let at = format!("{path}.terminationGracePeriodSeconds");
        causes.push(Cause::invalid(at, &json!(grace), "must be greater than or equal to 0"));
    }
}

fn faults(container: &Value, at: &str, causes: &mut Vec<Cause>) {
    let name = container["name"].as_str().unwrap_or_default();
    if name.is_empty() {
        causes.push(Cause::required(format!("{at}.name"), ""));
    } else if !names::is_label(name) {
        causes.push(Cause::invalid(format!("{at}.name"), &json!(name), names::LABEL));
    }
    if container["image"].as_str().unwrap_or_default().is_empty() {
        causes.push(Cause::required(format!("{at}.image"), ""));
    }
    for (list, field) in REQUIRED_OF_CONTAINER {
        for (nth, it) in container[list].as_array().into_iter().flatten().enumerate() {
            if it.get(field).is_none_or(|value| value == "" || value == 0) {
                causes.push(Cause::required(format!("{at}.{list}[{nth}].{field}"), ""));
            }
        }
    }
    container::ports(container, at, causes);
    let policies = ["Always", "IfNotPresent", "Never"];
    container::word(&container["imagePullPolicy"], format!("{at}.imagePullPolicy"), &policies, causes);
    let handlers = ["exec", "httpGet", "tcpSocket", "grpc", "sleep"];
    for place in
        ["lifecycle/preStop", "lifecycle/postStart", "livenessProbe", "readinessProbe", "startupProbe"]
    {
        let found = container.pointer(&format!("/{place}")).and_then(Value::as_object);
        if found.is_some_and(|found| !handlers.iter().any(|handler| found.contains_key(*handler))) {
            let at = format!("{at}.{}", place.replace('/', "."));
            causes.push(Cause::required(at, "must specify a handler type"));
        }
    }
    resources(&container["resources"], &format!("{at}.resources"), causes);
}

fn resources(resources: &Value, at: &str, causes: &mut Vec<Cause>) {
    let amount = |value: &Value| value.as_str().and_then(quantity::amount).unwrap_or(0);
    for part in ["limits", "requests"] {
        for (name, value) in resources[part].as_object().into_iter().flatten() {
            let at = format!("{at}.{part}[{name}]");
            let known = RESOURCES.contains(&name.as_str()) || name.starts_with("hugepages-");
            let extended = name.contains('/') && names::is_qualified(name);
            if !known && !extended {
                let why = "must be a standard resource type or fully qualified";
                causes.push(Cause::invalid(&at, &json!(name), why));
            }
            if amount(value) < 0 {
                causes.push(Cause::invalid(&at, value, "must be greater than or equal to 0"));
            }
            let limit = resources["limits"].get(name).filter(|_| part == "requests");
            if let Some(limit) = limit.filter(|limit| amount(value) > amount(limit)) {
                let limit = limit.as_str().unwrap_or_default();
                let why = format!("must be less than or equal to {name} limit of {limit}");
                causes.push(Cause::invalid(at.trim_end_matches(&format!("[{name}]")), value, &why));
            }
        }
    }
}
