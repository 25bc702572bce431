//! What a drift costs where there are many approval policies, for `cargo xtask cost`.
//!
//! `exceptions POLICIES ROUNDS` compiles so many policies, ten of which are about the change, and decides it so often. The
//! others are about other kinds, other service accounts, or other namespaces.

#![allow(clippy::print_stdout, reason = "tells xtask how much was measured")]

use std::{hint::black_box, sync::Arc};

use jiff::Timestamp;
use kausality_api::{
    annotation::{CONTROLLERS, PHASE, SETTLED},
    exception::ApprovalPolicy,
    identity::UserHash,
    mode::Mode,
};
use kausality_core::{
    Facts, Parent, Review, Settings, Summary, decide,
    exceptions::{Compiled, Exceptions, compile},
    gate::Resolution,
    review::Object,
};
use serde_json::{Value, json};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const USER: &str = "system:serviceaccount:kube-system:deployment-controller";

/// How many policies are about the change, however many there are.
const ABOUT: usize = 10;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let policies: usize = arguments.next().ok_or("how many policies?")?.parse()?;
    let rounds: usize = arguments.next().ok_or("how many rounds?")?.parse()?;
    let compiled = (0..policies).map(policy).collect::<Result<Vec<Compiled>>>()?;
    let settings = Settings {
        default_mode: Mode::Enforce,
        exceptions: Arc::new(Exceptions::new(&compiled)),
        ..Settings::default()
    };
    let parent = json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop", "uid": "d", "generation": 1}, "spec": {"replicas": 3}});
    let text = parent.to_string();
    let mut summary = Summary::of(&Object::parse(&text)?);
    summary.annotate(SETTLED, Some(&summary.intent.to_string()));
    summary.annotate(CONTROLLERS, Some(&UserHash::of(USER, "").to_string()));
    summary.annotate(PHASE, Some("initialized"));
    summary.whole = Some(Arc::new(parent));
    let review = review();
    for round in 0..=rounds {
        let review = Review::parse(black_box(review.as_bytes()))?;
        let mut facts = Facts::new(Timestamp::UNIX_EPOCH, &settings);
        facts.parent = Parent::Found { summary: &summary, resource: "deployments" };
        let decision = black_box(decide(&review, &facts));
        // The last of the ten lets it pass.
        if round == 0
            && !matches!(&decision.resolution, Resolution::Ruled(ruled) if ruled.policy.ends_with("/p00009"))
        {
            return Err(format!("{:?}", decision.explanation).into());
        }
    }
    println!("{rounds}");
    Ok(())
}

fn policy(nth: usize) -> Result<Compiled> {
    let mut rule = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "namespace": "shop",
        "subjects": [{"kind": "User", "name": USER}]});
    if nth < ABOUT {
        let least = if nth + 1 == ABOUT { 3 } else { 100 + nth };
        rule["prereqs"] = json!({"cel": "object.spec.replicas >= 1"});
        rule["match"] = json!({"cel": format!("object.spec.replicas >= {least} && parent.spec.replicas == 3"), "fields": ["spec"]});
    } else {
        match nth % 3 {
            0 => rule["kind"] = format!("Kind{nth}").into(),
            1 => rule["subjects"][0]["name"] = format!("user-{nth}").into(),
            _ => rule["namespace"] = format!("team-{nth}").into(),
        }
    }
    let policy: ApprovalPolicy = serde_json::from_value(json!({
        "apiVersion": "kausality.io/v1alpha1", "kind": "ClusterApprovalPolicy",
        "metadata": {"name": format!("p{nth:05}")}, "spec": {"rules": [rule]},
    }))?;
    compile(&policy).map_err(|faults| format!("{faults:?}").into())
}

fn review() -> String {
    let object = |replicas: u32| -> Value {
        json!({"apiVersion": "apps/v1", "kind": "ReplicaSet",
            "metadata": {"name": "web-1", "namespace": "shop", "uid": "r", "generation": 1, "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "d", "controller": true}]},
            "spec": {"replicas": replicas, "template": {"spec": {"containers": [{"name": "main", "image": "web:1"}]}}}})
    };
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "u", "operation": "UPDATE", "name": "web-1", "namespace": "shop",
        "kind": {"group": "apps", "version": "v1", "kind": "ReplicaSet"},
        "resource": {"group": "apps", "version": "v1", "resource": "replicasets"},
        "userInfo": {"username": USER, "groups": ["system:serviceaccounts", "system:authenticated"]},
        "oldObject": object(2), "object": object(3)}})
    .to_string()
}
