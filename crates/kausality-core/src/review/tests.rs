use super::*;

const RECORDED: &str = include_str!("../../../../fixtures/admission-reviews/drift-after-rollout.jsonl");

/// A review of an update, with this object in place of `object`.
fn review(object: &str) -> String {
    whole("UPDATE", object, r#"{"metadata":{}}"#)
}

fn whole(operation: &str, object: &str, old_object: &str) -> String {
    format!(
        r#"{{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{{"uid":"1",
        "kind":{{"version":"v1","kind":"Thing"}},"resource":{{"version":"v1","resource":"things"}},
        "operation":"{operation}","userInfo":{{"username":"alice"}},"object":{object},"oldObject":{old_object}}}}}"#
    )
}

#[track_caller]
fn fails(text: &str, expected: &str) {
    let error = Review::parse(text.as_bytes()).expect_err(text).to_string();
    assert!(error.contains(expected), "expected {expected:?} in {error:?} for {text}");
}

#[test]
fn what_is_no_review_says_so() {
    fails("", "EOF");
    fails("null", "not an AdmissionReview");
    fails("[]", "not an AdmissionReview");
    fails("{}", r#"apiVersion "", kind """#);
    fails(r#"{"apiVersion":"v1","kind":"Pod"}"#, r#"not an AdmissionReview but apiVersion "v1", kind "Pod""#);
    fails(r#"{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview"}"#, "v1beta1");
    fails(r#"{"apiVersion":"admission.k8s.io/v1","kind":"ConversionReview"}"#, "ConversionReview");
    fails(r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}"#, "without a request");
    fails(
        r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":null}"#,
        "without a request",
    );
    fails(
        r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{}}"#,
        "without a request",
    );
    fails(&format!("{} x", review("{}")), "trailing characters");
    let long = format!(r#"{{"apiVersion":"{}","kind":"x"}}"#, "a".repeat(10_000));
    assert!(Review::parse(long.as_bytes()).expect_err("long").to_string().len() < 300);
}

#[test]
fn an_operation_has_the_objects_it_is_about() {
    fails(&whole("CREATE", "null", "null"), "CREATE without object");
    fails(&whole("UPDATE", "null", "{}"), "UPDATE without object");
    fails(&whole("UPDATE", "{}", "null"), "UPDATE without oldObject");
    fails(&whole("DELETE", "{}", "null"), "DELETE without oldObject");
    fails(&whole("PATCH", "{}", "{}"), "unknown variant");
    fails(&whole("", "{}", "{}"), "unknown variant");
    for (operation, object, old) in [
        ("CREATE", "{}", "null"),
        ("UPDATE", "{}", "{}"),
        ("DELETE", "null", "{}"),
        ("CONNECT", "null", "null"),
    ] {
        let text = whole(operation, object, old);
        let review = Review::parse(text.as_bytes()).unwrap();
        assert_eq!(review.request.operation.as_str(), operation);
    }
}

#[test]
fn fields_of_other_types_are_errors() {
    for object in [
        "7",
        r#""x""#,
        "[]",
        r#"{"metadata":7}"#,
        r#"{"metadata":{"name":7}}"#,
        r#"{"metadata":{"generation":"7"}}"#,
        r#"{"metadata":{"generation":1.5}}"#,
        r#"{"metadata":{"annotations":[]}}"#,
        r#"{"metadata":{"annotations":{"kausality.io/trace":7}}}"#,
        r#"{"metadata":{"ownerReferences":{}}}"#,
        r#"{"metadata":{"ownerReferences":[{"controller":"true"}]}}"#,
        r#"{"metadata":{"finalizers":"x"}}"#,
        r#"{"kind":7}"#,
    ] {
        assert!(Review::parse(review(object).as_bytes()).is_err(), "{object}");
    }
}

#[test]
fn null_is_absent() {
    let text = whole(
        "CREATE",
        r#"{"apiVersion":null,"kind":null,"status":null,"metadata":{"name":null,"generateName":"a-","uid":null,
            "generation":null,"deletionTimestamp":null,"finalizers":null,"ownerReferences":null,
            "annotations":null,"labels":null,"managedFields":null}}"#,
        "null",
    )
    .replace(r#""userInfo":"#, r#""dryRun":null,"options":null,"name":null,"namespace":null,"userInfo":"#);
    let review = Review::parse(text.as_bytes()).unwrap();
    let object = review.request.object.as_ref().unwrap();
    let metadata = &object.metadata;
    assert_eq!(metadata.any_name(), "a-");
    assert!(!metadata.is_deleting());
    assert!(!metadata.annotations.is_present());
    assert!(metadata.owner.is_none());
    assert!(metadata.generation.is_none());
    assert!(metadata.labels().is_empty());
    assert!(object.intent.is_empty());
    assert!(!review.request.is_dry_run());
    let text = whole("CREATE", r#"{"metadata":null,"spec":{}}"#, "null");
    assert_eq!(Review::parse(text.as_bytes()).unwrap().request.object.unwrap().intent.len(), 1);
}

#[test]
fn escapes_are_read() {
    let text = review(
        r#"{"\u006betadata":1,"\u006dPATHdata":2,"\u006detadata":{"\u006eame":"caf\u00e9 \"x\" \n",
            "annotations":{"kausality\u002eio/mode":"l\u006fg","example.com/\u0061":"\ud83d\ude00"}}}"#,
    );
    let review = Review::parse(text.as_bytes()).unwrap();
    let object = review.request.object.unwrap();
    assert_eq!(&*object.metadata.name, "café \"x\" \n");
    assert_eq!(object.metadata.annotations.get("kausality.io/mode"), Some("log"));
    assert_eq!(object.intent.len(), 2);
    assert!(object.intent.field("ketadata").is_some());
}

#[test]
fn an_object_is_taken_apart() {
    let text = review(
        r#"{"apiVersion":"v1","kind":"Thing","metadata":{"name":"a","labels":{"x":"y"},"annotations":
            {"kausality.io/mode":"log","other":"z"},"ownerReferences":[{"kind":"A","uid":"1"},
            {"apiVersion":"b/v1","kind":"B","name":"b","uid":"2","controller":true,"blockOwnerDeletion":true}]},
            "spec":{"a":1},"data":{},"status":{"phase":"Up"}}"#,
    );
    let review = Review::parse(text.as_bytes()).unwrap();
    let object = review.request.object.as_ref().unwrap();
    let fields: Vec<&str> = object.intent.iter().map(|(key, _)| &**key).collect();
    assert_eq!(fields, ["spec", "data"]);
    assert_eq!(object.status.unwrap().get(), r#"{"phase":"Up"}"#);
    let owner = object.metadata.owner.as_ref().unwrap();
    assert_eq!((&*owner.api_version, &*owner.kind, &*owner.name, &*owner.uid), ("b/v1", "B", "b", "2"));
    assert_eq!(object.metadata.labels().get("x").map(String::as_str), Some("y"));
    assert_eq!(object.metadata.annotations.ours().collect::<Vec<_>>(), [("kausality.io/mode", "log")]);
    assert_eq!(review.values().object.unwrap()["spec"]["a"], 1);
}

#[test]
fn annotations_of_others_are_compared_as_they_stand() {
    let check = |a: &str, b: &str, same: bool| {
        let read = |annotations: &str| format!(r#"{{"metadata":{{"annotations":{annotations}}}}}"#);
        let (a, b) = (read(a), read(b));
        let (left, right) = (Object::parse(&a).unwrap(), Object::parse(&b).unwrap());
        let (left, right) = (&left.metadata.annotations, &right.metadata.annotations);
        assert_eq!(left.same_others(right), same, "{a} / {b}");
        assert_eq!(right.same_others(left), same, "{b} / {a}");
    };
    check("{}", "null", true);
    check(r#"{"a":"1","b":"2"}"#, r#"{"b":"2","a":"1"}"#, true);
    check(r#"{"a":"1"}"#, r#"{"a":"2"}"#, false);
    check(r#"{"a":"1"}"#, r#"{"a":"1","b":"2"}"#, false);
    check(r#"{"a":"1","kausality.io/mode":"log"}"#, r#"{"a":"1"}"#, true);
    // Not ours, though they look like it.
    check(r#"{"xkausality.io/mode":"log"}"#, "{}", false);
}

#[test]
fn metadata_that_comes_twice_is_refused() {
    // Which of the two the API server stores is not for us to guess.
    fails(&review(r#"{"metadata":{"name":"a"},"metadata":{"name":"b"}}"#), "duplicate field");
    fails(&review(r#"{"metadata":null,"metadata":{"name":"b"}}"#), "duplicate field");
    let twice = review("{}").replacen(r#""uid":"1","#, r#""uid":"1","uid":"2","#, 1);
    fails(&twice, "duplicate field");
}

#[test]
fn a_truncated_review_is_an_error() {
    let line = RECORDED.lines().nth(18).unwrap();
    assert!(Review::parse(line.as_bytes()).is_ok());
    for end in (0..line.len()).step_by(97) {
        assert!(Review::parse(&line.as_bytes()[..end]).is_err(), "cut at {end}");
    }
}

#[test]
fn every_recorded_review_is_read() {
    for line in RECORDED.lines() {
        let review = Review::parse(line.as_bytes()).unwrap();
        assert!(!review.request.user().is_empty());
    }
}

#[test]
fn what_is_not_utf_8_is_an_error() {
    let mut bytes = review(r#"{"spec":"xx"}"#).into_bytes();
    let place = bytes.windows(2).position(|pair| pair == b"xx").unwrap();
    bytes[place] = 0xff;
    let error = Review::parse(&bytes).unwrap_err();
    assert!(matches!(error, BadReview::NotUtf8(_)), "{error}");
}

fn deep(depth: usize) -> String {
    format!("{}1{}", "[".repeat(depth), "]".repeat(depth))
}

#[test]
fn depth_is_bounded_where_values_are_read_and_harmless_where_not() {
    for depth in [100, 10_000] {
        // In what is left unread, anything goes.
        for place in ["spec", "status", "data"] {
            let text = review(&format!(r#"{{"{place}":{}}}"#, deep(depth)));
            let review = Review::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{place}: {error}"));
            let _ = review.values();
        }
        let labels = review(&format!(r#"{{"metadata":{{"labels":{0},"managedFields":{0}}}}}"#, deep(depth)));
        let review = Review::parse(labels.as_bytes()).unwrap();
        assert!(review.request.object.unwrap().metadata.labels().is_empty());
    }
    // In what is read, it is an error.
    let ours =
        review(&format!(r#"{{"metadata":{{"annotations":{{"kausality.io/mode":{}}}}}}}"#, deep(10_000)));
    assert!(Review::parse(ours.as_bytes()).is_err());
    assert!(Review::parse(deep(10_000).as_bytes()).is_err());
}

#[test]
fn the_user_is_the_name_else_the_uid() {
    let with = |user: &str| review("{}").replace(r#"{"username":"alice"}"#, user);
    for (user, expected) in [
        (r#"{"username":"alice","uid":"u"}"#, "alice"),
        (r#"{"username":"","uid":"u"}"#, "u"),
        (r#"{"uid":"u","groups":null}"#, "u"),
        ("{}", ""),
    ] {
        let text = with(user);
        assert_eq!(Review::parse(text.as_bytes()).unwrap().request.user(), expected, "{user}");
    }
}
