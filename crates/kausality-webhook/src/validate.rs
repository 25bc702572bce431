//! Policies, as they are written.

use axum::{
    body::Bytes,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use kausality_core::written::Written;
use serde_json::json;

/// Answers a review of a policy. `room` is the memory that there is for one.
pub(crate) fn answer(review: &Bytes, room: impl Fn(&str) -> usize) -> Response {
    let Ok(written) = Written::parse(review) else {
        return (StatusCode::BAD_REQUEST, "kausality: not an AdmissionReview\n").into_response();
    };
    let mut response = json!({"uid": written.uid, "allowed": true});
    if let Some(fault) = written.fault_within(room) {
        let message = format!("the policy is refused: {fault}");
        response["allowed"] = false.into();
        response["status"] = json!({"code": 422, "reason": "Invalid", "message": message});
    }
    let review =
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response});
    let content = HeaderValue::from_static("application/json");
    ([(header::CONTENT_TYPE, content)], review.to_string()).into_response()
}
