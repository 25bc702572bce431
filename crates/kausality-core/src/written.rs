//! Policies, as they are written: those whose meaning cannot be understood are refused, and those by which a controller
//! would permit itself something.

use kausality_api::{exception::ApprovalPolicy, policy::Kausality};
use serde::Deserialize;
use serde_json::Value;

use crate::{exceptions, policy};

/// The one user that all controllers are, where they have no service accounts of their own.
const CONTROLLERS: &str = "system:kube-controller-manager";

/// Who delete whatever is in a namespace that goes, or has lost its owner.
const COLLECTORS: [&str; 3] = [
    "system:serviceaccount:kube-system:namespace-controller",
    "system:serviceaccount:kube-system:generic-garbage-collector",
    CONTROLLERS,
];

#[derive(Deserialize)]
struct Review {
    request: Written,
}

/// A policy that somebody writes or deletes.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Written {
    /// Names the request.
    pub uid: String,
    #[serde(default)]
    object: Value,
    #[serde(default)]
    old_object: Value,
    #[serde(default)]
    user_info: User,
}

/// Who writes it.
#[derive(Debug, Default, Deserialize)]
struct User {
    #[serde(default)]
    username: String,
    #[serde(default)]
    groups: Vec<String>,
}

impl Written {
    /// Reads an AdmissionReview.
    ///
    /// # Errors
    /// If it is none.
    pub fn parse(review: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice::<Review>(review).map(|review| review.request)
    }

    /// Why it is refused.
    #[must_use]
    pub fn fault(&self) -> Option<String> {
        self.fault_within(|_| usize::MAX)
    }

    /// Why it is refused. `room` is the memory that there is for the expressions and patterns of an approval policy, by its
    /// reference.
    #[must_use]
    pub fn fault_within(&self, room: impl Fn(&str) -> usize) -> Option<String> {
        // What is stored already is not looked at again: labels and finalizers must still come and go.
        let is_new = !self.object.is_null() && self.object["spec"] != self.old_object["spec"];
        if self.object["kind"] == "Kausality" || self.old_object["kind"] == "Kausality" {
            return match Kausality::deserialize(&self.object) {
                _ if !is_new => None,
                Ok(policy) => policy::fault(&policy),
                Err(error) => Some(error.to_string()),
            };
        }
        if is_new {
            let compiled = exceptions::read(&self.object).and_then(|policy| exceptions::compile(&policy));
            match compiled {
                Err(faults) => return Some(exceptions::told(&faults)),
                Ok(compiled) if compiled.size() > room(compiled.reference()) => {
                    let left = room(compiled.reference()) >> 10;
                    return Some(format!(
                        "spec.rules: expressions and patterns take {} KiB of memory, compiled, and other policies leave {left} \
                         KiB: simplify or delete some",
                        compiled.size() >> 10
                    ));
                }
                Ok(_) => {}
            }
        }
        if !self.is_bound() {
            return None;
        }
        // What cannot be understood as it is stored permits nothing.
        let [old, new] =
            [&self.old_object, &self.object].map(|policy| ApprovalPolicy::deserialize(policy).ok());
        let permits = new.as_ref().and_then(|new| self.vouches_for_itself(old.as_ref(), new));
        permits.or_else(|| self.frees_itself(old.as_ref()?, new.as_ref()))
    }

    /// People may speak of everybody; a controller must not permit itself anything, by a policy as little as by an approval.
    fn is_bound(&self) -> bool {
        let name = self.user_info.username.as_str();
        name.starts_with("system:serviceaccount:") || name == CONTROLLERS
    }

    fn vouches_for_itself(&self, old: Option<&ApprovalPolicy>, new: &ApprovalPolicy) -> Option<String> {
        let User { username, groups } = &self.user_info;
        let rule = exceptions::permitted(old, new, username, groups)?;
        Some(format!(
            "spec.rules[{rule}].subjects: {username} cannot write a rule that lets its own changes pass: a person can"
        ))
    }

    fn frees_itself(&self, old: &ApprovalPolicy, new: Option<&ApprovalPolicy>) -> Option<String> {
        let User { username, groups } = &self.user_info;
        if new.is_none() && COLLECTORS.contains(&username.as_str()) {
            return None;
        }
        // With an owner, others would delete it.
        let owners =
            |object: &Value| object.pointer("/metadata/ownerReferences").cloned().unwrap_or_default();
        let new = new.filter(|_| owners(&self.old_object) == owners(&self.object));
        let rule = exceptions::lifted(old, new, username, groups)?;
        Some(format!(
            "spec.rules[{rule}]: {username} cannot take away a rule that denies its own changes: a person can"
        ))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fault(object: Value, user_info: User) -> Option<String> {
        Written { object, user_info, ..Written::default() }.fault()
    }

    fn check(spec: Value, expected: Option<&str>) {
        let policy = json!({"apiVersion": "kausality.io/v1alpha1", "kind": "Kausality",
            "metadata": {"name": "p", "managedFields": []}, "spec": spec, "status": {"conditions": []}});
        let found = fault(policy, User::default());
        match (&found, expected) {
            (None, None) => {}
            (Some(found), Some(expected)) if found.contains(expected) => {}
            _ => panic!("{found:?}, and not {expected:?}"),
        }
    }

    #[test]
    fn a_fault_is_named_by_its_field() {
        let rules = json!([{"apiGroups": ["apps"], "resources": ["deployments"]}]);
        check(json!({"resources": rules, "mode": "log"}), None);
        check(json!({"resources": [], "mode": "log"}), Some("spec.resources"));
        check(json!({"resources": rules}), Some("mode"));
        check(json!({"resources": rules, "mode": "log", "modes": []}), Some("modes"));
        check(
            json!({"resources": [{"apiGroups": ["*"], "resources": ["*"]}], "mode": "log"}),
            Some("apiGroups"),
        );
        let status = |status: Value| json!({"resources": rules, "mode": "log", "status": status});
        check(status(json!({"settled": {"cel": "object.status.done == true"}})), None);
        check(status(json!({"settled": {"cel": "object.status."}})), Some("spec.status.settled.cel: 1:15"));
        check(
            status(json!({"initialized": {"cel": "parent.status.done == true"}})),
            Some("spec.status.initialized.cel: 1:1"),
        );
        check(status(json!({"settled": {"phases": []}})), Some("spec.status.settled must have conditions"));
        let redact = |field: &str| json!({"resources": rules, "mode": "log", "redact": ["spec.a", field]});
        check(redact("spec.users[*].pin"), None);
        check(redact("spec..pin"), Some("spec.redact[1]: a name is missing at character 5"));
        check(redact(""), Some("spec.redact[1]: must not be empty"));
        let selector = |operator: &str, values: &[&str]| {
            json!({"resources": rules, "mode": "log", "objectSelector": {"matchExpressions": [
                {"key": "team", "operator": operator, "values": values}]}})
        };
        check(selector("In", &["a"]), None);
        check(selector("In", &[]), Some("spec.objectSelector.matchExpressions[0].values"));
        check(selector("Exists", &["a"]), Some("spec.objectSelector.matchExpressions[0].values"));
        check(selector("in", &["a"]), Some("in"));
        check(
            json!({"resources": rules, "mode": "log", "namespaces": {"selector": {"matchLabels": {"a b": "c"}}}}),
            Some("spec.namespaces.selector.matchLabels"),
        );
        assert_eq!(fault(Value::Null, User::default()), None);
    }

    #[test]
    fn a_fault_of_an_approval_policy_is_shown_where_it_is() {
        let policy = |rule: Value| {
            json!({"apiVersion": "kausality.io/v1alpha1", "kind": "ClusterApprovalPolicy",
                "metadata": {"name": "p", "uid": "u"}, "spec": {"rules": [rule]}, "status": {}})
        };
        let mut rule =
            json!({"apiVersion": "v1", "kind": "Pod", "subjects": [{"kind": "User", "name": "a"}]});
        let fault = |policy: Value| fault(policy, User::default());
        assert_eq!(fault(policy(rule.clone())), None);
        rule["match"] = json!({"cel": "object.spec.replicas > 'x'.size(", "regexp": "["});
        let found = fault(policy(rule.clone())).unwrap();
        assert!(
            found.contains("spec.rules[0].match.cel: ") && found.contains("spec.rules[0].match.regexp: "),
            "{found}"
        );
        rule["matches"] = json!({});
        let found = fault(policy(rule.clone())).unwrap();
        assert!(found.starts_with("spec.rules[0]: unknown field `matches`"), "{found}");

        let stored = policy(rule.clone());
        let mut labelled = stored.clone();
        labelled["metadata"]["labels"] = json!({"team": "a"});
        let update =
            |object: Value| Written { object, old_object: stored.clone(), ..Written::default() }.fault();
        assert_eq!(update(labelled), None, "it was stored before");
        rule["kind"] = "Service".into();
        assert!(update(policy(rule)).is_some());
    }

    #[test]
    fn an_approval_policy_is_refused_that_does_not_fit_beside_the_others() {
        let policy = json!({"apiVersion": "kausality.io/v1alpha1", "kind": "ApprovalPolicy",
            "metadata": {"name": "p", "namespace": "n"}, "spec": {"rules": [
                {"apiVersion": "v1", "kind": "Pod", "match": {"cel": "object.metadata.name == 'a'"}}]}});
        let written = Written { object: policy, ..Written::default() };
        assert_eq!(written.fault_within(|_| 1 << 20), None);
        let room = |policy: &str| if policy == "ApprovalPolicy/n/p" { 100 } else { usize::MAX };
        let fault = written.fault_within(room).unwrap();
        assert!(fault.contains("other policies leave 0 KiB"), "{fault}");
    }

    #[test]
    fn a_service_account_cannot_let_its_own_changes_pass() {
        let policy = |action: &str, subject: Value| {
            json!({"apiVersion": "kausality.io/v1alpha1", "kind": "ClusterApprovalPolicy", "metadata": {"name": "p"},
                "spec": {"rules": [{"action": action, "apiVersion": "v1", "kind": "Pod", "subjects": [subject]}]}})
        };
        let by = |username: &str| User {
            username: username.to_owned(),
            groups: vec!["system:authenticated".to_owned()],
        };
        let own = json!({"kind": "ServiceAccount", "name": "eks", "namespace": "infra"});
        let everybody = json!({"kind": "Group", "name": "system:authenticated"});
        let eks = || by("system:serviceaccount:infra:eks");
        let found = fault(policy("allow", own.clone()), eks()).unwrap();
        assert!(
            found.starts_with("spec.rules[0].subjects: system:serviceaccount:infra:eks cannot"),
            "{found}"
        );
        assert!(fault(policy("allow", everybody.clone()), eks()).is_some());
        assert!(fault(policy("allow", everybody.clone()), by("system:kube-controller-manager")).is_some());
        assert_eq!(fault(policy("deny", own.clone()), eks()), None);
        assert_eq!(fault(policy("allow", own), by("system:serviceaccount:argocd:argocd")), None);
        assert_eq!(fault(policy("allow", everybody.clone()), by("alice")), None);
        let update = |old: Value, object: Value| {
            Written { object, old_object: old, user_info: eks(), ..Written::default() }.fault()
        };
        let mut labelled = policy("allow", everybody.clone());
        labelled["metadata"]["labels"] = json!({"team": "a"});
        assert_eq!(update(policy("allow", everybody.clone()), labelled), None, "a person wrote the rule");
        assert!(update(policy("deny", everybody.clone()), policy("allow", everybody)).is_some());
    }

    #[test]
    fn a_service_account_cannot_lift_what_is_denied_to_it() {
        let policy = |rule: Value| {
            json!({"apiVersion": "kausality.io/v1alpha1", "kind": "ApprovalPolicy",
                "metadata": {"name": "eks", "namespace": "infra"}, "spec": {"rules": [rule]}})
        };
        let rule = |reason: &str, dry_run: bool| json!({"action": "deny", "apiVersion": "v1", "kind": "Pod", "reason": reason, "dryRun": dry_run});
        let about_others = json!({"action": "deny", "apiVersion": "v1", "kind": "Pod",
            "subjects": [{"kind": "ServiceAccount", "name": "other"}]});
        let fault = |username: &str, old: Value, new: Value| {
            let user_info = User { username: username.to_owned(), groups: Vec::new() };
            Written { object: new, old_object: old, user_info, uid: String::new() }.fault()
        };
        let eks = "system:serviceaccount:infra:eks";
        let refused = Some(format!(
            "spec.rules[0]: {eks} cannot take away a rule that denies its own changes: a person can"
        ));
        let stored = policy(rule("a", false));
        assert_eq!(fault(eks, stored.clone(), Value::Null), refused, "deleted");
        assert_eq!(fault(eks, stored.clone(), policy(rule("a", true))), refused, "only tried");
        assert_eq!(fault(eks, stored.clone(), policy(about_others.clone())), refused, "replaced");
        assert_eq!(fault(eks, stored.clone(), policy(rule("b", false))), None, "for another reason");
        assert_eq!(fault(eks, policy(about_others), Value::Null), None, "about others");
        assert_eq!(fault(eks, policy(rule("a", true)), Value::Null), None, "was only tried");
        assert_eq!(fault("alice", stored.clone(), Value::Null), None, "a person");
        let mut owned = stored.clone();
        owned["metadata"]["ownerReferences"] = json!([{"kind": "ConfigMap", "name": "nowhere", "uid": "u"}]);
        assert_eq!(fault(eks, stored.clone(), owned.clone()), refused, "to be collected");
        assert_eq!(fault(eks, owned.clone(), owned), None, "as it was");
        let everybody = policy(json!({"action": "deny", "apiVersion": "v1", "kind": "Pod",
            "subjects": [{"kind": "User", "name": "*"}]}));
        for collector in COLLECTORS {
            assert_eq!(fault(collector, everybody.clone(), Value::Null), None, "{collector}");
            assert!(fault(collector, everybody.clone(), stored.clone()).is_some(), "{collector}");
        }
    }
}
