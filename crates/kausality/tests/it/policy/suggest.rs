//! `kausality policy suggest`.

use std::path::Path;

use serde_json::{Value, json};

use crate::{controllers::unspelt, policy::*};

/// The recording of custom resources, with approvals of the cluster's for its children.
fn approved(folder: &Path) -> String {
    let approvals = json!([
        {"apiVersion": "example.com/v1alpha1", "kind": "NodePool", "name": "pool-1", "mode": "always"},
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "cluster-config", "mode": "once", "generation": 1},
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

/// A `scale` is about the object behind it, and so is the rule.
#[test]
fn what_was_scaled_is_named() {
    let text = std::fs::read_to_string(root().join(fixture("custom-resources.jsonl"))).unwrap();
    let mut lines: Vec<String> = text.lines().take(7).map(ToOwned::to_owned).collect();
    let mut review: Value = serde_json::from_str(&lines[6]).unwrap();
    let scale = |replicas: i64| {
        json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "pool-1", "namespace": "default"},
            "spec": {"replicas": replicas}})
    };
    review["request"]["subResource"] = "scale".into();
    review["request"]["kind"] = json!({"group": "autoscaling", "version": "v1", "kind": "Scale"});
    review["request"]["oldObject"] = scale(3);
    review["request"]["object"] = scale(1);
    lines[6] = review.to_string();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("scaled.jsonl");
    std::fs::write(&file, lines.join("\n")).unwrap();
    let said = kausality(&["policy", "suggest", "--all-drifts", "-o", "json", file.to_str().unwrap()]);
    assert!(said.err.contains("1 of 1 drift passes"), "{}", said.err);
    let rule = said.json()["spec"]["rules"][0].clone();
    assert_eq!((&rule["apiVersion"], &rule["kind"]), (&json!("example.com/v1alpha1"), &json!("NodePool")));
    assert_eq!(rule["match"]["fields"], json!(["spec.replicas"]));
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
        said.err.contains("5 of 5 drifts pass") && said.err.contains("Left out: 2 drifts"),
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
    assert!(said.err.contains("150 of 150 drifts pass"), "{}", said.err);
    let said = kausality(&["policy", "suggest", "--all-drifts", recordings]);
    assert_eq!(said.out.lines().filter(|line| *line == "---").count(), 1);
}

#[test]
fn a_rule_that_is_wider_than_the_drifts_says_so() {
    let text = std::fs::read_to_string(root().join(fixture("custom-resources.jsonl"))).unwrap();
    let mut lines: Vec<String> = text.lines().take(7).map(ToOwned::to_owned).collect();
    let mut review: Value = serde_json::from_str(&lines[6]).unwrap();
    let soil =
        |value: &str| (0..40).map(|at| (format!("f{at}"), json!(value))).collect::<serde_json::Map<_, _>>();
    review["request"]["oldObject"]["spec"]["soil"] = soil("dry").into();
    review["request"]["object"]["spec"]["soil"] = soil("wet").into();
    lines[6] = review.to_string();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("wide.jsonl");
    std::fs::write(&file, lines.join("\n")).unwrap();
    let said = kausality(&["policy", "suggest", "--all-drifts", file.to_str().unwrap()]);
    let note = said.out.lines().find(|line| line.contains("Widened")).unwrap_or(&said.out);
    insta::assert_snapshot!(note);
}

/// A recording of an operator that acts on ConfigMaps beside its own objects.
fn operator(name: &str) -> String {
    format!("fixtures/controllers/{name}.audit.jsonl.gz")
}

#[test]
fn inputs_are_suggested_by_what_came_before_drifts() {
    for name in ["operator-eager", "operator-phase"] {
        let recording = unspelt(&format!("{name}.audit.jsonl"));
        let recording = recording.path().to_str().unwrap();
        let said = kausality(&["policy", "suggest", "--inputs", recording]);
        assert_eq!(said.code, 0, "{}{}", said.out, said.err);
        insta::assert_snapshot!(format!("suggest-inputs-{name}"), said.out);

        // It is a policy, and with it nothing is left to suggest.
        let folder = tempfile::tempdir().unwrap();
        let policy = folder.path().join("policy.yaml");
        std::fs::write(&policy, &said.out).unwrap();
        let policy = policy.to_str().unwrap();
        let said = kausality(&["policy", "suggest", "--inputs", "--policy", policy, recording]);
        assert_eq!(said.code, 1, "{}{}", said.out, said.err);
        assert!(said.err.contains("There is nothing to suggest"), "{}", said.err);
    }
}

#[test]
fn what_drift_means_is_never_suggested_as_an_input() {
    let said = kausality(&["policy", "suggest", "--inputs", "fixtures/controllers/crossplane.jsonl.gz"]);
    assert_eq!((said.code, &*said.out), (1, ""), "{}", said.err);
    let said = kausality(&["policy", "suggest", "--inputs", "--all-drifts", &operator("operator-eager")]);
    assert!(said.err.contains("cannot be used with"), "{}", said.err);
}
