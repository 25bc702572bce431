use kausality_core::{class::Class, patch::Patch};
use serde_json::Value;

use super::*;

/// A decision that allows and says nothing, to be filled in.
fn silent() -> Decision {
    Decision::allow(Class::Ignored)
}

fn denied(code: u16, reason: &'static str, message: &str) -> Decision {
    let message = message.to_owned();
    Decision {
        verdict: Verdict::Deny(Denial { code, reason, message }),
        audit: BTreeMap::from([("decision", "deny".to_owned()), ("resolution", "frozen".to_owned())]),
        ..silent()
    }
}

/// A decision that sets one annotation and removes another.
fn patched() -> Decision {
    let mut patch = Patch::default();
    patch.annotations.insert("kausality.io/trace".to_owned(), Some(r#"[{"user":"alice"}]"#.to_owned()));
    patch.annotations.insert("kausality.io/freeze".to_owned(), None);
    let audit = BTreeMap::from([("cause", "Origin".to_owned()), ("decision", "allow".to_owned())]);
    Decision { patch, audit, ..silent() }
}

/// The answer, and below it the patch as the API server will read it.
fn answer(decision: &Decision) -> String {
    let bytes = encode("705ab4f5-6393-11e8-b7cc-42010a800002", decision).unwrap();
    let answer: Value = serde_json::from_slice(&bytes).unwrap();
    let mut text = serde_json::to_string_pretty(&answer).unwrap();
    if let Some(patch) = answer["response"]["patch"].as_str() {
        let patch: Value = serde_json::from_slice(&BASE64_STANDARD.decode(patch).unwrap()).unwrap();
        text += &format!("\npatch: {}", serde_json::to_string_pretty(&patch).unwrap());
    }
    text
}

#[test]
fn allow() {
    insta::assert_snapshot!(answer(&silent()));
}

#[test]
fn allow_with_patch() {
    insta::assert_snapshot!(answer(&patched()));
}

#[test]
fn warn() {
    let warning = "kausality: drift 1f2e: v1 ConfigMap shop/a changes although nobody changed v1 Pod shop/b";
    insta::assert_snapshot!(answer(&Decision {
        verdict: Verdict::Warn,
        warnings: vec![warning.to_owned()],
        ..patched()
    }));
}

#[test]
fn deny_403() {
    insta::assert_snapshot!(answer(&denied(403, "Forbidden", "kausality: Pod shop/b is frozen by \"bob\"")));
}

#[test]
fn deny_422() {
    insta::assert_snapshot!(answer(&denied(422, "Invalid", "kausality: the owner does not exist any more")));
}

#[test]
fn deny_500() {
    insta::assert_snapshot!(answer(&denied(500, "InternalError", "kausality: the owner could not be read")));
}

#[test]
fn a_denial_carries_no_patch() {
    let verdict = denied(403, "Forbidden", "no").verdict;
    let answer = answer(&Decision { verdict, ..patched() });
    assert!(!answer.contains("patch"), "{answer}");
}

#[test]
fn warnings_are_short_and_without_control_characters() {
    assert_eq!(warning("as it is: déjà vu"), "as it is: déjà vu");
    assert_eq!(warning("two\nlines\tand\u{7f}"), "two lines and ");
    assert_eq!(warning(&"é".repeat(256)), "é".repeat(256));
    assert_eq!(warning(&"é".repeat(257)), format!("{}…", "é".repeat(255)));
}
