//! Drifts of beds and rules about them, for tests.

use kausality_api::{
    approval::ApprovalMode,
    exception::{ApprovalPolicy, PolicyRule},
};
use kausality_core::exceptions::{Exceptions, compile};
use serde_json::{Value, json};

use super::rules::Wish;
use crate::ledger::{Entry, fixture::drift};

/// A drift that makes a bed of a garden grow something else.
pub(super) fn bed(name: &str, old: &str, new: &str) -> Entry {
    let object = |flowers: &str| {
        json!({"apiVersion": "garden.io/v1", "kind": "Bed", "metadata": {"name": name, "namespace": "park"},
            "spec": {"flowers": flowers}})
    };
    drift(&json!({"metadata": {"name": format!("{name}-{new}")}, "spec": {
        "child": {"name": name}, "oldObject": object(old), "newObject": object(new),
        "summary": {"child": format!("Bed/{name}")}}}))
}

/// The narrowest rule.
pub(super) fn wish() -> Wish<'static> {
    Wish {
        any_name: false,
        any_field: false,
        cel: None,
        mode: ApprovalMode::Always,
        expires: None,
        reason: None,
        cluster: false,
    }
}

/// The rule that is made of a drift as wished.
pub(super) fn rule(wish: &Wish<'_>, entry: &Entry) -> Exceptions {
    let rule: PolicyRule = wish.rule(&entry.drift.spec).unwrap();
    policy(&json!([rule]))
}

/// The rules of a policy in the park.
pub(super) fn policy(rules: &Value) -> Exceptions {
    let policy: ApprovalPolicy = serde_json::from_value(json!({
        "apiVersion": "kausality.io/v1alpha1", "kind": "ApprovalPolicy",
        "metadata": {"name": "exceptions", "namespace": "park"}, "spec": {"rules": rules},
    }))
    .unwrap();
    Exceptions::new([&compile(&policy).unwrap()])
}
