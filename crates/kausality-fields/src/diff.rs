//! The changes between two versions of an object, and how they are found.

use crate::encoding::{Encoder, same};
use crate::key;
use crate::path::{Path, Step};
use crate::redact::{self, Cover, PREFIX, Redaction};
use crate::scalar::Scalar;
use crate::scope::{Root, Scope};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Steps below the root after which a difference is reported as a whole.
const MAX_DEPTH: usize = 64;

/// Hexadecimal digits of [`Diff::hash`].
const HASH_DIGITS: usize = 16;

/// What changed from one version of an object to another, ordered by path.
///
/// Shown with one change a line; serialised as the list of changes.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Diff {
    /// The changes, ordered by path; no path is that of another change, or leads through one.
    pub changes: Vec<Change>,
}

/// One value that was added, removed or replaced.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    /// Where it is.
    pub path: Path,
    /// What it was; `None` if it was added.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub old: Option<Leaf>,
    /// What it became; `None` if it was removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new: Option<Leaf>,
}

/// A value before or after a change.
#[derive(Debug, Clone, PartialEq)]
pub enum Leaf {
    /// A JSON value. In a subtree of a Secret, the secret values are `redacted:<digest>` strings.
    Value(Value),
    /// The salted digest of a secret value, serialised as `redacted:<digest>`.
    Redacted(String),
}

impl Diff {
    /// Whether nothing changed.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// The number of changes.
    pub fn len(&self) -> usize {
        self.changes.len()
    }

    /// A name of 16 hexadecimal digits for exactly this change.
    ///
    /// It depends on the meaning of paths and values alone: not on the order of JSON keys, nor on the order of lists
    /// whose items are matched by key, nor on how anything is shown. For a Secret it also depends on the salt.
    pub fn hash(&self) -> String {
        let mut encoder = Encoder::default();
        encoder.bytes(b"kausality diff 1");
        encoder.count(self.changes.len());
        for Change { path, old, new } in &self.changes {
            encoder.path(path);
            for leaf in [old, new] {
                match leaf {
                    None => encoder.tag(b'-'),
                    Some(Leaf::Value(value)) => encoder.value(path.field(), value),
                    Some(Leaf::Redacted(digest)) => {
                        encoder.tag(b'r');
                        encoder.bytes(digest.as_bytes());
                    }
                }
            }
        }
        encoder.digest(HASH_DIGITS)
    }
}

impl Serialize for Leaf {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Value(value) => value.serialize(serializer),
            Self::Redacted(digest) => serializer.collect_str(&format_args!("{PREFIX}{digest}")),
        }
    }
}

/// The changes from `old` to `new` within a scope, and the lists that come in another order.
pub(crate) fn between(
    scope: Scope,
    old: Option<&Value>,
    new: Option<&Value>,
    redaction: &Redaction,
) -> (Diff, Vec<Path>) {
    let cover = Cover::of(old.into_iter().chain(new), redaction);
    let root = |object: Option<_>| object.map(|object| scope.root(object, &cover));
    let (old, new) = (root(old), root(new));

    let mut walk = Walk { cover: &cover, way: Vec::new(), changes: Vec::new(), orders: Vec::new() };
    let absent = Root::Fields(BTreeMap::new());
    match (old.as_ref().unwrap_or(&absent), new.as_ref().unwrap_or(&absent)) {
        (Root::Fields(old), Root::Fields(new)) => {
            for (name, value) in old {
                walk.at(Crumb::Field(name), Some(value), new.get(name).map(AsRef::as_ref));
            }
            for (name, value) in new.iter().filter(|(name, _)| !old.contains_key(*name)) {
                walk.at(Crumb::Field(name), None, Some(value));
            }
        }
        (Root::Other(old), Root::Other(new)) => walk.values(old, new),
        _ => {
            let [old, new] = [&old, &new].map(|root| root.as_ref().map(Root::to_value));
            walk.record(old.as_ref(), new.as_ref());
        }
    }
    let mut changes = walk.changes;
    changes.sort_by(|a, b| a.path.cmp(&b.path));
    (Diff { changes }, walk.orders)
}

/// A walk down both versions at once.
struct Walk<'a> {
    cover: &'a Cover<'a>,
    way: Vec<Crumb<'a>>,
    changes: Vec<Change>,
    orders: Vec<Path>,
}

/// A step of the walk. It becomes a [`Step`] only where a change is found.
enum Crumb<'a> {
    Field(&'a str),
    Item(Step),
    Index(usize),
}

impl<'a> Walk<'a> {
    /// Compares what is one step further on.
    fn at(&mut self, step: Crumb<'a>, old: Option<&'a Value>, new: Option<&'a Value>) {
        self.way.push(step);
        match (old, new) {
            (Some(old), Some(new)) => self.values(old, new),
            _ => self.record(old, new),
        }
        self.way.pop();
    }

    fn values(&mut self, old: &'a Value, new: &'a Value) {
        match (old, new) {
            (Value::Object(_), Value::Object(_)) | (Value::Array(_), Value::Array(_))
                if self.way.len() >= MAX_DEPTH =>
            {
                if !same(self.field(), old, new) {
                    self.record(Some(old), Some(new));
                }
            }
            (Value::Object(old), Value::Object(new)) => self.objects(old, new),
            (Value::Array(old_list), Value::Array(new_list)) => {
                if let Some([old, new]) = key::items(self.field(), [old_list, new_list]) {
                    self.items(old, new);
                } else if old_list.len() == new_list.len() {
                    for (index, (old, new)) in old_list.iter().zip(new_list).enumerate() {
                        self.at(Crumb::Index(index), Some(old), Some(new));
                    }
                } else {
                    self.record(Some(old), Some(new));
                }
            }
            (Value::Null, Value::Null) => {}
            (Value::String(a), Value::String(b)) if a == b => {}
            (Value::Number(a), Value::Number(b)) if a == b => {}
            (Value::Bool(_) | Value::Number(_), _) if Scalar::of(old) == Scalar::of(new) => {}
            _ => self.record(Some(old), Some(new)),
        }
    }

    fn objects(&mut self, old: &'a Map<String, Value>, new: &'a Map<String, Value>) {
        for (name, value) in old {
            self.at(Crumb::Field(name), Some(value), new.get(name));
        }
        for (name, value) in new.iter().filter(|(name, _)| !old.contains_key(*name)) {
            self.at(Crumb::Field(name), None, Some(value));
        }
    }

    fn items(&mut self, old: key::Items<'a>, mut new: key::Items<'a>) {
        let mut places = Vec::with_capacity(old.len());
        for (identity, (place, value)) in old {
            let counterpart = new.remove(&identity);
            places.extend(counterpart.map(|(new_place, _)| (place, new_place)));
            self.at(Crumb::Item(identity), Some(value), counterpart.map(|(_, value)| value));
        }
        for (identity, (_, value)) in new {
            self.at(Crumb::Item(identity), None, Some(value));
        }
        places.sort_unstable();
        if !places.is_sorted_by_key(|(_, new_place)| *new_place) {
            self.orders.push(self.way.iter().map(Crumb::step).collect());
        }
    }

    /// The name of the field whose values are compared, if they are no items of a list.
    fn field(&self) -> Option<&'a str> {
        match self.way.last() {
            Some(Crumb::Field(name)) => Some(name),
            _ => None,
        }
    }

    fn record(&mut self, old: Option<&Value>, new: Option<&Value>) {
        let path: Path = self.way.iter().map(Crumb::step).collect();
        let redacted = self.cover.is_of_secret() && redact::is_redacted(path.steps());
        let digest = |text: &str| {
            let digest = text.strip_prefix(PREFIX).filter(|_| redacted || self.cover.is_digest(text))?;
            Some(Leaf::Redacted(digest.to_owned()))
        };
        let leaf =
            |value: &Value| value.as_str().and_then(digest).unwrap_or_else(|| Leaf::Value(value.clone()));
        self.changes.push(Change { old: old.map(leaf), new: new.map(leaf), path });
    }
}

impl Crumb<'_> {
    fn step(&self) -> Step {
        match self {
            Self::Field(name) => Step::Field((*name).to_owned()),
            Self::Item(step) => step.clone(),
            Self::Index(index) => Step::Index(*index),
        }
    }
}

#[cfg(test)]
mod tests;
