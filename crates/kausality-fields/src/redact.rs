//! Keeping the values of Secrets out of whatever people see.

use crate::encoding::Encoder;
use crate::path::Step;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::fmt;

mod quotes;

use quotes::Quotes;

/// What a digest is shown after, and serialised after.
pub(crate) const PREFIX: &str = "redacted:";

/// Hexadecimal digits of a digest: enough that two values of one Secret never meet by chance (1 in 2^48), too few to
/// recognise a value by without the salt.
const DIGITS: usize = 12;

/// Annotations in which tools keep a copy of the whole object: kubectl, Rancher, kapp, Banzai Cloud operators.
const COPIES: [&str; 4] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    "objectset.rio.cattle.io/applied",
    "kapp.k14s.io/original",
    "banzaicloud.com/last-applied",
];

/// How values of Secrets are made unreadable: each is replaced by a digest salted with a secret of the installation.
///
/// Equal values have equal digests and different values different ones, so that a change can be seen, named and
/// approved, but not read. Who knows the salt can test guesses: treat it as a Secret, and give all replicas the same.
///
/// An object is a Secret if its `kind` says so and its `apiVersion` is `v1`, or missing. Covered are all values under
/// `data` and `stringData` of whatever type, and the annotations in which kubectl and other tools keep a copy of the
/// object; where whole objects are shown, also annotations and labels that quote a value.
#[derive(Clone)]
pub struct Redaction {
    salt: Vec<u8>,
}

impl Redaction {
    /// A redaction with this salt.
    pub fn new(salt: impl Into<Vec<u8>>) -> Self {
        Self { salt: salt.into() }
    }

    /// What stands in the place of a value.
    pub(crate) fn marker(&self, value: &Value) -> Value {
        let mut encoder = Encoder::default();
        encoder.bytes(&self.salt);
        encoder.value(None, value);
        Value::String(format!("{PREFIX}{}", encoder.digest(DIGITS)))
    }

    /// A top-level field of a Secret, safe to show.
    pub(crate) fn field<'a>(&self, name: &str, value: Cow<'a, Value>) -> Cow<'a, Value> {
        match name {
            "data" | "stringData" => Cow::Owned(self.values(&value)),
            "metadata" => self.metadata(value),
            _ => value,
        }
    }

    /// Every value of a map, or what stands where a map should: it may hold the same values.
    fn values(&self, value: &Value) -> Value {
        match value {
            Value::Null => Value::Null,
            Value::Object(map) => map.iter().map(|(key, value)| (key.clone(), self.marker(value))).collect(),
            other => self.marker(other),
        }
    }

    fn metadata<'a>(&self, metadata: Cow<'a, Value>) -> Cow<'a, Value> {
        let annotations = metadata.get("annotations").and_then(Value::as_object);
        if !annotations.is_some_and(|annotations| COPIES.iter().any(|name| annotations.contains_key(*name))) {
            return metadata;
        }
        let mut metadata = metadata.into_owned();
        let annotations = metadata.get_mut("annotations").and_then(Value::as_object_mut);
        for (name, value) in annotations.into_iter().flat_map(Map::iter_mut) {
            if COPIES.contains(&name.as_str()) {
                *value = self.marker(value);
            }
        }
        Cow::Owned(metadata)
    }
}

/// The salt is not shown: it protects every digest.
impl fmt::Debug for Redaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redaction").finish_non_exhaustive()
    }
}

/// The object with the values of a Secret replaced by `redacted:<digest>`; any other kind unchanged.
///
/// The digests are those of a [`Diff`](crate::Diff) with the same [`Redaction`]. Give diffs the plain objects: a
/// redacted object redacted again has other digests.
pub fn redact(object: &Value, redaction: &Redaction) -> Value {
    safe(object, &Quotes::of([object]), redaction)
}

/// Two versions of an object, each as [`redact`] has it, without quotes of what the other holds either: who changes a
/// password may note down the old one.
pub fn redact_both(
    old: Option<&Value>,
    new: Option<&Value>,
    redaction: &Redaction,
) -> (Option<Value>, Option<Value>) {
    let quotes = Quotes::of(old.into_iter().chain(new));
    let safe = |object: Option<&Value>| object.map(|object| safe(object, &quotes, redaction));
    (safe(old), safe(new))
}

fn safe(object: &Value, quotes: &Quotes, redaction: &Redaction) -> Value {
    let Value::Object(fields) = object else { return object.clone() };
    if !is_secret(object) {
        return object.clone();
    }
    let safe = |(name, value): (&String, _)| {
        (name.clone(), redaction.field(name, Cow::Borrowed(value)).into_owned())
    };
    let mut fields: Map<String, Value> = fields.iter().map(safe).collect();
    for field in ["annotations", "labels"] {
        let texts = fields.get_mut("metadata").and_then(|metadata| metadata.get_mut(field));
        for value in texts.and_then(Value::as_object_mut).into_iter().flat_map(Map::values_mut) {
            if value.as_str().is_some_and(|text| quotes.are_in(text)) {
                *value = redaction.marker(value);
            }
        }
    }
    Value::Object(fields)
}

/// Whether an object holds secret values. In doubt it does: items of lists often come without an apiVersion.
pub(crate) fn is_secret(object: &Value) -> bool {
    object.get("kind").and_then(Value::as_str) == Some("Secret")
        && matches!(object.get("apiVersion").map(Value::as_str), None | Some(Some("v1")))
}

/// Whether the value at a path of a Secret, if it is a string, is a digest.
pub(crate) fn is_redacted(path: &[Step]) -> bool {
    let names = path.iter().map(|step| match step {
        Step::Field(name) => Some(name.as_str()),
        _ => None,
    });
    match names.collect::<Option<Vec<_>>>().as_deref() {
        Some([] | ["data" | "stringData"] | ["data" | "stringData", _]) => true,
        Some(["metadata", "annotations", name]) => COPIES.contains(name),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
