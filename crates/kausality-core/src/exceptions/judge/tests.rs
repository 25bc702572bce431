#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use kausality_api::exception::ApprovalPolicy;
use serde_json::json;

use super::*;
use crate::exceptions::{MAX_SIZE, compile, prohibitions};

fn exceptions(rules: &Value) -> Exceptions {
    let policy: ApprovalPolicy = serde_json::from_value(json!({
        "apiVersion": "kausality.io/v1alpha1", "kind": "ClusterApprovalPolicy",
        "metadata": {"name": "x"}, "spec": {"rules": rules},
    }))
    .unwrap();
    Exceptions::new([&compile(&policy).unwrap()])
}

/// A policy takes no more memory than it may. What it denies it denies all the same.
#[test]
fn what_does_not_fit_into_memory_permits_nothing_and_denies_what_it_is_about() {
    let text = review(&json!({"size": 2}));
    let review = Review::parse(text.as_bytes()).unwrap();
    let policy = |action: &str| -> ApprovalPolicy {
        let pattern = json!({"regexp": "never .{1,1000}"});
        let rules = vec![rule(&json!({"action": action, "match": pattern})); 8];
        serde_json::from_value(json!({"apiVersion": "kausality.io/v1alpha1", "kind": "ClusterApprovalPolicy",
            "metadata": {"name": "x"}, "spec": {"rules": rules}}))
        .unwrap()
    };
    for action in ["allow", "deny"] {
        let faults = compile(&policy(action)).unwrap_err();
        let told = faults.first().unwrap().to_string();
        assert!(told.contains("]: with the rules before it, it takes more than 8 MiB of memory"), "{told}");
        let kept = prohibitions(&policy(action));
        assert!(kept.size() <= MAX_SIZE, "{}", kept.size());
        let judged = Exceptions::new([&kept]).judge(&supposed(&review, RuleCause::Drift));
        assert_eq!(judged.ruled.is_some(), action == "deny", "{judged:?}");
        let bare = kept.bare();
        assert_eq!((bare.size(), bare.denying().rules.len()), (0, kept.rules.len()));
        let judged = Exceptions::new([&bare]).judge(&supposed(&review, RuleCause::Drift));
        assert_eq!(judged.ruled.map(|ruled| ruled.rule), (action == "deny").then_some(0));
    }

    let one = rule(&json!({"action": "deny", "match": {"regexp": "never .{1,1000}"}}));
    let judged = exceptions(&json!([one])).judge(&supposed(&review, RuleCause::Drift));
    assert_eq!(judged.ruled, None, "it fits, and does not match");
}

/// A rule about updates of widgets by ann, and what else it says.
fn rule(says: &Value) -> Value {
    let mut rule = json!({"apiVersion": "v1", "kind": "Widget", "operations": ["UPDATE"],
        "subjects": [{"kind": "User", "name": "ann"}]});
    for (key, value) in says.as_object().unwrap() {
        rule[key] = value.clone();
    }
    rule
}

fn review(spec: &Value) -> String {
    let object = |spec: &Value| json!({"apiVersion": "v1", "kind": "Widget", "metadata": {"name": "w", "namespace": "n"}, "spec": spec});
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "u", "operation": "UPDATE", "kind": {"version": "v1", "kind": "Widget"},
        "resource": {"version": "v1", "resource": "widgets"}, "name": "w", "namespace": "n",
        "userInfo": {"username": "ann"}, "oldObject": object(&json!({"size": 1})), "object": object(spec)}})
    .to_string()
}

fn supposed<'a>(review: &'a Review<'a>, cause: RuleCause) -> Supposed<'a> {
    Supposed { review, parent: None, namespace: None, cause, now: Timestamp::UNIX_EPOCH }
}

#[test]
fn rules_that_deny_are_asked_first() {
    let text = review(&json!({"size": 2}));
    let review = Review::parse(text.as_bytes()).unwrap();
    let all = exceptions(&json!([
        rule(&json!({})),
        rule(&json!({"action": "deny", "match": {"cel": "object.spec.size > 1"}})),
    ]));
    let judged = all.judge(&supposed(&review, RuleCause::Drift));
    assert_eq!(judged.ruled.map(|ruled| (ruled.rule, ruled.action)), Some((1, Action::Deny)));

    let small = exceptions(&json!([
        rule(&json!({})),
        rule(&json!({"action": "deny", "match": {"cel": "object.spec.size > 9"}})),
    ]));
    let judged = small.judge(&supposed(&review, RuleCause::Drift));
    assert_eq!(judged.ruled.map(|ruled| (ruled.rule, ruled.action)), Some((0, Action::Allow)));
    assert_eq!(judged.evidence, ["ClusterApprovalPolicy/x rules[1]: match.cel does not hold"]);
}

#[test]
fn what_is_no_drift_needs_nothing_that_allows_it() {
    let text = review(&json!({"size": 2}));
    let review = Review::parse(text.as_bytes()).unwrap();
    let all = exceptions(&json!([
        rule(&json!({})),
        rule(&json!({"action": "deny", "causes": ["origin"], "reason": "no"}))
    ]));
    let ruled = |cause| all.judge(&supposed(&review, cause)).ruled.map(|ruled| ruled.rule);
    assert_eq!(ruled(RuleCause::Origin), Some(1));
    assert_eq!(ruled(RuleCause::Drift), Some(0));
    assert_eq!(
        exceptions(&json!([rule(&json!({}))])).judge(&supposed(&review, RuleCause::Origin)).ruled,
        None
    );
}

#[test]
fn what_is_tried_is_told_and_does_not_decide() {
    let text = review(&json!({"size": 2}));
    let review = Review::parse(text.as_bytes()).unwrap();
    let judged =
        exceptions(&json!([rule(&json!({"dryRun": true}))])).judge(&supposed(&review, RuleCause::Drift));
    assert_eq!((judged.ruled, judged.tried.len()), (None, 1));
}

#[test]
fn parents_and_namespaces_are_known_as_far_as_they_are_given() {
    let text = review(&json!({"size": 2}));
    let review = Review::parse(text.as_bytes()).unwrap();
    let all = exceptions(&json!([
        rule(
            &json!({"match": {"cel": "parent.kind == 'Shelf' && namespaceObject.metadata.labels['env'] == 'dev'"}})
        ),
        rule(&json!({"mode": "once"})),
    ]));
    let parent = json!({"apiVersion": "v1", "kind": "Shelf", "metadata": {"name": "s", "generation": 3}});
    let labels: Labels = [("env".to_owned(), "dev".to_owned())].into_iter().collect();
    let nothing = supposed(&review, RuleCause::Drift);
    let judged = all.judge(&nothing);
    assert_eq!(judged.ruled.map(|ruled| ruled.rule), Some(1));
    assert!(judged.evidence[0].contains("the parent has not been read in full"), "{:?}", judged.evidence);
    let everything = Supposed { parent: Some(&parent), namespace: Some(&labels), ..nothing };
    assert_eq!(all.judge(&everything).ruled.map(|ruled| ruled.rule), Some(0));
}

#[test]
fn each_rule_says_why_it_is_about_others() {
    let text = review(&json!({"size": 2}));
    let review = Review::parse(text.as_bytes()).unwrap();
    for (says, expected) in [
        (json!({}), Match::Yes(None)),
        (
            json!({"match": {"fields": ["spec.color"]}}),
            Match::No("is for changes of spec.color only".to_owned()),
        ),
        (json!({"operations": ["DELETE"]}), Match::Beside("is not about UPDATE".to_owned())),
        (json!({"apiVersion": "v2"}), Match::Beside("is not about apiVersion v1".to_owned())),
        (json!({"kind": "Gadget"}), Match::Beside("is not about kind Widget".to_owned())),
        (json!({"namespace": "m"}), Match::Beside("is not about namespace n".to_owned())),
        (json!({"name": "v*"}), Match::Beside("is not about name w".to_owned())),
        (
            json!({"exceptSubjects": [{"kind": "User", "name": "a*"}]}),
            Match::Beside("is not about user ann".to_owned()),
        ),
        (
            json!({"action": "deny", "causes": ["origin"]}),
            Match::Beside("is not about changes of this cause".to_owned()),
        ),
    ] {
        let held = exceptions(&json!([rule(&says)])).hold_each(&supposed(&review, RuleCause::Drift));
        assert_eq!(held.len(), 1);
        assert_eq!(held[0].matches, expected, "{says}");
    }
}

#[test]
fn each_rule_says_what_it_needs_to_know() {
    let text = review(&json!({"size": 2}));
    let review = Review::parse(text.as_bytes()).unwrap();
    for (says, expected) in [
        (json!({}), vec![]),
        (json!({"match": {"fields": ["spec.size"]}}), vec![Need::Fields]),
        (json!({"match": {"regexp": ".*"}}), vec![Need::Values]),
        (json!({"prereqs": {"cel": "object.spec.size > 1"}}), vec![Need::Values]),
        (
            json!({"match": {"cel": "oldObject.spec.size > 1 || request.dryRun"}}),
            vec![Need::Values, Need::Request],
        ),
        (json!({"match": {"cel": "user.username == 'ann' && parent.spec.size > 1"}}), vec![Need::Parent]),
        (json!({"mode": "once"}), vec![Need::Parent]),
        (json!({"match": {"cel": "namespaceObject.metadata.name == 'n'"}}), vec![Need::Namespace]),
    ] {
        let held = exceptions(&json!([rule(&says)])).hold_each(&supposed(&review, RuleCause::Drift));
        assert_eq!(held[0].needs, expected, "{says}");
    }
}

/// Whatever fields a change has, a rule that names them matches it, and one that lacks any does not.
#[test]
fn fields_are_named_as_rules_understand_them() {
    let text = review(&json!({
        "size": 2, "parts": [{"name": "a", "image": "x"}, {"name": "b"}], "a.b/c": {"d e": 1}, "list": [1, 2],
    }));
    let review = Review::parse(text.as_bytes()).unwrap();
    let fields: Vec<String> =
        changed_fields(&review, &crate::Settings::default()).iter().map(ToString::to_string).collect();
    assert!(fields.len() >= 4, "{fields:?}");
    let ruled = |fields: &[String]| {
        let all = exceptions(&json!([rule(&json!({"match": {"fields": fields}}))]));
        all.judge(&supposed(&review, RuleCause::Drift)).ruled.is_some()
    };
    assert!(ruled(&fields), "{fields:?}");
    for missing in 0..fields.len() {
        let mut others = fields.clone();
        others.remove(missing);
        assert!(!ruled(&others), "{others:?}");
    }
}
