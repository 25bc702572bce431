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
