//! APIs that another server would serve: APIServices that name a service.
//!
//! There is no network behind the sandbox, so that none of these servers can be reached: their versions are in discovery,
//! and whoever asks for more is told that the service is unavailable, as by a real aggregator.

use http::Response;
use serde_json::{Value, json};

use crate::answer::{self, Body};

/// The group and version that an APIService leaves to another server.
pub(crate) fn elsewhere(service: &Value) -> Option<(String, String)> {
    let spec = service.get("spec").filter(|spec| spec["service"].is_object())?;
    let text = |key: &str| spec[key].as_str().unwrap_or_default().to_owned();
    Some((text("group"), text("version")))
}

/// Fills in whether an APIService is available.
pub(crate) fn judge(service: &mut Value, now: &str) {
    let reference = &service["spec"]["service"];
    let (status, reason, message) = if reference.is_object() {
        let text = |key: &str| reference[key].as_str().unwrap_or_default();
        let message =
            format!("service/{} in {:?}: the sandbox has no network", text("name"), text("namespace"));
        ("False", "ServiceAccessError", message)
    } else {
        ("True", "Local", "Local APIServices are always available".to_owned())
    };
    let before = service.pointer("/status/conditions/0").filter(|before| before["status"] == status);
    let since = before.map_or_else(|| json!(now), |before| before["lastTransitionTime"].clone());
    service["status"] = json!({"conditions": [{
        "type": "Available", "status": status, "reason": reason, "message": message, "lastTransitionTime": since,
    }]});
}

/// The answer for another server that cannot be reached.
pub(crate) fn unavailable() -> Response<Body> {
    answer::plain(503, "service unavailable\n")
}
