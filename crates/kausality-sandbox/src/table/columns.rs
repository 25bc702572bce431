//! The columns of the built-in kinds.

use serde_json::{Value, json};

use super::{age, duration};
use crate::controllers::Time;
use crate::metadata;

/// The names of columns; those with a `+` are only shown in wide tables.
pub(super) fn of(kind: &str) -> &'static [&'static str] {
    match kind {
        "Deployment" => {
            &["Name", "Ready", "Up-to-date", "Available", "Age", "+Containers", "+Images", "+Selector"]
        }
        "ReplicaSet" | "ReplicationController" => {
            &["Name", "Desired", "Current", "Ready", "Age", "+Containers", "+Images", "+Selector"]
        }
        "StatefulSet" => &["Name", "Ready", "Age", "+Containers", "+Images"],
        "DaemonSet" => &[
            "Name",
            "Desired",
            "Current",
            "Ready",
            "Up-to-date",
            "Available",
            "Node Selector",
            "Age",
            "+Containers",
            "+Images",
            "+Selector",
        ],
        "Pod" => &["Name", "Ready", "Status", "Restarts", "Age", "+IP", "+Node"],
        "Job" => &["Name", "Status", "Completions", "Duration", "Age", "+Containers", "+Images", "+Selector"],
        "CronJob" => &["Name", "Schedule", "Timezone", "Suspend", "Active", "Last Schedule", "Age"],
        "Namespace" => &["Name", "Status", "Age"],
        "Node" => &[
            "Name",
            "Status",
            "Roles",
            "Age",
            "Version",
            "+Internal-IP",
            "+External-IP",
            "+OS-Image",
            "+Kernel-Version",
            "+Container-Runtime",
        ],
        "Event" => &["Last Seen", "Type", "Reason", "Object", "+Source", "Message", "+Count", "+Name"],
        "Service" => &["Name", "Type", "Cluster-IP", "External-IP", "Port(s)", "Age", "+Selector"],
        "ConfigMap" => &["Name", "Data", "Age"],
        "Secret" => &["Name", "Type", "Data", "Age"],
        "ServiceAccount" => &["Name", "Secrets", "Age"],
        "CustomResourceDefinition" => &["Name", "Created At"],
        "Lease" => &["Name", "Holder", "Age"],
        "ControllerRevision" => &["Name", "Controller", "Revision", "Age"],
        "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => &["Name", "Webhooks", "Age"],
        "RoleBinding" | "ClusterRoleBinding" => &["Name", "Role", "Age"],
        "Role" | "ClusterRole" => &["Name", "Created At"],
        "PersistentVolumeClaim" => &["Name", "Status", "Volume", "Age"],
        _ => &["Name", "Age"],
    }
}

/// The cells of an object's row.
pub(super) fn cells(kind: &str, object: &Value, now: Time) -> Vec<Value> {
    let name = json!(metadata::name(object));
    let old = json!(age(metadata::field(object, "creationTimestamp"), now));
    let number = |pointer: &str| object.pointer(pointer).and_then(Value::as_i64).unwrap_or(0);
    let text = |pointer: &str| metadata::text(object, pointer);
    let count =
        |key: &str| object.get(key).map_or(0, |value| value.as_object().map_or(0, serde_json::Map::len));
    let (containers, images) = containers(object);
    let selector = selector(object.pointer("/spec/selector"));
    let ratio = |part: &str, whole: &str| json!(format!("{}/{}", number(part), number(whole)));
    match kind {
        "Deployment" => vec![
            name,
            ratio("/status/readyReplicas", "/spec/replicas"),
            json!(number("/status/updatedReplicas")),
            json!(number("/status/availableReplicas")),
            old,
            containers,
            images,
            selector,
        ],
        "ReplicaSet" | "ReplicationController" => vec![
            name,
            json!(number("/spec/replicas")),
            json!(number("/status/replicas")),
            json!(number("/status/readyReplicas")),
            old,
            containers,
            images,
            selector,
        ],
        "StatefulSet" => {
            vec![name, ratio("/status/readyReplicas", "/spec/replicas"), old, containers, images]
        }
        "DaemonSet" => vec![
            name,
            json!(number("/status/desiredNumberScheduled")),
            json!(number("/status/currentNumberScheduled")),
            json!(number("/status/numberReady")),
            json!(number("/status/updatedNumberScheduled")),
            json!(number("/status/numberAvailable")),
            labels(object.pointer("/spec/template/spec/nodeSelector")),
            old,
            containers,
            images,
            selector,
        ],
        "Pod" => pod(object, name, old),
        "Job" => job(object, now, [name, old, containers, images, selector]),
        "CronJob" => vec![
            name,
            json!(text("/spec/schedule")),
            json!(or(text("/spec/timeZone"), "<none>")),
            json!(if object["spec"]["suspend"] == true { "True" } else { "False" }),
            json!(object.pointer("/status/active").and_then(Value::as_array).map_or(0, Vec::len)),
            json!(match text("/status/lastScheduleTime") {
                "" => "<none>".to_owned(),
                time => age(time, now),
            }),
            old,
        ],
        "Namespace" => vec![name, json!(text("/status/phase")), old],
        "Node" => node(object, name, old),
        "Event" => event(object, now),
        "Service" => service(object, name, old),
        "ConfigMap" => vec![name, json!(count("data") + count("binaryData")), old],
        "Secret" => vec![name, json!(text("/type")), json!(count("data")), old],
        "ServiceAccount" => {
            vec![name, json!(object["secrets"].as_array().map_or(0, Vec::len)), old]
        }
        "CustomResourceDefinition" | "Role" | "ClusterRole" => {
            vec![name, json!(metadata::field(object, "creationTimestamp"))]
        }
        "Lease" => vec![name, json!(text("/spec/holderIdentity")), old],
        "ControllerRevision" => {
            let owner = &object["metadata"]["ownerReferences"][0];
            let owner = match owner["kind"].as_str() {
                Some(kind) => {
                    format!("{}/{}", kind.to_lowercase(), owner["name"].as_str().unwrap_or_default())
                }
                None => "<none>".to_owned(),
            };
            vec![name, json!(owner), object["revision"].clone(), old]
        }
        "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => {
            vec![name, json!(object["webhooks"].as_array().map_or(0, Vec::len)), old]
        }
        "RoleBinding" | "ClusterRoleBinding" => {
            vec![name, json!(format!("{}/{}", text("/roleRef/kind"), text("/roleRef/name"))), old]
        }
        "PersistentVolumeClaim" => {
            vec![name, json!(text("/status/phase")), json!(text("/spec/volumeName")), old]
        }
        _ => vec![name, old],
    }
}

fn node(object: &Value, name: Value, old: Value) -> Vec<Value> {
    let text = |pointer: &str| metadata::text(object, pointer);
    let items = |pointer: &str| object.pointer(pointer).and_then(Value::as_array).into_iter().flatten();
    let ready = items("/status/conditions").find(|it| it["type"] == "Ready");
    let mut status = match ready.map(|it| it["status"] == "True") {
        Some(true) => "Ready",
        Some(false) => "NotReady",
        None => "Unknown",
    }
    .to_owned();
    if object["spec"]["unschedulable"] == true {
        status.push_str(",SchedulingDisabled");
    }
    let labels = object["metadata"]["labels"].as_object();
    let mut roles: Vec<_> = labels
        .into_iter()
        .flat_map(|labels| labels.keys())
        .filter_map(|label| label.strip_prefix("node-role.kubernetes.io/"))
        .filter(|role| !role.is_empty())
        .collect();
    roles.sort_unstable();
    let address = |kind: &str| {
        let found = items("/status/addresses").find(|it| it["type"] == kind);
        or(found.and_then(|it| it["address"].as_str()).unwrap_or_default(), "<none>").to_owned()
    };
    let about = |field: &str| json!(or(text(&format!("/status/nodeInfo/{field}")), "<unknown>"));
    vec![
        name,
        json!(status),
        json!(or(&roles.join(","), "<none>")),
        old,
        json!(text("/status/nodeInfo/kubeletVersion")),
        json!(address("InternalIP")),
        json!(address("ExternalIP")),
        about("osImage"),
        about("kernelVersion"),
        about("containerRuntimeVersion"),
    ]
}

fn pod(object: &Value, name: Value, old: Value) -> Vec<Value> {
    let statuses = object.pointer("/status/containerStatuses").and_then(Value::as_array);
    let statuses = statuses.map(Vec::as_slice).unwrap_or_default();
    let ready = statuses.iter().filter(|status| status["ready"] == true).count();
    let total = object.pointer("/spec/containers").and_then(Value::as_array).map_or(0, Vec::len);
    let restarts: i64 = statuses.iter().filter_map(|status| status["restartCount"].as_i64()).sum();
    let mut status = or(metadata::text(object, "/status/reason"), metadata::text(object, "/status/phase"));
    for container in statuses {
        for state in ["waiting", "terminated"] {
            if let Some(reason) = container["state"][state]["reason"].as_str() {
                status = reason;
            }
        }
    }
    if metadata::is_deleting(object) {
        status = "Terminating";
    }
    vec![
        name,
        json!(format!("{ready}/{total}")),
        json!(status),
        json!(restarts.to_string()),
        old,
        json!(or(metadata::text(object, "/status/podIP"), "<none>")),
        json!(or(metadata::text(object, "/spec/nodeName"), "<none>")),
    ]
}

fn job(object: &Value, now: Time, [name, old, containers, images, selector]: [Value; 5]) -> Vec<Value> {
    let number = |pointer: &str| object.pointer(pointer).and_then(Value::as_i64);
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    let has = |kind: &str| {
        conditions.is_some_and(|all| all.iter().any(|it| it["type"] == kind && it["status"] == "True"))
    };
    let status = [("Complete", "Complete"), ("Failed", "Failed"), ("Suspended", "Suspended")];
    let status = status.iter().find(|(kind, _)| has(kind)).map_or("Running", |(_, text)| text);
    let succeeded = number("/status/succeeded").unwrap_or(0);
    let completions = match number("/spec/completions") {
        Some(wanted) => format!("{succeeded}/{wanted}"),
        None => format!("{succeeded}/1"),
    };
    let time = |pointer: &str| Time::parse(metadata::text(object, pointer));
    let took = match (time("/status/startTime"), time("/status/completionTime")) {
        (Some(start), end) => duration(end.unwrap_or(now).0.saturating_sub(start.0) / 1000),
        _ => String::new(),
    };
    vec![name, json!(status), json!(completions), json!(took), old, containers, images, selector]
}

fn event(object: &Value, now: Time) -> Vec<Value> {
    let text = |pointer: &str| metadata::text(object, pointer);
    let involved =
        object.get("involvedObject").or_else(|| object.get("regarding")).cloned().unwrap_or_default();
    let seen = ["/series/lastObservedTime", "/lastTimestamp", "/deprecatedLastTimestamp", "/eventTime"];
    let seen = seen.iter().map(|pointer| text(pointer)).find(|time| !time.is_empty());
    let seen = seen.unwrap_or_else(|| metadata::field(object, "creationTimestamp"));
    vec![
        json!(age(seen, now)),
        json!(text("/type")),
        json!(text("/reason")),
        json!(format!(
            "{}/{}",
            involved["kind"].as_str().unwrap_or_default().to_lowercase(),
            involved["name"].as_str().unwrap_or_default()
        )),
        json!(or(text("/source/component"), text("/reportingComponent"))),
        json!(or(text("/message"), text("/note"))),
        json!(object.get("count").and_then(Value::as_i64).unwrap_or(1)),
        json!(metadata::name(object)),
    ]
}

fn service(object: &Value, name: Value, old: Value) -> Vec<Value> {
    let ports = object.pointer("/spec/ports").and_then(Value::as_array).into_iter().flatten();
    let ports = ports.map(|port| match port["nodePort"].as_i64() {
        Some(node) => format!("{}:{node}/{}", port["port"], port["protocol"].as_str().unwrap_or("TCP")),
        None => format!("{}/{}", port["port"], port["protocol"].as_str().unwrap_or("TCP")),
    });
    let ports = ports.collect::<Vec<_>>().join(",");
    let kind = metadata::text(object, "/spec/type");
    let external = match kind {
        "LoadBalancer" => "<pending>",
        "ExternalName" => metadata::text(object, "/spec/externalName"),
        _ => "<none>",
    };
    vec![
        name,
        json!(kind),
        json!(or(metadata::text(object, "/spec/clusterIP"), "<none>")),
        json!(external),
        json!(or(&ports, "<none>")),
        old,
        labels(object.pointer("/spec/selector")),
    ]
}

fn or<'a>(text: &'a str, other: &'a str) -> &'a str {
    if text.is_empty() { other } else { text }
}

fn containers(object: &Value) -> (Value, Value) {
    let containers = object.pointer("/spec/template/spec/containers").and_then(Value::as_array);
    let containers = containers.map(Vec::as_slice).unwrap_or_default();
    let join = |key: &str| {
        let texts: Vec<_> = containers.iter().filter_map(|it| it[key].as_str()).collect();
        json!(texts.join(","))
    };
    (join("name"), join("image"))
}

fn selector(selector: Option<&Value>) -> Value {
    labels(selector.and_then(|selector| selector.get("matchLabels")))
}

fn labels(labels: Option<&Value>) -> Value {
    let labels = labels.and_then(Value::as_object).into_iter().flatten();
    let all: Vec<_> =
        labels.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default())).collect();
    json!(or(&all.join(","), "<none>"))
}
