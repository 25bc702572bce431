//! Overrides as a condition that the API server evaluates.

use kausality_api::{
    mode::Mode,
    policy::{KausalitySpec, Override},
};

/// How requests that a policy is about are divided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Division {
    /// All are in this mode.
    All(Mode),
    /// Those for which this holds are enforced, all others logged.
    When(String),
}

/// Which requests are enforced: the first override that matches says so, and else the policy.
pub(super) fn division(spec: &KausalitySpec) -> Division {
    let mut cases = Vec::new();
    let mut last = spec.mode;
    for entry in &spec.overrides {
        match condition(entry) {
            Some(condition) => cases.push((condition, entry.mode)),
            // It matches everything: what comes after it never holds.
            None => {
                last = entry.mode;
                break;
            }
        }
    }
    while cases.last().is_some_and(|(_, mode)| *mode == last) {
        cases.pop();
    }
    if cases.is_empty() {
        return Division::All(last);
    }
    let enforced = |mode: Mode| (mode == Mode::Enforce).to_string();
    let expression = cases.iter().rev().fold(enforced(last), |rest, (condition, mode)| {
        format!("({condition}) ? {} : ({rest})", enforced(*mode))
    });
    Division::When(expression)
}

/// When an override matches; none, if always.
fn condition(entry: &Override) -> Option<String> {
    let parts = [
        among("request.resource.group", &entry.api_groups),
        among("request.resource.resource", &entry.resources),
        // An object that is in no namespace has no such field.
        among("request.namespace", &entry.namespaces).map(|part| format!("has(request.namespace) && {part}")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(" && "))
}

/// Whether a field has one of these values, as a condition; none, if any will do.
pub(super) fn among(field: &str, names: &[String]) -> Option<String> {
    if names.is_empty() || names.iter().any(|name| name == "*") {
        return None;
    }
    // Strings are written in CEL as they are in JSON.
    let names: Vec<String> =
        names.iter().map(|name| serde_json::Value::from(name.as_str()).to_string()).collect();
    Some(format!("{field} in [{}]", names.join(", ")))
}
