//! `kausality policy test`.

use serde_json::{Value, json};

use crate::policy::*;

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
    let mut all = 0;
    for file in TESTED {
        let rules = policy(file)["spec"]["rules"].as_array().unwrap().len();
        for place in 0..rules {
            let name = format!("ClusterApprovalPolicy/kausality-{file} rules[{place}]");
            assert!(tested.iter().any(|case| case["got"]["rule"] == name.as_str()), "{name} is not tested");
        }
        all += rules;
    }
    let caught = tested.iter().filter(|case| case["got"]["decision"] == "none").count();
    assert!(caught > all, "{caught}");
}

/// The policies that come with Kausality and have cases. Scenarios show what the others do.
const TESTED: [&str; 4] = ["argo-rollouts", "cert-manager", "kubernetes", "prometheus-operator"];

/// One of them.
fn policy(file: &str) -> Value {
    let text = std::fs::read_to_string(root().join(format!("policies/{file}.yaml"))).unwrap();
    serde_saphyr::from_str(&text).unwrap()
}

/// An expression without one of the conditions that must all hold, for each of them.
fn without_one(expression: &str) -> Vec<String> {
    let (mut depth, mut quoted, mut parts, mut start) = (0, None, Vec::new(), 0);
    for (at, character) in expression.char_indices() {
        match character {
            _ if quoted == Some(character) => quoted = None,
            _ if quoted.is_some() => {}
            '\'' | '"' => quoted = Some(character),
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            '&' if depth == 0 && expression[at..].starts_with("&&") => {
                parts.push(&expression[start..at]);
                start = at + 2;
            }
            _ => {}
        }
    }
    parts.push(&expression[start..]);
    let all = parts.clone();
    let without = |place: usize| {
        let left = all.iter().enumerate().filter(|(other, _)| *other != place).map(|(_, part)| *part);
        left.collect::<Vec<_>>().join("&&")
    };
    if parts.len() < 2 { Vec::new() } else { (0..parts.len()).map(without).collect() }
}

/// Every way in which a rule could be wider or narrower than it is: each has to make some case fail.
fn mutants(policy: &Value) -> Vec<(String, Value)> {
    let mut mutants = Vec::new();
    for (place, rule) in policy["spec"]["rules"].as_array().unwrap().iter().enumerate() {
        let mut mutant = |what: &str, change: &dyn Fn(&mut Value)| {
            let mut mutant = policy.clone();
            change(&mut mutant["spec"]["rules"][place]);
            if mutant != *policy {
                mutants.push((format!("rules[{place}] {what}"), mutant));
            }
        };
        for field in ["prereqs", "match"] {
            for (nth, less) in
                without_one(rule[field]["cel"].as_str().unwrap_or_default()).into_iter().enumerate()
            {
                mutant(&format!("without condition {nth} of {field}"), &|rule| {
                    rule[field]["cel"] = less.as_str().into()
                });
            }
        }
        mutant("for any field", &|rule| {
            if rule["match"]["cel"].is_string() {
                rule["match"].as_object_mut().unwrap().remove("fields");
            }
        });
        mutant("of any name", &|rule| drop(rule.as_object_mut().unwrap().remove("name")));
        for field in ["prereqs", "match", "operations"] {
            mutant(&format!("without {field}"), &|rule| drop(rule.as_object_mut().unwrap().remove(field)));
        }
        mutant("for anybody", &|rule| rule["subjects"] = json!([{"kind": "User", "name": "*"}]));
        mutant("for anything", &|rule| {
            rule["apiVersion"] = "*".into();
            rule["kind"] = "*".into();
        });
        mutant("for nothing", &|rule| rule["name"] = "nothing".into());
        for subject in 0..rule["subjects"].as_array().unwrap().len() {
            mutant(&format!("without subjects[{subject}]"), &|rule| {
                rule["subjects"][subject] = json!({"kind": "User", "name": "nobody"});
            });
        }
    }
    mutants
}

#[test]
fn whatever_a_rule_says_some_case_fails_without_it() {
    let folder = tempfile::tempdir().unwrap();
    let (mut number, mut unneeded) = (0, String::new());
    for file in TESTED {
        let cases = root().join(format!("policies/tests/{file}.yaml"));
        std::fs::copy(cases, folder.path().join("cases.yaml")).unwrap();
        for (what, mutant) in mutants(&policy(file)) {
            std::fs::write(folder.path().join("policy.yaml"), mutant.to_string()).unwrap();
            let said = kausality_in(folder.path(), &["policy", "test", "."]);
            if said.code != 1 {
                unneeded += &format!("{file} {what}: no case fails ({}{})\n", said.code, said.err);
            }
            number += 1;
        }
    }
    assert!(number > 150, "{number}");
    assert!(unneeded.is_empty(), "{unneeded}");
}

/// The policy and the test that the page about exceptions shows.
#[test]
fn the_page_shows_what_works() {
    let page = std::fs::read_to_string(root().join("docs/exceptions.md")).unwrap();
    let blocks: Vec<&str> =
        page.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    let folder = folder("");
    std::fs::remove_file(folder.path().join("tests/cases.yml")).unwrap();
    std::fs::rename(folder.path().join("tests/recording.jsonl"), folder.path().join("tuesday.jsonl"))
        .unwrap();
    for (number, block) in blocks.iter().enumerate() {
        std::fs::write(folder.path().join(format!("{number}.yaml")), block).unwrap();
    }
    let said = kausality_in(folder.path(), &["policy", "test", "."]);
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    assert!(said.out.contains("2 cases: 2 passed"), "{}", said.out);
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
