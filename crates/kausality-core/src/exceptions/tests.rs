#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use kausality_api::exception::ApprovalPolicy;
use serde_json::{Value, json};

use super::*;

fn policy(namespace: &str, rules: &Value) -> ApprovalPolicy {
    let kind = if namespace.is_empty() { "ClusterApprovalPolicy" } else { "ApprovalPolicy" };
    serde_json::from_value(json!({
        "apiVersion": "kausality.io/v1alpha1", "kind": kind,
        "metadata": {"name": "x", "namespace": namespace}, "spec": {"rules": rules},
    }))
    .unwrap()
}

/// What is said of a rule that says this, beside what every rule must.
fn faults(namespace: &str, says: &Value) -> Vec<String> {
    let mut rule = json!({"apiVersion": "v1", "kind": "Pod", "subjects": [{"kind": "User", "name": "a"}]});
    for (key, value) in says.as_object().unwrap() {
        rule[key] = value.clone();
    }
    let found = compile(&policy(namespace, &json!([rule])));
    found.err().unwrap_or_default().iter().map(ToString::to_string).collect()
}

#[test]
fn faults_name_their_place() {
    for (namespace, says, place) in [
        ("", json!({"kind": ""}), "spec.rules[0].kind: must not be empty"),
        ("", json!({"causes": []}), "spec.rules[0].causes: must not be empty"),
        ("", json!({"causes": ["origin"]}), "spec.rules[0].causes: changes by others"),
        ("", json!({"action": "deny", "mode": "once"}), "spec.rules[0].mode: is for rules that allow"),
        ("", json!({"subjects": []}), "spec.rules[0].subjects: must be named"),
        (
            "",
            json!({"subjects": [{"kind": "User", "name": ""}]}),
            "spec.rules[0].subjects[0].name: must not be empty",
        ),
        (
            "",
            json!({"subjects": [{"kind": "ServiceAccount", "name": "a"}]}),
            "spec.rules[0].subjects[0].namespace: must say",
        ),
        (
            "",
            json!({"exceptSubjects": [{"kind": "User", "name": "a", "namespace": "b"}]}),
            "spec.rules[0].exceptSubjects[0].namespace: is for service",
        ),
        (
            "",
            json!({"subjects": [{"kind": "Group", "name": "sre-*"}]}),
            "spec.rules[0].subjects[0].name: groups are named in full",
        ),
        ("", json!({"match": {"fields": ["spec", ""]}}), "spec.rules[0].match.fields[1]: must not be empty"),
        ("", json!({"match": {"fields": ["spec.x[*].y"]}}), "spec.rules[0].match.fields[0]: \"*\""),
        ("", json!({"match": {"fields": [".spec"]}}), "spec.rules[0].match.fields[0]: a dot at character 1"),
        ("", json!({"match": {"fields": ["status.x"]}}), "spec.rules[0].match.fields[0]: is no part"),
        (
            "",
            json!({"match": {"fields": ["metadata.annotations"]}}),
            "spec.rules[0].match.fields[0]: is no part",
        ),
        ("", json!({"match": {"regexp": "a("}}), "spec.rules[0].match.regexp: illegal regex: unclosed group"),
        (
            "",
            json!({"match": {"regexp": "a".repeat(5000)}}),
            "spec.rules[0].match.regexp: 5000 bytes are more than 4096",
        ),
        ("", json!({"match": {"regexp": "(a{1000}){1000}"}}), "spec.rules[0].match.regexp: "),
        ("", json!({"match": {"cel": "object.spec +"}}), "spec.rules[0].match.cel: "),
        ("", json!({"prereqs": {"cel": "objekt.spec == 1"}}), "spec.rules[0].prereqs.cel: "),
        (
            "infra",
            json!({"namespace": "*"}),
            "spec.rules[0].namespace: \"*\" is not the policy's own namespace",
        ),
        ("infra", json!({"namespace": "prod"}), "spec.rules[0].namespace: "),
    ] {
        let found = faults(namespace, &says);
        assert!(found.len() == 1 && found[0].starts_with(place), "{says}: {found:?}");
    }
}

#[test]
fn faults_of_expressions_point_at_the_fault() {
    let found = faults("", &json!({"match": {"cel": "object.spec.size > 1 &&\n  request.verb == 'create'"}}));
    assert!(found[0].contains("2:") && found[0].contains('^') && found[0].contains("verb"), "{}", found[0]);
}

#[test]
fn a_policy_of_a_namespace_speaks_of_its_objects_or_of_its_service_accounts() {
    let own = json!([{"kind": "ServiceAccount", "name": "a"}]);
    assert_eq!(faults("infra", &json!({"namespace": "*", "subjects": own})), Vec::<String>::new());
    assert_eq!(faults("infra", &json!({"namespace": "*", "subjects": []})), Vec::<String>::new());
    assert_eq!(faults("infra", &json!({"namespace": "infra"})), Vec::<String>::new());
    let other = json!([{"kind": "ServiceAccount", "name": "a", "namespace": "other"}]);
    assert_eq!(faults("infra", &json!({"namespace": "*", "subjects": other})).len(), 1);
}

#[test]
fn rules_that_contradict_each_other_are_a_fault() {
    let rule = |action: &str, reason: &str| {
        json!({"action": action, "apiVersion": "v1", "kind": "Pod", "reason": reason,
        "subjects": [{"kind": "User", "name": "a"}]})
    };
    let found = compile(&policy("", &json!([rule("allow", "a"), rule("deny", "b")]))).unwrap_err();
    assert_eq!(
        found[0].to_string(),
        "spec.rules[1]: contradicts spec.rules[0]: one allows what the other denies"
    );
    assert!(compile(&policy("", &json!([rule("deny", "a"), rule("deny", "b")]))).is_ok());
    assert!(compile(&policy("", &json!([]))).is_err());
}

#[test]
fn what_is_wrong_with_a_rule_does_not_lift_what_another_denies() {
    let rule = |action: &str, cel: &str| {
        json!({"action": action, "apiVersion": "v1", "kind": "Pod", "subjects": [{"kind": "User", "name": "a"}],
            "match": {"cel": cel}})
    };
    let broken = policy(
        "",
        &json!([rule("allow", "1 == 1"), rule("deny", "true"), rule("deny", "tru"), rule("allow", "1")]),
    );
    assert_eq!(compile(&broken).unwrap_err().len(), 2);
    let kept = prohibitions(&broken);
    let places: Vec<usize> = kept.rules.iter().map(|rule| rule.ruled().rule).collect();
    assert_eq!(places, [1]);
}

#[test]
fn who_corrects_a_reason_does_not_arm_a_rule_again() {
    let mark = |says: Value| {
        let mut rule = json!({"apiVersion": "v1", "kind": "Pod", "subjects": [{"kind": "User", "name": "a"}], "mode": "once"});
        says.as_object().unwrap().iter().for_each(|(key, value)| rule[key] = value.clone());
        compile(&policy("", &json!([rule]))).unwrap().rules[0].ruled().mark
    };
    let first = mark(json!({}));
    assert_eq!(first, mark(json!({"reason": "known", "expiry": "2030-01-01T00:00:00Z"})));
    assert_ne!(first, mark(json!({"name": "web"})));
}

#[test]
fn owners_are_a_field_that_changes() {
    for field in ["metadata", "metadata.ownerReferences", "metadata.ownerReferences[uid=a]", "data[\"a.b\"]"]
    {
        assert_eq!(faults("", &json!({"match": {"fields": [field]}})), Vec::<String>::new(), "{field}");
    }
}

#[test]
fn what_denies_is_saved_from_what_cannot_be_read() {
    let subjects = json!([{"kind": "User", "name": "a"}]);
    let rules = json!([
        {"action": "deny", "apiVersion": "v1", "kind": "Pod", "subjects": subjects, "operatons": ["DELETE"]},
        {"action": "deny", "apiVersion": "v1", "kind": "Pod", "subjects": subjects},
        {"apiVersion": "v1", "kind": "Pod", "subjects": subjects},
    ]);
    let policy = json!({"apiVersion": "kausality.io/v1alpha1", "kind": "ClusterApprovalPolicy",
        "metadata": {"name": "p"}, "spec": {"rules": rules}});
    assert!(serde_json::from_value::<ApprovalPolicy>(policy.clone()).is_err());
    let saved: Vec<(usize, Action)> =
        Exceptions::new([&salvaged(&policy).unwrap()]).rules().map(|rule| (rule.rule, rule.action)).collect();
    assert_eq!(saved, [(1, Action::Deny)]);
    assert!(salvaged(&json!({"spec": {}})).is_none());
}
