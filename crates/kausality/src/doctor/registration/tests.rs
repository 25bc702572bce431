use serde_json::json;

use super::*;
use crate::doctor::finding::Outcome;

fn entry(change: &Value) -> Value {
    let mut entry = json!({
        "name": "p.drift.kausality.io", "failurePolicy": "Fail",
        "clientConfig": {"service": {"namespace": "there", "name": "kausality-webhook"}},
        "namespaceSelector": {"matchExpressions": [
            {"key": NAMESPACE_NAME, "operator": "NotIn", "values": ["kube-system", "there"]}]},
        "rules": [{"apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments"], "scope": "*"}],
    });
    entry.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
    entry
}

fn of(entries: &[Value]) -> Seen {
    Seen::Found(json!({"webhooks": entries}))
}

fn policies(names: &[&str]) -> Seen<Vec<Value>> {
    Seen::Found(names.iter().map(|name| json!({"metadata": {"name": name}})).collect())
}

fn judged(mutating: &Seen, validating: &Seen, policies: &Seen<Vec<Value>>, ready: i64) -> Verdict {
    let webhook = Seen::Found(json!({"spec": {"replicas": 2}, "status": {"readyReplicas": ready}}));
    judged_with(mutating, validating, policies, &webhook)
}

fn judged_with(mutating: &Seen, validating: &Seen, policies: &Seen<Vec<Value>>, webhook: &Seen) -> Verdict {
    let labels: Labels =
        [(NAMESPACE_NAME.to_owned(), "there".to_owned()), ("team".to_owned(), "a".to_owned())].into();
    judge(&Registered { namespace: "there", labels: &labels, mutating, validating, policies, webhook })
}

/// Where two are wanted and none is ready, two more are no help.
#[test]
fn replicas_are_asked_for_where_there_are_too_few() {
    let (mutating, validating) = (of(&[entry(&json!({}))]), of(&[json!({"name": OF_POLICIES})]));
    for (wanted, ready, todo) in [
        (1, 1, "kubectl -n there scale deployment kausality-webhook --replicas=2; or"),
        (2, 0, "see why its Pods are not ready: kubectl -n there describe deployment kausality-webhook;"),
        (3, 1, "see why its Pods are not ready: "),
    ] {
        let webhook = Seen::Found(json!({"spec": {"replicas": wanted}, "status": {"readyReplicas": ready}}));
        let verdict = judged_with(&mutating, &validating, &policies(&["p"]), &webhook);
        assert!(verdict.findings()[0].todo.starts_with(todo), "{wanted}, {ready}: {verdict:?}");
    }
}

#[test]
fn an_entry_is_as_it_should_be_or_not() {
    let everywhere = json!({"namespaceSelector": {}});
    let everywhere_lenient = json!({"namespaceSelector": null, "failurePolicy": "Ignore"});
    let cluster = json!({"namespaceSelector": {}, "rules": [{"scope": "Cluster"}]});
    let by_label = |team: &str| json!({"namespaceSelector": {"matchLabels": {"team": team}}});
    let unreadable = json!({"namespaceSelector": {"matchLabels": 7}});
    let elsewhere = json!({"clientConfig": {"service": {"namespace": "x", "name": "y"}}});
    for (change, ready, outcome, said) in [
        (json!({}), 2, Outcome::Ok, "1 entry"),
        (json!({}), 1, Outcome::Warning, "whenever the one webhook that is ready restarts"),
        (json!({}), 0, Outcome::Warning, "they fail now"),
        (json!({"failurePolicy": "Ignore"}), 0, Outcome::Ok, "1 entry"),
        (everywhere, 2, Outcome::Failed, "about namespace there too"),
        (everywhere_lenient, 2, Outcome::Warning, "about namespace there too"),
        (cluster, 2, Outcome::Ok, "1 entry"),
        (by_label("a"), 2, Outcome::Failed, "about namespace there too"),
        (by_label("b"), 2, Outcome::Ok, "1 entry"),
        (unreadable, 2, Outcome::Failed, "about namespace there too"),
        (elsewhere, 2, Outcome::Failed, "asks the Service x/y, and not there/kausality-webhook"),
    ] {
        let validating = of(&[json!({"name": OF_POLICIES})]);
        let verdict = judged(&of(&[entry(&change)]), &validating, &policies(&["p"]), ready);
        assert_eq!(verdict.outcome(), outcome, "{change}: {verdict:?}");
        assert!(verdict.summary().contains(said), "{said}: {verdict:?}");
    }
}

#[test]
fn every_policy_has_an_entry() {
    let names = ["p.drift.kausality.io", "q.drift-log.kausality.io", "r.drift-selected-log.kausality.io"];
    let all = of(&names.map(|name| entry(&json!({"name": name}))));
    let validating = of(&[json!({"name": OF_POLICIES})]);
    for (policy, outcome) in [
        ("p", Outcome::Ok),
        ("q", Outcome::Ok),
        ("r", Outcome::Ok),
        ("s", Outcome::Failed),
        ("p.drift", Outcome::Failed),
    ] {
        let verdict = judged(&all, &validating, &policies(&[policy]), 2);
        assert_eq!(verdict.outcome(), outcome, "{policy}: {verdict:?}");
    }
    assert!(!is_of("p.drift.drift.kausality.io", "p"));
    assert!(is_of("p.drift.drift.kausality.io", "p.drift"));
}

#[test]
fn a_configuration_is_missing_only_where_one_is_needed() {
    let fine = of(&[entry(&json!({}))]);
    let none = judged(&Seen::Absent, &Seen::Absent, &policies(&[]), 2);
    assert_eq!(none.outcome(), Outcome::Skipped, "{none:?}");
    let needed = judged(&Seen::Absent, &Seen::Absent, &policies(&["p"]), 2);
    assert_eq!(needed.outcome(), Outcome::Failed, "{needed:?}");
    let unknown = judged(&Seen::Absent, &Seen::Absent, &Seen::Absent, 2);
    assert_eq!(unknown.outcome(), Outcome::Failed, "{unknown:?}");
    let hidden = judged(&Seen::Hidden("no".to_owned()), &Seen::Absent, &policies(&["p"]), 2);
    assert_eq!(hidden.outcome(), Outcome::Skipped, "{hidden:?}");
    let unchecked = judged(&fine, &Seen::Absent, &policies(&["p"]), 2);
    assert_eq!(unchecked.outcome(), Outcome::Warning, "{unchecked:?}");
    assert!(unchecked.summary().contains("has no entry policies.kausality.io"), "{unchecked:?}");
}

#[test]
fn a_webhook_that_registered_itself_needs_no_policies() {
    let own = json!({"name": "drift.kausality.io", "clientConfig": {"url": "https://127.0.0.1:1"}, "namespaceSelector": {}});
    let mutating = of(&[entry(&own)]);
    assert!(is_local(&mutating));
    let verdict = judged(&mutating, &Seen::Absent, &policies(&["p"]), 0);
    assert_eq!(verdict.outcome(), Outcome::Ok, "{verdict:?}");
}

#[test]
fn resources_come_from_rules() {
    let rules = json!({"rules": [
        {"apiGroups": ["apps", ""], "apiVersions": ["v1"], "resources": ["pods", "pods/status", "*"]}]});
    let mutating = of(&[entry(&rules)]);
    let found: Vec<_> = resources(&mutating).collect();
    assert_eq!(found, [("apps", "v1", "pods"), ("", "v1", "pods")]);
}
