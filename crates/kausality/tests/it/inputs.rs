//! Inputs in replays: what controllers that many clusters have act on, as audit logs show it.

use std::process::Command;

use serde_json::{Value, json};

/// An audit log in the making.
#[derive(Default)]
struct Log {
    events: Vec<Value>,
    seconds: i64,
}

impl Log {
    /// So many seconds pass.
    fn wait(&mut self, seconds: i64) {
        self.seconds += seconds;
    }

    /// A user writes an object; the line of it.
    fn write(&mut self, verb: &str, user: &str, resource: &str, object: &Value) -> u64 {
        let (resource, part) = resource.split_once('/').unwrap_or((resource, ""));
        let (group, version) = match object["apiVersion"].as_str().unwrap().split_once('/') {
            Some((group, version)) => (group, version),
            None => ("", object["apiVersion"].as_str().unwrap()),
        };
        let at = jiff::Timestamp::from_second(1_700_000_000 + self.seconds).unwrap();
        let mut object = object.clone();
        object["metadata"]["resourceVersion"] = json!(format!("{}", 100 + self.events.len()));
        self.events.push(json!({
            "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "RequestResponse", "stage": "ResponseComplete",
            "auditID": format!("{}", self.events.len()), "verb": verb, "user": {"username": user},
            "objectRef": {"apiGroup": group, "apiVersion": version, "resource": resource, "subresource": part,
                "name": object["metadata"]["name"], "namespace": object["metadata"]["namespace"].as_str().unwrap_or_default()},
            "responseStatus": {"code": 200}, "requestObject": object, "responseObject": object,
            "requestReceivedTimestamp": at, "stageTimestamp": at,
        }));
        self.events.len() as u64
    }

    /// What is decided about a line.
    fn row(&self, line: u64, arguments: &[&str]) -> Value {
        let file = tempfile::Builder::new().suffix(".jsonl").tempfile().unwrap();
        let text: String = self.events.iter().map(|event| format!("{event}\n")).collect();
        std::fs::write(file.path(), text).unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_kausality"))
            .args(["replay", "-o", "json"])
            .arg(file.path())
            .args(arguments)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let rows = String::from_utf8(output.stdout).unwrap();
        let mut rows = rows.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        rows.find(|row| row["line"] == line).unwrap()
    }
}

const DAEMONSETS: &str = "system:serviceaccount:kube-system:daemon-set-controller";

fn owned(kind: &str, api_version: &str, name: &str, owner: &Value) -> Value {
    let owner_reference = json!({"apiVersion": owner["apiVersion"], "kind": owner["kind"], "controller": true,
        "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]});
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": "default",
        "uid": format!("uid-{name}"), "ownerReferences": [owner_reference]}, "spec": {}})
}

fn object(kind: &str, api_version: &str, namespace: &str, name: &str, spec: &Value) -> Value {
    let mut object = json!({"apiVersion": api_version, "kind": kind,
        "metadata": {"name": name, "uid": format!("uid-{name}"), "generation": 1,
            "creationTimestamp": "2023-11-14T22:13:20Z"}, "spec": spec});
    if !namespace.is_empty() {
        object["metadata"]["namespace"] = json!(namespace);
    }
    object
}

/// A settled DaemonSet with a Pod on a node that has a label; returns the node and the Pod.
fn daemonset(log: &mut Log) -> (Value, Value) {
    let mut node = object("Node", "v1", "", "n1", &json!({}));
    node["metadata"]["labels"] = json!({"edge": "yes"});
    log.write("create", "system:node:n1", "nodes", &node);
    let mut set = object("DaemonSet", "apps/v1", "default", "agent", &json!({"template": {}}));
    log.write("create", "bob", "daemonsets", &set);
    let pod = owned("Pod", "v1", "agent-x", &set);
    log.write("create", DAEMONSETS, "pods", &pod);
    set["status"] = json!({"observedGeneration": 1, "desiredNumberScheduled": 1, "currentNumberScheduled": 1,
        "updatedNumberScheduled": 1, "numberAvailable": 1, "numberReady": 1});
    log.write("update", DAEMONSETS, "daemonsets/status", &set);
    log.wait(60);
    (node, pod)
}

/// A person takes a label off a node: the DaemonSet's controller deletes the Pod there, for her.
#[test]
fn a_label_that_a_person_takes_off_a_node_opens_daemonsets() {
    let mut log = Log::default();
    let (mut node, pod) = daemonset(&mut log);
    let mut without = Log { events: log.events.clone(), seconds: log.seconds };
    node["metadata"]["labels"] = json!({});
    log.write("patch", "alice", "nodes", &node);
    log.wait(1);
    let line = log.write("delete", DAEMONSETS, "pods", &pod);
    let row = log.row(line, &[]);
    assert_eq!((&row["cause"], &row["trace"][0]["user"]), (&json!("Expected"), &json!("alice")), "{row}");
    assert_eq!(row["trace"][0]["kind"], "Node", "{row}");

    // An annotation is not what nodes are chosen by, and nothing at all explains nothing.
    node["metadata"]["labels"] = json!({"edge": "yes"});
    node["metadata"]["annotations"] = json!({"note": "x"});
    without.write("patch", "alice", "nodes", &node);
    without.wait(1);
    let line = without.write("delete", DAEMONSETS, "pods", &pod);
    assert_eq!(without.row(line, &[])["cause"], "Drift");
}

/// A person annotates a Gateway, and cert-manager makes another Certificate of it. Who annotates an Ingress changes its intent.
#[test]
fn annotations_are_an_input_where_controllers_are_configured_by_them() {
    let policy = tempfile::Builder::new().suffix(".yaml").tempfile().unwrap();
    let text = "apiVersion: kausality.io/v1alpha1\nkind: Kausality\nmetadata: {name: gateways}\n\
        spec: {mode: log, settle: quiet, resources: [{apiGroups: [gateway.networking.k8s.io], resources: [gateways]}]}\n";
    std::fs::write(policy.path(), text).unwrap();
    let arguments = ["--policy", policy.path().to_str().unwrap()];
    let shim = "system:serviceaccount:cert-manager:cert-manager";
    let told = |api_version: &str, kind: &str, resource: &str, annotated: bool| {
        let mut log = Log::default();
        let mut parent = object(kind, api_version, "default", "web", &json!({"tls": []}));
        log.write("create", "bob", resource, &parent);
        let mut certificate = owned("Certificate", "cert-manager.io/v1", "web-tls", &parent);
        log.write("create", shim, "certificates", &certificate);
        log.wait(60);
        if annotated {
            parent["metadata"]["annotations"] = json!({"cert-manager.io/cluster-issuer": "other"});
            log.write("patch", "alice", resource, &parent);
            log.wait(1);
        }
        certificate["spec"] = json!({"issuerRef": {"name": "other"}});
        let line = log.write("update", shim, "certificates", &certificate);
        let row = log.row(line, &arguments);
        (row["cause"] == "Drift", row["trace"][0]["user"].as_str().unwrap().to_owned())
    };
    for (api_version, kind, resource) in [
        ("gateway.networking.k8s.io/v1", "Gateway", "gateways"),
        ("networking.k8s.io/v1", "Ingress", "ingresses"),
    ] {
        assert_eq!(told(api_version, kind, resource, true), (false, "alice".to_owned()), "{kind}");
        assert!(told(api_version, kind, resource, false).0, "{kind}");
    }
}
