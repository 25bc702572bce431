//! Whether policies are in force.

use kausality_api::policy::Kausality;
use serde_json::Value;

use super::{
    finding::{Findings, Severity, Verdict},
    logs,
    server::{Seen, list, number, text},
};

/// The condition that speaks for all others.
const READY: &str = "Ready";

/// Why a policy is in force, but not for children of Secrets.
const WITHHELD: &str = "ParentsWithheld";

/// Judges the policies.
pub(super) fn judge(namespace: &str, policies: &Seen<Vec<Value>>, is_local: bool) -> Verdict {
    let policies = match policies {
        Seen::Found(policies) => policies,
        Seen::Absent => return Verdict::Skipped("policies are not installed as a kind".to_owned()),
        Seen::Hidden(why) => return Verdict::Skipped(format!("policies cannot be read: {why}")),
    };
    let mut findings = Findings::default();
    if policies.is_empty() && !is_local {
        findings.warn(
            "there is no policy: nothing is watched",
            "say what to watch: kubectl apply -f docs/examples/policy.yaml, after a look into it",
        );
    }
    for policy in policies {
        examine(namespace, policy, is_local, &mut findings);
    }
    findings.or_fine(match policies.len() {
        0 => "there is none, and none is needed".to_owned(),
        1 => "1 policy is in force".to_owned(),
        several => format!("{several} policies are in force"),
    })
}

fn examine(namespace: &str, policy: &Value, is_local: bool, findings: &mut Findings) {
    let name = text(policy, "/metadata/name");
    let edit = format!("kubectl edit kausality {name}");
    match serde_json::from_value::<Kausality>(policy.clone()) {
        Err(error) => findings.fail(format!("policy {name} cannot be understood: {error}"), &edit),
        Ok(read) => {
            if let Some(fault) = kausality_core::policy::fault(&read) {
                findings.fail(format!("policy {name} cannot be understood: {fault}"), &edit);
            }
        }
    }
    let conditions = list(policy, "/status/conditions");
    if !conditions.iter().any(|condition| text(condition, "/type") == READY) {
        // Where a webhook registers itself, nobody writes a status.
        if !is_local {
            findings.fail(
                format!("policy {name} has no status: no controller has looked at it"),
                logs(namespace),
            );
        }
        return;
    }
    let ready = conditions.iter().find(|condition| text(condition, "/type") == READY);
    let told = ready.map(|ready| text(ready, "/message")).unwrap_or_default();
    for condition in conditions.iter().filter(|condition| text(condition, "/status") != "True") {
        let part = |field: &str| text(condition, field);
        let kind = part("/type");
        // What Ready says too is said once.
        if kind != READY && part("/message") == told {
            continue;
        }
        let severity = if kind == READY { Severity::Failed } else { Severity::Warning };
        let (status, reason, message) = (part("/status"), part("/reason"), part("/message"));
        findings.note(
            severity,
            format!("policy {name}: {kind} is {status}, {reason}: {message}"),
            format!("mend what it says: {edit}, or {}", logs(namespace)),
        );
    }
    if let Some(ready) = ready.filter(|ready| text(ready, "/reason") == WITHHELD) {
        findings.warn(
            format!("policy {name}: {}", text(ready, "/message")),
            format!("{edit}: name secrets in spec.resources, or exclude the kinds whose parents are Secrets"),
        );
    }
    let seen = number(policy, "/status/observedGeneration");
    let generation = number(policy, "/metadata/generation");
    if seen.is_some() && seen < generation {
        findings.warn(
            format!("policy {name} has been changed, and no controller has looked at it since"),
            format!("wait a little; if it stays so: {}", logs(namespace)),
        );
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::doctor::finding::Outcome;

    fn policy(change: &Value) -> Value {
        let mut policy = json!({"apiVersion": "kausality.io/v1alpha1", "kind": "Kausality",
            "metadata": {"name": "p", "generation": 2},
            "spec": {"resources": [{"apiGroups": ["apps"], "resources": ["deployments"]}], "mode": "log"},
            "status": {"observedGeneration": 2, "conditions": [
                {"type": "Ready", "status": "True", "reason": "Configured", "message": ""},
                {"type": "WebhookConfigured", "status": "True", "reason": "Configured", "message": ""}]}});
        for (pointer, value) in change.as_object().unwrap() {
            *policy.pointer_mut(pointer).unwrap() = value.clone();
        }
        policy
    }

    #[test]
    fn policies_are_in_force_or_say_why_not() {
        let unready = json!([
            {"type": "Ready", "status": "False", "reason": "NothingServed", "message": "no foos"},
            {"type": "WebhookConfigured", "status": "False", "reason": "NothingServed", "message": "no foos"}]);
        let half = json!([
            {"type": "Ready", "status": "True", "reason": "Configured", "message": ""},
            {"type": "WebhookConfigured", "status": "Unknown", "reason": "Waiting", "message": "not yet"}]);
        let withheld = json!([{"type": "Ready", "status": "True", "reason": "ParentsWithheld", "message": "no Secrets"}]);
        for (change, outcome, said) in [
            (json!({}), Outcome::Ok, "1 policy is in force"),
            (json!({"/status/conditions": withheld}), Outcome::Warning, "policy p: no Secrets"),
            (json!({"/status": {}}), Outcome::Failed, "policy p has no status"),
            (
                json!({"/status/conditions": unready}),
                Outcome::Failed,
                "policy p: Ready is False, NothingServed: no foos",
            ),
            (
                json!({"/status/conditions": half}),
                Outcome::Warning,
                "WebhookConfigured is Unknown, Waiting: not yet",
            ),
            (json!({"/metadata/generation": 3}), Outcome::Warning, "has been changed"),
            (
                json!({"/spec/resources/0/resources": ["Deployment"]}),
                Outcome::Failed,
                "resource \"Deployment\"",
            ),
            (json!({"/spec/mode": "warn"}), Outcome::Failed, "cannot be understood: unknown variant"),
        ] {
            let verdict = judge("there", &Seen::Found(vec![policy(&change)]), false);
            assert_eq!(verdict.outcome(), outcome, "{change}: {verdict:?}");
            assert!(verdict.summary().contains(said), "{said}: {verdict:?}");
        }
        assert_eq!(judge("there", &Seen::Found(vec![]), false).outcome(), Outcome::Warning);
        assert_eq!(judge("there", &Seen::Found(vec![]), true).outcome(), Outcome::Ok);
        let unseen = policy(&json!({"/status": {}}));
        assert_eq!(judge("there", &Seen::Found(vec![unseen]), true).outcome(), Outcome::Ok);
        assert_eq!(judge("there", &Seen::Absent, false).outcome(), Outcome::Skipped);
    }
}
