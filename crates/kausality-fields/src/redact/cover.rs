//! One object or two versions of it, as they may be shown.

use super::{COPIES, Redaction, is_secret, names};
use crate::path::{Path, Step};
use crate::scalar::Scalar;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// Covers what must not be shown of versions of one object. If one of them is a Secret, or holds a secret, all do: a value must not
/// leak because one side lost its kind, or its name.
pub(crate) struct Cover<'r> {
    redaction: &'r Redaction,
    secret: bool,
    /// The texts that are covered by their names, or since somebody named them, and not as values of a Secret.
    hidden: BTreeSet<String>,
    /// What stands for them.
    digests: BTreeSet<String>,
}

/// Fields that are named to be covered, each from where it is looked at: names, with lists stepped through.
type Named<'a> = Vec<&'a [String]>;

/// A walk down an object.
struct Walk<'h> {
    /// How deep it is.
    depth: usize,
    /// Is told of each text that is covered.
    hide: &'h mut dyn FnMut(&str),
}

/// How deep objects are looked into: no JSON that was read is deeper.
pub(super) const MAX_DEPTH: usize = 128;

impl<'h> Walk<'h> {
    fn new(hide: &'h mut dyn FnMut(&str)) -> Self {
        Self { depth: 0, hide }
    }
}

impl<'r> Cover<'r> {
    /// For these versions of an object.
    pub(crate) fn of<'a>(objects: impl IntoIterator<Item = &'a Value>, redaction: &'r Redaction) -> Self {
        let mut cover = Self { redaction, secret: false, hidden: BTreeSet::new(), digests: BTreeSet::new() };
        let mut hidden = BTreeSet::new();
        for object in objects {
            let holds_values = is_secret(object);
            cover.secret |= holds_values;
            let is_shown = |name: &str| !(is_ignored(name) || holds_values && is_data(name));
            let named = cover.named();
            for (name, value) in object.as_object().into_iter().flatten().filter(|(name, _)| is_shown(name)) {
                cover.entry(
                    name,
                    value,
                    None,
                    &named,
                    &mut Walk::new(&mut |text| hidden.extend([text.to_owned()])),
                );
            }
        }
        let marker = |text: &String| redaction.marker(&Value::String(text.clone()));
        cover.digests =
            hidden.iter().filter_map(|text| marker(text).as_str().map(ToOwned::to_owned)).collect();
        cover.hidden = hidden;
        cover
    }

    /// Whether it covers the values of a Secret.
    pub(crate) fn is_of_secret(&self) -> bool {
        self.secret
    }

    /// Texts that are covered, outside of Secrets.
    pub(super) fn hidden(&self) -> impl Iterator<Item = &str> {
        self.hidden.iter().map(String::as_str)
    }

    /// Whether a text is a digest that stands for a covered one.
    pub(crate) fn is_digest(&self, text: &str) -> bool {
        self.digests.contains(text)
    }

    /// A top-level field.
    pub(crate) fn field<'a>(&self, name: &str, value: Cow<'a, Value>) -> Cow<'a, Value> {
        match name {
            _ if self.secret && is_data(name) => return Cow::Owned(self.redaction.values(&value)),
            _ if is_ignored(name) => return value,
            _ => {}
        }
        let covered = self.entry(name, &value, None, &self.named(), &mut Walk::new(&mut |_| {}));
        let value = covered.map_or(value, Cow::Owned);
        match name {
            "metadata" if self.secret || !self.hidden.is_empty() => self.redaction.copies(value),
            _ => value,
        }
    }

    /// What stands where an object should.
    pub(crate) fn other<'a>(&self, value: &'a Value) -> Cow<'a, Value> {
        if self.secret { Cow::Owned(self.redaction.marker(value)) } else { Cow::Borrowed(value) }
    }

    /// A whole object.
    pub(crate) fn object(&self, object: Value) -> Value {
        match object {
            Value::Object(fields) => {
                let covered = |(name, value): (String, Value)| {
                    let value = self.field(&name, Cow::Owned(value)).into_owned();
                    (name, value)
                };
                fields.into_iter().map(covered).collect()
            }
            Value::Null => Value::Null,
            other if self.secret => self.redaction.marker(&other),
            other => other,
        }
    }

    /// The value at a path.
    pub(crate) fn at(&self, path: &Path, value: &Value) -> Value {
        let steps = path.steps();
        if let [Step::Field(name)] = steps {
            return self.field(name, Cow::Borrowed(value)).into_owned();
        }
        let whole = || self.redaction.marker(value);
        if self.secret {
            match steps {
                [Step::Field(name), ..] if is_data(name) => return whole(),
                _ if super::is_redacted(steps) => return whole(),
                _ => {}
            }
        }
        if let [Step::Field(metadata), Step::Field(annotations), Step::Field(name)] = steps
            && metadata == "metadata"
            && annotations == "annotations"
            && COPIES.contains(&name.as_str())
            && !self.hidden.is_empty()
        {
            return whole();
        }
        let mut named = self.named();
        let mut last = None;
        let mut variable = None;
        for step in steps {
            match step {
                Step::Field(name) => {
                    if named.iter().any(|rest| rest.is_empty()) {
                        return whole();
                    }
                    named = below(&named, name);
                    last = Some(name);
                }
                Step::Key(parts) => {
                    variable = parts.iter().find_map(|(key, value)| match value {
                        Scalar::Text(text) if key == "name" || key == "key" => Some(text.as_str()),
                        _ => None,
                    });
                    continue;
                }
                _ => {}
            }
            if !matches!(step, Step::Field(name) if name == "value") {
                variable = None;
            }
        }
        if named.iter().any(|rest| rest.is_empty()) {
            return self.redaction.values(value);
        }
        let ends_in_list = !matches!(steps.last(), Some(Step::Field(_)));
        let covered = match last {
            // An item of a list of secrets is one, too.
            Some(name) if !ends_in_list || value.is_string() => {
                self.valued(name, value, variable, &named, &mut Walk::new(&mut |_| {}))
            }
            _ => self.within(value, &named, &mut Walk::new(&mut |_| {})),
        };
        covered.unwrap_or_else(|| value.clone())
    }

    fn named(&self) -> Named<'_> {
        self.redaction.fields.iter().map(Vec::as_slice).collect()
    }

    /// A field of an object, if anything of it is covered. `variable` is what the object calls itself.
    fn entry(
        &self,
        name: &str,
        value: &Value,
        variable: Option<&str>,
        named: &[&[String]],
        walk: &mut Walk<'_>,
    ) -> Option<Value> {
        let named = below(named, name);
        if named.iter().any(|rest| rest.is_empty()) && !value.is_null() {
            texts(value, walk.hide);
            return Some(self.redaction.values(value));
        }
        self.valued(name, value, variable, &named, walk)
    }

    /// The same, where `named` go on below it.
    fn valued(
        &self,
        name: &str,
        value: &Value,
        variable: Option<&str>,
        named: &[&[String]],
        walk: &mut Walk<'_>,
    ) -> Option<Value> {
        let is_secret =
            || names::of_field(name) || name == "value" && variable.is_some_and(names::of_variable);
        let text = |text: &str, walk: &mut Walk<'_>| {
            (walk.hide)(text);
            self.redaction.marker(&Value::String(text.to_owned()))
        };
        match value {
            Value::String(secret) if names::is_value(secret) && is_secret() => Some(text(secret, walk)),
            Value::Array(items) if !items.is_empty() && items.iter().all(Value::is_string) && is_secret() => {
                Some(items.iter().filter_map(Value::as_str).map(|item| text(item, walk)).collect())
            }
            _ => self.within(value, named, walk),
        }
    }

    /// A value, if anything in it is covered.
    fn within(&self, value: &Value, named: &[&[String]], walk: &mut Walk<'_>) -> Option<Value> {
        if walk.depth >= MAX_DEPTH {
            return None;
        }
        walk.depth += 1;
        let covered = self.inside(value, named, walk);
        walk.depth -= 1;
        covered
    }

    fn inside(&self, value: &Value, named: &[&[String]], walk: &mut Walk<'_>) -> Option<Value> {
        match value {
            Value::Object(fields) => {
                let variable = ["name", "key"].into_iter().find_map(|name| fields.get(name)?.as_str());
                let covered: Vec<(&String, Value)> = fields
                    .iter()
                    .filter_map(|(name, value)| Some((name, self.entry(name, value, variable, named, walk)?)))
                    .collect();
                if covered.is_empty() {
                    return None;
                }
                let mut fields: Map<String, Value> = fields.clone();
                fields.extend(covered.into_iter().map(|(name, value)| (name.clone(), value)));
                Some(Value::Object(fields))
            }
            Value::Array(items) => {
                let covered: Vec<Option<Value>> =
                    items.iter().map(|item| self.within(item, named, walk)).collect();
                if covered.iter().all(Option::is_none) {
                    return None;
                }
                Some(
                    covered
                        .into_iter()
                        .zip(items)
                        .map(|(new, old)| new.unwrap_or_else(|| old.clone()))
                        .collect(),
                )
            }
            Value::String(key) if names::is_private_key(key) => {
                (walk.hide)(key);
                Some(self.redaction.marker(value))
            }
            _ => None,
        }
    }
}

/// What says what an object is, and holds no values.
fn is_ignored(name: &str) -> bool {
    matches!(name, "apiVersion" | "kind")
}

/// Whether a field of a Secret holds its values.
fn is_data(name: &str) -> bool {
    matches!(name, "data" | "stringData")
}

/// The named fields that go on below a field.
fn below<'a>(named: &[&'a [String]], name: &str) -> Named<'a> {
    let rest =
        |field: &&'a [String]| field.split_first().filter(|(first, _)| *first == name).map(|(_, rest)| rest);
    named.iter().filter_map(rest).collect()
}

/// All texts in a value.
fn texts(value: &Value, hide: &mut dyn FnMut(&str)) {
    let mut left = vec![value];
    while let Some(value) = left.pop() {
        match value {
            Value::String(text) => hide(text),
            Value::Array(items) => left.extend(items),
            Value::Object(fields) => left.extend(fields.values()),
            _ => {}
        }
    }
}
