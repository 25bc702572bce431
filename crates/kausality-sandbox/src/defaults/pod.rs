//! The defaults of Pods and of what they are made from.

use serde_json::{Map, Value, json};

use super::{fill, items};
use crate::metadata::{as_map, member};

/// A Pod.
pub(super) fn pod(object: &mut Value) {
    let fields = member(object, "spec");
    spec(fields);
    fill(fields, &json!({"enableServiceLinks": true}));
    for (one, all) in [("podIP", "podIPs"), ("hostIP", "hostIPs")] {
        let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) else { break };
        if let Some(address) = status.get(one).filter(|address| *address != "").cloned() {
            fill(status, &json!({all: [{"ip": address}]}));
        }
    }
    let fields = member(object, "spec");
    let host = fields.get("hostNetwork") == Some(&Value::Bool(true));
    for key in ["containers", "initContainers"] {
        for container in items(fields, key) {
            for port in items(as_map(container), "ports").filter(|_| host) {
                let number = port.get("containerPort").cloned().unwrap_or_default();
                fill(as_map(port), &json!({"hostPort": number}));
            }
            let Some(limits) = container.pointer("/resources/limits").cloned() else { continue };
            let resources = member(container, "resources");
            fill(as_map(resources.entry("requests").or_insert_with(|| json!({}))), &limits);
        }
    }
}

/// What the API server's own admission adds to a Pod that is created.
pub(crate) fn at_create(object: &mut Value) {
    let spec = member(object, "spec");
    fill(spec, &json!({"priority": 0, "preemptionPolicy": "PreemptLowerPriority"}));
    fill(spec, &json!({"serviceAccountName": "default"}));
    let account = spec.get("serviceAccountName").cloned().unwrap_or_default();
    spec.insert("serviceAccount".to_owned(), account);
    tolerate(object);
}

/// What it adds to every Pod: for how long nodes may be unwell.
pub(crate) fn tolerate(object: &mut Value) {
    let spec = member(object, "spec");
    let tolerations = spec.entry("tolerations").or_insert_with(|| json!([]));
    let Some(tolerations) = tolerations.as_array_mut() else { return };
    for taint in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let tolerated = tolerations.iter().any(|toleration| {
            (toleration["key"] == taint || toleration["key"].is_null())
                && (toleration["effect"] == "NoExecute" || toleration["effect"].is_null())
        });
        if !tolerated {
            tolerations.push(
                json!({"key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}),
            );
        }
    }
}

/// The spec of a Pod or of a template.
pub(super) fn spec(spec: &mut Map<String, Value>) {
    fill(
        spec,
        &json!({"restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "schedulerName": "default-scheduler",
            "terminationGracePeriodSeconds": 30, "securityContext": {}}),
    );
    if let Some(account) = spec.get("serviceAccountName").or_else(|| spec.get("serviceAccount")).cloned() {
        spec.insert("serviceAccount".to_owned(), account.clone());
        spec.insert("serviceAccountName".to_owned(), account);
    }
    for key in ["initContainers", "containers", "ephemeralContainers"] {
        items(spec, key).for_each(|it| container(as_map(it)));
    }
    items(spec, "volumes").for_each(|it| volume(as_map(it)));
}

fn container(container: &mut Map<String, Value>) {
    let image = container.get("image").and_then(Value::as_str).unwrap_or_default();
    let policy = if is_latest(image) { "Always" } else { "IfNotPresent" };
    fill(
        container,
        &json!({"imagePullPolicy": policy, "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File", "resources": {}}),
    );
    for port in items(container, "ports") {
        fill(as_map(port), &json!({"protocol": "TCP"}));
    }
    for variable in items(container, "env") {
        if let Some(field) = variable.pointer_mut("/valueFrom/fieldRef") {
            fill(as_map(field), &json!({"apiVersion": "v1"}));
        }
    }
    for key in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let Some(probe) = container.get_mut(key) else { continue };
        fill(
            as_map(probe),
            &json!({"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}),
        );
        if let Some(get) = probe.get_mut("httpGet") {
            fill(as_map(get), &json!({"path": "/", "scheme": "HTTP"}));
        }
        if let Some(grpc) = probe.get_mut("grpc") {
            fill(as_map(grpc), &json!({"service": ""}));
        }
    }
    for key in ["postStart", "preStop"] {
        let get = container.get_mut("lifecycle").and_then(|cycle| cycle.get_mut(key)?.get_mut("httpGet"));
        if let Some(get) = get {
            fill(as_map(get), &json!({"path": "/", "scheme": "HTTP"}));
        }
    }
}

/// Images without a tag are the latest, unless a digest says which.
fn is_latest(image: &str) -> bool {
    if image.contains('@') {
        return false;
    }
    let name = image.rsplit('/').next().unwrap_or(image);
    name.split_once(':').is_none_or(|(_, tag)| tag == "latest")
}

fn volume(volume: &mut Map<String, Value>) {
    if !volume.keys().any(|key| key != "name") {
        volume.insert("emptyDir".to_owned(), json!({}));
    }
    for (source, defaults) in [
        ("secret", json!({"defaultMode": 420})),
        ("configMap", json!({"defaultMode": 420})),
        ("downwardAPI", json!({"defaultMode": 420})),
        ("projected", json!({"defaultMode": 420})),
        ("hostPath", json!({"type": ""})),
    ] {
        if let Some(source) = volume.get_mut(source) {
            fill(as_map(source), &defaults);
        }
    }
    let fields = ["/downwardAPI/items", "/projected/sources"];
    let mut value = Value::Object(std::mem::take(volume));
    for item in fields
        .iter()
        .filter_map(|path| value.pointer(path)?.as_array().map(Vec::len).map(|n| (path, n)))
        .collect::<Vec<_>>()
    {
        for nth in 0..item.1 {
            for below in ["fieldRef", "downwardAPI/items/0/fieldRef"] {
                if let Some(field) = value.pointer_mut(&format!("{}/{nth}/{below}", item.0)) {
                    fill(as_map(field), &json!({"apiVersion": "v1"}));
                }
            }
            if let Some(token) = value.pointer_mut(&format!("{}/{nth}/serviceAccountToken", item.0)) {
                fill(as_map(token), &json!({"expirationSeconds": 3600}));
            }
        }
    }
    *volume = std::mem::take(as_map(&mut value));
}

#[cfg(test)]
mod tests {
    use super::is_latest;

    #[test]
    fn images_without_a_tag_are_the_latest() {
        for (image, latest) in [
            ("nginx", true),
            ("nginx:latest", true),
            ("nginx:1.2", false),
            ("host:5000/nginx", true),
            ("nginx@sha256:abc", false),
        ] {
            assert_eq!(is_latest(image), latest, "{image}");
        }
    }
}
