use kausality_core::{Known, Review, Settings, decide, review::Object};

use super::*;

/// What is left of an object `u` at this version.
fn known(version: &str, metadata: &str) -> Summary {
    let text = format!(r#"{{"metadata":{{"uid":"u","resourceVersion":"{version}"{metadata}}}}}"#);
    Summary::of(&Object::parse(&text).unwrap())
}

/// Notes a request for an object `u` at version 9. `rest` are fields of the request, `old` and `new` of the objects'
/// metadata.
fn noted(rest: &str, old: &str, new: &str) -> Lately {
    let object =
        |fields: &str| format!(r#"{{"metadata":{{"name":"a","uid":"u","resourceVersion":"9"{fields}}}"#);
    let (old, new) = (object(old), object(new));
    let review = format!(
        r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{"kind":{{"kind":"A"}},
        "resource":{{"resource":"as"}},"userInfo":{{"username":"alice"}},{rest},
        "oldObject":{old},"spec":1}},"object":{new},"spec":2}}}}}}"#
    );
    note(&review)
}

fn note(review: &str) -> Lately {
    let lately = Lately::default();
    let review = Review::parse(review.as_bytes()).unwrap();
    let known = Known::new(jiff::Timestamp::UNIX_EPOCH);
    let decision = decide(&review, &known.facts(&Settings::default()));
    lately.note(&review.request, &decision);
    lately
}

#[test]
fn a_change_is_under_way_until_a_later_version_shows() {
    let lately = noted(r#""operation":"UPDATE""#, "", "");
    assert!(lately.is_under_way(&known("9", "")));
    assert!(lately.is_under_way(&known("8", "")), "further behind");
    assert!(!lately.is_under_way(&known("10", "")));
    assert!(!Lately::default().is_under_way(&known("9", "")), "another object");
    lately.give_up(&known("9", ""), Instant::now());
    assert!(!lately.is_under_way(&known("9", "")), "waited for in vain");
}

#[test]
fn what_was_written_here_is_under_way_until_its_version_shows() {
    let lately = Lately::default();
    lately.stored("u", "9");
    assert!(lately.is_under_way(&known("8", "")));
    assert!(!lately.is_under_way(&known("9", "")));
}

#[test]
fn a_deletion_is_under_way_until_it_shows() {
    let lately = noted(r#""operation":"DELETE""#, "", "");
    assert!(lately.is_under_way(&known("9", "")));
    assert!(lately.is_under_way(&known("10", "")), "its status was written meanwhile");
    assert!(!lately.is_under_way(&known("10", r#","deletionTimestamp":"2026-01-01T00:00:00Z""#)));
}

#[test]
fn what_is_not_stored_is_not_waited_for() {
    let dry_run = noted(r#""operation":"UPDATE","dryRun":true"#, "", "");
    assert!(!dry_run.is_under_way(&known("9", "")));
    let conflict = noted(r#""operation":"UPDATE""#, "", r#","resourceVersion":"7""#);
    assert!(!conflict.is_under_way(&known("9", "")), "its resourceVersion is not the stored one");
}

#[test]
fn of_metadata_only_annotations_of_ours_matter() {
    let review = |old: &str, new: &str| {
        let metadata = r#""name":"a","uid":"u","resourceVersion":"9""#;
        format!(
            r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{"kind":{{"kind":"A"}},
            "resource":{{"resource":"as"}},"userInfo":{{"username":"alice"}},"operation":"UPDATE",
            "oldObject":{{"metadata":{{{metadata},"annotations":{old}}}}},
            "object":{{"metadata":{{{metadata},"annotations":{new}}}}}}}}}"#
        )
    };
    let under_way = |old: &str, new: &str| note(&review(old, new)).is_under_way(&known("9", ""));
    assert!(under_way("{}", r#"{"kausality.io/freeze":"true"}"#));
    assert!(under_way(r#"{"kausality.io/freeze":"true"}"#, "{}"));
    assert!(!under_way("{}", r#"{"example.com/a":"b"}"#));
    assert!(!under_way("{}", r#"{"kausality.io/trace":"[]"}"#), "forged, so patched away");
}

#[test]
fn a_status_that_says_something_new_is_under_way() {
    let noted = |from: u8, to: u8| {
        let object = |seen: u8| {
            format!(
                r#"{{"metadata":{{"name":"a","uid":"u","resourceVersion":"9","generation":1}},"status":{{"observedGeneration":{seen}}}}}"#
            )
        };
        let review = format!(
            r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{"operation":"UPDATE",
            "subResource":"status","kind":{{"kind":"A"}},"resource":{{"resource":"as"}},"userInfo":{{"username":"c"}},
            "oldObject":{},"object":{}}}}}"#,
            object(from),
            object(to)
        );
        let review = Review::parse(review.as_bytes()).unwrap();
        let settings = Settings::default();
        let lately = Lately::default();
        lately.note(
            &review.request,
            &decide(&review, &kausality_core::Facts::new("2026-01-01T00:00:00Z".parse().unwrap(), &settings)),
        );
        lately.is_under_way(&known("9", ""))
    };
    assert!(noted(0, 1));
    assert!(!noted(1, 1), "one that says the same may never be stored");
}
