use super::*;

#[test]
fn a_full_policy_is_read_and_written_back() {
    let text = include_str!("full.json");
    let policy: Kausality = serde_json::from_str(text).unwrap();
    assert_eq!(policy.spec.overrides[0].mode, Mode::Enforce);
    assert_eq!(policy.spec.settle, Some(Settle::ObservedGeneration));
    insta::assert_json_snapshot!("policy", policy);
}

#[test]
fn faults_are_named() {
    for (text, expected) in [
        (r#"{"apiVersion":"a","kind":"Kausality","metadata":{"name":"x"},"spec":{"resources":[]}}"#, "mode"),
        (
            r#"{"apiVersion":"a","kind":"Kausality","metadata":{"name":"x"},"spec":{"resources":[],"mode":"no"}}"#,
            "no",
        ),
        (
            r#"{"apiVersion":"a","kind":"Kausality","metadata":{},"spec":{"resources":[],"mode":"log"}}"#,
            "name",
        ),
    ] {
        let error = serde_json::from_str::<Kausality>(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
