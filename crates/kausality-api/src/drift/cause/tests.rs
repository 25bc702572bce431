use super::*;
use crate::{
    drift::{DriftSpec, DriftState, DriftStatus, DriftSummary, FieldChange},
    phase::Phase,
    report::{ChildReference, ParentReference, RequestContext},
};

const ROBOT: &str = "system:serviceaccount:kube-system:deployment-controller";

/// A drift of a child of this name, first seen so many minutes after noon.
fn drift(name: &str, user: &str, minute: i64, paths: &[&str]) -> Drift {
    let noon: Timestamp = "2026-01-25T12:00:00Z".parse().unwrap();
    let seen = noon + SignedDuration::from_mins(minute);
    let spec = DriftSpec {
        id: format!("id-{name}"),
        parent: ParentReference {
            api_version: "apps/v1".into(),
            kind: "Deployment".into(),
            namespace: "shop".into(),
            name: name.split('-').next().unwrap().into(),
            uid: None,
            generation: None,
            observed_generation: None,
            controller_manager: None,
            lifecycle_phase: Phase::Initialized,
        },
        parent_intent: String::new(),
        child: ChildReference {
            api_version: "apps/v1".into(),
            kind: "ReplicaSet".into(),
            namespace: "shop".into(),
            name: name.into(),
            uid: None,
            generation: None,
        },
        request: RequestContext {
            user: user.into(),
            groups: Vec::new(),
            uid: "u".into(),
            field_manager: None,
            operation: "UPDATE".into(),
            dry_run: false,
        },
        diff: "d".into(),
        changes: paths
            .iter()
            .map(|path| FieldChange { path: (*path).into(), ..FieldChange::default() })
            .collect(),
        more_changes: 0,
        trace: None,
        old_object: None,
        new_object: None,
        summary: DriftSummary::default(),
        denied_by: None,
    };
    let status = DriftStatus {
        state: DriftState::Blocked,
        count: 1,
        first_seen: seen,
        last_seen: seen,
        counted_at: seen,
        explanation: Vec::new(),
        resolution: None,
        decision: None,
        deliveries: Vec::new(),
    };
    Drift::new(spec, status)
}

fn names(causes: &[Cause]) -> Vec<Vec<&str>> {
    causes.iter().map(|cause| cause.drifts.iter().map(|drift| drift.name.as_str()).collect()).collect()
}

#[test]
fn what_one_actor_does_in_a_row_has_one_cause() {
    // Each follows the one before within ten minutes, though the last is far from the first.
    let row: Vec<Drift> = [20, 0, 10].iter().map(|at| drift(&format!("m{at}"), ROBOT, *at, &[])).collect();
    assert_eq!(names(&causes(&row)), [["id-m0", "id-m10", "id-m20"]]);
}

#[test]
fn a_pause_or_another_actor_is_another_cause() {
    let drifts = [drift("a", ROBOT, 0, &[]), drift("b", ROBOT, 11, &[]), drift("c", "alice", 0, &[])];
    // The one that was seen last comes first.
    assert_eq!(names(&causes(&drifts)), [["id-b"], ["id-c"], ["id-a"]]);
    assert!(causes(&[]).is_empty());
}

#[test]
fn a_cause_says_what_its_drifts_have_in_common() {
    let image = |name: &str| format!("spec.containers[name={name}].image");
    let mut drifts = vec![
        drift("web-1", ROBOT, 0, &[&image("web"), "spec.replicas"]),
        drift("web-2", ROBOT, 1, &[&image("web"), &image("side"), r#"spec.labels["a.b/c"]"#]),
        drift("api-1", ROBOT, 2, &[&image("api"), r#"spec.labels["a.b/c"]"#]),
    ];
    drifts[0].status.state = DriftState::Resolved;
    drifts[1].spec.child.kind = "Job".into();
    drifts[0].status.last_seen += SignedDuration::from_hours(1);
    let [cause] = causes(&drifts).try_into().unwrap();
    insta::assert_json_snapshot!(cause, @r#"
    {
      "user": "system:serviceaccount:kube-system:deployment-controller",
      "actor": "kube-system:deployment-controller",
      "count": 3,
      "open": 2,
      "parents": [
        "Deployment shop/api",
        "Deployment shop/web"
      ],
      "kinds": {
        "Job": 1,
        "ReplicaSet": 2
      },
      "fields": [
        {
          "path": "spec.containers[*].image",
          "count": 3
        },
        {
          "path": "spec.labels[\"a.b/c\"]",
          "count": 2
        }
      ],
      "firstSeen": "2026-01-25T12:00:00Z",
      "lastSeen": "2026-01-25T13:00:00Z",
      "drifts": [
        {
          "namespace": "shop",
          "name": "id-web-1"
        },
        {
          "namespace": "shop",
          "name": "id-web-2"
        },
        {
          "namespace": "shop",
          "name": "id-api-1"
        }
      ]
    }
    "#);
}

#[test]
fn objects_that_come_and_go_have_no_fields_in_common() {
    let mut drifts = [drift("a", ROBOT, 0, &["spec.replicas"]), drift("b", ROBOT, 0, &["spec.replicas"])];
    for drift in &mut drifts {
        drift.spec.request.operation = "DELETE".into();
    }
    assert_eq!(causes(&drifts)[0].fields, [CommonField { path: "delete".into(), count: 2 }]);
}

#[test]
fn items_of_lists_are_alike_and_fields_are_not() {
    for (path, expected) in [
        ("spec.replicas", "spec.replicas"),
        ("a[name=web].b[2].c", "a[*].b[*].c"),
        (r#"a["x.y/z"].b"#, r#"a["x.y/z"].b"#),
        (r#"a["x]y"].b[=5]"#, r#"a["x]y"].b[*]"#),
        (r#"a["x\"]y"][name="a]b"].b"#, r#"a["x\"]y"][*].b"#),
        ("a[name=cut…", "a[*]"),
        (r#"a["cut"#, r#"a["cut]"#),
    ] {
        assert_eq!(of_any_item(path), expected, "{path}");
    }
}

#[test]
fn a_child_that_drifts_twice_is_one_child() {
    let drifts = [
        drift("web-1", ROBOT, 0, &["a"]),
        drift("web-1", ROBOT, 1, &["b"]),
        drift("web-2", ROBOT, 2, &["a"]),
    ];
    let [cause] = causes(&drifts).try_into().unwrap();
    assert_eq!((cause.count, &cause.kinds), (3, &[("ReplicaSet".to_owned(), 2)].into()));
}
