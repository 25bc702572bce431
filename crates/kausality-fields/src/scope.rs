//! Which part of an object is compared.

use crate::redact::Cover;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// What a diff looks at.
#[derive(Clone, Copy)]
pub(crate) enum Scope {
    /// What is wanted of the object.
    Intent,
    /// All but the API server's bookkeeping.
    Object,
}

/// A version of an object, cut down to its scope and safe to show.
pub(crate) enum Root<'a> {
    Fields(BTreeMap<&'a str, Cow<'a, Value>>),
    /// JSON that is no object. Kubernetes has none, but a diff of anything must say something true.
    Other(Cow<'a, Value>),
}

impl Scope {
    /// The object as far as it is in scope, covered.
    pub(crate) fn root<'a>(self, object: &'a Value, cover: &Cover<'_>) -> Root<'a> {
        let Value::Object(fields) = object else { return Root::Other(cover.other(object)) };
        let in_scope = fields.iter().filter(|(name, _)| self.includes(name));
        Root::Fields(
            in_scope
                .map(|(name, value)| {
                    let value =
                        if name == "metadata" { without_bookkeeping(value) } else { Cow::Borrowed(value) };
                    (name.as_str(), cover.field(name, value))
                })
                .collect(),
        )
    }

    fn includes(self, field: &str) -> bool {
        match self {
            Self::Intent => !matches!(field, "apiVersion" | "kind" | "metadata" | "status"),
            Self::Object => true,
        }
    }
}

impl Root<'_> {
    pub(crate) fn to_value(&self) -> Value {
        match self {
            Self::Fields(fields) => {
                fields.iter().map(|(name, value)| ((*name).to_owned(), value.as_ref().clone())).collect()
            }
            Self::Other(value) => value.as_ref().clone(),
        }
    }
}

/// Metadata without what the API server changes along with any other change.
fn without_bookkeeping(metadata: &Value) -> Cow<'_, Value> {
    let Value::Object(fields) = metadata else {
        return Cow::Borrowed(metadata);
    };
    let bookkeeping = |name: &str| matches!(name, "managedFields" | "resourceVersion" | "generation");
    let kept = fields.iter().filter(|(name, _)| !bookkeeping(name));
    Cow::Owned(kept.map(|(name, value)| (name.clone(), value.clone())).collect())
}
