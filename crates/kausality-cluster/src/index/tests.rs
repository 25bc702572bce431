use kausality_core::review::Object;
use kube::core::ApiResource;

use super::*;

fn index() -> Index {
    let resource = ApiResource {
        group: "apps".into(),
        version: "v1".into(),
        api_version: "apps/v1".into(),
        kind: "Deployment".into(),
        plural: "deployments".into(),
    };
    Index::new(Kind { resource, namespaced: true })
}

fn summary(name: &str, uid: &str) -> Summary {
    let text = format!(
        r#"{{"apiVersion":"apps/v1","kind":"Deployment","metadata":{{"namespace":"n","name":"{name}","uid":"{uid}"}}}}"#
    );
    Summary::of(&Object::parse(&text).unwrap())
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
    index.arrive(summary("a", "1"));
    check(&index, "a", "1", "blind");
    index.complete();
    check(&index, "a", "1", "here 1");
    check(&index, "a", "", "here 1");
    check(&index, "b", "2", "unseen");
}

#[test]
fn what_goes_is_remembered_by_its_uid() {
    let index = index();
    index.complete();
    index.apply(summary("a", "1"));
    index.remove(&summary("a", "1"));
    check(&index, "a", "1", "departed");
    index.apply(summary("a", "2"));
    check(&index, "a", "1", "departed");
    check(&index, "a", "2", "here 2");
    // A late event of the first must not remove the second.
    index.remove(&summary("a", "1"));
    check(&index, "a", "2", "here 2");
}

#[test]
fn a_new_list_replaces_everything() {
    let index = index();
    index.complete();
    index.apply(summary("a", "1"));
    index.apply(summary("b", "2"));
    index.begin();
    index.arrive(summary("b", "3"));
    check(&index, "a", "1", "here 1");
    index.complete();
    check(&index, "a", "1", "departed");
    check(&index, "b", "2", "departed");
    check(&index, "b", "3", "here 3");
}

#[test]
fn a_broken_watch_is_trusted_for_a_while_only() {
    let index = index();
    index.complete();
    index.apply(summary("a", "1"));
    index.fail();
    check(&index, "a", "1", "here 1");
    let earlier = |by| Instant::now().checked_sub(by).unwrap();
    index.state.write().unwrap().broken = Some((earlier(MAX_OUTAGE * 2), Instant::now()));
    check(&index, "a", "1", "blind");
    assert!(index.health().outage.is_some());
    // A list that begins is no list that has arrived.
    index.begin();
    index.arrive(summary("b", "2"));
    check(&index, "a", "1", "blind");
    // No failure for long enough: it works again.
    index.state.write().unwrap().broken = Some((earlier(SURE_RECOVERY * 2), earlier(SURE_RECOVERY)));
    check(&index, "a", "1", "here 1");
    index.fail();
    check(&index, "a", "1", "here 1");
    index.apply(summary("a", "1"));
    check(&index, "a", "1", "here 1");
    assert!(index.health().outage.is_none());
}
