//! Approvals and rejections: entries of JSON lists on the parent.

use std::marker::PhantomData;

use jiff::Timestamp;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::text::{MAX_FAULT, shorten};

/// How long an approval lasts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ApprovalMode {
    /// For one mutation.
    #[default]
    Once,
    /// While the parent has the generation that the approval names.
    Generation,
    /// Until somebody removes it.
    Always,
}

impl ApprovalMode {
    /// The word used in annotations.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Once => "once",
            Self::Generation => "generation",
            Self::Always => "always",
        }
    }
}

/// Lets drifts of matching children pass.
///
/// A field that is not known makes the entry void: it may be a restriction, misspelt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Approval {
    /// The child's apiVersion, or `*`.
    pub api_version: String,
    /// The child's kind, or `*`.
    pub kind: String,
    /// The child's namespace, or `*`; any, if absent. It matters where the parent has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The child's name, or `*`.
    pub name: String,
    /// The parent's generation for which it holds. Needed for `once` and `generation`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,
    /// How long it lasts.
    #[serde(default)]
    pub mode: ApprovalMode,
    /// Approves exactly the change with this hash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// Approves changes of these fields and what lies below them only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<String>,
    /// Void from this time on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Timestamp>,
    /// Who approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Stops drifts of matching children, whatever approves them.
///
/// Fields that are not known are ignored: the entry still blocks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rejection {
    /// The child's apiVersion, or `*`.
    pub api_version: String,
    /// The child's kind, or `*`.
    pub kind: String,
    /// The child's namespace, or `*`; any, if absent. It matters where the parent has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The child's name, or `*`.
    pub name: String,
    /// The parent's generation for which it holds; always, if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,
    /// What the person whose change is denied will read.
    pub reason: String,
    /// Rejects exactly the change with this hash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// Void from this time on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Timestamp>,
    /// Who rejected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// An entry of such a list.
pub trait Entry: DeserializeOwned {
    /// The child it speaks of: apiVersion, kind and name, each possibly `*`.
    fn subject(&self) -> (&str, &str, &str);
    /// The child's namespace it is bound to, possibly `*`, if it is.
    fn namespace(&self) -> Option<&str>;
    /// The parent's generation it is bound to, if it is.
    fn generation(&self) -> Option<i64>;
    /// What makes the entry void although its JSON is well-formed.
    fn fault(&self) -> Option<&'static str>;

    /// Whether it speaks of this child.
    fn matches(&self, api_version: &str, kind: &str, namespace: &str, name: &str) -> bool {
        let (a, k, n) = self.subject();
        let here = self.namespace().is_none_or(|it| it == "*" || it == namespace);
        here && (a == "*" || a == api_version) && (k == "*" || k == kind) && (n == "*" || n == name)
    }
}

impl Entry for Approval {
    fn subject(&self) -> (&str, &str, &str) {
        (&self.api_version, &self.kind, &self.name)
    }

    fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    fn generation(&self) -> Option<i64> {
        match self.mode {
            ApprovalMode::Always => None,
            ApprovalMode::Once | ApprovalMode::Generation => self.generation,
        }
    }

    fn fault(&self) -> Option<&'static str> {
        if self.mode != ApprovalMode::Always && self.generation.is_none() {
            return Some("modes \"once\" and \"generation\" need the parent's \"generation\"");
        }
        empty_subject(self)
    }
}

impl Entry for Rejection {
    fn subject(&self) -> (&str, &str, &str) {
        (&self.api_version, &self.kind, &self.name)
    }

    fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    fn generation(&self) -> Option<i64> {
        self.generation
    }

    fn fault(&self) -> Option<&'static str> {
        if self.reason.trim().is_empty() {
            return Some("\"reason\" is empty");
        }
        empty_subject(self)
    }
}

fn empty_subject(entry: &impl Entry) -> Option<&'static str> {
    if entry.namespace() == Some("") {
        return Some("\"namespace\" must not be empty (\"*\" matches any; children without one need none)");
    }
    let (api_version, kind, name) = entry.subject();
    (api_version.is_empty() || kind.is_empty() || name.is_empty())
        .then_some("\"apiVersion\", \"kind\" and \"name\" must not be empty (\"*\" matches anything)")
}

/// A list as it stands in an annotation, entries that cannot be understood included, so that rewriting
/// one entry loses nothing of the others.
#[derive(Clone, Debug)]
pub struct Entries<T> {
    items: Vec<(Value, Result<T, String>)>,
    fault: Option<String>,
    entry: PhantomData<T>,
}

impl<T: Entry> Entries<T> {
    /// Reads the annotation's value.
    #[must_use]
    pub fn decode(text: &str) -> Self {
        let (values, fault) = match serde_json::from_str::<Vec<Value>>(text) {
            Ok(values) => (values, None),
            Err(error) => (
                Vec::new(),
                Some(format!("not a JSON list of objects: {}", shorten(&error.to_string(), MAX_FAULT))),
            ),
        };
        let items = values.into_iter().map(|value| (value.clone(), Self::entry(value))).collect();
        Self { items, fault, entry: PhantomData }
    }

    fn entry(value: Value) -> Result<T, String> {
        // Serde would read a list as the fields in their order, and so approve what nobody wrote.
        if !value.is_object() {
            return Err("not a JSON object".to_owned());
        }
        let entry: T = serde_json::from_value(value).map_err(|error| error.to_string())?;
        match entry.fault() {
            Some(fault) => Err(fault.to_owned()),
            None => Ok(entry),
        }
    }

    /// The entries that can be understood, each with its place in the list.
    pub fn valid(&self) -> impl Iterator<Item = (usize, &T)> {
        self.items.iter().enumerate().filter_map(|(place, (_, entry))| Some((place, entry.as_ref().ok()?)))
    }

    /// What is wrong with the list or with entries of it.
    pub fn faults(&self) -> impl Iterator<Item = String> + '_ {
        let entries = self.items.iter().enumerate().filter_map(|(place, (_, entry))| {
            entry.as_ref().err().map(|fault| format!("entry {}: {}", place + 1, shorten(fault, MAX_FAULT)))
        });
        self.fault.iter().cloned().chain(entries)
    }

    /// The annotation's value without the entry at `place`; `None` if nothing is left.
    #[must_use]
    pub fn without(&self, place: usize) -> Option<String> {
        self.keep(|at, _| at != place)
    }

    /// The annotation's value without the entries at these places; `None` if nothing is left.
    #[must_use]
    pub fn without_all(&self, places: &[usize]) -> Option<String> {
        self.keep(|at, _| !places.contains(&at))
    }

    /// The annotation's value with one entry more, at the end. What cannot be understood stays as it is; a text that is
    /// no list at all is the caller's to refuse ([`Self::is_list`]).
    #[must_use]
    pub fn with(&self, entry: &T) -> String
    where
        T: Serialize,
    {
        let entry = serde_json::to_value(entry).ok();
        let values: Vec<&Value> = self.items.iter().map(|(value, _)| value).chain(&entry).collect();
        encode(&values)
    }

    /// Lets go of entries that are bound to a generation below `generation`.
    /// `None` if nothing is left. A list that cannot be read is left alone by the caller.
    #[must_use]
    pub fn pruned(&self, generation: i64) -> Option<String> {
        self.keep(|_, entry| entry.generation().is_none_or(|bound| bound >= generation))
    }

    fn keep(&self, keep: impl Fn(usize, &T) -> bool) -> Option<String> {
        let kept: Vec<&Value> = (self.items.iter().enumerate())
            .filter(|(place, (_, entry))| entry.as_ref().map_or(true, |entry| keep(*place, entry)))
            .map(|(_, (value, _))| value)
            .collect();
        (!kept.is_empty()).then(|| encode(&kept))
    }

    /// The annotation's value with entries that are bound to generation `from` bound to `to` instead, or
    /// `None` if there are none of them.
    #[must_use]
    pub fn restamped(&self, from: i64, to: i64) -> Option<String> {
        let mut changed = false;
        let values: Vec<Value> = (self.items.iter())
            .map(|(value, entry)| {
                let mut value = value.clone();
                let bound = entry.as_ref().ok().and_then(Entry::generation);
                if let (true, Some(object)) = (bound == Some(from), value.as_object_mut()) {
                    object.insert("generation".to_owned(), Value::from(to));
                    changed = true;
                }
                value
            })
            .collect();
        changed.then(|| encode(&values))
    }

    /// Whether the annotation is a list at all.
    #[must_use]
    pub fn is_list(&self) -> bool {
        self.fault.is_none()
    }

    /// Whether an entry at a place in the list is bound to a generation below `generation`.
    pub fn any_stale(&self, generation: i64) -> bool {
        self.valid().any(|(_, entry)| entry.generation().is_some_and(|bound| bound < generation))
    }
}

fn encode<T: Serialize>(values: &[T]) -> String {
    serde_json::to_string(values).unwrap_or_default()
}

#[cfg(test)]
mod tests;
