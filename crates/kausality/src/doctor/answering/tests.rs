use super::*;
use crate::doctor::{finding::Outcome, registration::NAMESPACE_NAME};

fn namespaces(names: &[&str]) -> Vec<(String, Labels)> {
    let named = |name: &&str| ((*name).to_owned(), [(NAMESPACE_NAME.to_owned(), (*name).to_owned())].into());
    names.iter().map(named).collect()
}

fn registered(group: &str, plural: &str, change: &Value) -> Seen {
    let mut entry = json!({"name": "p.drift.kausality.io",
        "rules": [{"apiGroups": [group], "apiVersions": ["v1"], "resources": [plural], "operations": ["CREATE"]}],
        "namespaceSelector": {"matchExpressions": [
            {"key": NAMESPACE_NAME, "operator": "NotIn", "values": ["kube-system"]}]}});
    entry.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
    Seen::Found(json!({"webhooks": [entry]}))
}

#[test]
fn something_is_tried_that_the_webhook_is_asked_about() {
    let here = namespaces(&["kube-system", "a", "default"]);
    let asked = Seen::Found(json!({"webhooks": [{"name": OF_POLICIES}]}));
    let path = |mutating: &Seen, validating: &Seen, namespaces: &[(String, Labels)]| {
        plan(mutating, validating, namespaces).map(|probe| probe.path.split('?').next().unwrap().to_owned())
    };
    let maps = registered("", "configmaps", &json!({}));
    let of_policies = Some("/apis/kausality.io/v1alpha1/kausalities".to_owned());
    assert_eq!(path(&maps, &asked, &here), Some("/api/v1/namespaces/default/configmaps".to_owned()));
    assert_eq!(
        path(&maps, &asked, &namespaces(&["kube-system", "a"])),
        Some("/api/v1/namespaces/a/configmaps".to_owned())
    );
    assert_eq!(path(&maps, &asked, &namespaces(&["kube-system"])), of_policies);
    assert_eq!(path(&maps, &Seen::Absent, &namespaces(&["kube-system"])), None);
    let sets = registered("apps", "replicasets", &json!({}));
    assert_eq!(path(&sets, &asked, &here), Some("/apis/apps/v1/namespaces/default/replicasets".to_owned()));
    assert_eq!(path(&registered("x.org", "widgets", &json!({})), &asked, &here), of_policies);
    assert_eq!(path(&Seen::Absent, &Seen::Absent, &here), None);
    // Decisions about drifts are answered with nothing to be seen.
    for name in ["decisions.kausality.io", "p.decisions.kausality.io", "p.decisions-selected.kausality.io"] {
        let decisions = registered("*", "*", &json!({"name": name}));
        assert_eq!(path(&decisions, &asked, &here), of_policies, "{name}");
    }
    // What selects by label gets its label; what cannot be met is not tried.
    let labelled = registered("", "configmaps", &json!({"objectSelector": {"matchLabels": {"team": "a"}}}));
    assert_eq!(plan(&labelled, &asked, &here).unwrap().object["metadata"]["labels"], json!({"team": "a"}));
    let exists = json!({"objectSelector": {"matchExpressions": [{"key": "team", "operator": "Exists"}]}});
    assert_eq!(path(&registered("", "configmaps", &exists), &asked, &here), of_policies);
    // Every probe is a dry run.
    for (group, plural, _) in SAMPLES {
        let probe = plan(&registered(group, plural, &json!({})), &Seen::Absent, &here).unwrap();
        assert!(probe.path.contains("?dryRun=All&"), "{}", probe.path);
    }
    assert!(senseless().path.contains("?dryRun=All&"));
}

#[test]
fn an_answer_shows_whether_the_webhook_was_there() {
    let traced = json!({"metadata": {"annotations": {Suffix::of("", "", "", "").key(TRACE): "[]"}}});
    let status = |message: &str| Err(Refusal::Status { code: 422, message: message.to_owned() });
    let write =
        plan(&registered("", "configmaps", &json!({})), &Seen::Absent, &namespaces(&["default"])).unwrap();
    for (probe, answer, outcome, said) in [
        (
            write.clone(),
            Ok(traced),
            Outcome::Ok,
            "it answered a dry run of a ConfigMap in namespace default in 7 ms",
        ),
        (write.clone(), Ok(json!({})), Outcome::Failed, "without the webhook"),
        (
            write.clone(),
            status("failed calling webhook \"x\": refused"),
            Outcome::Failed,
            "did not reach the webhook",
        ),
        (write.clone(), status("kausality: drift"), Outcome::Ok, "it answered"),
        (write, status("exceeded quota"), Outcome::Skipped, "is refused: exceeded quota"),
        (
            senseless(),
            status("admission webhook \"policies.kausality.io\" denied the request: no"),
            Outcome::Ok,
            "it answered",
        ),
        (senseless(), Ok(json!({})), Outcome::Failed, "did not answer; 1 Pods are ready"),
        (senseless(), status("forbidden"), Outcome::Skipped, "is refused: forbidden"),
    ] {
        let tried = Tried { probe, answer, took: Duration::from_millis(7) };
        let slices = Seen::Found(vec![json!({"endpoints": [{"conditions": {"ready": true}}]})]);
        let verdict = judge("there", Some(&tried), &slices, false);
        assert_eq!(verdict.outcome(), outcome, "{tried:?}: {verdict:?}");
        assert!(verdict.summary().contains(said), "{said}: {verdict:?}");
    }
}

#[test]
fn without_anything_to_try_the_service_says_how_it_is() {
    let slices = |ready: &[Value]| {
        let endpoints: Vec<Value> =
            ready.iter().map(|ready| json!({"conditions": {"ready": ready}})).collect();
        Seen::Found(vec![json!({"endpoints": endpoints}), json!({})])
    };
    for (slices, outcome) in [
        (slices(&[json!(true), json!(null), json!(false)]), Outcome::Ok),
        (slices(&[json!(false)]), Outcome::Failed),
        (Seen::Found(vec![]), Outcome::Failed),
        (Seen::Hidden("no".to_owned()), Outcome::Skipped),
    ] {
        let verdict = judge("there", None, &slices, false);
        assert_eq!(verdict.outcome(), outcome, "{slices:?}: {verdict:?}");
    }
    // A webhook outside of the cluster has no Service.
    assert_eq!(judge("there", None, &Seen::Found(vec![]), true).outcome(), Outcome::Skipped);
    assert_eq!(ready(&slices(&[json!(true), json!(null), json!(false)])), Seen::Found(2));
}

#[test]
fn what_is_not_trusted_is_no_matter_of_the_network() {
    let write =
        plan(&registered("", "configmaps", &json!({})), &Seen::Absent, &namespaces(&["default"])).unwrap();
    for (said, todo) in [
        ("connect: connection refused", "kubectl -n there get endpointslices,pods"),
        (
            "tls: failed to verify certificate: x509: certificate signed by unknown authority",
            "the API server reaches the webhook, and does not trust its certificate",
        ),
    ] {
        let message = format!("failed calling webhook \"x\": {said}");
        let answer = Err(Refusal::Status { code: 500, message });
        let tried = Tried { probe: write.clone(), answer, took: Duration::ZERO };
        let verdict = judge("there", Some(&tried), &Seen::Found(vec![]), false);
        assert!(verdict.findings()[0].todo.starts_with(todo), "{verdict:?}");
    }
}
