//! Whether the webhook and the controller run.

use serde_json::Value;

use super::{
    CONTROLLER, WEBHOOK,
    finding::{Findings, Severity, Verdict},
    server::{Seen, number, text},
};

/// How many replicas outlive the loss of one.
pub(super) const ENOUGH: i64 = 2;

/// Judges the two Deployments.
pub(super) fn judge(namespace: &str, webhook: &Seen, controller: &Seen) -> Verdict {
    let mut findings = Findings::default();
    let mut fine = Vec::new();
    for (name, seen, without) in [
        (WEBHOOK, webhook, "nobody answers the API server"),
        (CONTROLLER, controller, "nobody follows policies, registers the webhook and renews its certificate"),
    ] {
        match seen {
            Seen::Found(found) => {
                examine(namespace, name, found, without, &mut findings);
                let (available, wanted) = (available(found), replicas(found));
                fine.push(format!("{name} {available}/{wanted}"));
            }
            Seen::Absent => findings.fail(
                format!("there is no Deployment {namespace}/{name}: {without}"),
                "install Kausality, or name its namespace with --namespace",
            ),
            Seen::Hidden(why) => {
                return Verdict::Skipped(format!("Deployment {name} cannot be read: {why}"));
            }
        }
    }
    findings.or_fine(format!("available: {}", fine.join(", ")))
}

/// How many Pods of the webhook take requests, if that is known.
pub(super) fn ready(webhook: &Seen) -> Option<i64> {
    webhook.found().map(|found| number(found, "/status/readyReplicas").unwrap_or(0))
}

/// How many replicas of a Deployment there should be, if that is known.
pub(super) fn wanted(deployment: &Seen) -> Option<i64> {
    deployment.found().map(replicas)
}

/// How to see why replicas do not start.
pub(super) fn look(namespace: &str, name: &str) -> String {
    format!("kubectl -n {namespace} describe deployment {name}; kubectl -n {namespace} get pods")
}

fn replicas(deployment: &Value) -> i64 {
    number(deployment, "/spec/replicas").unwrap_or(1)
}

fn available(deployment: &Value) -> i64 {
    number(deployment, "/status/availableReplicas").unwrap_or(0)
}

fn examine(namespace: &str, name: &str, deployment: &Value, without: &str, findings: &mut Findings) {
    let (wanted, available) = (replicas(deployment), available(deployment));
    if wanted == 0 {
        findings.fail(
            format!("{name} is scaled to 0: {without}"),
            format!("kubectl -n {namespace} scale deployment {name} --replicas={ENOUGH}"),
        );
        return;
    }
    if available < wanted {
        let severity = if available == 0 { Severity::Failed } else { Severity::Warning };
        let why = unavailable(deployment);
        findings.note(
            severity,
            format!("{available} of {wanted} replicas of {name} are available{why}"),
            look(namespace, name),
        );
    }
    if wanted < ENOUGH {
        findings.warn(
            format!("{name} has one replica: while it restarts, {without}"),
            format!("kubectl -n {namespace} scale deployment {name} --replicas={ENOUGH}"),
        );
    }
}

/// What the Deployment itself says about it.
fn unavailable(deployment: &Value) -> String {
    let conditions = deployment["status"]["conditions"].as_array();
    let told = conditions.into_iter().flatten().filter(|condition| {
        let kind = text(condition, "/type");
        (kind == "ReplicaFailure" && condition["status"] == "True")
            || (kind == "Progressing" && condition["status"] == "False")
    });
    told.map(|condition| format!("; {}", text(condition, "/message"))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::doctor::finding::Outcome;

    fn of(wanted: i64, available: i64) -> Seen {
        Seen::Found(json!({"spec": {"replicas": wanted},
            "status": {"availableReplicas": available, "readyReplicas": available}}))
    }

    #[test]
    fn replicas_count() {
        for (webhook, controller, outcome, said) in [
            (of(2, 2), of(2, 2), Outcome::Ok, "kausality-webhook 2/2, kausality-controller 2/2"),
            (of(3, 2), of(2, 2), Outcome::Warning, "2 of 3 replicas of kausality-webhook"),
            (of(2, 0), of(2, 2), Outcome::Failed, "0 of 2 replicas of kausality-webhook"),
            (of(2, 2), of(1, 1), Outcome::Warning, "kausality-controller has one replica"),
            (of(2, 2), of(0, 0), Outcome::Failed, "scaled to 0"),
            (Seen::Absent, of(2, 2), Outcome::Failed, "no Deployment there/kausality-webhook"),
            (of(2, 2), Seen::Absent, Outcome::Failed, "no Deployment there/kausality-controller"),
            (Seen::Absent, Seen::Absent, Outcome::Failed, "2 things are wrong"),
            (Seen::Hidden("no".to_owned()), of(2, 2), Outcome::Skipped, "cannot be read: no"),
        ] {
            let verdict = judge("there", &webhook, &controller);
            assert_eq!(verdict.outcome(), outcome, "{verdict:?}");
            assert!(verdict.summary().contains(said), "{said}: {verdict:?}");
        }
        assert_eq!(ready(&of(3, 2)), Some(2));
        assert_eq!(ready(&Seen::Found(json!({}))), Some(0));
        assert_eq!(ready(&Seen::Absent), None);
    }

    #[test]
    fn a_deployment_says_why_itself() {
        let quota = json!([{"type": "ReplicaFailure", "status": "True", "message": "quota exceeded"}]);
        let found = Seen::Found(json!({"spec": {"replicas": 2}, "status": {"conditions": quota}}));
        let said = judge("there", &found, &of(2, 2)).summary();
        assert!(said.contains("quota exceeded"), "{said}");
    }
}
