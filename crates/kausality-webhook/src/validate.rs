//! Policies, as they are written: those whose meaning cannot be understood are refused.

use axum::{
    body::Bytes,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use kausality_api::{exception::ApprovalPolicy, policy::Kausality};
use kausality_core::exceptions::{self, Compiled};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
struct Review {
    request: Request,
}

#[derive(Deserialize)]
struct Request {
    uid: String,
    #[serde(default)]
    object: Value,
    #[serde(default, rename = "userInfo")]
    user: User,
}

/// Who writes a policy.
#[derive(Default, Deserialize)]
struct User {
    #[serde(default)]
    username: String,
    #[serde(default)]
    groups: Vec<String>,
}

/// Answers a review of a policy.
pub(crate) fn answer(review: &Bytes) -> Response {
    let Ok(Review { request }) = serde_json::from_slice(review) else {
        return (StatusCode::BAD_REQUEST, "kausality: not an AdmissionReview\n").into_response();
    };
    let mut response = json!({"uid": request.uid, "allowed": true});
    if let Some(fault) = fault(request.object, &request.user) {
        let message = format!("the policy is refused: {fault}");
        response["allowed"] = false.into();
        response["status"] = json!({"code": 422, "reason": "Invalid", "message": message});
    }
    let review =
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
    let content = HeaderValue::from_static("application/json");
    ([(header::CONTENT_TYPE, content)], review.to_string()).into_response()
}

/// What is wrong with a policy; nothing, where one is deleted.
fn fault(object: Value, user: &User) -> Option<String> {
    if object.is_null() {
        return None;
    }
    if object["kind"] == "Kausality" {
        return match serde_json::from_value::<Kausality>(object) {
            Ok(policy) => policy.fault(),
            Err(error) => Some(error.to_string()),
        };
    }
    match serde_json::from_value::<ApprovalPolicy>(object).map(|policy| exceptions::compile(&policy)) {
        Ok(Ok(policy)) => vouches_for_itself(&policy, user),
        Ok(Err(faults)) => Some(faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")),
        Err(error) => Some(error.to_string()),
    }
}

/// A controller must not permit itself anything, by a policy as little as by an approval. People may speak of everybody.
fn vouches_for_itself(policy: &Compiled, User { username, groups }: &User) -> Option<String> {
    const CONTROLLERS: &str = "system:kube-controller-manager";
    if !username.starts_with("system:serviceaccount:") && username != CONTROLLERS {
        return None;
    }
    let rule = policy.permits(username, groups)?;
    Some(format!(
        "spec.rules[{rule}].subjects: {username} cannot write a rule that lets its own changes pass"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(spec: Value, expected: Option<&str>) {
        let policy = json!({"apiVersion": "kausality.io/v1alpha1", "kind": "Kausality",
            "metadata": {"name": "p", "managedFields": []}, "spec": spec, "status": {"conditions": []}});
        let found = fault(policy, &User::default());
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
        assert_eq!(fault(Value::Null, &User::default()), None);
    }

    #[test]
    fn a_fault_of_an_approval_policy_is_shown_where_it_is() {
        let policy = |rule: Value| {
            json!({"apiVersion": "kausality.io/v1alpha1", "kind": "ClusterApprovalPolicy",
                "metadata": {"name": "p", "uid": "u"}, "spec": {"rules": [rule]}, "status": {}})
        };
        let mut rule =
            json!({"apiVersion": "v1", "kind": "Pod", "subjects": [{"kind": "User", "name": "a"}]});
        let fault = |policy: Value| super::fault(policy, &User::default());
        assert_eq!(fault(policy(rule.clone())), None);
        rule["match"] = json!({"cel": "object.spec.replicas > 'x'.size(", "regexp": "["});
        let found = fault(policy(rule.clone())).unwrap();
        assert!(
            found.contains("spec.rules[0].match.cel: ") && found.contains("spec.rules[0].match.regexp: "),
            "{found}"
        );
        rule["matches"] = json!({});
        assert!(fault(policy(rule)).unwrap().contains("matches"));
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
        let eks = by("system:serviceaccount:infra:eks");
        let found = fault(policy("allow", own.clone()), &eks).unwrap();
        assert!(
            found.starts_with("spec.rules[0].subjects: system:serviceaccount:infra:eks cannot"),
            "{found}"
        );
        assert!(fault(policy("allow", everybody.clone()), &eks).is_some());
        assert!(fault(policy("allow", everybody.clone()), &by("system:kube-controller-manager")).is_some());
        assert_eq!(fault(policy("deny", own.clone()), &eks), None);
        assert_eq!(fault(policy("allow", own), &by("system:serviceaccount:argocd:argocd")), None);
        assert_eq!(fault(policy("allow", everybody), &by("alice")), None);
    }
}
