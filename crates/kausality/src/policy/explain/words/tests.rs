#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use serde_json::json;

use super::*;

#[test]
fn everything_that_a_rule_says_is_told() {
    let policy: ApprovalPolicy = serde_json::from_value(json!({
        "apiVersion": "kausality.io/v1alpha1", "kind": "ApprovalPolicy",
        "metadata": {"name": "pools", "namespace": "infra"},
        "spec": {"rules": [
            {
                "action": "allow", "apiVersion": "example.com/v1", "kind": "NodePool", "namespace": "*", "name": "workers-*",
                "operations": ["CREATE", "UPDATE"], "prereqs": {"cel": "object.spec.on"},
                "match": {"cel": "object.spec.n > 1", "fields": ["spec.n", "spec.m"], "regexp": ".*"},
                "mode": "once", "expiry": "2027-06-01T00:00:00Z", "reason": "growing is safe", "dryRun": true,
                "exceptSubjects": [{"kind": "User", "name": "eve*"}],
            },
            {
                "action": "deny", "causes": ["drift", "origin"], "apiVersion": "*", "kind": "*", "mode": "always", "name": "*",
                "match": {"fields": ["spec.n", "spec.m"]},
                "subjects": [
                    {"kind": "Group", "name": "system:authenticated"}, {"kind": "Group", "name": "sre"},
                    {"kind": "ServiceAccount", "name": "*", "namespace": "*"}, {"kind": "User", "name": "*"},
                ],
            },
        ]},
    }))
    .unwrap();
    let mut told = String::new();
    for rule in &policy.spec.rules {
        let words = Words::of(&policy, rule);
        told.push_str(&format!("{}\n", words.does));
        words.lines().iter().for_each(|(name, text)| told.push_str(&format!("{name}: {text}\n")));
    }
    insta::assert_snapshot!(told, @r"
    is only tried: it would let drifts pass
    who: service account pools of namespace infra; but not user eve*
    what: CREATE or UPDATE of NodePool (example.com/v1) with a name like workers-*
    where: anywhere
    if: before the change, it holds that object.spec.on
    and: of the change, it holds that object.spec.n > 1
    and: nothing changes but spec.n, spec.m
    and: all that is wanted of the object looks like .*
    lasts: once for each object, until 2027-06-01T00:00:00Z
    reason: growing is safe
    denies drifts and changes by others than the controller, whatever allows them
    who: everybody, or anybody in group sre, or any service account of any namespace, or any user
    what: CREATE, UPDATE or DELETE of anything
    where: in namespace infra
    if: any of spec.n, spec.m changes
    lasts: always
    ");
}
