//! Policies from files.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, anyhow, bail};
use kausality_api::{
    API_VERSION, GROUP,
    exception::{ApprovalPolicy, MAX_FIELD, MAX_NAMED},
    policy::Kausality,
};
use kausality_core::exceptions::{self, Compiled, PolicyFault};
use serde_json::Value;

use crate::manifests::{documents, folder};

/// How files end that policies are looked for in.
const ENDINGS: [&str; 2] = ["yaml", "yml"];

/// The policies of some files.
#[derive(Debug, Default)]
pub(crate) struct Loaded {
    /// What is watched, and in which mode.
    pub policies: Vec<Kausality>,
    /// What passes, or must not.
    pub exceptions: Vec<Compiled>,
}

/// Reads the policies of YAML or JSON files, or of folders of YAML files: `Kausality`, `ApprovalPolicy` and
/// `ClusterApprovalPolicy`. Other kinds in them are passed over.
///
/// # Errors
/// If a file cannot be read, one that is named or a whole folder holds no policy, or there are two of one name.
pub(crate) fn load(paths: &[PathBuf]) -> Result<Loaded> {
    let mut loaded = Loaded::default();
    for path in paths {
        let mut found = 0;
        for file in files(path)? {
            found += take(&file, read(&file)?, &mut loaded)?;
        }
        if found == 0 {
            let place = if path.is_dir() { " in files ending in .yaml or .yml" } else { "" };
            bail!(
                "{} holds no policy{place} (apiVersion: {API_VERSION}, kind: Kausality, ApprovalPolicy or ClusterApprovalPolicy)",
                path.display()
            );
        }
    }
    let mut names = HashSet::new();
    if let Some(twice) = loaded.exceptions.iter().find(|it| !names.insert(it.reference())) {
        bail!("{} is there twice: give each policy once", twice.reference());
    }
    Ok(loaded)
}

/// The file itself, or the YAML files in a folder and below.
///
/// # Errors
/// If the folder cannot be read.
pub(crate) fn files(path: &Path) -> Result<Vec<PathBuf>> {
    if path.is_dir() { folder(path, &ENDINGS) } else { Ok(vec![path.to_owned()]) }
}

/// The documents of a file.
///
/// # Errors
/// If it cannot be read.
pub(crate) fn read(file: &Path) -> Result<Vec<Value>> {
    let name = file.display().to_string();
    let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {name}"))?;
    documents(&name, &text)
}

/// What a document is, if it is one of ours; else nothing.
///
/// # Errors
/// If it is of another version than is known here: to pass it over would be to test less than was meant.
pub(crate) fn kind<'a>(file: &Path, document: &'a Value) -> Result<&'a str> {
    let says = |field: &str| document.get(field).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (says("apiVersion"), says("kind"));
    if api_version == API_VERSION {
        return Ok(kind);
    }
    if matches!(kind, "ApprovalPolicy" | "ClusterApprovalPolicy" | "PolicyTest")
        && (api_version.is_empty() || api_version.split('/').next() == Some(GROUP))
    {
        bail!("{}: apiVersion of a {kind} must be {API_VERSION}, not {api_version:?}", file.display());
    }
    Ok("")
}

/// Takes in the policies among documents. How many there are.
fn take(file: &Path, documents: Vec<Value>, loaded: &mut Loaded) -> Result<usize> {
    let mut found = 0;
    for document in documents {
        match kind(file, &document)? {
            "Kausality" => {
                let context = context(file, &document);
                let policy: Kausality = serde_json::from_value(document).context(context.clone())?;
                if let Some(fault) = kausality_core::policy::fault(&policy) {
                    bail!("{context}: {fault}");
                }
                loaded.policies.push(policy);
            }
            "ApprovalPolicy" | "ClusterApprovalPolicy" => {
                loaded.exceptions.push(exception(file, &document)?.1);
            }
            _ => continue,
        }
        found += 1;
    }
    Ok(found)
}

fn context(file: &Path, document: &Value) -> String {
    let name = document.pointer("/metadata/name").and_then(Value::as_str).unwrap_or("without a name");
    format!("{}: policy {name} is not valid", file.display())
}

/// Reads and compiles an `ApprovalPolicy` or `ClusterApprovalPolicy`.
///
/// # Errors
/// All that is wrong with it.
pub(crate) fn exception(file: &Path, document: &Value) -> Result<(ApprovalPolicy, Compiled)> {
    let context = context(file, document);
    let policy = exceptions::read(document).map_err(|faults| invalid(&context, &faults))?;
    let compiled = compiled(&policy, &context)?;
    Ok((policy, compiled))
}

/// Compiles a policy. `context` says what it means if that fails.
///
/// # Errors
/// All that is wrong with it, a line each.
pub(crate) fn compiled(policy: &ApprovalPolicy, context: &str) -> Result<Compiled> {
    let faults = limits(policy);
    if !faults.is_empty() {
        return Err(invalid(context, &faults));
    }
    exceptions::compile(policy).map_err(|faults| invalid(context, &faults))
}

/// What only the API server would say of a policy: that a rule names too much.
fn limits(policy: &ApprovalPolicy) -> Vec<PolicyFault> {
    let mut faults = Vec::new();
    for (place, rule) in policy.spec.rules.iter().enumerate() {
        let fields = rule.matching.as_ref().map_or(&[][..], |matching| &matching.fields);
        for (list, number) in [
            ("causes", rule.causes.len()),
            ("subjects", rule.subjects.len()),
            ("exceptSubjects", rule.except_subjects.len()),
            ("operations", rule.operations.len()),
            ("match.fields", fields.len()),
        ] {
            if number > MAX_NAMED {
                let message = format!("{number} are more than {MAX_NAMED}");
                faults.push(PolicyFault { field: format!("spec.rules[{place}].{list}"), message });
            }
        }
        for (number, field) in
            fields.iter().enumerate().filter(|(_, field)| field.chars().count() > MAX_FIELD)
        {
            let message = format!("{} characters are more than {MAX_FIELD}", field.chars().count());
            faults
                .push(PolicyFault { field: format!("spec.rules[{place}].match.fields[{number}]"), message });
        }
    }
    faults
}

fn invalid(context: &str, faults: &[PolicyFault]) -> anyhow::Error {
    anyhow!("{context}: {}", exceptions::told(faults))
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: &str = "apiVersion: kausality.io/v1alpha1\nkind: Kausality\nmetadata: {name: a}\n\
        spec: {mode: enforce, resources: [{apiGroups: [apps], resources: ['*']}]}\n";

    fn loaded(text: &str) -> Result<Loaded> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("p.yaml");
        std::fs::write(&file, text).unwrap();
        load(&[file])
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
    fn what_the_definition_would_not_take_is_a_fault_here_too() {
        let policy = |fields: &[String]| {
            let fields = fields.join(", ");
            format!(
                "apiVersion: kausality.io/v1alpha1\nkind: ClusterApprovalPolicy\nmetadata: {{name: a}}\n\
                 spec: {{rules: [{{apiVersion: v1, kind: Pod, subjects: [{{kind: User, name: a}}], match: {{fields: [{fields}]}}}}]}}\n"
            )
        };
        let many: Vec<String> = (0..33).map(|number| format!("spec.f{number}")).collect();
        assert!(loaded(&policy(&many[..32])).is_ok());
        let error = format!("{:#}", loaded(&policy(&many)).unwrap_err());
        assert!(error.contains("spec.rules[0].match.fields: 33 are more than 32"), "{error}");
        let error = format!("{:#}", loaded(&policy(&[format!("spec.{}", "x".repeat(1020))])).unwrap_err());
        assert!(
            error.contains("spec.rules[0].match.fields[0]: 1025 characters are more than 1024"),
            "{error}"
        );
    }

    #[test]
    fn a_folder_is_read_with_what_is_below_and_beside_the_policies() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("tests")).unwrap();
        let other = "apiVersion: kausality.io/v1alpha1\nkind: PolicyTest\ncases: []\n";
        let write = |file: &str, text: &str| std::fs::write(folder.path().join(file), text).unwrap();
        write("tests/cases.yaml", other);
        write("notes.json", "{");
        let path = [folder.path().to_owned()];
        let error = load(&path).unwrap_err().to_string();
        assert!(error.contains("holds no policy in files ending in .yaml or .yml"), "{error}");
        let approvals = |name: &str| {
            format!(
                "apiVersion: kausality.io/v1alpha1\nkind: ClusterApprovalPolicy\nmetadata: {{name: {name}}}\n\
                 spec: {{rules: [{{apiVersion: v1, kind: Pod, subjects: [{{kind: User, name: a}}]}}]}}\n"
            )
        };
        write("tests/b.yml", &approvals("b"));
        write("a.yaml", POLICY);
        let Loaded { policies, exceptions } = load(&path).unwrap();
        assert_eq!((policies.len(), exceptions.len()), (1, 1));
        write("c.yaml", &approvals("b"));
        let error = load(&path).unwrap_err().to_string();
        assert!(error.contains("ClusterApprovalPolicy/b is there twice"), "{error}");
        write("c.yaml", &approvals("c").replace("v1alpha1", "v1"));
        let error = load(&path).unwrap_err().to_string();
        assert!(error.contains("c.yaml: apiVersion of a ClusterApprovalPolicy must be"), "{error}");
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
