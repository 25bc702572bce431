//! Where there is no telling: no guess, and no more doubt than there is reason for.

use crate::verdict_world::{World, applied, check, containers, deployment, shown};
use kausality_fields::attribution::Claims;
use kausality_fields::fight::Fights;
use kausality_fields::verdict::{Class, Status, Subject, Verdict};
use kausality_fields::{FieldSet, Redaction};
use serde_json::json;

#[test]
fn without_managed_fields_nothing_is_known() {
    let declared =
        deployment(json!({"replicas": 3, "paused": true, "selector": {"matchLabels": {"a": "b"}}}));
    let mut world = applied(&declared);
    world.server(|live| live["spec"]["replicas"] = json!(5));
    let report = world.judge("helm", &declared, &Claims::read(None).unwrap(), &[]).unwrap();
    assert_eq!(
        shown(&report),
        "unknown spec.paused true true \nunknown spec.replicas 3 5 \n\
         unknown spec.selector {\"matchLabels\":{\"a\":\"b\"}} {\"matchLabels\":{\"a\":\"b\"}} "
    );
    assert_eq!(report.class(), Class::Unknown);
    assert!(!report.is_drift() && report.unowned.is_empty());
}

/// By its meaning, as everywhere.
#[test]
fn whether_the_value_differs_is_known_all_the_same() {
    let limits = |cpu: &str| {
        containers(json!([{"name": "app", "image": "shop:1", "resources": {"limits": {"cpu": cpu}}}]))
    };
    let mut declared = limits("1000m");
    declared["metadata"]["labels"] = json!({});
    let mut world = applied(&limits("1"));
    world.server(|live| live["metadata"]["labels"] = json!({"a": "b"}));
    let is_equal = |declared: &serde_json::Value| {
        let report = world.judge("helm", declared, &Claims::default(), &[]).unwrap();
        let equal = |verdict: &Verdict| matches!(verdict, Verdict::Unknown { equal: true, .. });
        report.findings.iter().all(|finding| equal(&finding.verdict))
    };
    assert!(is_equal(&declared));
    assert!(!is_equal(&limits("2")));
}

#[test]
fn nothing_there_is_not_the_same_as_nothing_known() {
    let declared = deployment(json!({"replicas": 3}));
    let world = World::new("apps/v1", "Deployment");
    check(&world, &declared, "own-drift spec.replicas 3 - ");
}

#[test]
fn ancient_changes_may_have_been_anybodys() {
    let declared = deployment(json!({"replicas": 3, "paused": true}));
    let mut world = World::new("apps/v1", "Deployment");
    world.update("ancient-changes", "", |live| *live = deployment(json!({"replicas": 3})));
    world.server(|live| live["spec"]["paused"] = json!(false));
    check(&world, &declared, "unknown spec.paused true false \nunknown spec.replicas 3 3 ancient-changes");
    // Who owns the field for certain is not in doubt.
    world.apply("helm", &deployment(json!({"paused": true})));
    check(&world, &declared, "unknown spec.replicas 3 3 ancient-changes");
}

#[test]
fn entries_that_cannot_be_read_or_are_of_another_version() {
    let declared = deployment(json!({"replicas": 3, "paused": true}));
    let mut world = applied(&deployment(json!({"replicas": 3})));
    world.server(|live| live["spec"]["paused"] = json!(true));
    let mut claims = world.claims();
    let mut other = claims.0[0].clone();
    other.owner.manager = "other".to_owned();
    other.owner.api_version = "apps/v1beta1".to_owned();
    claims.0.push(other.clone());
    let report = world.judge("helm", &declared, &claims, &[]).unwrap();
    assert_eq!(shown(&report), "unknown spec.paused true true ");
    let Verdict::Unknown { reason, .. } = &report.findings[0].verdict else { panic!("{report:?}") };
    assert_eq!(reason.to_string(), "\"other\" (Apply) owns fields of another version of the object");

    other.owner.api_version = "apps/v1".to_owned();
    other.fields = FieldSet::from_fields_v1(r#"{"f:spec":{"x:replicas":{}}}"#);
    claims.0[1] = other;
    let report = world.judge("helm", &declared, &claims, &[]).unwrap();
    let Verdict::Unknown { reason, .. } = &report.findings[0].verdict else { panic!("{report:?}") };
    assert!(reason.to_string().contains("\"x:replicas\" is of an unknown kind"), "{reason}");

    // If the manager's own entry is the one, nothing can be said to be taken from it.
    claims.0[0].fields = FieldSet::from_fields_v1(r#"{"f:spec":{"x:replicas":{}}}"#);
    claims.0[1].fields = FieldSet::from_fields_v1(r#"{"f:spec":{"f:replicas":{}}}"#);
    let report = world.judge("helm", &declared, &claims, &[]).unwrap();
    assert_eq!(shown(&report), "unknown spec.paused true true \nunknown spec.replicas 3 3 other");
}

#[test]
fn an_object_that_does_not_fit_its_type_is_unknown() {
    let declared = deployment(json!({"replicas": 3}));
    let mut world = applied(&declared);
    world.server(|live| live["spec"]["invented"] = json!(1));
    check(&world, &declared, "unknown spec.replicas 3 - helm");
}

#[test]
fn without_a_type_lists_are_unknown_and_the_rest_is_not() {
    let mut declared = containers(json!([{"name": "app", "image": "shop:1"}]));
    declared["spec"]["replicas"] = json!(3);
    declared["spec"]["paused"] = json!(true);
    let mut world = applied(&declared);
    world.update("hpa", "", |live| live["spec"]["replicas"] = json!(5));
    world.server(|live| {
        live["spec"]["template"]["spec"]["containers"][0]["imagePullPolicy"] = json!("Always")
    });
    let report = Subject {
        manager: "helm",
        declared: &declared,
        live: &world.live,
        claims: &world.claims(),
        of: None,
        status: Status::Apart,
        delegations: &[],
        fights: &Fights::default(),
        redaction: &Redaction::new("salt"),
    }
    .judge()
    .unwrap();
    let verdicts: Vec<_> = report
        .findings
        .iter()
        .map(|finding| (finding.path.to_string(), finding.verdict.to_string()))
        .collect();
    let expected = [("spec.replicas", "takeover"), ("spec.template.spec.containers", "unknown")];
    assert_eq!(verdicts, expected.map(|(path, verdict)| (path.to_owned(), verdict.to_owned())));
}
