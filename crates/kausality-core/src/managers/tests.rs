use super::*;
use crate::review::{Object, Review};

/// The recording of a revert: the deployment controller takes back what `kubectl patch` did.
const RECORDED: &str = include_str!("../../../../fixtures/admission-reviews/drift-after-rollout.jsonl");

fn recorded(line: usize) -> &'static str {
    RECORDED.lines().nth(line - 1).unwrap()
}

#[test]
fn a_recorded_revert_names_its_managers() {
    let review = Review::parse(recorded(19).as_bytes()).unwrap();
    assert_eq!(of_request(&review.request).as_deref(), Some("kube-controller-manager"));
    let (old, new) = (review.request.old_object.unwrap(), review.request.object.unwrap());
    assert_eq!(of_status(&old.metadata), ["kube-controller-manager"]);
    assert_eq!(of_status(&new.metadata), ["kube-controller-manager"]);
    assert_eq!(last_write(&old.metadata), Some("2026-11-15T08:39:46Z".parse().unwrap()));
}

#[test]
fn every_recorded_request_has_at_most_one_manager() {
    for (place, line) in RECORDED.lines().enumerate() {
        let review = Review::parse(line.as_bytes()).unwrap();
        if let Some(manager) = of_request(&review.request) {
            assert!(!manager.is_empty(), "line {}", place + 1);
        }
    }
}

#[track_caller]
fn of(named: &str, sub_resource: &str, old: Option<&str>, new: Option<&str>, expected: Option<&str>) {
    let object = |fields: Option<&str>| {
        fields.map_or("null".to_owned(), |fields| {
            format!(r#"{{"kind":"Thing","metadata":{{"name":"a","managedFields":{fields}}}}}"#)
        })
    };
    let operation = match (old, new) {
        (None, _) => "CREATE",
        (_, None) => "DELETE",
        _ => "UPDATE",
    };
    let text = format!(
        r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{"kind":{{}},"resource":{{}},
        "operation":"{operation}","subResource":"{sub_resource}","options":{{"fieldManager":"{named}"}},
        "oldObject":{},"object":{}}}}}"#,
        object(old),
        object(new)
    );
    let review = Review::parse(text.as_bytes()).unwrap();
    assert_eq!(of_request(&review.request).as_deref(), expected, "{text}");
}

const A1: &str = r#"{"manager":"a","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","time":"2026-01-01T00:00:00Z","fieldsV1":{"f:spec":{}}}"#;
const A2: &str = r#"{"manager":"a","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","time":"2026-01-01T00:00:02Z","fieldsV1":{"f:spec":{}}}"#;
const A1_MORE: &str = r#"{"manager":"a","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","time":"2026-01-01T00:00:00Z","fieldsV1":{"f:spec":{"f:x":{}}}}"#;
const A1_APPLY: &str = r#"{"manager":"a","operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1","time":"2026-01-01T00:00:00Z","fieldsV1":{"f:spec":{}}}"#;
const B2: &str = r#"{"manager":"b","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","time":"2026-01-01T00:00:02Z","fieldsV1":{"f:spec":{}}}"#;
const B2_STATUS: &str = r#"{"manager":"b","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","subresource":"status",
    "time":"2026-01-01T00:00:02Z","fieldsV1":{"f:status":{}}}"#;

fn list(entries: &[&str]) -> String {
    format!("[{}]", entries.join(","))
}

#[test]
fn the_manager_that_a_request_names_comes_first() {
    of("kubectl", "", Some(&list(&[A1])), Some(&list(&[A2])), Some("kubectl"));
    of("kubectl", "", Some("[]"), None, Some("kubectl"));
    of("", "", Some(&list(&[A1])), Some(&list(&[A2])), Some("a"));
}

#[test]
fn the_entry_that_changed_names_the_manager() {
    // By its time, its fields, its operation, or by being there.
    of("", "", Some(&list(&[A1])), Some(&list(&[A2])), Some("a"));
    of("", "", Some(&list(&[A1])), Some(&list(&[A1_MORE])), Some("a"));
    of("", "", Some(&list(&[A1])), Some(&list(&[A1_APPLY])), Some("a"));
    of("", "", Some(&list(&[A1])), Some(&list(&[A1, B2])), Some("b"));
    of("", "", Some(&list(&[B2, A1])), Some(&list(&[A1_MORE, B2])), Some("a"));
    of("", "", Some(&list(&[A1])), Some(&list(&[A2, A1_APPLY])), Some("a"));
}

#[test]
fn a_creation_is_named_by_its_only_manager() {
    of("", "", None, Some(&list(&[A1])), Some("a"));
    of("", "", None, Some(&list(&[A1, B2])), None);
    of("", "", None, Some("[]"), None);
}

#[test]
fn no_difference_is_no_evidence() {
    of("", "", Some(&list(&[A1, B2])), Some(&list(&[B2, A1])), None);
    // What has lost all its fields is gone: that is the other's doing.
    of("", "", Some(&list(&[A1, B2])), Some(&list(&[B2])), None);
    of("", "", Some(&list(&[A1])), None, None);
}

#[test]
fn several_managers_are_no_evidence() {
    of("", "", Some(&list(&[A1])), Some(&list(&[A2, B2])), None);
}

#[test]
fn entries_of_another_subresource_do_not_count() {
    of("", "", Some(&list(&[A1])), Some(&list(&[A1, B2_STATUS])), None);
    of("", "", Some(&list(&[A1])), Some(&list(&[A2, B2_STATUS])), Some("a"));
    of("", "status", Some(&list(&[A1])), Some(&list(&[A2, B2_STATUS])), Some("b"));
}

#[test]
fn managed_fields_that_are_none_are_no_evidence() {
    for bad in ["null", "7", r#""x""#, "{}", "[1]", r#"[{"manager":7}]"#, r#"[{"fieldsV1":7,"time":[]}]"#] {
        of("", "", Some("[]"), Some(bad), None);
        let text = format!(r#"{{"metadata":{{"managedFields":{bad}}}}}"#);
        let object = Object::parse(&text).unwrap();
        assert!(of_status(&object.metadata).is_empty(), "{bad}");
        assert_eq!(last_write(&object.metadata), None, "{bad}");
    }
}

#[track_caller]
fn status(fields: &[(&str, &str)], expected: &[&str]) {
    let entries: Vec<String> = (fields.iter())
        .map(|(manager, fields)| format!(r#"{{"manager":"{manager}","fieldsV1":{fields}}}"#))
        .collect();
    let text = format!(r#"{{"metadata":{{"managedFields":[{}]}}}}"#, entries.join(","));
    assert_eq!(of_status(&Object::parse(&text).unwrap().metadata), expected, "{text}");
}

#[test]
fn who_owns_observed_generation_writes_the_status() {
    let native = r#"{"f:status":{"f:observedGeneration":{},"f:replicas":{}}}"#;
    let condition = r#"{"f:status":{"f:conditions":{"k:{\"type\":\"Ready\"}":{"f:observedGeneration":{}}}}}"#;
    status(&[("eks", native)], &["eks"]);
    status(&[("crossplane", condition)], &["crossplane"]);
    status(&[("kubectl", r#"{"f:spec":{"f:observedGeneration":{}}}"#), ("eks", native)], &["eks"]);
    status(&[("eks", native), ("eks", condition), ("other", condition)], &["eks", "other"]);
    status(&[("eks", r#"{"f:status":{"f:phase":{}}}"#)], &["eks"]);
    status(
        &[("eks", r#"{"f:status":{"f:conditions":{"k:{\"type\":\"Ready\"}":{"f:status":{}}}}}"#)],
        &["eks"],
    );
    // An address of a load balancer is no report; and a person is no controller, whatever she writes.
    status(&[("lb", r#"{"f:status":{"f:loadBalancer":{}}}"#)], &[]);
    status(&[("kubectl-replace", native)], &[]);
    status(&[], &[]);
}

#[test]
fn who_made_an_owner_is_told_by_its_uid() {
    let owned = |manager: &str, uid: &str| {
        format!(
            r#"{{"manager":"{manager}","fieldsV1":{{"f:metadata":{{"f:ownerReferences":{{"k:{{\"uid\":\"{uid}\"}}":{{}}}}}}}}}}"#
        )
    };
    let text = format!(
        r#"{{"metadata":{{"managedFields":[{},{},{{"manager":"c","fieldsV1":{{"f:metadata":{{"f:finalizers":{{}}}}}}}}]}}}}"#,
        owned("a", "1"),
        owned("b", "12")
    );
    let object = Object::parse(&text).unwrap();
    assert_eq!(of_owner(&object.metadata, "1"), ["a"]);
    assert_eq!(of_owner(&object.metadata, "12"), ["b"]);
    assert!(of_owner(&object.metadata, "").is_empty());
    assert_eq!(of_finalizers(&object.metadata), ["c"]);
}
