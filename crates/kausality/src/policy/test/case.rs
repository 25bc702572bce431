//! The cases of a `PolicyTest`: what is asked, and what is expected.

use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use jiff::Timestamp;
use kausality_api::{
    exception::{Action, RuleCause, RuleOperation},
    selector::Labels,
};
use kausality_core::exceptions::Ruled;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};

use crate::policy::files::recorded;

/// A request, with what is known about it and what is expected.
#[derive(Debug)]
pub(super) struct Case {
    pub file: String,
    pub name: String,
    /// The AdmissionReview.
    pub review: String,
    pub parent: Option<Value>,
    pub namespace_labels: Option<Labels>,
    pub cause: RuleCause,
    /// The time of the request; by default that of the test.
    pub now: Option<Timestamp>,
    pub expect: Expect,
    /// The rule that is to decide.
    pub rule: Option<String>,
}

/// What is expected of rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Expect {
    /// One lets the request pass.
    Allow,
    /// One denies it.
    Deny,
    /// None decides.
    None,
}

impl Expect {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
            Self::None => "none",
        }
    }
}

impl From<Action> for Expect {
    fn from(action: Action) -> Self {
        match action {
            Action::Allow => Self::Allow,
            Action::Deny => Self::Deny,
        }
    }
}

/// Names a rule as cases do.
pub(super) fn named(ruled: &Ruled) -> String {
    format!("{} rules[{}]", ruled.policy, ruled.rule)
}

/// All cases of a document.
///
/// # Errors
/// What is wrong with one of them, with the case and the field.
pub(super) fn all(file: &Path, document: Value) -> Result<Vec<Case>> {
    let mut document = Fields::new(document)?;
    for known in ["apiVersion", "kind", "metadata"] {
        document.0.remove(known);
    }
    let cases: Vec<Value> = document.need("cases")?;
    document.end()?;
    let folder = file.parent().unwrap_or(Path::new(""));
    let read = |(number, case): (usize, Value)| {
        let name = case.get("name").and_then(Value::as_str).map(|name| format!("{name:?}"));
        let name = name.unwrap_or_else(|| (number + 1).to_string());
        let case = Fields::new(case).and_then(|fields| one(file, folder, fields));
        case.with_context(|| format!("case {name}"))
    };
    cases.into_iter().enumerate().map(read).collect()
}

fn one(file: &Path, folder: &Path, mut fields: Fields) -> Result<Case> {
    let case = Case {
        file: file.display().to_string(),
        name: fields.need("name")?,
        review: review(folder, &mut fields)?,
        parent: fields.take::<Map<_, _>>("parent")?.map(Value::Object),
        namespace_labels: fields.take("namespaceLabels")?,
        cause: fields.take("cause")?.unwrap_or(RuleCause::Drift),
        now: fields.take("now")?,
        expect: fields.need("expect")?,
        rule: fields.take("rule")?,
    };
    if case.expect == Expect::None && case.rule.is_some() {
        bail!("rule: none is expected to decide");
    }
    fields.end()?;
    Ok(case)
}

/// What a request is made of, where it is not taken from a recording.
const INLINE: [&str; 6] = ["user", "groups", "operation", "object", "oldObject", "resource"];

fn review(folder: &Path, fields: &mut Fields) -> Result<String> {
    if let Some(reference) = fields.take::<String>("review")? {
        if let Some(other) = INLINE.iter().find(|field| fields.0.contains_key(**field)) {
            bail!("{other}: stands in the review that the case names");
        }
        return recorded(&reference, folder).context("review");
    }
    let user: String = fields.need("user").context("name a review, or say what is requested")?;
    let groups: Vec<String> = fields.take("groups")?.unwrap_or_default();
    let object: Option<Map<String, Value>> = fields.take("object")?;
    let old_object: Option<Map<String, Value>> = fields.take("oldObject")?;
    let (operation, shown) = match (&old_object, &object) {
        (None, Some(object)) => (RuleOperation::Create, object),
        (Some(_), Some(object)) => (RuleOperation::Update, object),
        (Some(old_object), None) => (RuleOperation::Delete, old_object),
        (None, None) => bail!("object: missing; a DELETE has an oldObject alone"),
    };
    if let Some(said) = fields.take::<RuleOperation>("operation")?
        && said != operation
    {
        let (said, is) = (said.as_str(), operation.as_str());
        bail!("operation: {said} does not fit the objects: with object, oldObject or both it is a {is}");
    }
    let text = |object: &Map<String, Value>, field: &str| {
        object.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let (api_version, kind) = (text(shown, "apiVersion"), text(shown, "kind"));
    for (field, text) in [("apiVersion", &api_version), ("kind", &kind)] {
        if text.is_empty() {
            let which = if object.is_some() { "object" } else { "oldObject" };
            bail!("{which}.{field}: must not be empty");
        }
    }
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    let resource: String = fields.take("resource")?.unwrap_or_else(|| plural(&kind));
    let metadata = |field: &str| shown.get("metadata").and_then(|it| it.get(field)).unwrap_or(&Value::Null);
    let mut request = json!({
        "uid": "test",
        "kind": {"group": group, "version": version, "kind": kind},
        "resource": {"group": group, "version": version, "resource": resource},
        "operation": operation,
        "userInfo": {"username": user, "groups": groups},
        "object": object,
        "oldObject": old_object,
        "dryRun": false,
    });
    for field in ["name", "namespace"] {
        if let Value::String(text) = metadata(field) {
            request[field] = text.as_str().into();
        }
    }
    let review = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})
        .to_string();
    // What is wrong with an object is found here, where its case is known.
    kausality_core::Review::parse(review.as_bytes()).context("object")?;
    Ok(review)
}

/// The plural of most kinds; a case can say another.
fn plural(kind: &str) -> String {
    let kind = kind.to_lowercase();
    match kind.strip_suffix('y') {
        Some(stem) if !kind.ends_with("ay") && !kind.ends_with("ey") => format!("{stem}ies"),
        _ if kind.ends_with('s') => format!("{kind}es"),
        _ => format!("{kind}s"),
    }
}

/// The fields of a document, taken one by one so that what is wrong has a name.
struct Fields(Map<String, Value>);

impl Fields {
    fn new(value: Value) -> Result<Self> {
        match value {
            Value::Object(fields) => Ok(Self(fields)),
            _ => bail!("must be an object"),
        }
    }

    fn take<T: DeserializeOwned>(&mut self, field: &'static str) -> Result<Option<T>> {
        match self.0.remove(field) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => serde_json::from_value(value).map(Some).context(field),
        }
    }

    fn need<T: DeserializeOwned>(&mut self, field: &'static str) -> Result<T> {
        self.take(field)?.ok_or_else(|| anyhow!("{field}: missing"))
    }

    /// Nothing may be left: it may be a restriction, misspelt.
    fn end(self) -> Result<()> {
        match self.0.keys().next() {
            Some(field) => bail!("{field}: there is no such field"),
            None => Ok(()),
        }
    }
}
