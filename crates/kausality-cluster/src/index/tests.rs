use serde_json::json;

use super::*;

fn index() -> Index {
    let resource = ApiResource {
        group: "apps".into(),
        version: "v1".into(),
        api_version: "apps/v1".into(),
        kind: "Deployment".into(),
        plural: "deployments".into(),
    };
    Index::new(
        Arc::new(Kind { resource, namespaced: true, names: Vec::new() }),
        Rules::default(),
        Arc::default(),
    )
}

fn filled() -> Index {
    let index = index();
    index.complete();
    index.pulse.sync();
    index
}

fn object(name: &str, uid: &str) -> DynamicObject {
    serde_json::from_value(json!({"metadata": {"namespace": "n", "name": name, "uid": uid}})).unwrap()
}

/// One that cannot be summarised.
fn riddle(name: &str, uid: &str) -> DynamicObject {
    let mut object = object(name, uid);
    object.data = json!({"status": {"conditions": "none"}, "metadata": []});
    object
}

#[track_caller]
fn check(index: &Index, name: &str, uid: &str, expected: &str) {
    let seen = match index.look("n", name, uid) {
        Sight::Here(summary) => format!("here {}", summary.uid),
        other => format!("{other:?}").to_lowercase(),
    };
    assert_eq!(seen, expected, "{name} {uid}");
}

#[test]
fn an_index_is_blind_until_its_list_is_complete() {
    let index = index();
    check(&index, "a", "1", "blind");
    index.begin();
    let _ = index.arrive(object("a", "1"));
    check(&index, "a", "1", "blind");
    index.complete();
    index.pulse.sync();
    check(&index, "a", "1", "here 1");
    check(&index, "a", "", "here 1");
    check(&index, "b", "2", "unseen");
}

#[test]
fn what_goes_is_remembered_by_its_uid() {
    let index = filled();
    let _ = index.apply(object("a", "1"));
    index.remove(object("a", "1"));
    check(&index, "a", "1", "departed");
    let _ = index.apply(object("a", "2"));
    check(&index, "a", "1", "departed");
    check(&index, "a", "2", "here 2");
    // A late event of the first must not remove the second.
    index.remove(object("a", "1"));
    check(&index, "a", "2", "here 2");
    // An update is no departure.
    let _ = index.apply(object("a", "2"));
    index.remove(object("a", "2"));
    let _ = index.apply(object("b", "3"));
    let _ = index.apply(object("b", "3"));
    check(&index, "b", "3", "here 3");
    check(&index, "c", "3", "unseen");
}

#[test]
fn a_new_list_replaces_everything() {
    let index = filled();
    let _ = index.apply(object("a", "1"));
    let _ = index.apply(object("b", "2"));
    index.begin();
    let _ = index.arrive(object("b", "3"));
    check(&index, "a", "1", "here 1");
    index.complete();
    check(&index, "a", "1", "departed");
    check(&index, "b", "2", "departed");
    check(&index, "b", "3", "here 3");
}

#[test]
fn what_cannot_be_understood_is_still_there() {
    let index = filled();
    let _ = index.apply(object("a", "1"));
    index.begin();
    let _ = index.arrive(riddle("a", "1"));
    index.complete();
    check(&index, "a", "1", "blind");
    check(&index, "b", "1", "unseen");
}

#[test]
fn a_broken_watch_is_trusted_for_a_while_only() {
    let index = filled();
    let _ = index.apply(object("a", "1"));
    index.pulse.fail();
    check(&index, "a", "1", "here 1");
    index.pulse.age();
    check(&index, "a", "1", "blind");
    // Failing again is the same outage; a list that begins is none that has arrived.
    index.pulse.fail();
    index.begin();
    let _ = index.arrive(object("b", "2"));
    check(&index, "a", "1", "blind");
    assert!(index.health().outage.is_some());
    index.pulse.beat();
    check(&index, "a", "1", "here 1");
    assert!(index.health().outage.is_none());
}

#[test]
fn too_many_objects_are_not_kept_at_all() {
    let index = filled();
    let last = (0..=MAX_OBJECTS).map(|n| index.apply(object(&n.to_string(), &n.to_string()))).last();
    assert_eq!(last, Some(ControlFlow::Break(())));
    check(&index, "1", "1", "blind");
    assert!(index.is_synced(), "nothing more will come");
    assert_eq!(index.health().objects, 0);
}

#[test]
fn who_has_gone_is_remembered_for_a_while() {
    let mut departed = Departed::default();
    let begun = Instant::now();
    departed.add("a", begun);
    departed.add("b", begun + DEPARTED_FOR / 2);
    assert!(departed.uids.contains("a") && departed.uids.contains("b"));
    departed.add("c", begun + DEPARTED_FOR);
    assert!(!departed.uids.contains("a") && departed.uids.contains("b"));
    for number in 0..2 * MAX_DEPARTED {
        departed.add(&number.to_string(), begun + DEPARTED_FOR);
    }
    assert_eq!((departed.uids.len(), departed.order.len()), (MAX_DEPARTED, MAX_DEPARTED));
}

/// One object whose status tells is enough: the others of its kind will.
#[test]
fn a_kind_has_evidence_once_a_status_tells() {
    let object = |status: serde_json::Value| -> DynamicObject {
        serde_json::from_value(json!({"metadata": {"name": "a", "uid": "1"}, "status": status})).unwrap()
    };
    let mut index = index();
    index.kind = Arc::new(Kind {
        resource: ApiResource {
            group: "example.com".into(),
            kind: "App".into(),
            ..index.kind.resource.clone()
        },
        ..Kind::clone(&index.kind)
    });
    let _ = index.apply(object(json!({"note": "up"})));
    assert!(!index.has_evidence());
    let _ = index.apply(object(json!({"phase": "Running"})));
    assert!(index.has_evidence());
    let _ = index.apply(object(json!({"note": "up"})));
    assert!(index.has_evidence());
}
