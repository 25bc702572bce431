use serde_json::json;

use super::*;

#[test]
fn policies_say_what_they_cover() {
    let policies = [
        json!({"metadata": {"name": "apps", "creationTimestamp": "2026-01-24T12:00:00Z"}, "spec": {
            "mode": "enforce", "settle": "observedGeneration",
            "resources": [{"apiGroups": ["apps", ""], "resources": ["*"], "excluded": ["pods"]}],
            "namespaces": {"names": ["shop"], "excluded": ["test"], "selector": {"matchLabels": {"env": "prod"},
                "matchExpressions": [{"key": "tier", "operator": "In", "values": ["a", "b"]},
                    {"key": "old", "operator": "DoesNotExist"}]}},
            "objectSelector": {"matchLabels": {"app": "web"}},
            "overrides": [{"resources": ["daemonsets"], "mode": "log"}]},
            "status": {"conditions": [{"type": "Ready", "status": "False", "reason": "Rights", "message": "no\u{7}",
                "lastTransitionTime": "2026-01-24T12:00:00Z"}]}}),
        json!({"metadata": {"name": "bare"}, "spec": {"mode": "log",
            "resources": [{"apiGroups": ["batch"], "resources": ["jobs"]}]}}),
        json!({"metadata": {"name": "newer"}, "spec": {"mode": "dance"}}),
    ];
    let now = "2026-01-25T12:00:00Z".parse().unwrap();
    let shown = |wide: bool| {
        let mut out = Vec::new();
        table(&policies, wide, now).write(&mut anstream::StripStream::new(&mut out)).unwrap();
        String::from_utf8(out).unwrap()
    };
    insta::assert_snapshot!("policies", shown(false));
    insta::assert_snapshot!("policies-wide", shown(true));
}

/// A kind that cannot be judged is named, until a policy says how it is.
#[test]
fn policies_say_what_they_cannot_judge() {
    let policy = |name: &str, resource: &str, settle: &str| {
        json!({"apiVersion": "kausality.io/v1alpha1", "kind": "Kausality", "metadata": {"name": name}, "spec": {
            "mode": "log", "settle": settle, "resources": [{"apiGroups": ["example.com"], "resources": [resource]}]}})
    };
    let mut asked = policy("p", "children", "steady");
    asked["status"] = json!({"unjudged": [
        {"apiGroup": "example.com", "kind": "App", "resource": "apps", "lastSeen": "2026-01-25T11:00:00Z"},
        {"apiGroup": "", "kind": "Old", "resource": "olds", "lastSeen": "2026-01-24T11:00:00Z"}]});
    let now = "2026-01-25T12:00:00Z".parse().unwrap();
    let told = "policy p: cannot be judged without settle: quiet: App (example.com)";
    assert_eq!(unjudged(std::slice::from_ref(&asked), now), [told]);
    assert_eq!(unjudged(&[asked.clone(), policy("q", "apps", "steady")], now), [told]);
    assert!(unjudged(&[asked, policy("q", "apps", "quiet")], now).is_empty());
}
