use super::*;

fn hop(name: &str) -> Hop {
    Hop {
        api_version: "apps/v1".into(),
        kind: "Deployment".into(),
        name: name.into(),
        uid: None,
        generation: Some(5),
        user: "hans@example.com".into(),
        timestamp: "2026-01-24T10:30:00Z".parse().unwrap(),
        request_uid: None,
        labels: BTreeMap::new(),
        approval: None,
        drift: false,
    }
}

#[test]
fn the_format_is_golden() {
    let full = Hop {
        uid: Some("abc".into()),
        request_uid: Some("def".into()),
        labels: [("ticket".to_owned(), "JIRA-123".to_owned())].into(),
        approval: Some(HopApproval {
            mode: Some(ApprovalMode::Once),
            policy: None,
            by: Some("alice".into()),
            reason: Some("reviewed".into()),
        }),
        drift: true,
        ..hop("prod")
    };
    insta::assert_json_snapshot!("trace", Trace::origin(hop("prod")).extended(full));
}

#[test]
fn the_seeds_example_is_read() {
    let text = r#"[{"apiVersion":"example.com/v1alpha1","kind":"EKSCluster","name":"prod","generation":5,
        "user":"hans@example.com","timestamp":"2026-01-24T10:30:00Z"}]"#;
    let trace = Trace::decode(text).unwrap();
    assert_eq!(trace.hops()[0].user, "hans@example.com");
    assert!(Trace::decode("{}").is_err());
    assert!(Trace::decode(&"[".repeat(100_000)).is_err());
}

#[test]
fn the_origin_and_the_last_hops_stay() {
    let mut trace = Trace::origin(hop("origin"));
    for n in 0..100 {
        trace = trace.extended(hop(&format!("hop-{n}")));
    }
    let names: Vec<&str> = trace.hops().iter().map(|hop| hop.name.as_str()).collect();
    assert_eq!(names.len(), MAX_HOPS);
    assert_eq!((names[0], names[1], names[31]), ("origin", "hop-69", "hop-99"));
}

#[test]
fn long_texts_cannot_break_the_bound() {
    let nasty = "\u{1}".repeat(5000);
    let huge = Hop {
        user: nasty.clone(),
        name: nasty.clone(),
        kind: nasty.clone(),
        api_version: nasty.clone(),
        uid: Some(nasty.clone()),
        request_uid: Some(nasty.clone()),
        labels: (0..500).map(|n| (format!("label-{n}"), nasty.clone())).collect(),
        approval: Some(HopApproval {
            mode: Some(ApprovalMode::Generation),
            policy: None,
            by: Some(nasty.clone()),
            reason: Some(nasty.clone()),
        }),
        ..hop("x")
    };
    let foreign = Trace { hops: vec![huge.clone(), huge.clone(), huge.clone()] };
    let trace = foreign.extended(huge.clone()).extended(huge);
    assert!(trace.encode().len() <= MAX_BYTES, "{}", trace.encode().len());
    assert!(trace.hops().len() >= 2);
}

#[test]
fn labels_fit_or_go() {
    let many =
        Hop { labels: (0..500).map(|n| (format!("label-{n:03}"), "x".repeat(300))).collect(), ..hop("x") };
    let trace = Trace::origin(many);
    let labels = &trace.hops()[0].labels;
    assert!((10..20).contains(&labels.len()), "{}", labels.len());
    assert!(labels.values().all(|value| value.chars().count() == MAX_LABEL));
}

#[test]
fn labels_come_from_their_prefix() {
    assert_eq!(label("kausality.io/trace-ticket"), Some("ticket"));
    assert_eq!(label("kausality.io/trace-"), None);
    assert_eq!(label("kausality.io/trace"), None);
}
