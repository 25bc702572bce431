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

/// One name that no namespace can have would keep the API server from taking the registration of every policy.
#[test]
fn namespaces_are_named_as_they_can_be() {
    let long = "a".repeat(64);
    for (place, names, is_good) in [
        ("names", vec!["shop", "a-1"], true),
        ("names", vec!["shop", "Bad Name!"], false),
        ("names", vec!["*"], false),
        ("names", vec![&*long], false),
        ("excluded", vec!["kube-system"], true),
        ("excluded", vec!["Kube-*"], false),
        ("excluded", vec![""], false),
        ("overrides", vec!["shop", "*"], true),
        ("overrides", vec!["-shop"], false),
    ] {
        let mut spec =
            serde_json::json!({"mode": "log", "resources": [{"apiGroups": [""], "resources": ["pods"]}]});
        match place {
            "overrides" => spec["overrides"] = serde_json::json!([{"namespaces": names, "mode": "enforce"}]),
            _ => spec["namespaces"] = serde_json::json!({place: names}),
        }
        let spec = serde_json::from_value(spec).unwrap();
        let metadata = Metadata { name: "p".to_owned() };
        let policy = Kausality { api_version: "a".to_owned(), kind: "Kausality".to_owned(), metadata, spec };
        let fault = policy.fault();
        assert_eq!(fault.is_none(), is_good, "{place} {names:?}: {fault:?}");
        if let Some(fault) = fault {
            let place = if place == "overrides" { "spec.overrides[0].namespaces" } else { place };
            assert!(fault.contains(place) && fault.contains("no name of a namespace"), "{fault}");
        }
    }
}

#[test]
fn a_name_has_room_for_what_is_made_of_it() {
    let named = |length: usize| {
        let mut policy: Kausality = serde_json::from_str(include_str!("full.json")).unwrap();
        policy.metadata.name = "p".repeat(length);
        policy.fault()
    };
    assert_eq!(named(MAX_NAME), None);
    assert!(named(MAX_NAME + 1).is_some_and(|fault| fault.contains("metadata.name")));
}

/// Overrides become a condition, and the API server takes none that is too long.
#[test]
fn overrides_are_of_a_size_that_can_be_registered() {
    let overridden = |namespaces: usize| {
        let names: Vec<String> = (0..namespaces).map(|number| format!("{number:060}")).collect();
        let overrides: Vec<serde_json::Value> = names
            .chunks(64)
            .map(|names| serde_json::json!({"namespaces": names, "mode": "enforce"}))
            .collect();
        let mut policy: Kausality = serde_json::from_str(include_str!("full.json")).unwrap();
        policy.spec.overrides = serde_json::from_value(overrides.into()).unwrap();
        policy.fault()
    };
    assert_eq!(overridden(MAX_OVERRIDES / 64), None);
    let fault = overridden(64 * 64).unwrap_or_default();
    assert!(fault.contains("spec.overrides name too much: 262144 characters"), "{fault}");
}

#[test]
fn a_rule_for_a_status_says_what_it_asks_for() {
    let long = "x".repeat(MAX_WORD + 1);
    let many: Vec<String> = (0..=MAX_EVIDENCE).map(|number| format!("P{number}")).collect();
    for (status, expected) in [
        (serde_json::json!({}), Some("spec.status must have initialized or settled")),
        (serde_json::json!({"settled": {}}), Some("spec.status.settled must have conditions, phases or cel")),
        (serde_json::json!({"initialized": {}}), Some("spec.status.initialized must have")),
        (
            serde_json::json!({"settled": {"conditions": [{"type": "Done"}, {"type": ""}]}}),
            Some("settled.conditions[1]"),
        ),
        (
            serde_json::json!({"settled": {"conditions": [{"type": "A", "reason": long}]}}),
            Some("settled.conditions[0]"),
        ),
        (serde_json::json!({"settled": {"phases": ["Live", ""]}}), Some("spec.status.settled.phases[1]")),
        (serde_json::json!({"settled": {"phases": many}}), Some("more than 32")),
        (
            serde_json::json!({"settled": {"cel": "x".repeat(4097)}}),
            Some("spec.status.settled.cel: longer than 4096"),
        ),
        (serde_json::json!({"settled": {"conditions": [{"type": "Done"}]}}), None),
        (serde_json::json!({"initialized": {"phases": ["Live"]}, "settled": {"cel": "true"}}), None),
    ] {
        let mut policy: Kausality = serde_json::from_str(include_str!("full.json")).unwrap();
        policy.spec.status = Some(serde_json::from_value(status.clone()).unwrap());
        let fault = policy.fault();
        let matches = match expected {
            Some(expected) => fault.as_ref().is_some_and(|fault| fault.contains(expected)),
            None => fault.is_none(),
        };
        assert!(matches, "{status}: {fault:?}");
    }
}
