//! Writes `src/types/*.json`: what the built-in kinds are made of.
//!
//! ```sh
//! make control-plane
//! cargo run -p kausality-sandbox --example types
//! ```
//!
//! The OpenAPI definitions come from the real API server that the tests use. The numbers of protobuf fields come from the
//! sources of its Go types, which are in Go's module cache once it is built (`GOMODCACHE`, else `~/go/pkg/mod`).

mod go;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use kausality_testbed::{Binaries, ControlPlane, MASTERS};
use serde_json::{Map, Value};

/// The groups, versions and kinds that the sandbox serves or speaks.
const KINDS: [(&str, &str); 15] = [
    (
        "api/v1",
        "Namespace Pod ConfigMap Secret Service ServiceAccount Event Node PersistentVolumeClaim PersistentVolume Endpoints \
         ReplicationController PodTemplate LimitRange ResourceQuota Binding",
    ),
    ("apis/apps/v1", "Deployment ReplicaSet StatefulSet DaemonSet ControllerRevision"),
    ("apis/batch/v1", "Job CronJob"),
    ("apis/rbac.authorization.k8s.io/v1", "Role RoleBinding ClusterRole ClusterRoleBinding"),
    ("apis/coordination.k8s.io/v1", "Lease"),
    ("apis/events.k8s.io/v1", "Event"),
    ("apis/autoscaling/v1", "Scale HorizontalPodAutoscaler"),
    ("apis/autoscaling/v2", "HorizontalPodAutoscaler"),
    ("apis/admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration ValidatingWebhookConfiguration"),
    ("apis/apiextensions.k8s.io/v1", "CustomResourceDefinition"),
    ("apis/apiregistration.k8s.io/v1", "APIService"),
    ("apis/authentication.k8s.io/v1", "SelfSubjectReview TokenReview"),
    (
        "apis/authorization.k8s.io/v1",
        "SelfSubjectAccessReview SubjectAccessReview LocalSubjectAccessReview SelfSubjectRulesReview",
    ),
    ("apis/policy/v1", "PodDisruptionBudget Eviction"),
    ("apis/networking.k8s.io/v1", "Ingress NetworkPolicy IngressClass"),
];

#[tokio::main]
async fn main() -> Result<()> {
    let binaries =
        Binaries::find()?.context("there is no control plane: `make control-plane` provides it")?;
    let plane = ControlPlane::start(&binaries).await?;
    let client = plane.client("types", &[MASTERS])?;
    let mut served = BTreeMap::new();
    for (path, _) in KINDS {
        let request = http::Request::get(format!("/openapi/v3/{path}")).body(Vec::new())?;
        let document: Value = client.request(request).await?;
        let schemas = document["components"]["schemas"].as_object().context("a document without schemas")?;
        for (name, schema) in schemas {
            served.entry(name.clone()).or_insert_with(|| schema.clone());
        }
    }
    let named = served.iter().filter(|(_, schema)| is_wanted(schema));
    let mut wanted: Vec<String> = named.map(|(name, _)| name.clone()).collect();

    let mut definitions = BTreeMap::new();
    while let Some(name) = wanted.pop() {
        if let (false, Some(schema)) = (definitions.contains_key(&name), served.get(&name)) {
            let schema = without_descriptions(schema);
            references(&schema, &mut wanted);
            definitions.insert(name, schema);
        }
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/types");
    write(&folder.join("built-in.json"), &definitions)?;

    let version = kausality_sandbox::VERSION.trim_start_matches("v1.");
    let messages = go::messages(&modules()?, &format!("v0.{version}"), definitions.keys())?;
    write(&folder.join("protobuf.json"), &messages)
}

/// Whether a schema is that of a kind. Some are in the documents of other groups: Scale is in that of `apps`.
fn is_wanted(schema: &Value) -> bool {
    let of = |kind: &Value| {
        KINDS.iter().any(|(path, kinds)| {
            let (group, version) =
                path.split_once('/').and_then(|(_, rest)| rest.split_once('/')).unwrap_or(("", "v1"));
            kind["group"] == group
                && kind["version"] == version
                && kinds.split_whitespace().any(|name| kind["kind"] == name)
        })
    };
    schema["x-kubernetes-group-version-kind"].as_array().is_some_and(|list| list.iter().any(of))
}

fn modules() -> Result<PathBuf> {
    let cache = std::env::var_os("GOMODCACHE").map(PathBuf::from);
    let home = std::env::home_dir().map(|home| home.join("go/pkg/mod"));
    Ok(cache.or(home).context("there is no home")?.join("k8s.io"))
}

/// One definition a line, so that a new version of Kubernetes is a diff that can be read.
fn write<T: serde::Serialize>(path: &Path, all: &BTreeMap<String, T>) -> Result<()> {
    let line = |(name, value): (&String, &T)| -> Result<String> {
        Ok(format!("{}:{}", serde_json::to_string(name)?, serde_json::to_string(value)?))
    };
    let lines = all.iter().map(line).collect::<Result<Vec<_>>>()?;
    std::fs::write(path, format!("{{\n{}\n}}\n", lines.join(",\n")))
        .with_context(|| format!("writing {}", path.display()))
}

/// A field may be called description, so that properties are told from keywords.
fn without_descriptions(schema: &Value) -> Value {
    match schema {
        Value::Object(fields) => {
            let keyword = |(key, value): (&String, &Value)| {
                let value = match value.as_object().filter(|_| key == "properties") {
                    Some(properties) => {
                        let each = properties
                            .iter()
                            .map(|(name, schema)| (name.clone(), without_descriptions(schema)));
                        Value::Object(each.collect::<Map<_, _>>())
                    }
                    None => without_descriptions(value),
                };
                (key.clone(), value)
            };
            Value::Object(fields.iter().filter(|(key, _)| *key != "description").map(keyword).collect())
        }
        Value::Array(items) => items.iter().map(without_descriptions).collect(),
        other => other.clone(),
    }
}

fn references(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            let reference = fields.get("$ref").and_then(Value::as_str);
            found.extend(reference.and_then(|text| text.rsplit('/').next()).map(str::to_owned));
            fields.values().for_each(|value| references(value, found));
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}
