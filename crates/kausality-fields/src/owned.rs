//! An object field by field, with the owners of each.
//!
//! No schema is needed: what somebody owns says how it is identified. A list of which nobody owns an item is one field.

use crate::managed::Entry;
use crate::path::{Path, Step};
use crate::redact;
use crate::scalar::Scalar;
use crate::set::FieldSet;
use serde_json::{Map, Value};

/// Levels below which a value is one field.
const MAX_DEPTH: usize = 64;

/// A field, and who owns it.
#[derive(Debug, Clone, PartialEq)]
pub struct Owned<'a> {
    /// Where it is.
    pub path: Path,
    /// Its value; an object or list that has been taken apart has none.
    pub value: Option<&'a Value>,
    /// Its owners, in the order of the entries.
    pub owners: Vec<&'a Entry>,
}

/// The fields of an object in the order of its parts: each object and list before what is in it.
pub fn fields<'a>(object: &'a Value, entries: &'a [Entry]) -> Vec<Owned<'a>> {
    let mut walk = Walk { texts: Vec::new(), way: Vec::new(), found: Vec::new() };
    let claims = entries.iter().map(|entry| (entry, &entry.fields)).collect::<Vec<_>>();
    // The API server keeps the texts of a Secret under another name than they are owned by.
    let texts = Step::Field("stringData".to_owned());
    let texts: Vec<Claim<'_>> = match redact::is_secret(object) {
        true => claims.iter().filter_map(|(entry, set)| Some((*entry, set.below(&texts)?))).collect(),
        false => Vec::new(),
    };
    walk.texts = texts;
    if let Value::Object(fields) = object {
        walk.object(fields, &claims);
    }
    walk.found
}

/// An entry, and what it owns below a place.
type Claim<'a> = (&'a Entry, &'a FieldSet);

struct Walk<'a> {
    /// What is owned of a Secret as text.
    texts: Vec<Claim<'a>>,
    way: Vec<Step>,
    found: Vec<Owned<'a>>,
}

impl<'a> Walk<'a> {
    fn object(&mut self, fields: &'a Map<String, Value>, claims: &[Claim<'a>]) {
        for (name, value) in fields {
            self.at(Step::Field(name.clone()), value, claims);
        }
    }

    /// Looks at what is one step further on.
    fn at(&mut self, step: Step, value: &'a Value, claims: &[Claim<'a>]) {
        let owners: Vec<&Entry> =
            claims.iter().filter(|(_, set)| set.has_step(&step)).map(|(entry, _)| *entry).collect();
        let mut below: Vec<Claim<'a>> =
            claims.iter().filter_map(|(entry, set)| Some((*entry, set.below(&step)?))).collect();
        if self.way.is_empty() && matches!(&step, Step::Field(name) if name == "data") {
            below.append(&mut self.texts);
        }
        // Whoever owns an object without owning anything in it owns it as a whole.
        let whole = below.is_empty() && !owners.is_empty();
        self.way.push(step);
        let deep = self.way.len() >= MAX_DEPTH;
        let path = || self.way.iter().cloned().collect();
        match value {
            Value::Object(fields) if !fields.is_empty() && !whole && !deep => {
                self.found.push(Owned { path: path(), value: None, owners });
                self.object(fields, &below);
            }
            Value::Array(items) if !deep => match identities(items, &below) {
                Some(steps) => {
                    self.found.push(Owned { path: path(), value: None, owners });
                    for (step, item) in steps.into_iter().zip(items) {
                        self.at(step, item, &below);
                    }
                }
                None => self.found.push(Owned { path: path(), value: Some(value), owners }),
            },
            _ => self.found.push(Owned { path: path(), value: Some(value), owners }),
        }
        self.way.pop();
    }
}

/// What identifies the items of a list, to go by those that have owners; `None` if it is owned as a whole.
fn identities(items: &[Value], claims: &[Claim<'_>]) -> Option<Vec<Step>> {
    let owned = || claims.iter().flat_map(|(_, set)| set.steps());
    match owned().next()? {
        Step::Key(parts) => {
            let names: Vec<&str> = parts.iter().map(|(name, _)| name.as_ref()).collect();
            Some(items.iter().map(|item| key(item, &names, owned())).collect())
        }
        Step::Value(_) => items.iter().map(|item| Scalar::of(item).map(Step::Value)).collect(),
        Step::Index(_) => Some((0..items.len()).map(Step::Index).collect()),
        Step::Field(_) => None,
    }
}

/// The step to an item. One that lacks a field of the key, since its default was never written, is the owned one that
/// has its other fields.
fn key<'s>(item: &Value, names: &[&str], mut owned: impl Iterator<Item = &'s Step>) -> Step {
    let has = |name: &str| item.get(name).and_then(Scalar::or_null);
    let parts: Vec<_> =
        names.iter().filter_map(|name| Some(((*name).to_owned().into(), has(name)?))).collect();
    if parts.len() == names.len() {
        return Step::Key(parts);
    }
    let fits = |step: &&Step| match step {
        Step::Key(owned) => parts.iter().all(|part| owned.contains(part)),
        _ => false,
    };
    owned.find(fits).cloned().unwrap_or(Step::Key(parts))
}

#[cfg(test)]
mod tests;
