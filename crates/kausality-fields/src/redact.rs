//! Keeping secrets out of whatever people see: the values of Secrets, and what other kinds hold in fields that are known, or
//! named, to hold secrets.

use crate::encoding::Encoder;
use crate::path::{Path, Step};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::fmt;

mod cover;
mod names;
mod quotes;
mod typed;

pub(crate) use cover::Cover;
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

/// How secrets are made unreadable: each is replaced by a digest salted with a secret of the installation.
///
/// Equal values have equal digests and different values different ones, so that a change can be seen, named and
/// approved, but not read. Who knows the salt can test guesses: treat it as a Secret, and give all replicas the same.
///
/// An object is a Secret if its `kind` says so and its `apiVersion` is `v1`, or missing. Covered are all values under
/// `data` and `stringData` of whatever type, and the annotations in which kubectl and other tools keep a copy of the
/// object; where whole objects are shown, also annotations and labels that quote a value.
///
/// In every kind, texts are covered in fields whose names say that they hold a secret (`token`, `adminPassword`, `clientSecret`,
/// the `value` of a variable `DB_PASSWORD`), texts that hold a private key, and all that is in [named fields](Self::with_fields).
/// References such as `secretName` or `tokenSecretRef` stay.
#[derive(Clone)]
pub struct Redaction {
    salt: Vec<u8>,
    /// Fields that are covered whatever their names, as the names on the way to them: lists are stepped through.
    fields: Vec<Vec<String>>,
}

impl Redaction {
    /// A redaction with this salt.
    pub fn new(salt: impl Into<Vec<u8>>) -> Self {
        Self { salt: salt.into(), fields: Vec::new() }
    }

    /// The same, which also covers these fields. Items of lists are not told apart: what is named of one is covered in all.
    #[must_use]
    pub fn with_fields<'a>(mut self, fields: impl IntoIterator<Item = &'a Path>) -> Self {
        let names = |path: &Path| {
            let name = |step: &Step| match step {
                Step::Field(name) => Some(name.clone()),
                _ => None,
            };
            path.steps().iter().filter_map(name).collect::<Vec<_>>()
        };
        self.fields.extend(fields.into_iter().map(names).filter(|names| !names.is_empty()));
        self
    }

    /// The salt.
    pub fn salt(&self) -> &[u8] {
        &self.salt
    }

    /// What stands in the place of a value.
    pub(crate) fn marker(&self, value: &Value) -> Value {
        let mut encoder = Encoder::default();
        encoder.bytes(&self.salt);
        encoder.value(None, value);
        Value::String(format!("{PREFIX}{}", encoder.digest(DIGITS)))
    }

    /// Every value of a map, or what stands where a map should: it may hold the same values.
    fn values(&self, value: &Value) -> Value {
        match value {
            Value::Null => Value::Null,
            Value::Object(map) => map.iter().map(|(key, value)| (key.clone(), self.marker(value))).collect(),
            other => self.marker(other),
        }
    }

    /// Metadata without copies of the object.
    fn copies<'a>(&self, metadata: Cow<'a, Value>) -> Cow<'a, Value> {
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

/// The object with secrets replaced by `redacted:<digest>`: the values of a Secret, and what other kinds hold in fields that are
/// known, or named, to hold secrets.
///
/// The digests are those of a [`Diff`](crate::Diff) with the same [`Redaction`]. Give diffs the plain objects: a
/// redacted object redacted again has other digests.
pub fn redact(object: &Value, redaction: &Redaction) -> Value {
    let cover = Cover::of([object], redaction);
    safe(object, &Quotes::of([object], &cover), &cover, redaction)
}

/// Two versions of an object, each as [`redact`] has it, without quotes of what the other holds either: who changes a
/// password may note down the old one.
pub fn redact_both(
    old: Option<&Value>,
    new: Option<&Value>,
    redaction: &Redaction,
) -> (Option<Value>, Option<Value>) {
    let cover = Cover::of(old.into_iter().chain(new), redaction);
    let quotes = Quotes::of(old.into_iter().chain(new), &cover);
    let safe = |object: Option<&Value>| object.map(|object| safe(object, &quotes, &cover, redaction));
    (safe(old), safe(new))
}

fn safe(object: &Value, quotes: &Quotes, cover: &Cover<'_>, redaction: &Redaction) -> Value {
    let Value::Object(fields) = object else { return object.clone() };
    let safe =
        |(name, value): (&String, _)| (name.clone(), cover.field(name, Cow::Borrowed(value)).into_owned());
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
