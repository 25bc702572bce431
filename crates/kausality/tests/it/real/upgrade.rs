//! The definitions of our kinds are those of the version before, of this one, or older ones, with objects of all kinds there:
//! whoever upgrades or goes back loses nothing, and nothing stops.

use kausality_testbed::{ControlPlane, MASTERS, eventually};
use serde_json::{Value, json};

use crate::{
    install::stage::{kausality, objects, read},
    real::{
        controller::{Installation, policy, told},
        stage::*,
    },
};

const OPERATOR: &str = "system:serviceaccount:default:operator";

/// Our kinds.
const KINDS: [&str; 5] =
    ["kausalities", "approvalpolicies", "clusterapprovalpolicies", "drifts", "clusterdrifts"];

/// A parent and its children, with or without a namespace.
struct Family {
    /// Both `top`.
    parent: &'static str,
    /// `part`, and `free`, about which nobody need be asked.
    child: &'static str,
    /// The field that holds what the operator writes.
    field: &'static str,
    entries: &'static str,
    /// How the command is told where entries are.
    place: &'static [&'static str],
}

const FAMILIES: [Family; 2] = [
    Family {
        parent: "stack",
        child: "configmap",
        field: "data",
        entries: "drifts",
        place: &["-n", "default"],
    },
    Family {
        parent: "fleet",
        child: "fleet",
        field: "spec",
        entries: "clusterdrifts",
        place: &["--cluster"],
    },
];

/// The definitions that are tried, one after the other.
#[derive(Clone, Copy, Debug)]
enum Definitions {
    Previous,
    Shipped,
    /// Without fields that this version writes.
    Older,
}

/// What older definitions did not have.
const DROPPED: [&str; 6] = [
    "/spec/properties/oldObject",
    "/spec/properties/newObject",
    "/spec/properties/moreChanges",
    "/spec/properties/deniedBy",
    "/status/properties/explanation",
    "/status/properties/decision",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn definitions_go_up_and_down_with_objects_of_all_kinds() {
    let Some(plane) = stage().await else { return };
    let installation = Installation::start_under(&plane, "fixtures/crds-previous", &[]).await;
    let _controller = installation.spawn_controller("controller.log", &[]);
    furnish(&plane).await;
    installation.ready().await;
    told(&plane, "parts", "Ready", "Configured").await;
    for family in &FAMILIES {
        family.begin(&plane).await;
    }
    let stages = [
        Definitions::Previous,
        Definitions::Shipped,
        Definitions::Previous,
        Definitions::Older,
        Definitions::Shipped,
    ];
    for (nth, definitions) in stages.into_iter().enumerate() {
        println!("stage {nth}: {definitions:?}");
        if nth > 0 {
            define(&plane, definitions).await;
            everything_can_be_read_and_written_back(&plane);
        }
        told(&plane, "parts", "Ready", "Configured").await;
        for family in &FAMILIES {
            family.live(&plane, nth, definitions).await;
        }
        everything_can_be_read_and_written_back(&plane);
    }
    for log in ["webhook-0.log", "webhook-1.log", "controller.log"] {
        let text = std::fs::read_to_string(plane.folder().join(log)).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let bad = |line: &Value| {
            let of_us = ["ledger", "entry", "drift", "polic", "status"];
            let message = line["fields"]["message"].as_str().unwrap_or_default();
            line["level"] == "ERROR"
                || (line["level"] == "WARN"
                    && !message.starts_with("watch")
                    && of_us.iter().any(|word| message.contains(word)))
        };
        let bad: Vec<Value> = lines.filter(bad).collect();
        assert!(bad.is_empty(), "{log}: {bad:#?}");
    }
}

/// Parents and children of kinds of others, and policies of ours.
async fn furnish(plane: &ControlPlane) {
    for (kind, scope) in [("Stack", "Namespaced"), ("Fleet", "Cluster")] {
        let plural = format!("{}s", kind.to_lowercase());
        let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.example.com")},
            "spec": {
                "group": "example.com", "scope": scope,
                "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase()},
                "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": schema}}],
            },
        });
        apply(plane, "admin", &definition);
        must(plane, "admin", &["wait", "--for=condition=Established", &format!("crd/{plural}.example.com")]);
    }
    let resources = json!([{"apiGroups": ["example.com"], "resources": ["*"]},
        {"apiGroups": [""], "resources": ["configmaps"]}]);
    apply(plane, "alice", &policy("parts", &json!({"resources": resources, "mode": "enforce"})));
    let rules = |api_version: &str, kind: &str| {
        json!([{"apiVersion": api_version, "kind": kind, "name": "free",
            "subjects": [{"kind": "User", "name": OPERATOR}]}])
    };
    for (kind, metadata, rules) in [
        ("ApprovalPolicy", json!({"name": "free", "namespace": "default"}), rules("v1", "ConfigMap")),
        ("ClusterApprovalPolicy", json!({"name": "free"}), rules("example.com/v1", "Fleet")),
    ] {
        let free = json!({"apiVersion": "kausality.io/v1alpha1", "kind": kind, "metadata": metadata,
            "spec": {"rules": rules}});
        apply(plane, "alice", &free);
    }
}

/// Puts other definitions into place, as upgrades and downgrades do.
async fn define(plane: &ControlPlane, definitions: Definitions) {
    if matches!(definitions, Definitions::Shipped) {
        let (code, said) = kausality(plane, &["install", "--crds-only", "--force-conflicts"]);
        assert!(code == 0 && said.contains("drifts.kausality.io: changed"), "{said}");
        return;
    }
    let older = matches!(definitions, Definitions::Older);
    let folder = plane.folder().join("definitions");
    std::fs::create_dir_all(&folder).unwrap();
    for (file, _) in kausality_api::crd::all() {
        let mut definition = objects(&read(&format!("fixtures/crds-previous/{file}"))).remove(0);
        let schema = &mut definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"];
        for path in DROPPED.iter().filter(|_| older && file.contains("drifts")) {
            let (parent, name) = path.rsplit_once('/').unwrap();
            assert!(schema.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(name).is_some());
        }
        std::fs::write(folder.join(file), definition.to_string()).unwrap();
    }
    let how = ["apply", "--server-side", "--force-conflicts", "--field-manager=kausality-install"];
    let said = must(plane, "admin", &[&how[..], &["-f", folder.to_str().unwrap()]].concat());
    assert!(said.contains("drifts.kausality.io serverside-applied"), "{said}");
}

/// Objects of all our kinds are there, and a write that changes nothing is taken: they are valid as they are stored.
fn everything_can_be_read_and_written_back(plane: &ControlPlane) {
    for kind in KINDS {
        let found = get(plane, &[kind, "-A"]);
        let found = found["items"].as_array().unwrap();
        assert!(!found.is_empty(), "{kind}");
        for object in found {
            let file = plane.folder().join("object.json");
            std::fs::write(&file, object.to_string()).unwrap();
            let replace = ["replace", "--validate=strict", "--dry-run=server", "-f", file.to_str().unwrap()];
            must(plane, "alice", &replace);
        }
    }
    let (code, said) = kausality(plane, &["drifts", "-A", "--all"]);
    assert!(code == 0 && said.contains("ConfigMap/part") && said.contains("Fleet/part"), "{said}");
}

impl Family {
    /// A parent, and the children that its operator makes.
    async fn begin(&self, plane: &ControlPlane) {
        let metadata = |name: &str| match self.parent {
            "fleet" => json!({"name": name}),
            _ => json!({"name": name, "namespace": "default"}),
        };
        let kind = if self.parent == "fleet" { "Fleet" } else { "Stack" };
        apply(
            plane,
            "alice",
            &json!({"apiVersion": "example.com/v1", "kind": kind, "metadata": metadata("top"),
            "spec": {"value": "0"}}),
        );
        let uid = get(plane, &[self.parent, "top"])["metadata"]["uid"].clone();
        for name in ["part", "free"] {
            let mut metadata = metadata(name);
            metadata["ownerReferences"] = json!([{"apiVersion": "example.com/v1", "kind": kind, "name": "top",
                "uid": uid, "controller": true}]);
            let (version, kind) =
                if self.child == "fleet" { ("example.com/v1", "Fleet") } else { ("v1", "ConfigMap") };
            let mut child = json!({"apiVersion": version, "kind": kind, "metadata": metadata});
            child[self.field] = json!({"value": "0"});
            // With `create`, which needs no right to patch what is not there, and has no conflicts.
            let file = plane.folder().join("child.json");
            std::fs::write(&file, child.to_string()).unwrap();
            must(plane, OPERATOR, &["create", "-f", file.to_str().unwrap()]);
        }
    }

    /// What the operator is told that writes a value into a child.
    fn write(&self, plane: &ControlPlane, child: &str, value: &str) -> (bool, String) {
        let patch = format!(r#"{{"{}":{{"value":"{value}"}}}}"#, self.field);
        kubectl(plane, OPERATOR, &["patch", self.child, child, "--type=merge", "-p", &patch])
    }

    /// All that happens in a life: a drift of the last stage is counted, approved and over; a person changes the parent, and the
    /// operator follows; it drifts, which is denied and entered; and what a policy lets pass does pass.
    async fn live(&self, plane: &ControlPlane, nth: usize, definitions: Definitions) {
        if let Some(entry) = self.open(plane).first() {
            self.end(plane, entry).await;
        }
        let value = nth.to_string();
        let patch = format!(r#"{{"spec":{{"value":"{value}","stage":"{nth}"}}}}"#);
        must(plane, "alice", &["patch", self.parent, "top", "--type=merge", "-p", &patch]);
        for child in ["part", "free"] {
            let (done, said) = self.write(plane, child, &format!("follows-{nth}"));
            assert!(done, "{said}");
        }
        let generation = get(plane, &[self.parent, "top"])["metadata"]["generation"].clone();
        let status = json!({"status": {"observedGeneration": generation,
            "conditions": [{"type": "Ready", "status": "True", "observedGeneration": generation}]}});
        let status = status.to_string();
        let report = ["patch", self.parent, "top", "--subresource=status", "--type=merge", "-p", &status];
        must(plane, OPERATOR, &report);
        let mut tries = 0;
        eventually(PATIENCE, "a drift that is denied", async || {
            tries += 1;
            let (done, said) = self.write(plane, "part", &format!("drifts-{nth}-{tries}"));
            if !done && said.contains("although nobody changed") { Ok(()) } else { Err(said) }
        })
        .await
        .unwrap();
        let open = self.open(plane);
        let [entry] = &open[..] else { panic!("{open:#?}") };
        assert_eq!(entry["status"]["state"], "Blocked");
        let explained = entry["status"]["explanation"].is_array() && entry["spec"]["newObject"].is_object();
        assert_eq!(explained, !matches!(definitions, Definitions::Older), "{entry:#}");
        let name = entry["metadata"]["name"].as_str().unwrap();
        let managed = get(plane, &[self.entries, name, "--show-managed-fields"]);
        let managed = managed["metadata"]["managedFields"].to_string();
        let whole = managed.contains(r#""f:newObject":{}"#);
        assert_eq!(whole, matches!(definitions, Definitions::Shipped), "{managed}");

        let (done, said) = self.write(plane, "free", &format!("drifts-{nth}"));
        assert!(done, "a rule of a policy lets it pass: {said}");
    }

    /// The entry of an earlier stage is as good as one of today.
    async fn end(&self, plane: &ControlPlane, entry: &Value) {
        let id = entry["metadata"]["name"].as_str().unwrap();
        let wanted = entry["spec"]["changes"][0]["new"].as_str().unwrap().trim_matches('"');
        let (done, said) = self.write(plane, "part", wanted);
        assert!(!done && said.contains("although nobody changed"), "{said}");
        let approve = ["approve", id, "--reason", "as before", "--as", "alice", "--as-group", MASTERS];
        let (code, said) = kausality(plane, &[&approve, self.place].concat());
        assert!(code == 0 && said.contains("approved once"), "{said}");
        let (done, said) = self.write(plane, "part", wanted);
        assert!(done, "{said}");
        eventually(PATIENCE, "the end of the drift", async || {
            let status = get(plane, &[self.entries, id])["status"].clone();
            let is_over = status["state"] == "Resolved" && status["resolution"]["reason"] == "Approved";
            if is_over && status["count"] == 2 { Ok(()) } else { Err(status.to_string()) }
        })
        .await
        .unwrap();
    }

    /// The entries that wait for somebody.
    fn open(&self, plane: &ControlPlane) -> Vec<Value> {
        let found = get(plane, &[self.entries])["items"].as_array().cloned().unwrap_or_default();
        found.into_iter().filter(|entry| entry["status"]["state"] != "Resolved").collect()
    }
}
