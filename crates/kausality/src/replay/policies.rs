//! Policies from files.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use kausality_api::{API_VERSION, exception::ApprovalPolicy, policy::Kausality};
use kausality_core::exceptions::{self, Compiled};
use serde_json::Value;

use crate::manifests::documents;

/// The policies of some files.
#[derive(Debug, Default)]
pub(crate) struct Loaded {
    /// What is watched, and in which mode.
    pub policies: Vec<Kausality>,
    /// What passes, or must not.
    pub exceptions: Vec<Compiled>,
}

/// Reads the policies of YAML or JSON files: `Kausality`, `ApprovalPolicy` and `ClusterApprovalPolicy`. Other kinds in them
/// are passed over.
///
/// # Errors
/// If a file cannot be read, or holds no policy.
pub(crate) fn load(files: &[PathBuf]) -> Result<Loaded> {
    let mut loaded = Loaded::default();
    for file in files {
        let text =
            std::fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        parse(file, &text, &mut loaded)?;
    }
    Ok(loaded)
}

fn parse(file: &Path, text: &str, loaded: &mut Loaded) -> Result<()> {
    let mut found = false;
    for document in documents(&file.display().to_string(), text)? {
        let says = |field: &str| document.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        let kind = says("kind");
        if says("apiVersion") != API_VERSION {
            continue;
        }
        let name = document.pointer("/metadata/name").and_then(Value::as_str).unwrap_or("without a name");
        let context = format!("{}: policy {name} is not valid", file.display());
        match kind.as_str() {
            "Kausality" => {
                let policy: Kausality = serde_json::from_value(document).context(context.clone())?;
                if let Some(fault) = policy.fault() {
                    bail!("{context}: {fault}");
                }
                loaded.policies.push(policy);
            }
            "ApprovalPolicy" | "ClusterApprovalPolicy" => {
                loaded.exceptions.push(exception(file, document)?.1);
            }
            _ => continue,
        }
        found = true;
    }
    if !found {
        bail!(
            "{} holds no policy (apiVersion: {API_VERSION}, kind: Kausality, ApprovalPolicy or ClusterApprovalPolicy)",
            file.display()
        );
    }
    Ok(())
}

/// Reads and compiles an `ApprovalPolicy` or `ClusterApprovalPolicy`.
///
/// # Errors
/// All that is wrong with it.
pub(crate) fn exception(file: &Path, document: Value) -> Result<(ApprovalPolicy, Compiled)> {
    let name = document.pointer("/metadata/name").and_then(Value::as_str).unwrap_or("without a name");
    let context = format!("{}: policy {name} is not valid", file.display());
    let policy: ApprovalPolicy = serde_json::from_value(document).context(context.clone())?;
    let compiled = exceptions::compile(&policy).map_err(|faults| {
        let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
        anyhow!("{context}: {}", faults.join("\n"))
    })?;
    Ok((policy, compiled))
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: &str = "apiVersion: kausality.io/v1alpha1\nkind: Kausality\nmetadata: {name: a}\n\
        spec: {mode: enforce, resources: [{apiGroups: [apps], resources: ['*']}]}\n";

    fn loaded(text: &str) -> Result<Loaded> {
        let mut loaded = Loaded::default();
        parse(Path::new("p.yaml"), text, &mut loaded)?;
        Ok(loaded)
    }

    fn parsed(text: &str) -> Result<Vec<Kausality>> {
        loaded(text).map(|loaded| loaded.policies)
    }

    #[test]
    fn approval_policies_are_compiled() {
        let policy = "apiVersion: kausality.io/v1alpha1\nkind: ClusterApprovalPolicy\nmetadata: {name: a}\n\
            spec: {rules: [{apiVersion: v1, kind: Pod, subjects: [{kind: User, name: a}], match: {cel: 'true'}}]}\n";
        assert_eq!(loaded(policy).unwrap().exceptions.len(), 1);
        let error = format!("{:#}", loaded(&policy.replace("'true'", "'tru'")).unwrap_err());
        assert!(error.contains("p.yaml: policy a is not valid: spec.rules[0].match.cel: "), "{error}");
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
