//! `kausality policy`, run as a person or a CI system would.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

mod explain;
mod suggest;
mod test;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn fixture(name: &str) -> String {
    format!("fixtures/admission-reviews/{name}")
}

struct Said {
    code: i32,
    out: String,
    err: String,
}

impl Said {
    fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {}{}", self.out, self.err))
    }
}

/// Runs a command in the root of the repository.
fn kausality(arguments: &[&str]) -> Said {
    kausality_in(&root(), arguments)
}

fn kausality_in(folder: &Path, arguments: &[&str]) -> Said {
    let output =
        Command::new(env!("CARGO_BIN_EXE_kausality")).args(arguments).current_dir(folder).output().unwrap();
    Said {
        code: output.status.code().unwrap(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

const POLICY: &str = "\
apiVersion: kausality.io/v1alpha1
kind: ClusterApprovalPolicy
metadata: {name: pools}
spec:
  rules:
  - apiVersion: example.com/v1alpha1
    kind: NodePool
    operations: [UPDATE]
    subjects: [{kind: ServiceAccount, name: eks-controller, namespace: infra}]
    match: {fields: [spec.nodes], cel: object.spec.nodes > oldObject.spec.nodes}
    reason: growing is safe
  - action: deny
    causes: [origin]
    apiVersion: example.com/v1alpha1
    kind: NodePool
    operations: [DELETE]
    subjects: [{kind: Group, name: interns}]
    match: {cel: \"namespaceObject.metadata.labels['env'] == 'prod'\"}
    expiry: 2027-01-01T00:00:00Z
";

const TEST: &str = "\
apiVersion: kausality.io/v1alpha1
kind: PolicyTest
cases:
";

/// A folder with the policy and these cases.
fn folder(cases: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("policy.yaml"), POLICY).unwrap();
    std::fs::create_dir(folder.path().join("tests")).unwrap();
    std::fs::write(folder.path().join("tests/cases.yml"), format!("{TEST}{cases}")).unwrap();
    std::fs::copy(
        root().join(fixture("custom-resources.jsonl")),
        folder.path().join("tests/recording.jsonl"),
    )
    .unwrap();
    folder
}

const GROWS: &str = "
- name: growing passes
  user: system:serviceaccount:infra:eks-controller
  oldObject: {apiVersion: example.com/v1alpha1, kind: NodePool, metadata: {name: p, namespace: d}, spec: {nodes: 1}}
  object: {apiVersion: example.com/v1alpha1, kind: NodePool, metadata: {name: p, namespace: d}, spec: {nodes: 2}}
  expect: allow
  rule: ClusterApprovalPolicy/pools rules[0]
";
