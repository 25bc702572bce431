//! `kausality policy`, run as a person or a CI system would.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::{Value, json};

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
const INTERN: &str = "
- name: interns delete nothing in production
  user: ian
  groups: [interns]
  oldObject: {apiVersion: example.com/v1alpha1, kind: NodePool, metadata: {name: p, namespace: d}, spec: {nodes: 1}}
  namespaceLabels: {env: prod}
  cause: origin
  now: 2026-12-01T00:00:00Z
  expect: deny
";
const RECORDED: &str = "
- name: shrinking is caught
  review: recording.jsonl:7
  expect: none
";

#[test]
fn what_comes_with_kausality_is_tested() {
    let said = kausality(&["policy", "test", "policies", "-o", "json"]);
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    let tested = said.json();
    let tested = tested.as_array().unwrap();
    // Every rule lets something pass that is tested, and something that is like it is still caught.
    let text = std::fs::read_to_string(root().join("policies/kubernetes.yaml")).unwrap();
    let policy: Value = serde_saphyr::from_str(&text).unwrap();
    let rules = policy["spec"]["rules"].as_array().unwrap();
    for place in 0..rules.len() {
        let name = format!("ClusterApprovalPolicy/kausality-kubernetes rules[{place}]");
        assert!(tested.iter().any(|case| case["got"]["rule"] == name.as_str()), "{name} is not tested");
    }
    let caught = tested.iter().filter(|case| case["got"]["decision"] == "none").count();
    assert!(caught > rules.len(), "{caught}");
}

#[test]
fn cases_pass_and_fail_each_for_itself() {
    let good = folder(&[GROWS, INTERN, RECORDED].concat());
    let said = kausality_in(good.path(), &["policy", "test", "."]);
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    insta::assert_snapshot!("test-passed", said.out);

    // What a case says makes the difference: without it, or with another, it fails.
    for (from, to) in [
        ("nodes: 2", "nodes: 0"),
        ("nodes: 2", "nodes: 2, color: red"),
        ("eks-controller", "eks-cantroller"),
        ("user: ian\n  groups: [interns]", "user: ian"),
        ("env: prod", "env: dev"),
        ("  cause: origin\n", ""),
        ("now: 2026-12-01", "now: 2027-12-01"),
        ("rules[0]", "rules[1]"),
        ("expect: deny", "expect: allow"),
        ("expect: none", "expect: allow"),
    ] {
        let all = [GROWS, INTERN, RECORDED].concat();
        assert!(all.contains(from), "{from}");
        let bad = folder(&all.replacen(from, to, 1));
        let said = kausality_in(bad.path(), &["policy", "test", ".", "-o", "json"]);
        assert_eq!(said.code, 1, "{from} → {to}: {}{}", said.out, said.err);
        let failed = said.json().as_array().unwrap().iter().filter(|case| case["passed"] == false).count();
        assert_eq!(failed, 1, "{from} → {to}: {}", said.out);
    }
}

#[test]
fn failures_say_why() {
    let cases = [
        GROWS,
        &GROWS.replace("growing passes", "shrinking passes").replace("nodes: 2", "nodes: 0"),
        &GROWS.replace("growing passes", "<anybody> \"grows\"").replace("infra:eks", "other:eks"),
        &GROWS
            .replace("growing passes", "pods grow")
            .replace("kind: NodePool", "kind: Pod")
            .replace("  rule: ClusterApprovalPolicy/pools rules[0]\n", ""),
        &INTERN.replace("expect: deny", "expect: none"),
    ];
    let folder = folder(&cases.concat());
    let said = kausality_in(folder.path(), &["policy", "test", "."]);
    assert_eq!(said.code, 1, "{}", said.err);
    insta::assert_snapshot!("test-failed", said.out);
    let said = kausality_in(folder.path(), &["policy", "test", ".", "-o", "junit"]);
    assert_eq!(said.code, 1);
    insta::assert_snapshot!("test-junit", said.out);
}

#[test]
fn bad_files_name_file_case_and_field() {
    for (from, to, expected) in [
        ("expect: allow", "expect: alow", "case \"growing passes\": expect: unknown variant `alow`"),
        ("expect: allow", "expct: allow", "case \"growing passes\": expect: missing"),
        (
            "  expect: allow",
            "  expect: allow\n  namespcae: x",
            "case \"growing passes\": namespcae: there is no such field",
        ),
        (
            "  user: ian",
            "  usr: ian",
            "case \"interns delete nothing in production\": name a review, or say what is requested: user: missing",
        ),
        (
            "groups: [interns]",
            "groups: interns",
            "case \"interns delete nothing in production\": groups: invalid type",
        ),
        ("cause: origin", "cause: cleanup", "cause: unknown variant `cleanup`"),
        ("now: 2026-12-01", "now: 1. 12. 2026 ", "now: "),
        ("namespaceLabels: {env: prod}", "namespaceLabels: [env]", "namespaceLabels: invalid type"),
        ("cause: origin", "parent: shelf", "parent: invalid type"),
        ("cause: origin", "operation: CREATE", "operation: CREATE does not fit the objects"),
        (
            "oldObject: {apiVersion: example.com/v1alpha1, kind: NodePool, metadata: {name: p, namespace: d}, spec: {nodes: 1}}\n  name",
            "name",
            "object: missing",
        ),
        (
            "apiVersion: example.com/v1alpha1, kind: NodePool, metadata: {name: p, namespace: d}, spec: {nodes: 2}",
            "apiVersion: v1",
            "object.kind: must not be empty",
        ),
        (
            "metadata: {name: p, namespace: d}, spec: {nodes: 2}",
            "metadata: {name: 7}, spec: {nodes: 2}",
            "case \"growing passes\": object: ",
        ),
        (
            "rules[0]",
            "rules[7]",
            "case \"growing passes\": rule: there is no \"ClusterApprovalPolicy/pools rules[7]\"",
        ),
        (
            "expect: none",
            "expect: none\n  rule: ClusterApprovalPolicy/pools rules[0]",
            "rule: none is expected to decide",
        ),
        (
            "recording.jsonl:7",
            "recording.jsonl:400",
            "case \"shrinking is caught\": review: ./tests/recording.jsonl: no request starts on line 400",
        ),
        ("recording.jsonl:7", "recording.jsonl", "holds several documents: say which"),
        ("recording.jsonl:7", "recording.jsonl:x", "\"x\" is no line"),
        ("recording.jsonl:7", "nothing.json", "review: cannot open ./tests/nothing.json"),
        ("recording.jsonl:7", "../policy.yaml", "review: "),
        ("review: recording.jsonl:7", "review: recording.jsonl:7\n  user: ann", "user: stands in the review"),
        (
            "- name: growing passes",
            "- name: shrinking is caught",
            "case \"shrinking is caught\": name: there is another case",
        ),
        ("- name: growing passes", "- nam: growing passes", "case 1: name: missing"),
    ] {
        let all = [GROWS, INTERN, RECORDED].concat();
        assert!(all.contains(from), "{from}");
        let folder = folder(&all.replacen(from, to, 1));
        let said = kausality_in(folder.path(), &["policy", "test", "."]);
        assert_eq!((said.code, said.out.as_str()), (2, ""), "{from} → {to}: {}", said.err);
        assert!(said.err.starts_with("error: ./tests/cases.yml: "), "{from} → {to}: {}", said.err);
        assert!(said.err.contains(expected), "{from} → {to}: {}", said.err);
    }
}

#[test]
fn bad_policies_and_folders_without_any_are_errors() {
    let replaced = |file: &str, text: &str| {
        let folder = folder(GROWS);
        std::fs::write(folder.path().join(file), text).unwrap();
        let said = kausality_in(folder.path(), &["policy", "test", "."]);
        assert_eq!((said.code, said.out.as_str()), (2, ""), "{}", said.err);
        said.err
    };
    let fault = replaced("policy.yaml", &POLICY.replace("object.spec.nodes >", "objekt.spec.nodes >"));
    assert!(fault.contains("./policy.yaml: policy pools is not valid: spec.rules[0].match.cel: "), "{fault}");
    let fault = replaced("policy.yaml", &POLICY.replace("v1alpha1", "v1beta7"));
    assert!(
        fault.contains("./policy.yaml: apiVersion of a ClusterApprovalPolicy must be kausality.io/v1alpha1"),
        "{fault}"
    );
    let fault = replaced("tests/cases.yml", &format!("{TEST}{GROWS}").replace("v1alpha1", "v2"));
    assert!(fault.contains("apiVersion of a PolicyTest must be"), "{fault}");
    let fault = replaced("more.yaml", POLICY);
    assert!(fault.contains("./policy.yaml: there is another ClusterApprovalPolicy/pools"), "{fault}");
    assert!(replaced("policy.yaml", "kind: ConfigMap").contains("holds no ApprovalPolicy"));
    assert!(replaced("tests/cases.yml", "kind: ConfigMap").contains("holds no case"));
    assert!(replaced("tests/cases.yml", "a: [").contains("./tests/cases.yml cannot be read: not YAML"));
    let said = kausality(&["policy", "test", "does-not-exist"]);
    assert_eq!((said.code, said.out.as_str()), (2, ""));
    assert!(said.err.contains("cannot read does-not-exist"), "{}", said.err);
}

#[test]
fn rules_are_explained() {
    let said = kausality(&["policy", "explain", "policies/kubernetes.yaml"]);
    assert_eq!(said.code, 0, "{}", said.err);
    insta::assert_snapshot!("explain-kubernetes", said.out);
    let said = kausality(&["policy", "explain", "policies/kubernetes.yaml", "-o", "json"]);
    let rules = &said.json()["policies"][0]["rules"];
    assert_eq!(rules[1]["what"], "CREATE of Pod (v1)");
    assert_eq!(rules[1].get("review"), None);
    let said = kausality(&["policy", "explain", "policies/tests/kubernetes.yaml"]);
    assert_eq!((said.code, said.out.as_str()), (2, ""));
    assert!(said.err.contains("holds no ApprovalPolicy or ClusterApprovalPolicy"), "{}", said.err);
}

#[test]
fn rules_are_held_against_a_request() {
    let folder = folder(GROWS);
    // A Pod that a ReplicaSet makes although nobody changed that.
    let review = format!("{}:79", fixture("drift-after-rollout.jsonl"));
    let arguments = ["policy", "explain", "policies/kubernetes.yaml", "--review", &review];
    let parent = folder.path().join("parent.yaml");
    let parent = parent.to_str().unwrap();
    let said = kausality(&arguments);
    assert_eq!(said.code, 0, "{}", said.err);
    insta::assert_snapshot!("explain-review", said.out);

    for (replicas, decision) in [(3, "allow"), (0, "none")] {
        let object = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "s"}, "spec": {"replicas": replicas}});
        std::fs::write(parent, object.to_string()).unwrap();
        let said = kausality(&[&arguments[..], &["--parent", parent, "-o", "json"]].concat());
        let said = said.json();
        assert_eq!(said["decision"], decision);
        let rules = &said["policies"][0]["rules"];
        assert_eq!(rules[1]["review"]["matches"], decision == "allow");
        assert_eq!(rules[0]["review"], json!({"matches": false, "why": "is not about CREATE"}));
    }

    // Labels of a namespace, and what is no drift.
    let policy = folder.path().join("policy.yaml");
    let deletion = folder.path().join("deletion.json");
    let old = json!({"apiVersion": "example.com/v1alpha1", "kind": "NodePool", "metadata": {"name": "p", "namespace": "d"}});
    let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "1", "operation": "DELETE", "kind": {"kind": "NodePool"}, "resource": {"resource": "nodepools"},
        "userInfo": {"username": "ian", "groups": ["interns"]}, "oldObject": old}});
    std::fs::write(&deletion, serde_json::to_string_pretty(&review).unwrap()).unwrap();
    let arguments = [
        "policy",
        "explain",
        policy.to_str().unwrap(),
        "--review",
        deletion.to_str().unwrap(),
        "--cause",
        "origin",
        "-o",
        "json",
    ];
    for (label, decision) in [("env=prod", "deny"), ("env=dev", "none")] {
        let said = kausality(&[&arguments[..], &["--namespace-label", label]].concat());
        assert_eq!(said.json()["decision"], decision, "{label}");
    }
    assert_eq!(kausality(&["policy", "explain", policy.to_str().unwrap(), "--parent", parent]).code, 2);
}

/// The recording of custom resources, with approvals of the cluster's for its children.
fn approved(folder: &Path) -> String {
    let approvals = json!([
        {"apiVersion": "example.com/v1alpha1", "kind": "NodePool", "name": "pool-1", "mode": "always"},
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "cluster-config", "mode": "once"},
    ]);
    let text = std::fs::read_to_string(root().join(fixture("custom-resources.jsonl"))).unwrap();
    let ticket = "\"kausality.io/trace-ticket\":\"INFRA-7\"";
    let with = format!("{ticket},\"kausality.io/approvals\":{}", json!(approvals.to_string()));
    assert!(text.contains(ticket));
    let file = folder.join("approved.jsonl");
    std::fs::write(&file, text.replace(ticket, &with)).unwrap();
    file.to_str().unwrap().to_owned()
}

#[test]
fn approved_drifts_are_turned_into_rules() {
    let folder = tempfile::tempdir().unwrap();
    let recording = approved(folder.path());
    let said = kausality(&["policy", "suggest", &recording]);
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    // The approval of the ConfigMap was used up by its update: the deletion was not approved.
    insta::assert_snapshot!("suggest-approved", said.out);

    // What is suggested is a policy: replayed with it, what was approved passes by it.
    let policy = folder.path().join("policy.yaml");
    std::fs::write(&policy, &said.out).unwrap();
    let said = kausality(&[
        "replay",
        &fixture("custom-resources.jsonl"),
        "--policy",
        policy.to_str().unwrap(),
        "-o",
        "json",
        "--only",
        "drift",
    ]);
    let rows: Vec<Value> = said.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let resolutions: Vec<(u64, &str)> =
        rows.iter().map(|row| (row["line"].as_u64().unwrap(), row["resolution"].as_str().unwrap())).collect();
    assert_eq!(
        resolutions,
        [(7, "policy"), (8, "policy"), (10, "policy"), (17, "policy"), (19, "logged")],
        "{}",
        said.err
    );
}

#[test]
fn every_drift_is_covered_by_name_and_field() {
    let all = [&*fixture("custom-resources.jsonl"), &*fixture("drift-after-rollout.jsonl")];
    let said = kausality(&[&["policy", "suggest", "--all-drifts"], &all[..]].concat());
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    insta::assert_snapshot!("suggest-all", said.out);
    let json = kausality(
        &[&["policy", "suggest", "--all-drifts", "-o", "json", "--name", "mine"], &all[..]].concat(),
    );
    let yaml: Value = serde_saphyr::from_str(&said.out.replace("name: suggested", "name: mine")).unwrap();
    assert_eq!(json.json(), yaml);
    assert_eq!(json.err.lines().count(), 1, "{}", json.err);
}

#[test]
fn a_namespace_speaks_of_its_own() {
    let file = fixture("custom-resources.jsonl");
    let rollout = fixture("drift-after-rollout.jsonl");
    let suggest = |namespace: &str| {
        kausality(&["policy", "suggest", "--all-drifts", "-n", namespace, "-o", "json", &file, &rollout])
    };
    // The service account is of this namespace, the objects are not.
    let said = suggest("infra");
    let policy = said.json();
    assert_eq!(
        (&policy["kind"], &policy["metadata"]["namespace"]),
        (&json!("ApprovalPolicy"), &json!("infra"))
    );
    assert_eq!(policy["spec"]["rules"].as_array().unwrap().len(), 3);
    assert!(
        said.err.contains("every one of 5 drifts passes") && said.err.contains("Left out: 2 drifts"),
        "{}",
        said.err
    );
    // All objects are of this one.
    let said = suggest("default");
    assert_eq!(said.json()["spec"]["rules"].as_array().unwrap().len(), 5);
    assert!(!said.err.contains("Left out"), "{}", said.err);
    let said = suggest("elsewhere");
    assert_eq!((said.code, said.out.as_str()), (1, ""));
    assert!(said.err.contains("There is nothing to suggest. Left out: 7 drifts"), "{}", said.err);
}

#[test]
fn what_was_stopped_is_not_suggested() {
    let folder = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(root().join(fixture("custom-resources.jsonl"))).unwrap();
    let ticket = "\"kausality.io/trace-ticket\":\"INFRA-7\"";
    let rejections =
        json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "cluster-config", "reason": "no"}]);
    let with = format!("{ticket},\"kausality.io/rejections\":{}", json!(rejections.to_string()));
    let file = folder.path().join("rejected.jsonl");
    std::fs::write(&file, text.replace(ticket, &with)).unwrap();
    let said = kausality(&["policy", "suggest", "--all-drifts", "-o", "json", file.to_str().unwrap()]);
    let rules = said.json()["spec"]["rules"].clone();
    assert_eq!((rules.as_array().unwrap().len(), &rules[0]["kind"]), (1, &json!("NodePool")));

    // Nothing was approved here, and what rules let pass needs no other rule.
    let said = kausality(&["policy", "suggest", &fixture("custom-resources.jsonl")]);
    assert_eq!((said.code, said.out.as_str()), (1, ""));
    assert!(said.err.contains("no approved drift. With --all-drifts"), "{}", said.err);
    let all = folder.path().join("all.yaml");
    let said = kausality(&["policy", "suggest", "--all-drifts", &fixture("custom-resources.jsonl")]);
    std::fs::write(&all, said.out).unwrap();
    let again = [
        "policy",
        "suggest",
        "--all-drifts",
        &*fixture("custom-resources.jsonl"),
        "--policy",
        all.to_str().unwrap(),
    ]
    .map(ToOwned::to_owned);
    let again: Vec<&str> = again.iter().map(String::as_str).collect();
    assert_eq!(kausality(&again).code, 1);
    let said = kausality(&["policy", "suggest", "-"]);
    assert_eq!(said.code, 2);
    assert!(said.err.contains("it is read twice"), "{}", said.err);
}

/// The recording of custom resources, in so many copies that one policy does not hold all rules.
#[test]
fn many_rules_make_several_policies() {
    let folder = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(root().join(fixture("custom-resources.jsonl"))).unwrap();
    for number in 0..30 {
        let other = text.replace("\"default\"", &format!("\"n{number}\""));
        std::fs::write(folder.path().join(format!("{number:02}.jsonl")), other).unwrap();
    }
    let recordings = folder.path().to_str().unwrap();
    let said = kausality(&["policy", "suggest", "--all-drifts", "-o", "json", recordings]);
    assert_eq!(said.code, 0, "{}", said.err);
    let list = said.json();
    let items = list["items"].as_array().unwrap();
    let sizes: Vec<usize> =
        items.iter().map(|item| item["spec"]["rules"].as_array().unwrap().len()).collect();
    assert_eq!(sizes, [64, 26]);
    assert_eq!(items[1]["metadata"]["name"], "suggested-2");
    assert!(said.err.contains("every one of 150 drifts passes"), "{}", said.err);
    let said = kausality(&["policy", "suggest", "--all-drifts", recordings]);
    assert_eq!(said.out.lines().filter(|line| *line == "---").count(), 1);
}
