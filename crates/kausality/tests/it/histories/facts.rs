//! What the API server says of an object, and of the apply to come: the truth that commands are held against.

use std::collections::{BTreeMap, BTreeSet};

use kausality_fields::{
    FieldSet, Path, Scalar, Step,
    managed::{self, Entry, Operation},
    typed::Type,
};
use serde_json::Value;

use crate::histories::{
    api::{Api, Force, Run},
    history::History,
};

pub(crate) struct Facts {
    pub(crate) live: Value,
    /// The object after an apply by force; why not, if it is refused.
    pub(crate) forced: Result<Value, String>,
    /// What others hold, as the API server writes it, and how often.
    pub(crate) conflicts: BTreeMap<String, usize>,
}

impl Facts {
    pub(crate) async fn find(history: &History, api: &Api) -> Option<Self> {
        let History { kind, name, manager, manifest, .. } = history;
        let live = api.get(*kind, name).await?;
        let mut conflicts = BTreeMap::new();
        let (code, answer) = api.apply(*kind, name, manager, manifest, Force::No, Run::Dry).await;
        if code == 409 {
            for cause in answer["details"]["causes"].as_array()? {
                *conflicts.entry(cause["field"].as_str()?.to_owned()).or_default() += 1;
            }
        }
        let (code, answer) = api.apply(*kind, name, manager, manifest, Force::Yes, Run::Dry).await;
        let forced = match code {
            200 => Ok(answer),
            0 => return None,
            _ => Err(answer["message"].to_string()),
        };
        Some(Self { live, forced, conflicts })
    }
}

/// Who owns what of an object.
pub(crate) struct Owners(Vec<Entry>);

/// An owner as commands name it: manager, operation, subresource.
pub(crate) type Owner = (String, String, String);

impl Owners {
    pub(crate) fn of(object: &Value) -> Self {
        let entries = object.pointer("/metadata/managedFields").map(managed::decode_value);
        Self(entries.unwrap_or(Ok(Vec::new())).unwrap())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What a manager owns of the object itself.
    pub(crate) fn by(&self, manager: &str) -> FieldSet {
        let own = |entry: &&Entry| entry.manager == manager && entry.subresource.is_empty();
        self.0.iter().filter(own).fold(FieldSet::new(), |all, entry| all.union(&entry.fields))
    }

    /// What a manager has applied.
    pub(crate) fn applied_by(&self, manager: &str) -> FieldSet {
        let own = |entry: &&Entry| {
            entry.manager == manager && entry.subresource.is_empty() && entry.operation == Operation::Apply
        };
        self.0.iter().filter(own).fold(FieldSet::new(), |all, entry| all.union(&entry.fields))
    }

    /// What is owned by others, or by the manager through a subresource.
    pub(crate) fn by_others(&self, manager: &str) -> FieldSet {
        let other = |entry: &&Entry| entry.manager != manager || !entry.subresource.is_empty();
        self.0.iter().filter(other).fold(FieldSet::new(), |all, entry| all.union(&entry.fields))
    }

    pub(crate) fn all(&self) -> FieldSet {
        self.0.iter().fold(FieldSet::new(), |all, entry| all.union(&entry.fields))
    }

    pub(crate) fn of_field(&self, path: &Path) -> BTreeSet<Owner> {
        let entries = self.0.iter().filter(|entry| entry.fields.has(path));
        entries
            .map(|entry| {
                let operation = entry.operation.as_str().to_owned();
                (entry.manager.clone(), operation, entry.subresource.clone())
            })
            .collect()
    }
}

/// The fields that differ, without what the API server alone writes.
pub(crate) fn changed(of: Type<'_>, old: &Value, new: &Value) -> BTreeSet<Path> {
    let found = of.compare(old, new).unwrap();
    let sets = [found.added, found.modified, found.removed].map(|set| set.leaves());
    sets.iter().flat_map(FieldSet::iter).filter(|path| !is_bookkeeping(path)).collect()
}

/// Whether the API server alone writes a field.
pub(crate) fn is_bookkeeping(path: &Path) -> bool {
    let names =
        ["name", "namespace", "creationTimestamp", "generation", "managedFields", "resourceVersion", "uid"];
    match path.steps() {
        [Step::Field(top)] => matches!(top.as_str(), "apiVersion" | "kind" | "metadata"),
        [Step::Field(top), Step::Field(name), ..] => top == "metadata" && names.contains(&name.as_str()),
        _ => false,
    }
}

/// A path as the API server writes it in conflicts.
pub(crate) fn written(path: &Path) -> String {
    let scalar = |scalar: &Scalar| match scalar {
        Scalar::Text(text) => Value::from(text.as_str()).to_string(),
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

/// The value at a path of a stored object.
pub(crate) fn value_at<'v>(object: &'v Value, path: &Path) -> Option<&'v Value> {
    let is = |value: Option<&Value>, scalar: &Scalar| match (value, scalar) {
        (Some(Value::String(value)), Scalar::Text(text)) => value == text,
        (Some(Value::Number(value)), scalar) => value.to_string() == scalar.to_string(),
        (Some(Value::Bool(value)), Scalar::Bool(scalar)) => value == scalar,
        (None | Some(Value::Null), Scalar::Null) => true,
        _ => false,
    };
    path.steps().iter().try_fold(object, |value, step| match step {
        Step::Field(name) => value.get(name),
        Step::Index(index) => value.get(index),
        Step::Value(member) => value.as_array()?.iter().find(|item| is(Some(item), member)),
        Step::Key(parts) => {
            let fits = |item: &&Value| parts.iter().all(|(name, wanted)| is(item.get(name.as_ref()), wanted));
            value.as_array()?.iter().find(fits)
        }
    })
}
