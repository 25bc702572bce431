//! Conflicts as the API server reports them: which field, and who holds it.

use std::collections::BTreeMap;

use kausality_fields::{FieldSet, Path, Scalar, Step, managed::Operation};
use kube::core::Status;

use super::owner::Owner;

/// Who holds which field with another value; `None` if the API server had another reason to refuse.
///
/// The API server writes paths so that a key with dots cannot be told from two fields. They are therefore looked up
/// among `known`: what anybody owns, and what is applied.
pub(super) fn holders(status: &Status, known: &FieldSet) -> Option<BTreeMap<Path, Vec<Owner>>> {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    let causes: Vec<_> = causes.filter(|cause| cause.reason == "FieldManagerConflict").collect();
    if causes.is_empty() {
        return None;
    }
    let known: BTreeMap<String, Path> = known.iter().map(|path| (written(&path), path)).collect();
    let mut holders: BTreeMap<Path, Vec<Owner>> = BTreeMap::new();
    for cause in causes {
        let path = known.get(&cause.field).cloned().unwrap_or_else(|| split(&cause.field));
        holders.entry(path).or_default().push(holder(&cause.message));
    }
    holders.values_mut().for_each(|owners| owners.sort());
    Some(holders)
}

/// A path as the API server writes it in conflicts.
pub(super) fn written(path: &Path) -> String {
    let scalar = |scalar: &Scalar| match scalar {
        Scalar::Text(text) => serde_json::Value::from(text.as_str()).to_string(),
        other => other.to_string(),
    };
    let step = |step: &Step| match step {
        Step::Field(name) => format!(".{name}"),
        Step::Key(parts) => {
            let parts: Vec<_> =
                parts.iter().map(|(name, value)| format!("{name}={}", scalar(value))).collect();
            format!("[{}]", parts.join(","))
        }
        Step::Value(value) => format!("[={}]", scalar(value)),
        Step::Index(index) => format!("[{index}]"),
    };
    path.steps().iter().map(step).collect()
}

/// The fields of a path that nobody is known to own: it is of another version of the object.
fn split(text: &str) -> Path {
    text.split('.').filter(|name| !name.is_empty()).map(|name| Step::Field(name.to_owned())).collect()
}

/// `conflict with "hpa" with subresource "scale" using apps/v1 at 2026-01-01T00:00:00Z`. What somebody applied names
/// no version.
fn holder(message: &str) -> Owner {
    let text = message.strip_prefix("conflict with ").unwrap_or(message);
    let (manager, rest) = unquoted(text).unwrap_or((text.to_owned(), ""));
    let part = rest.strip_prefix(" with subresource ").and_then(unquoted);
    let (subresource, rest) = part.unwrap_or((String::new(), rest));
    let operation = if rest.starts_with(" using ") { Operation::Update } else { Operation::Apply };
    Owner { manager, operation, subresource }
}

fn unquoted(text: &str) -> Option<(String, &str)> {
    let mut strings = serde_json::Deserializer::from_str(text).into_iter::<String>();
    let string = strings.next()?.ok()?;
    Some((string, text.get(strings.byte_offset()..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(causes: &[(&str, &str)]) -> Status {
        let causes: Vec<_> = causes
            .iter()
            .map(|(field, message)| {
                serde_json::json!({"reason": "FieldManagerConflict", "field": field, "message": message})
            })
            .collect();
        serde_json::from_value(
            serde_json::json!({"code": 409, "reason": "Conflict", "details": {"causes": causes}}),
        )
        .unwrap()
    }

    #[test]
    fn fields_and_holders_are_found() {
        let known = r#"{"f:metadata":{"f:labels":{"f:app.kubernetes.io/name":{}}},
            "f:spec":{"f:ports":{"k:{\"port\":53,\"protocol\":\"UDP\"}":{"f:nodePort":{}}},
                "f:set":{"v:\"a\"":{}}}}"#;
        let known = FieldSet::from_fields_v1(known).unwrap();
        let status = status(&[
            (".metadata.labels.app.kubernetes.io/name", r#"conflict with "helm""#),
            (r#".spec.ports[port=53,protocol="UDP"].nodePort"#, r#"conflict with "kubectl-edit" using v1"#),
            (
                r#".spec.ports[port=53,protocol="UDP"].nodePort"#,
                r#"conflict with "a \"b\"" with subresource "scale" using v1 at 2026-01-01T00:00:00Z"#,
            ),
            (r#".spec.set[="a"]"#, r#"conflict with "x" with subresource "status""#),
            (".spec.elsewhere", r#"conflict with "y""#),
        ]);
        let holders = holders(&status, &known).unwrap();
        let shown: Vec<String> = holders
            .iter()
            .map(|(path, with)| {
                let with: Vec<String> = with.iter().map(ToString::to_string).collect();
                format!("{path}: {}", with.join(", "))
            })
            .collect();
        insta::assert_snapshot!(shown.join("\n"), @r#"
        metadata.labels["app.kubernetes.io/name"]: helm
        spec.elsewhere: y
        spec.ports[port=53,protocol=UDP].nodePort: a "b" (update scale), kubectl-edit (update)
        spec.set["a"]: x (status)
        "#);
    }

    #[test]
    fn other_refusals_are_no_conflicts() {
        assert_eq!(holders(&status(&[]), &FieldSet::new()), None);
        assert_eq!(holders(&Status::failure("busy", "Conflict"), &FieldSet::new()), None);
    }
}
