//! Policies, as they are written: those whose meaning cannot be understood are refused.

use axum::{
    body::Bytes,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use kausality_api::{exception::ApprovalPolicy, policy::Kausality};
use kausality_core::exceptions;
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
}

/// Answers a review of a policy.
pub(crate) fn answer(review: &Bytes) -> Response {
    let Ok(Review { request }) = serde_json::from_slice(review) else {
        return (StatusCode::BAD_REQUEST, "kausality: not an AdmissionReview\n").into_response();
    };
    let mut response = json!({"uid": request.uid, "allowed": true});
    if let Some(fault) = fault(request.object) {
        let message = format!("the policy cannot be understood: {fault}");
        response["allowed"] = false.into();
        response["status"] = json!({"code": 422, "reason": "Invalid", "message": message});
    }
    let review =
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
    let content = HeaderValue::from_static("application/json");
    ([(header::CONTENT_TYPE, content)], review.to_string()).into_response()
}

/// What is wrong with a policy; nothing, where one is deleted.
fn fault(object: Value) -> Option<String> {
    if object.is_null() {
        return None;
    }
    if object["kind"] == "Kausality" {
        return match serde_json::from_value::<Kausality>(object) {
            Ok(policy) => policy.fault(),
            Err(error) => Some(error.to_string()),
        };
    }
    match serde_json::from_value::<ApprovalPolicy>(object).map(|policy| exceptions::check(&policy)) {
        Ok(checked) => {
            let faults = checked.err()?;
            Some(faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
        }
        Err(error) => Some(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(spec: Value, expected: Option<&str>) {
        let policy = json!({"apiVersion": "kausality.io/v1alpha1", "kind": "Kausality",
            "metadata": {"name": "p", "managedFields": []}, "spec": spec, "status": {"conditions": []}});
        let found = fault(policy);
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
        assert_eq!(fault(Value::Null), None);
    }

    #[test]
    fn a_fault_of_an_approval_policy_is_shown_where_it_is() {
        let policy = |rule: Value| {
            json!({"apiVersion": "kausality.io/v1alpha1", "kind": "ClusterApprovalPolicy",
                "metadata": {"name": "p", "uid": "u"}, "spec": {"rules": [rule]}, "status": {}})
        };
        let mut rule =
            json!({"apiVersion": "v1", "kind": "Pod", "subjects": [{"kind": "User", "name": "a"}]});
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
}
