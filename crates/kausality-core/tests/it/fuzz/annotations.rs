//! Whatever somebody may have written into an annotation.

use kausality_api::{
    annotation::{self, SYSTEM, USER},
    approval::{Approval, Entries, Entry, Rejection},
    freeze::Frozen,
    identity::Hashes,
    mode::Mode,
    phase,
    report::DriftReport,
    snooze::Snooze,
    text::{plain, shorten},
    trace::{self, MAX_BYTES, Trace},
};
use kausality_core::{Facts, Parent, Review, Settings, Summary, decide, review::Object};
use serde_json::{Value, json};

use crate::fuzz::reviews::{said, way};

/// Those that are golden elsewhere.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let report = include_str!(
        "../../../../kausality-api/src/snapshots/kausality_api__report__tests__drift-report.snap"
    );
    let report = report.split("---").last().unwrap().trim();
    [report, "true", "false", "1likq,afodm", "Initialized", "enforce", "5", ""]
        .map(|text| text.as_bytes().to_vec())
        .into()
}

/// Reads a text as every annotation that there is, and decides requests that meet it.
pub(crate) fn run(input: &[u8]) -> String {
    // An annotation is always text.
    let text = &*String::from_utf8_lossy(input);
    let mut ways = String::new();
    ways.push_str(&entries::<Approval>(text));
    ways.push_str(&entries::<Rejection>(text));
    ways.push_str(match Frozen::decode(text) {
        Frozen::No => "thawed ",
        Frozen::Yes(freeze) => {
            assert!(freeze.to_string().len() < 4_000);
            assert_eq!(Frozen::decode(&freeze.encode()), Frozen::Yes(freeze), "what is written is read back");
            "frozen "
        }
        Frozen::Unclear(_) => "unclear ",
    });
    match Snooze::decode(text) {
        Ok(snooze) => {
            assert_eq!(Snooze::decode(&snooze.encode()), Ok(snooze), "what is written is read back")
        }
        Err(error) => ways.push_str(&said(&error.to_string()).chars().skip(80).collect::<String>()),
    }
    match Trace::decode(text) {
        Ok(trace) => {
            ways.push_str("trace ");
            if let Some(hop) = trace.hops().first().cloned() {
                let extended = trace.extended(hop);
                assert!(extended.encode().len() <= MAX_BYTES, "{} bytes", extended.encode().len());
            }
        }
        Err(error) => ways.push_str(&said(&error.to_string())),
    }
    let hashes = Hashes::decode(text);
    assert_eq!(Hashes::decode(&hashes.encode()), hashes);
    ways.push_str(if hashes.is_empty() { "" } else { "hashes " });
    ways.push_str(text.parse::<Mode>().map_or("", Mode::as_str));
    ways.push_str(if phase::says_initialized(text) { "initialized " } else { "" });
    ways.push_str(if serde_json::from_str::<DriftReport>(text).is_ok() { "report " } else { "" });
    assert!(!plain(text).chars().any(char::is_control));
    assert!(shorten(text, 20).chars().count() <= 20);
    let _ = (annotation::owner(text), trace::label(text));
    ways.push_str(&requests(text));
    ways
}

fn entries<T: Entry>(text: &str) -> String {
    let entries = Entries::<T>::decode(text);
    let valid = entries.valid().count();
    let faults: Vec<String> = entries.faults().collect();
    assert!(faults.iter().all(|fault| fault.chars().count() < 300), "{faults:?}");
    assert!(valid == 0 || entries.is_list());
    for rewritten in [entries.without(0), entries.pruned(3), entries.restamped(2, 3)].into_iter().flatten() {
        let again = Entries::<T>::decode(&rewritten);
        assert!(again.is_list(), "{rewritten}");
        assert!(again.valid().count() <= valid && again.faults().count() == faults.len(), "{rewritten}");
    }
    let any = entries.valid().any(|(_, entry)| entry.matches("apps/v1", "ReplicaSet", "shop", "web-1"));
    format!("{} {} {any} {} ", valid.min(2), faults.len().min(2), entries.any_stale(2))
}

/// The text on a child and on its parent, in a change of intent and in one of annotations.
fn requests(text: &str) -> String {
    let all: Value = SYSTEM
        .into_iter()
        .chain(USER)
        .map(|key| (key.to_owned(), Value::from(text)))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let parent = json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop", "uid": "1", "generation": 2, "annotations": all},
        "spec": {"replicas": 1}, "status": {"observedGeneration": 2}});
    let object = |replicas: i64, annotations: &Value| {
        json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "web-1", "namespace": "shop",
            "uid": "2", "generation": 2, "annotations": annotations, "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "1", "controller": true}]},
            "spec": {"replicas": replicas}})
    };
    let settings = Settings { default_mode: Mode::Enforce, ..Settings::default() };
    let parent = parent.to_string();
    let summary = Summary::of(&Object::parse(&parent).unwrap());
    let mut ways = String::new();
    for (old, new) in [(object(1, &all), object(2, &json!({}))), (object(1, &json!({})), object(1, &all))] {
        let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
            "uid": "1", "operation": "UPDATE", "userInfo": {"username": "robot"}, "namespace": "shop", "name": "web-1",
            "kind": {"group": "apps", "version": "v1", "kind": "ReplicaSet"},
            "resource": {"group": "apps", "version": "v1", "resource": "replicasets"}, "object": new, "oldObject": old}});
        let review = review.to_string();
        let review =
            Review::parse(review.as_bytes()).expect("text in an annotation cannot make a review unreadable");
        let mut facts = Facts::new("2026-01-24T10:30:00Z".parse().unwrap(), &settings);
        facts.parent = Parent::Found { summary: &summary, resource: "deployments" };
        ways.push_str(&way(&decide(&review, &facts)));
    }
    ways
}
