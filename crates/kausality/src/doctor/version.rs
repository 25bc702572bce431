//! Whether the API server can do what Kausality needs.

use serde_json::Value;

use super::{
    finding::{Findings, Verdict},
    server::text,
};

/// The first minor version in which `matchConditions` are stable.
const OLDEST: u32 = 30;

/// The minor version that all tests run with.
const TESTED: u32 = 35;

/// Judges what `/version` says.
pub(super) fn judge(version: &Value) -> Verdict {
    let shown = text(version, "/gitVersion");
    let mut findings = Findings::default();
    match numbers(version) {
        None => findings.warn(
            format!("the API server calls its version {shown:?}, which says nothing"),
            format!("see that it is Kubernetes 1.{OLDEST} or later"),
        ),
        Some((major, minor)) if (major, minor) < (1, OLDEST) => findings.fail(
            format!(
                "Kubernetes {shown} is too old: match conditions of webhooks are stable since 1.{OLDEST}"
            ),
            format!("upgrade the cluster to 1.{OLDEST} or later; Kausality is tested with 1.{TESTED}"),
        ),
        Some(_) => {}
    }
    findings
        .or_fine(format!("Kubernetes {shown} answers (1.{OLDEST} or later is needed, 1.{TESTED} is tested)"))
}

/// Major and minor. Vendors write `30+`.
fn numbers(version: &Value) -> Option<(u32, u32)> {
    let number = |pointer: &str| {
        let text = text(version, pointer);
        let end = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
        text.get(..end)?.parse().ok()
    };
    Some((number("/major")?, number("/minor")?))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::doctor::finding::Outcome;

    #[test]
    fn versions_are_old_enough_or_not() {
        for (major, minor, outcome) in [
            ("1", "35", Outcome::Ok),
            ("1", "30", Outcome::Ok),
            ("1", "30+", Outcome::Ok),
            ("1", "41", Outcome::Ok),
            ("2", "0", Outcome::Ok),
            ("1", "29", Outcome::Failed),
            ("1", "29+", Outcome::Failed),
            ("0", "99", Outcome::Failed),
            ("", "", Outcome::Warning),
            ("one", "30", Outcome::Warning),
        ] {
            let version =
                json!({"major": major, "minor": minor, "gitVersion": format!("v{major}.{minor}.1")});
            assert_eq!(judge(&version).outcome(), outcome, "{version}");
        }
        assert_eq!(judge(&json!("not at all")).outcome(), Outcome::Warning);
    }
}
