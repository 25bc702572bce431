use super::*;
use crate::doctor::finding::Outcome;

fn policy(groups: &[&str], resources: &[&str], parents: &Value) -> Value {
    json!({"metadata": {"name": "p"}, "spec": {"resources": [{"apiGroups": groups, "resources": resources}]},
        "status": {"parents": parents}})
}

fn of(names: &[(&str, &str)]) -> BTreeSet<Resource> {
    names.iter().map(|(group, plural)| ((*group).to_owned(), (*plural).to_owned())).collect()
}

#[test]
fn kinds_come_from_policies_and_their_parents() {
    let parents = json!([{"apiGroup": "x.org", "kind": "Widget", "resource": "widgets"}]);
    let secret = json!([{"apiGroup": "", "kind": "Secret", "resource": "secrets"}]);
    for (policy, expected) in [
        (policy(&["apps"], &["deployments", "*"], &json!([])), of(&[("apps", "deployments")])),
        (policy(&["apps", ""], &["pods"], &json!(null)), of(&[("", "pods"), ("apps", "pods")])),
        (policy(&["apps"], &["*"], &parents), of(&[("x.org", "widgets")])),
        (policy(&["apps"], &["*"], &secret), of(&[])),
        (policy(&[""], &["secrets"], &json!([])), of(&[("", "secrets")])),
    ] {
        assert_eq!(named(&Seen::Found(vec![policy.clone()])), expected, "{policy}");
    }
}

#[test]
fn what_star_means_is_registered_but_not_secrets() {
    let rules = |names: &[&str]| json!([{"apiGroups": [""], "apiVersions": ["v1"], "resources": names}]);
    // Nodes are inputs, which are only observed.
    let mutating = Seen::Found(json!({"webhooks": [
        {"name": "all.drift.kausality.io", "rules": rules(&["secrets", "pods", "pods/status"])},
        {"name": "all.inputs.kausality.io", "rules": rules(&["nodes"])}]}));
    let of_policies = |named: &BTreeSet<Resource>| {
        let all = needed("there", named, &mutating);
        let of_kinds = all.into_iter().filter(|right| right.what.role == Role::Policies);
        of_kinds.map(|right| format!("{} {}", right.verb, right.what.shown())).collect::<Vec<_>>()
    };
    assert_eq!(of_policies(&of(&[])), ["get pods", "list pods", "watch pods", "patch pods"]);
    assert_eq!(of_policies(&of(&[("", "secrets")])).len(), 8);
}

#[test]
fn a_missing_rule_is_named_exactly() {
    let rights = needed("there", &of(&[("x.org", "widgets")]), &Seen::Absent);
    let answers = |missing: &dyn Fn(&Right) -> bool| {
        let answer = |right: &Right| Ok(json!({"status": {"allowed": !missing(right)}}));
        rights.iter().map(|right| (right.clone(), answer(right))).collect::<Vec<_>>()
    };
    let judge = |account: &str, answers: &Answers| judge(&[(account, answers)]);
    let all = judge("kausality-webhook", &answers(&|_| false));
    assert_eq!(all, Verdict::Fine("kausality-webhook has all 35 rights that it needs".to_owned()));
    for (missing, problem, todo) in [
        (
            "widgets.x.org",
            "kausality-webhook may not list, watch widgets.x.org",
            r#"add the rule {apiGroups: ["x.org"], resources: ["widgets"], verbs: ["list", "watch"]} to a ClusterRole with the label kausality.io/aggregate-to-webhook: "true""#,
        ),
        (
            "secrets there/kausality-webhook-tls",
            "kausality-webhook may not list, watch secrets there/kausality-webhook-tls",
            r#"add the rule {apiGroups: [""], resources: ["secrets"], resourceNames: ["kausality-webhook-tls"], verbs: ["list", "watch"]} to Role there/kausality-webhook"#,
        ),
        (
            "namespaces",
            "kausality-webhook may not list, watch namespaces",
            r#"add the rule {apiGroups: [""], resources: ["namespaces"], verbs: ["list", "watch"]} to ClusterRole kausality-webhook"#,
        ),
    ] {
        let verdict = judge(
            "kausality-webhook",
            &answers(&|right| right.what.shown() == missing && ["list", "watch"].contains(&right.verb)),
        );
        assert_eq!(verdict.outcome(), Outcome::Failed);
        assert_eq!(verdict.summary(), problem);
        assert!(verdict.findings()[0].todo.starts_with(todo), "{verdict:?}");
    }
    let status = judge(
        "kausality-webhook",
        &answers(&|right| {
            !right.what.subresource.is_empty() && right.what.shown().starts_with("approvalpolicies")
        }),
    );
    assert_eq!(status.summary(), "kausality-webhook may not patch approvalpolicies.kausality.io/status");
    let refused = vec![(rights[0].clone(), Err(Refusal::Silent("no".to_owned())))];
    assert_eq!(judge("kausality-webhook", &refused).outcome(), Outcome::Skipped);
}

#[test]
fn the_account_is_that_of_the_deployment() {
    let other = Seen::Found(json!({"spec": {"template": {"spec": {"serviceAccountName": "robot"}}}}));
    assert_eq!(account(&other, WEBHOOK), "robot");
    assert_eq!(account(&Seen::Absent, CONTROLLER), "kausality-controller");
    let right = &needed("there", &of(&[]), &Seen::Absent)[0];
    assert_eq!(question("there", "robot", right)["spec"]["user"], "system:serviceaccount:there:robot");
}

/// The controller has rights, too, and without one of them nothing is registered.
#[test]
fn what_the_controller_may_not_do_is_named() {
    let asked = |missing: &str, own: bool| {
        let answer = |right: Right| {
            let allowed = right.what.shown() != missing;
            (right, Ok(json!({"status": {"allowed": allowed}})))
        };
        of_controller("there", own).into_iter().map(answer).collect::<Answers>()
    };
    let judged = |missing: &str| judge(&[(WEBHOOK, &Vec::new()), (CONTROLLER, &asked(missing, true))]);
    let summary = judged("").summary();
    assert!(summary.ends_with("kausality-controller has all 49 rights that it needs"), "{summary}");
    for (missing, problem, todo) in [
        (
            "secrets there/kausality-webhook-tls",
            "kausality-controller may not get, list, watch, update secrets there/kausality-webhook-tls",
            "to Role there/kausality-controller;",
        ),
        (
            "secrets in namespace there",
            "kausality-controller may not create secrets in namespace there",
            r#"add the rule {apiGroups: [""], resources: ["secrets"], verbs: ["create"]} to Role there/"#,
        ),
        (
            "mutatingwebhookconfigurations.admissionregistration.k8s.io kausality",
            "kausality-controller may not get, list, watch, patch, delete mutatingwebhookconfigurations",
            r#"resourceNames: ["kausality"], verbs: ["get", "list", "watch", "patch", "delete"]} to ClusterRole"#,
        ),
    ] {
        let verdict = judged(missing);
        assert_eq!(verdict.outcome(), Outcome::Failed);
        assert!(verdict.summary().starts_with(problem), "{verdict:?}");
        assert!(verdict.findings()[0].todo.contains(todo), "{verdict:?}");
    }
    // Whoever makes no certificates writes over no Secret.
    assert_eq!(asked("", true).len(), asked("", false).len() + 1);
    let right = of_controller("there", true).pop().unwrap();
    let question = question("there", CONTROLLER, &right);
    assert_eq!(
        question["spec"]["resourceAttributes"],
        json!({"verb": "update", "group": "", "resource": "secrets", "namespace": "there", "name": SECRET})
    );
}
