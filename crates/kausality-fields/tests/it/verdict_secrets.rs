//! Secrets: drift is seen, values are not.

use crate::verdict_world::{applied, check, shown};
use kausality_fields::Redaction;
use kausality_fields::attribution::Claims;
use kausality_fields::fight::Fights;
use kausality_fields::verdict::{Finding, Status, Subject};
use serde_json::{Value, json};

#[test]
fn values_of_secrets_are_never_in_a_result() {
    let secret = |password: &str| {
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "annotations":
        {"kubectl.kubernetes.io/last-applied-configuration": format!("{{{password}}}")}},
        "data": {"password": password, "user": "YWRtaW4="}})
    };
    let declared = secret("aHVudGVyMg==");
    let mut world = applied(&declared);
    world.update("kubectl-edit", "", |live| *live = secret("c3dvcmRmaXNo"));
    let report = world.report("helm", &declared, &[]);
    assert_eq!(report.findings.len(), 2);
    let all = format!(
        "{report:?}{}{:?}",
        serde_json::to_string(&report).unwrap(),
        world.projection("helm", &declared)
    );
    for value in ["aHVudGVyMg", "c3dvcmRmaXNo", "YWRtaW4="] {
        assert!(!all.contains(value), "{value} in {all}");
    }
    let digests = |finding: &Finding| {
        [&finding.declared, &finding.live].map(|value| value.as_ref().unwrap().as_str().unwrap().to_owned())
    };
    let [declared, live] = digests(&report.findings[0]);
    assert!(declared.starts_with("redacted:") && live.starts_with("redacted:") && declared != live);
}

/// Nor those of what only claims to be one, whatever its shape.
#[test]
fn values_of_odd_secrets_are_never_in_a_result() {
    let odd =
        [json!("hunter2"), json!(["hunter2"]), json!({"a": {"b": ["hunter2"]}}), json!({"a": "hunter2"})];
    let claims = r#"[{"manager":"helm","operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1",
        "fieldsV1":{"f:data":{".":{},"f:a":{".":{},"f:b":{}}},"f:stringData":{"f:a":{}},"f:metadata":{"f:annotations":{
        "f:kubectl.kubernetes.io/last-applied-configuration":{}}}}}]"#;
    let claims = Claims::read(Some(claims)).unwrap();
    let secret = |name: &str, value: &Value, kind: &str| {
        json!({"apiVersion": "v1", "kind": kind, name: value, "metadata":
        {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": format!("{value}")}}})
    };
    for value in &odd {
        for (name, other) in odd.iter().flat_map(|other| [("data", other), ("stringData", other)]) {
            // One side does not even say that it is a Secret.
            let subject = Subject {
                manager: "helm",
                declared: &secret(name, value, "Secret"),
                live: &secret("data", other, "secret"),
                claims: &claims,
                of: None,
                status: Status::Apart,
                delegations: &[],
                fights: &Fights::default(),
                redaction: &Redaction::new("salt"),
            };
            let all = format!("{:?} {:?}", subject.judge(), subject.projection());
            assert!(!all.contains("hunter2"), "{all}");
        }
    }
}

#[test]
fn texts_of_secrets_are_compared_as_they_are_stored() {
    let declared = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"},
        "stringData": {"password": "hunter2"}});
    let mut world = applied(&declared);
    world.server(|live| {
        live.as_object_mut().unwrap().remove("stringData");
        live["data"] = json!({"password": "aHVudGVyMg=="});
    });
    check(&world, &declared, "");
    world.update("kubectl-edit", "", |live| live["data"]["password"] = json!("eA=="));
    // The API server has never heard of an owner of `data.password` but the editor.
    assert!(shown(&world.report("helm", &declared, &[])).contains("data.password"));
}
