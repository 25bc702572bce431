use super::*;

const LIST: &str = r#"[
  {"apiVersion":"v1","kind":"ConfigMap","name":"bar","generation":5,"mode":"once"},
  {"apiVersion":"v1","kind":"Secret","name":"credentials","mode":"always"},
  {"apiVersion":"v1","kind":"Pod","name":"x","generation":4,"mode":"generation"},
  {"oops":true}
]"#;

fn decode(text: &str) -> Entries<Approval> {
    Entries::decode(text)
}

#[test]
fn the_formats_are_golden() {
    let approval = Approval {
        api_version: "apps/v1".into(),
        kind: "ReplicaSet".into(),
        namespace: Some("shop".into()),
        name: "web-1".into(),
        generation: Some(5),
        mode: ApprovalMode::Generation,
        diff: Some("0123456789abcdef".into()),
        fields: vec!["spec.replicas".into()],
        expires: Some("2026-06-01T00:00:00Z".parse().unwrap()),
        by: Some("alice@example.com".into()),
        reason: Some("reviewed in INFRA-7".into()),
    };
    let rejection = Rejection {
        api_version: "example.com/v1alpha1".into(),
        kind: "NodePool".into(),
        namespace: None,
        name: "pool-1".into(),
        generation: Some(5),
        reason: "Destructive change, needs SRE review".into(),
        diff: None,
        expires: None,
        by: Some("bob@example.com".into()),
    };
    insta::assert_json_snapshot!("approval", approval);
    insta::assert_json_snapshot!("rejection", rejection);
}

#[test]
fn faults_void_the_entry_and_nothing_else() {
    for (text, valid, fault) in [
        ("[]", 0, ""),
        (LIST, 3, "entry 4: unknown field `oops`"),
        ("", 0, "not a JSON list"),
        ("{}", 0, "not a JSON list"),
        ("[1]", 0, "entry 1: not a JSON object"),
        (r#"[["*","*","*",4,"always"]]"#, 0, "entry 1: not a JSON object"),
        (r#"[{"apiVersion":"v1","kind":"Pod","name":"x"}]"#, 0, "need the parent's \"generation\""),
        (r#"[{"apiVersion":"v1","kind":"Pod","name":"","mode":"always"}]"#, 0, "must not be empty"),
        (
            r#"[{"apiVersion":"v1","kind":"Pod","namespace":"","name":"x","mode":"always"}]"#,
            0,
            "\"namespace\" must not be empty",
        ),
        (r#"[{"apiVersion":"v1","kind":"Pod","name":"x","mode":"forever"}]"#, 0, "unknown variant `forever`"),
        (
            r#"[{"apiVersion":"v1","kind":"Pod","name":"x","mode":"always","expire":"2026-01-01T00:00:00Z"}]"#,
            0,
            "unknown field `expire`",
        ),
    ] {
        let entries = decode(text);
        assert_eq!(entries.valid().count(), valid, "{text}");
        let faults: Vec<String> = entries.faults().collect();
        match fault {
            "" => assert!(faults.is_empty(), "{faults:?}"),
            fault => assert!(faults.len() == 1 && faults[0].contains(fault), "{text}: {faults:?}"),
        }
    }
}

#[test]
fn a_rejection_needs_a_reason_and_ignores_what_it_does_not_know() {
    let good = r#"[{"apiVersion":"v1","kind":"Pod","name":"x","reason":"no","colour":"red"}]"#;
    assert_eq!(Entries::<Rejection>::decode(good).valid().count(), 1);
    for bad in [
        r#"[{"apiVersion":"v1","kind":"Pod","name":"x"}]"#,
        r#"[{"apiVersion":"v1","kind":"Pod","name":"x","reason":" "}]"#,
    ] {
        assert_eq!(Entries::<Rejection>::decode(bad).faults().count(), 1, "{bad}");
    }
}

#[test]
fn stars_match_anything() {
    let entries = decode(r#"[{"apiVersion":"*","kind":"ConfigMap","name":"*","mode":"always"}]"#);
    let (_, entry) = entries.valid().next().unwrap();
    assert!(entry.matches("v1", "ConfigMap", "shop", "a"));
    assert!(!entry.matches("v1", "Secret", "shop", "a"));
}

#[test]
fn rewriting_keeps_what_it_does_not_understand() {
    let entries = decode(LIST);
    let without = decode(&entries.without(0).unwrap());
    assert_eq!((without.valid().count(), without.faults().count()), (2, 1));

    assert!(entries.any_stale(6) && entries.any_stale(5) && !entries.any_stale(4));
    let pruned = decode(&entries.pruned(5).unwrap());
    assert_eq!((pruned.valid().count(), pruned.faults().count()), (2, 1));

    let restamped = decode(&entries.restamped(5, 6).unwrap());
    let generations: Vec<Option<i64>> = restamped.valid().map(|(_, entry)| entry.generation).collect();
    assert_eq!(generations, [Some(6), None, Some(4)]);
    assert_eq!(entries.restamped(9, 10), None);

    let one = decode(r#"[{"apiVersion":"v1","kind":"Pod","name":"x","generation":1}]"#);
    assert_eq!(one.without(0), None);
}

#[test]
fn an_entry_is_added_beside_what_nobody_understands() {
    let entries = decode(LIST);
    let (_, first) = entries.valid().next().unwrap();
    let more = decode(&entries.with(&Approval { name: "new".into(), ..first.clone() }));
    assert_eq!(more.valid().map(|(place, entry)| (place, entry.name.as_str())).last(), Some((4, "new")));
    assert_eq!(more.faults().count(), 1);
    let fewer = decode(&more.without_all(&[0, 4]).unwrap());
    assert_eq!(fewer.valid().map(|(_, entry)| entry.name.as_str()).collect::<Vec<_>>(), ["credentials", "x"]);
    assert_eq!(decode("[]").with(first).matches("bar").count(), 1);
    assert_eq!(
        decode(r#"[{"apiVersion":"v1","kind":"Pod","name":"x","mode":"always"}]"#).without_all(&[0]),
        None
    );
}
