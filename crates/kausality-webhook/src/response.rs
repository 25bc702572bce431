//! The wire format: a decision as an `AdmissionReview` of `admission.k8s.io/v1`.

use std::{borrow::Cow, collections::BTreeMap};

use base64::{Engine, prelude::BASE64_STANDARD};
use kausality_api::text::shorten;
use kausality_core::{
    Decision,
    decision::{Denial, Verdict},
};
use serde::Serialize;

/// Characters of one warning. The API server cuts at this when a request collects many, and clients may show
/// 120 only, so whoever writes one says what matters first.
const MAX_WARNING: usize = 256;

/// The answer to the request `uid`, as JSON.
///
/// # Errors
/// None that is known: every part serialises. It is passed on so that nothing here can panic.
pub fn encode(uid: &str, decision: &Decision) -> Result<Vec<u8>, serde_json::Error> {
    let status = match &decision.verdict {
        Verdict::Deny(denial) => Some(Status::from(denial)),
        Verdict::Allow | Verdict::Warn => None,
    };
    // The API server ignores the patch of a denial.
    let patch = match status {
        None if !decision.patch.is_empty() => {
            Some(BASE64_STANDARD.encode(serde_json::to_vec(&decision.patch.operations())?))
        }
        _ => None,
    };
    serde_json::to_vec(&Review {
        api_version: "admission.k8s.io/v1",
        kind: "AdmissionReview",
        response: Response {
            uid,
            allowed: status.is_none(),
            status,
            patch_type: patch.is_some().then_some("JSONPatch"),
            patch,
            warnings: decision.warnings.iter().map(|text| warning(text)).collect(),
            audit_annotations: &decision.audit,
        },
    })
}

/// A warning as the API server takes it: it drops those with control characters.
fn warning(text: &str) -> Cow<'_, str> {
    if text.len() <= MAX_WARNING && !text.contains(char::is_control) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(shorten(&text.replace(char::is_control, " "), MAX_WARNING))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Review<'a> {
    api_version: &'static str,
    kind: &'static str,
    response: Response<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Response<'a> {
    uid: &'a str,
    allowed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<Status<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patch: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<Cow<'a, str>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    audit_annotations: &'a BTreeMap<&'static str, String>,
}

/// A `metav1.Status`, as far as a denial fills it in.
#[derive(Serialize)]
struct Status<'a> {
    code: u16,
    reason: &'static str,
    message: &'a str,
}

impl<'a> From<&'a Denial> for Status<'a> {
    fn from(denial: &'a Denial) -> Self {
        Self { code: denial.code, reason: denial.reason, message: &denial.message }
    }
}

#[cfg(test)]
mod tests;
