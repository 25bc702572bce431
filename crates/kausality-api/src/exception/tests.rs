#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use serde_json::json;

use super::*;

/// As the document that the kind comes from has it.
#[test]
fn the_first_policy_that_was_ever_written_is_understood() {
    let policy: ApprovalPolicy = serde_json::from_value(json!({
        "apiVersion": "kausality.io/v1alpha1",
        "kind": "ApprovalPolicy",
        "metadata": {"name": "controller-l1-compute", "namespace": "infra", "uid": "u", "generation": 1},
        "spec": {"rules": [{
            "apiVersion": "v1", "kind": "ConfigMap", "namespace": "*", "name": "*",
            "prereqs": {"cel": "object.metadata.labels['env'] == 'dev'"},
            "match": {"regexp": "{\"data\":{\"version\":\".*\"}}"},
            "mode": "always", "expiry": "2026-06-01T00:00:00Z",
        }]},
    }))
    .unwrap();
    let rule = &policy.spec.rules[0];
    assert_eq!((rule.action, rule.causes.as_slice()), (Action::Allow, [RuleCause::Drift].as_slice()));
    assert_eq!(rule.matching.as_ref().unwrap().regexp.as_deref(), Some(r#"{"data":{"version":".*"}}"#));
    assert_eq!(policy.reference(), "ApprovalPolicy/infra/controller-l1-compute");
}

#[test]
fn what_is_misspelt_does_not_widen_a_rule() {
    for rule in [
        json!({"apiVersion": "v1", "kind": "ConfigMap", "operation": ["DELETE"]}),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "match": {"field": ["data"]}}),
        json!({"apiVersion": "v1", "kind": "ConfigMap", "subjects": [{"kind": "User", "name": "a", "groups": []}]}),
        json!({"kind": "ConfigMap"}),
    ] {
        assert!(serde_json::from_value::<PolicyRule>(rule.clone()).is_err(), "{rule}");
    }
}

#[test]
fn a_rule_is_written_as_it_was_read() {
    let full = json!({
        "action": "deny", "causes": ["origin"], "apiVersion": "apps/*", "kind": "*", "namespace": "team-*", "name": "web-*",
        "subjects": [{"kind": "ServiceAccount", "name": "hpa", "namespace": "kube-system"}],
        "exceptSubjects": [{"kind": "Group", "name": "sre"}],
        "operations": ["UPDATE", "DELETE"], "prereqs": {"cel": "true"},
        "match": {"cel": "true", "regexp": ".*", "fields": ["spec.replicas"]},
        "mode": "generation", "expiry": "2026-06-01T00:00:00Z", "reason": "known", "dryRun": true,
    });
    let rule: PolicyRule = serde_json::from_value(full.clone()).unwrap();
    assert_eq!(serde_json::to_value(rule).unwrap(), full);
    let least = json!({"apiVersion": "v1", "kind": "Pod"});
    let rule: PolicyRule = serde_json::from_value(least).unwrap();
    let written =
        json!({"action": "allow", "apiVersion": "v1", "kind": "Pod", "name": "*", "mode": "always"});
    assert_eq!(serde_json::to_value(rule).unwrap(), written);
}
