//! Rules held against drifts of the ledger, as far as that can be told.

use jiff::Timestamp;
use kausality_api::{drift::DriftSpec, exception::RuleCause};
use kausality_core::{
    Review,
    exceptions::{Exceptions, Held, Match, Need, Ruled, Supposed},
};
use serde_json::{Value, json};

use super::known::Known;

/// Whether a rule matches a drift.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Told {
    Yes,
    /// It is about such drifts, and does not: why.
    No(String),
    /// It is about others: in which way.
    Beside(String),
    /// Why that cannot be told.
    Unclear(String),
}

/// What each rule says of a drift.
pub(super) fn hold(
    rules: &Exceptions,
    drift: &DriftSpec,
    known: &Known,
    now: Timestamp,
) -> Vec<(Ruled, Told)> {
    let told = |Held { rule, matches, needs }: Held| {
        let lacking = needs.into_iter().find_map(|need| lacking(need, drift, known));
        let told = match (matches, lacking) {
            (Match::Beside(why), _) => Told::Beside(why),
            (_, Some(why)) => Told::Unclear(why),
            (Match::Yes(_), None) => Told::Yes,
            (Match::No(why), None) => Told::No(why),
        };
        (rule, told)
    };
    held(rules, drift, known, now).into_iter().map(told).collect()
}

/// What the rules that are about such drifts need to know.
pub(super) fn needs(rules: &Exceptions, drift: &DriftSpec, now: Timestamp) -> Vec<Need> {
    let held = held(rules, drift, &Known::default(), now);
    held.into_iter().filter(|it| !matches!(it.matches, Match::Beside(_))).flat_map(|it| it.needs).collect()
}

fn held(rules: &Exceptions, drift: &DriftSpec, known: &Known, now: Timestamp) -> Vec<Held> {
    let text = review(drift).to_string();
    let Ok(review) = Review::parse(text.as_bytes()) else { return Vec::new() };
    rules.hold_each(&Supposed {
        review: &review,
        parent: known.parent(drift).ok(),
        namespace: known.labels(&drift.child.namespace).ok(),
        cause: RuleCause::Drift,
        now,
    })
}

/// Why something is not known of a drift, if it is not.
fn lacking(need: Need, drift: &DriftSpec, known: &Known) -> Option<String> {
    match need {
        Need::Fields | Need::Values if objects(drift).is_none() => {
            Some("the ledger does not hold the objects".to_owned())
        }
        Need::Fields => None,
        Need::Values => {
            (drift.child.kind == "Secret").then(|| "the ledger holds no values of Secrets".to_owned())
        }
        Need::Request => Some("the ledger does not hold the whole request".to_owned()),
        Need::Parent => known.parent(drift).err(),
        Need::Namespace if drift.child.namespace.is_empty() => None,
        Need::Namespace => known.labels(&drift.child.namespace).err(),
    }
}

/// The object and the old object of the request, if the ledger has them.
fn objects(drift: &DriftSpec) -> Option<(Value, Value)> {
    let new = drift.new_object.clone().map(|object| named(object, drift))?;
    match drift.request.operation.as_str() {
        "CREATE" => Some((new, Value::Null)),
        "DELETE" => Some((Value::Null, new)),
        _ => Some((new, named(drift.old_object.clone()?, drift))),
    }
}

/// Of what was scaled, the ledger holds the Scale; rules are about the object behind it.
fn named(mut object: Value, drift: &DriftSpec) -> Value {
    if let Some(fields) = object.as_object_mut() {
        fields.insert("apiVersion".to_owned(), drift.child.api_version.as_str().into());
        fields.insert("kind".to_owned(), drift.child.kind.as_str().into());
    }
    object
}

/// The request of a drift, as far as the ledger has it: of objects that it lacks, the names alone.
fn review(drift: &DriftSpec) -> Value {
    let child = &drift.child;
    let stub = || named(json!({"metadata": {"name": child.name, "namespace": child.namespace}}), drift);
    let (object, old_object) = objects(drift).unwrap_or_else(|| (stub(), stub()));
    let (group, version) = child.api_version.split_once('/').unwrap_or(("", &child.api_version));
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": drift.request.uid,
        "kind": {"group": group, "version": version, "kind": child.kind},
        "resource": {"group": group, "version": version, "resource": ""},
        "name": child.name,
        "namespace": child.namespace,
        "operation": drift.request.operation,
        "userInfo": {"username": drift.request.user, "groups": drift.request.groups},
        "object": object,
        "oldObject": old_object,
    }})
}
