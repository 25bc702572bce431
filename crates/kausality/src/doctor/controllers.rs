//! Whether the built-in controllers can be told from each other.
//!
//! kube-controller-manager runs dozens of controllers. Each has a service account of its own only with
//! `--use-service-account-credentials`; without, all of them are one user. Its flags cannot be read through the API, but
//! it leaves traces there: it makes those service accounts as it starts, and Kausality writes down who reconciles what.

use kausality_api::{
    annotation::{CONTROLLERS, Suffix},
    identity::{Hashes, UserHash},
};
use serde_json::Value;

use super::{
    finding::{Findings, Verdict},
    server::{Seen, text},
};

/// All built-in controllers, where they have no service accounts.
const TOGETHER: &str = "system:kube-controller-manager";

/// A service account that is there where they do.
pub(super) const ACCOUNT: &str = "/api/v1/namespaces/kube-system/serviceaccounts/deployment-controller";

/// Objects of a kind that a built-in controller reconciles: enough of them.
pub(super) const RECONCILED: &str = "/apis/apps/v1/deployments?limit=500";

/// Judges the traces: the service account, and the metadata of Deployments.
pub(super) fn judge(account: &Seen, deployments: &Seen<Vec<Value>>) -> Verdict {
    let mut findings = Findings::default();
    let todo = "start kube-controller-manager with --use-service-account-credentials=true: as one user its controllers \
        cannot be told from each other, so that a change by one of them (autoscaling, garbage collection) counts as made by the \
        controller of the parent, and is taken for drift or for its work when it is neither";
    let together = UserHash::of(TOGETHER, "");
    let recorded = |object: &&Value| {
        let (namespace, name) = (text(object, "/metadata/namespace"), text(object, "/metadata/name"));
        let key = Suffix::of("apps", "Deployment", namespace, name).key(CONTROLLERS);
        let pointer = format!("/metadata/annotations/{}", key.replace('/', "~1"));
        Hashes::decode(text(object, &pointer)).contains(together)
    };
    let seen: Vec<&Value> = deployments.found().into_iter().flatten().filter(recorded).collect();
    if let Some(first) = seen.first() {
        let (namespace, name) = (text(first, "/metadata/namespace"), text(first, "/metadata/name"));
        findings.warn(
            format!("{TOGETHER} reconciles {} Deployments, as {namespace}/{name}: built-in controllers share one user", seen.len()),
            todo,
        );
        return findings.or_fine("");
    }
    match account {
        Seen::Found(_) => {}
        Seen::Absent => findings.warn(
            format!("there is no ServiceAccount kube-system/deployment-controller: built-in controllers seem to share the user {TOGETHER}"),
            todo,
        ),
        Seen::Hidden(why) => {
            return Verdict::Skipped(format!("ServiceAccounts of kube-system cannot be read: {why}"));
        }
    }
    findings.or_fine("built-in controllers have service accounts of their own")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::doctor::finding::Outcome;

    #[test]
    fn controllers_have_accounts_or_share_a_user() {
        let deployment = |controllers: &[&str]| {
            let hashes: Vec<String> =
                controllers.iter().map(|user| UserHash::of(user, "").to_string()).collect();
            json!({"metadata": {"namespace": "shop", "name": "web",
                "annotations": {Suffix::of("apps", "Deployment", "shop", "web").key(CONTROLLERS): hashes.join(",")}}})
        };
        let own = "system:serviceaccount:kube-system:deployment-controller";
        let (there, hidden) = (Seen::Found(json!({})), Seen::Hidden("no".to_owned()));
        for (account, deployments, outcome, said) in [
            (there.clone(), vec![deployment(&[own])], Outcome::Ok, "of their own"),
            (there.clone(), vec![json!({})], Outcome::Ok, "of their own"),
            (
                there,
                vec![deployment(&[own, TOGETHER])],
                Outcome::Warning,
                "reconciles 1 Deployments, as shop/web",
            ),
            (Seen::Absent, vec![deployment(&[TOGETHER])], Outcome::Warning, "reconciles 1 Deployments"),
            (Seen::Absent, vec![], Outcome::Warning, "seem to share the user"),
            (hidden, vec![], Outcome::Skipped, "cannot be read: no"),
        ] {
            let verdict = judge(&account, &Seen::Found(deployments));
            assert_eq!(verdict.outcome(), outcome, "{verdict:?}");
            assert!(verdict.summary().contains(said), "{said}: {verdict:?}");
        }
    }
}
