//! Whole reports, from facts of clusters that are well, bare or ill.

use std::time::Duration;

use jiff::Timestamp;
use kausality_api::{annotation::Suffix, crd};
use serde_json::json;

use super::{
    answering::Tried,
    clients::{Door, Knocked},
    clock::Reading,
    facts::Facts,
    finding::{Check, Outcome},
    lease::Watched,
    registration::NAMESPACE_NAME,
    report,
    server::{Refusal, Seen},
    *,
};

fn now() -> Timestamp {
    "2026-01-24T10:30:00Z".parse().unwrap()
}

/// A cluster on which nobody has installed anything.
fn bare() -> Facts {
    Facts {
        namespace: "kausality-system".to_owned(),
        now: now(),
        version: json!({"major": "1", "minor": "35", "gitVersion": "v1.35.8"}),
        clock: Reading { asked: now(), answered: now(), server: Some(now()) },
        definitions: vec![Seen::Absent],
        webhook: Seen::Absent,
        controller: Seen::Absent,
        lease: Watched { first: Seen::Absent, at: now(), again: None },
        labels: [(NAMESPACE_NAME.to_owned(), "kausality-system".to_owned())].into(),
        mutating: Seen::Absent,
        validating: Seen::Absent,
        secret: Seen::Absent,
        policies: Seen::Absent,
        tried: None,
        knocked: None,
        slices: Seen::Found(vec![]),
        rights: rights::needed("kausality-system", &[].into(), &Seen::Absent)
            .into_iter()
            .map(|right| (right, Ok(json!({"status": {"allowed": false}}))))
            .collect(),
        controller_rights: rights::of_controller("kausality-system", true)
            .into_iter()
            .map(|right| (right, Ok(json!({"status": {"allowed": false}}))))
            .collect(),
        account: Seen::Found(json!({})),
        deployments: Seen::Found(vec![]),
    }
}

/// A cluster on which almost all is well.
fn installed() -> Facts {
    let running = || {
        Seen::Found(json!({"spec": {"replicas": 2}, "status": {"availableReplicas": 2, "readyReplicas": 1}}))
    };
    let policy = json!({"apiVersion": "kausality.io/v1alpha1", "kind": "Kausality",
        "metadata": {"name": "workloads", "generation": 1},
        "spec": {"resources": [{"apiGroups": [""], "resources": ["configmaps"]}], "mode": "enforce"},
        "status": {"observedGeneration": 1, "conditions": [{"type": "Ready", "status": "True"}]}});
    let entry = json!({"name": "workloads.drift.kausality.io", "failurePolicy": "Fail",
        "clientConfig": {"service": {"namespace": "kausality-system", "name": "kausality-webhook"}},
        "namespaceSelector": {"matchExpressions": [
            {"key": NAMESPACE_NAME, "operator": "NotIn", "values": ["kausality-system", "kube-system"]}]},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["*"]}]});
    let mutating = Seen::Found(json!({"webhooks": [entry]}));
    let labels = [(NAMESPACE_NAME.to_owned(), "default".to_owned())].into();
    let probe = answering::plan(&mutating, &Seen::Absent, &[("default".to_owned(), labels)]).unwrap();
    let traced =
        json!({"metadata": {"annotations": {Suffix::of("", "", "", "").key("kausality.io/trace"): "[{}]"}}});
    let lease = json!({"spec": {"holderIdentity": "kausality-controller-5d9-x", "leaseDurationSeconds": 15,
        "renewTime": "2026-01-24T10:29:59.000000Z"}});
    Facts {
        definitions: crd::all().into_iter().map(|(_, definition)| Seen::Found(definition)).collect(),
        webhook: running(),
        controller: running(),
        lease: Watched { first: Seen::Found(lease), at: now(), again: None },
        rights: rights::needed("kausality-system", &[].into(), &mutating)
            .into_iter()
            .map(|right| (right, Ok(json!({"status": {"allowed": true}}))))
            .collect(),
        controller_rights: rights::of_controller("kausality-system", true)
            .into_iter()
            .map(|right| (right, Ok(json!({"status": {"allowed": true}}))))
            .collect(),
        mutating,
        validating: Seen::Found(json!({"webhooks": [{"name": "policies.kausality.io"}]})),
        secret: Seen::Hidden("secrets \"kausality-webhook-tls\" is forbidden".to_owned()),
        policies: Seen::Found(vec![policy]),
        knocked: Some(Knocked {
            door: Door::Proxy("/proxy/admit".to_owned()),
            answer: Err(Refusal::Status {
                code: 400,
                message: "kausality: not an AdmissionReview".to_owned(),
            }),
        }),
        tried: Some(Tried { probe, answer: Ok(traced), took: Duration::from_millis(12) }),
        ..bare()
    }
}

fn shown(facts: &Facts) -> String {
    let mut out = anstream::StripStream::new(Vec::new());
    report::table(&mut out, &facts.judge()).unwrap();
    String::from_utf8(out.into_inner()).unwrap()
}

fn outcome(checks: &[Check], name: &str) -> Outcome {
    checks.iter().find(|check| check.name == name).unwrap().verdict.outcome()
}

#[test]
fn reports_are_golden() {
    insta::assert_snapshot!("bare", shown(&bare()));
    insta::assert_snapshot!("installed", shown(&installed()));
    let mut out = Vec::new();
    report::document(&mut out, &installed().judge()).unwrap();
    insta::assert_snapshot!("installed-json", String::from_utf8(out).unwrap());
}

#[test]
fn warnings_are_no_failure() {
    assert!(report::is_failed(&bare().judge()));
    let checks = installed().judge();
    assert!(checks.iter().any(|check| check.verdict.outcome() == Outcome::Warning));
    assert!(!report::is_failed(&checks));
}

/// What the API server says is shown, but moves no cursor.
#[test]
fn words_of_others_stay_words() {
    let mut facts = installed();
    facts.secret = Seen::Hidden("\u{1b}[2Jgone".to_owned());
    let text = shown(&facts);
    assert!(text.contains("\\u{1b}[2Jgone") && !text.contains('\u{1b}'), "{text}");
}

#[test]
fn what_may_not_be_read_is_skipped_and_no_failure() {
    let no = || "forbidden".to_owned();
    let hidden = || Seen::Hidden(no());
    let facts = Facts {
        definitions: vec![hidden()],
        webhook: hidden(),
        controller: hidden(),
        lease: Watched { first: hidden(), at: now(), again: None },
        mutating: hidden(),
        validating: hidden(),
        secret: hidden(),
        policies: Seen::Hidden(no()),
        slices: Seen::Hidden(no()),
        rights: bare().rights.into_iter().map(|(right, _)| (right, Err(Refusal::Silent(no())))).collect(),
        account: hidden(),
        deployments: Seen::Hidden(no()),
        ..bare()
    };
    let checks = facts.judge();
    for Check { name, verdict } in &checks {
        let expected = if ["api-server", "clock"].contains(name) { Outcome::Ok } else { Outcome::Skipped };
        assert_eq!(verdict.outcome(), expected, "{name}: {verdict:?}");
    }
    assert!(!report::is_failed(&checks));
}

#[test]
fn a_webhook_on_this_machine_needs_no_installation() {
    let mut facts = bare();
    facts.mutating = Seen::Found(
        json!({"webhooks": [{"name": "drift.kausality.io", "clientConfig": {"url": "https://127.0.0.1"}}]}),
    );
    facts.policies = Seen::Found(vec![]);
    facts.definitions = crd::all().into_iter().map(|(_, definition)| Seen::Found(definition)).collect();
    let checks = facts.judge();
    for name in ["deployments", "lease", "certificates", "rights"] {
        assert_eq!(outcome(&checks, name), Outcome::Skipped, "{name}");
    }
    assert_eq!(outcome(&checks, "registration"), Outcome::Ok);
    assert_eq!(outcome(&checks, "policies"), Outcome::Ok);
}

#[test]
fn a_namespace_is_a_name() {
    assert!(label("kausality-system").is_ok());
    for text in ["", "a/b", "../x", "A", "a b", "a?x=1", "-a", &"a".repeat(64)] {
        assert!(label(text).is_err(), "{text:?}");
    }
}
