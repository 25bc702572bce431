//! What an apply would change: the live object against what the API server answers to dry-runs.
//!
//! Only what the server said is compared, never the manifest: it has set defaults, brought quantities into one form
//! and allocated ports on both sides alike.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use jiff::Timestamp;
use kausality_fields::{
    FieldSet, Path, Redaction, Step,
    managed::ManagedError,
    places::{self, Place},
    schema::{Schema, TypeRef},
    typed::{Fault, Type},
};
use serde_json::{Map, Value};

use super::{
    allocated::is_allocated,
    order,
    owner::Ownership,
    planned::{Change, Field, Future, Owners},
};

/// What was found.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) fields: Vec<Field>,
    /// Whether the items of lists are named as they usually are, since their type is not known.
    pub(super) guessed: bool,
}

/// What differs between the live object, if there is one, and the first of the answers. Where the other answers differ
/// from the first, nobody can know the value yet.
pub(super) fn between(
    of: Option<Type<'_>>,
    live: Option<&Value>,
    first: &Value,
    others: &[Value],
    now: Timestamp,
) -> Result<Found, ManagedError> {
    let (before, after) = (Ownership::of(live)?, Ownership::of(Some(first))?);
    let creates = live.is_none();
    let essence = |object: &Value| essence(object, creates);
    let sides = Sides {
        old: live.map_or(Value::Object(Map::new()), essence),
        new: essence(first),
        others: others.iter().map(essence).collect(),
    };
    let typed = of.map(|of| sides.typed(of));
    let guessed = !matches!(typed, Some(Ok(_)));
    let (deduced, any) = (Schema::deduced(), TypeRef::deduced());
    let mut changes = match typed {
        Some(Ok(changes)) => changes,
        // Of what is created, every field is shown: a guess at the keys of lists serves nobody.
        _ if creates => sides.typed(Type::new(&deduced, &any)).unwrap_or_default(),
        _ => sides.guessed(),
    };
    let parts = of.filter(|_| !guessed).and_then(|of| places::of(of, &sides.new).ok()).unwrap_or_default();
    for path in before.moved(&after).into_iter().filter(|path| !is_bookkeeping(path)) {
        let part = parts.get(&path).map(Place::alone);
        let has_parts = |value: &Value| matches!(value, Value::Object(_) | Value::Array(_));
        let empty = |value: &Value| {
            value.as_object().is_some_and(Map::is_empty) || value.as_array().is_some_and(Vec::is_empty)
        };
        let kept = part.filter(|part| !(has_parts(part) && empty(part)));
        changes.entry(path).or_insert(Change::Kept(kept));
    }
    let fields = changes.into_iter().map(|(path, change)| {
        let owners = Owners::new(before.of_field(&path), after.of_field(&path));
        let is_free = owners.after.is_empty() && (is_allocated(first, &path) || is_fresh(&change, now));
        let change = if is_free { unknown(change) } else { change };
        Field { path, change, owners, conflict: None }
    });
    let says_something = |field: &Field| {
        field.owners.before != field.owners.after || field.change != Change::Added(Future::Known(Value::Null))
    };
    Ok(Found { fields: fields.filter(says_something).collect(), guessed })
}

/// What somebody declares of an object that the API server cannot be asked about yet: all of it comes into being.
pub(super) fn declared(of: Option<Type<'_>>, manifest: &Value, owner: super::owner::Owner) -> Vec<Field> {
    let sides = Sides { old: Value::Object(Map::new()), new: essence(manifest, true), others: Vec::new() };
    let (deduced, any) = (Schema::deduced(), TypeRef::deduced());
    let changes = of.and_then(|of| sides.typed(of).ok());
    let changes = changes.or_else(|| sides.typed(Type::new(&deduced, &any)).ok()).unwrap_or_default();
    let owners = Owners { before: Vec::new(), after: vec![owner] };
    let field = |(path, change)| Field { path, change, owners: owners.clone(), conflict: None };
    changes.into_iter().map(field).collect()
}

/// What the API server alone writes, along with any other change.
pub(super) const BOOKKEEPING: [&str; 6] =
    ["creationTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid"];

fn is_bookkeeping(path: &Path) -> bool {
    match path.steps() {
        [Step::Field(top), Step::Field(name), ..] => {
            top == "metadata" && BOOKKEEPING.contains(&name.as_str())
        }
        _ => false,
    }
}

/// An object without bookkeeping and without its name. What is created has no status yet: nobody applies it.
pub(super) fn essence(object: &Value, creates: bool) -> Value {
    let Value::Object(fields) = object else { return object.clone() };
    let mut kept = Map::new();
    for (name, value) in fields {
        match (name.as_str(), value) {
            ("apiVersion" | "kind", _) => {}
            ("status", _) if creates => {}
            ("metadata", Value::Object(metadata)) => {
                let is_kept =
                    |name: &str| !matches!(name, "name" | "namespace") && !BOOKKEEPING.contains(&name);
                let metadata = metadata.iter().filter(|(name, _)| is_kept(name));
                let metadata: Map<String, Value> =
                    metadata.map(|(name, value)| (name.clone(), value.clone())).collect();
                if !metadata.is_empty() {
                    kept.insert(name.clone(), Value::Object(metadata));
                }
            }
            _ => {
                kept.insert(name.clone(), value.clone());
            }
        }
    }
    Value::Object(kept)
}

/// What is compared.
struct Sides {
    old: Value,
    new: Value,
    others: Vec<Value>,
}

impl Sides {
    fn typed(&self, of: Type<'_>) -> Result<BTreeMap<Path, Change>, Fault> {
        let found = of.compare(&self.old, &self.new)?;
        let open = self.open(of)?;
        let (olds, news) = (places::of(of, &self.old)?, places::of(of, &self.new)?);
        let old = |path: &Path| olds.get(path).map(Place::alone).unwrap_or_default();
        let new = |path: &Path| match open.has(path) {
            true => Future::KnownAfterApply,
            false => Future::Known(news.get(path).map(Place::alone).unwrap_or_default()),
        };
        let mut changes = BTreeMap::new();
        for (path, before, after) in order::changed(of, &self.old, &self.new) {
            changes.insert(path, Change::Reordered(before, after));
        }
        for path in &found.removed.leaves() {
            changes.insert(path.clone(), Change::Removed(old(&path)));
        }
        for path in &found.added.leaves() {
            let change = match changes.get(&path) {
                // It changed its shape.
                Some(Change::Removed(before)) => Change::Changed(before.clone(), new(&path)),
                _ => Change::Added(new(&path)),
            };
            changes.insert(path, change);
        }
        for path in &found.modified.leaves() {
            changes.insert(path.clone(), Change::Changed(old(&path), new(&path)));
        }
        Ok(changes)
    }

    /// The fields on which the answers do not agree.
    fn open(&self, of: Type<'_>) -> Result<FieldSet, Fault> {
        let mut open = FieldSet::new();
        for other in &self.others {
            let found = of.compare(&self.new, other)?;
            open = open.union(&found.added).union(&found.modified).union(&found.removed);
        }
        Ok(open)
    }

    /// Without a type, the items of lists are named as they usually are.
    fn guessed(&self) -> BTreeMap<Path, Change> {
        // There is nothing left to redact.
        let redaction = Redaction::new("");
        let diff =
            |old: &Value, new: &Value| kausality_fields::object(Some(old), Some(new), &redaction).changes;
        let open: BTreeSet<Path> =
            self.others.iter().flat_map(|other| diff(&self.new, other)).map(|change| change.path).collect();
        let plain = |leaf: &kausality_fields::Leaf| serde_json::to_value(leaf).unwrap_or_default();
        let change = |change: kausality_fields::Change| {
            let new = |leaf| match open.contains(&change.path) {
                true => Future::KnownAfterApply,
                false => Future::Known(plain(leaf)),
            };
            let what = match (&change.old, &change.new) {
                (Some(old), Some(leaf)) => Change::Changed(plain(old), new(leaf)),
                (None, Some(leaf)) => Change::Added(new(leaf)),
                (Some(old), None) => Change::Removed(plain(old)),
                (None, None) => Change::Kept(None),
            };
            (change.path, what)
        };
        diff(&self.old, &self.new).into_iter().map(change).collect()
    }
}

/// The same change to a value that is not known yet.
fn unknown(change: Change) -> Change {
    match change {
        Change::Added(_) => Change::Added(Future::KnownAfterApply),
        Change::Changed(old, _) => Change::Changed(old, Future::KnownAfterApply),
        other => other,
    }
}

/// How old a time may be that a dry-run has written.
const FRESH: Duration = Duration::from_secs(120);

/// Whether it is the time. Dry-runs within one second write the same, and an apply will write another.
fn is_fresh(change: &Change, now: Timestamp) -> bool {
    let (Change::Added(Future::Known(value)) | Change::Changed(_, Future::Known(value))) = change else {
        return false;
    };
    let time = value.as_str().and_then(|text| text.parse::<Timestamp>().ok());
    time.is_some_and(|time| time.duration_since(now).unsigned_abs() < FRESH)
}

#[cfg(test)]
mod tests;
