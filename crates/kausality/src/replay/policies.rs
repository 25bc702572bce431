//! Policies from files.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use kausality_api::{API_VERSION, policy::Kausality};
use serde_json::Value;

use crate::manifests::documents;

/// Reads the `Kausality` policies of YAML or JSON files. Other kinds in them are passed over.
///
/// # Errors
/// If a file cannot be read, or holds no policy.
pub(crate) fn load(files: &[PathBuf]) -> Result<Vec<Kausality>> {
    let mut policies = Vec::new();
    for file in files {
        let text =
            std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        policies.extend(parse(file, &text)?);
    }
    Ok(policies)
}

fn parse(file: &Path, text: &str) -> Result<Vec<Kausality>> {
    let mut policies = Vec::new();
    for document in documents(&file.display().to_string(), text)? {
        let says = |field: &str| document.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        if (says("apiVersion").as_str(), says("kind").as_str()) != (API_VERSION, "Kausality") {
            continue;
        }
        let name = document.pointer("/metadata/name").and_then(Value::as_str).unwrap_or("without a name");
        let context = format!("{}: policy {name} is not valid", file.display());
        let policy: Kausality = serde_json::from_value(document).context(context.clone())?;
        if let Some(fault) = policy.fault() {
            bail!("{context}: {fault}");
        }
        policies.push(policy);
    }
    if policies.is_empty() {
        bail!("{} holds no policy (apiVersion: {API_VERSION}, kind: Kausality)", file.display());
    }
    Ok(policies)
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: &str = "apiVersion: kausality.io/v1alpha1\nkind: Kausality\nmetadata: {name: a}\n\
        spec: {mode: enforce, resources: [{apiGroups: [apps], resources: ['*']}]}\n";

    fn parsed(text: &str) -> Result<Vec<Kausality>> {
        parse(Path::new("p.yaml"), text)
    }

    #[test]
    fn several_documents_and_other_kinds() {
        let text = format!("{POLICY}---\napiVersion: v1\nkind: ConfigMap\n---\n{POLICY}");
        assert_eq!(parsed(&text).unwrap().len(), 2);
        let list = serde_json::json!({"kind": "List", "items": parsed(&text).unwrap()}).to_string();
        assert_eq!(parsed(&list).unwrap().len(), 2);
        let json = serde_json::to_string(&parsed(POLICY).unwrap()[0]).unwrap();
        assert_eq!(parsed(&json).unwrap().len(), 1);
    }

    #[test]
    fn faults_say_where() {
        for (text, expected) in [
            ("kind: Other", "p.yaml holds no policy"),
            ("a: [", "p.yaml cannot be read: not YAML"),
            (&POLICY.replace("mode:", "setle: steady, mode:"), "unknown field `setle`"),
            (&POLICY.replace("'*'", "Deployment"), "resource \"Deployment\" is no plural name"),
            (&POLICY.replace("['*']", "[]"), "spec.resources must name"),
            (&POLICY.replace("[apps]", "['*']"), "apiGroups must be named one by one"),
            (&POLICY.replace("enforce", "block"), "p.yaml: policy a is not valid: unknown variant `block`"),
        ] {
            let error = format!("{:#}", parsed(text).unwrap_err());
            assert!(error.contains(expected), "{error}");
        }
    }
}
