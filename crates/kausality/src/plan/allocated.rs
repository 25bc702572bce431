//! Fields in which a dry-run answers with a placeholder.
//!
//! What differs between two dry-runs is found without knowing any kind. The API server's own allocators do not differ:
//! in a dry-run they take nothing, and always answer with the same address and ports (`10.0.0.0`, `32769`). These are
//! all there are, so they are named.

use kausality_fields::{Path, Step};
use serde_json::Value;

/// Whether the API server allocates this field of an object when nobody sets it.
pub(super) fn is_allocated(object: &Value, path: &Path) -> bool {
    if object["apiVersion"] != "v1" || object["kind"] != "Service" {
        return false;
    }
    let names: Vec<&str> = path
        .steps()
        .iter()
        .map(|step| match step {
            Step::Field(name) => name.as_str(),
            _ => "[]",
        })
        .collect();
    matches!(
        names.as_slice(),
        ["spec", "clusterIP" | "clusterIPs" | "healthCheckNodePort"] | ["spec", "ports", "[]", "nodePort"]
    )
}
