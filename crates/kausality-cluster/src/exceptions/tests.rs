#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use jiff::Timestamp;
use kausality_api::exception::RuleCause;
use kausality_core::{Review, exceptions::Supposed};
use serde_json::json;

use super::{memory::Size, *};

/// A policy of a namespace of its own, with a rule about a pattern that takes about 2 MiB.
fn put(source: &Source, name: &str, action: &str) {
    let policy: ApprovalPolicy = serde_json::from_value(json!({"apiVersion": "kausality.io/v1alpha1",
        "kind": "ApprovalPolicy", "metadata": {"name": name, "namespace": name}, "spec": {"rules": [
            {"action": action, "apiVersion": "v1", "kind": "Pod", "namespace": "*",
                "match": {"regexp": "never .{1,1000}"}}]}}))
    .unwrap();
    let held = Held {
        kind: PolicyKind::ApprovalPolicy,
        namespace: name.to_owned(),
        name: name.to_owned(),
        uid: name.to_owned(),
        resource_version: String::new(),
        generation: Some(1),
        // Names are in the order in which they were written.
        created: Some(name.to_owned()),
        rules: Arc::new(Rules::of(&policy, &source.taken)),
        marks: Vec::new(),
        policy: Some(policy),
        status: ApprovalPolicyStatus::default(),
    };
    source.namespaced.pages().known.insert(format!("{name}/{name}"), Arc::new(held));
}

/// What becomes of the policies; all of them have the memory that they take.
fn fits(source: &Source) -> Vec<(String, Fit)> {
    if source.fit(false) {
        source.fit(true);
    }
    let held = source.held();
    let taken: usize = held.iter().filter_map(|held| held.rules.in_force()).map(Compiled::size).sum();
    assert_eq!(taken, source.taken.load(Ordering::Relaxed));
    assert!(taken <= source.room(), "{taken} of {}", source.room());
    held.iter().map(|held| (held.name.clone(), held.rules.fit)).collect()
}

fn named(fits: &[(&str, Fit)]) -> Vec<(String, Fit)> {
    fits.iter().map(|(name, fit)| ((*name).to_owned(), *fit)).collect()
}

/// Whether the policy denies a change by the service account that it is about, which its pattern does not match.
fn denies(source: &Source, name: &str) -> bool {
    let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "u", "operation": "UPDATE", "kind": {"version": "v1", "kind": "Pod"},
        "resource": {"version": "v1", "resource": "pods"}, "name": "w", "namespace": "x",
        "userInfo": {"username": format!("system:serviceaccount:{name}:{name}")},
        "oldObject": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "w", "namespace": "x"}, "spec": {"a": 1}},
        "object": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "w", "namespace": "x"}, "spec": {"a": 2}}}})
    .to_string();
    let review = Review::parse(review.as_bytes()).unwrap();
    let held = source.held();
    let all = Exceptions::new(held.iter().filter_map(|held| held.rules.in_force()));
    let cause = RuleCause::Drift;
    let supposed =
        Supposed { review: &review, parent: None, namespace: None, cause, now: Timestamp::UNIX_EPOCH };
    all.judge(&supposed).ruled.is_some()
}

/// Policies that take far more memory than there is: it is never exceeded, what denies holds, and what is let go of comes back.
#[test]
fn policies_take_no_more_memory_than_there_is() {
    let source = Source::default();
    put(&source, "a", "allow");
    let each = source.taken.load(Ordering::Relaxed);
    assert!(each > 1 << 20, "{each}");
    source.beside.store(MAX_SIZE - 3 * each, Ordering::Relaxed);
    put(&source, "b", "deny");
    put(&source, "c", "allow");
    put(&source, "d", "allow");
    put(&source, "e", "deny");
    let all =
        [("a", Fit::Whole), ("b", Fit::Whole), ("c", Fit::Denying), ("d", Fit::Denying), ("e", Fit::Whole)];
    assert_eq!(fits(&source), named(&all), "what denies first, then what is older");
    assert_eq!((denies(&source, "b"), denies(&source, "e")), (false, false), "the patterns are known");
    let faults =
        source.held().iter().find(|held| held.name == "c").unwrap().rules.compiled.clone().unwrap_err();
    assert_eq!(
        exceptions::told(&faults),
        "spec.rules: does not fit into the memory for expressions and patterns of all policies (64 MiB): \
         delete or simplify policies"
    );
    assert_eq!(source.room_for("ApprovalPolicy/f/f"), 0);

    put(&source, "f", "deny");
    put(&source, "g", "deny");
    let all = [("a", Fit::Denying), ("f", Fit::Whole), ("g", Fit::Bare)];
    let found = fits(&source);
    for (name, fit) in named(&all) {
        assert!(found.contains(&(name, fit)), "{found:?}");
    }
    assert!(denies(&source, "g"), "nobody knows its pattern, and it denies");

    for name in ["b", "c", "d", "e"] {
        source.namespaced.pages().known.remove(&format!("{name}/{name}"));
    }
    assert_eq!(fits(&source), named(&[("a", Fit::Whole), ("f", Fit::Whole), ("g", Fit::Whole)]));
    assert!(!denies(&source, "g"));
    assert!(source.held().iter().all(|held| held.rules.compiled.is_ok()));
}

#[test]
fn a_part_of_a_policy_may_fit() {
    let sizes = [(1, 5), (2, 2), (0, 9), (3, 4)].map(|(denying, whole)| Size { denying, whole });
    let fits = |room| share(sizes.iter().copied(), room);
    assert_eq!(fits(20), [Fit::Whole; 4]);
    assert_eq!(fits(19), [Fit::Whole, Fit::Whole, Fit::Whole, Fit::Denying]);
    assert_eq!(fits(9), [Fit::Denying, Fit::Whole, Fit::Denying, Fit::Whole]);
    assert_eq!(fits(3), [Fit::Denying, Fit::Whole, Fit::Denying, Fit::Bare]);
    assert_eq!(fits(0), [Fit::Bare, Fit::Bare, Fit::Denying, Fit::Bare]);
}
