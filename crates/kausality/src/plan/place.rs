//! Fields as the API server names them in complaints: `spec.ports[0].nodePort`, `.spec.ports[port=53].name`.

use kausality_fields::{Path, Step, typed::Type};
use serde_json::Value;

use super::{conflict, order};

/// The field that is meant. Items are named by their keys, as far as the object has them and its type is known.
pub(super) fn named(text: &str, object: &Value, of: Option<Type<'_>>) -> Path {
    let mut at = Cursor { value: Some(object), of };
    let mut steps = Vec::new();
    let mut rest = text.strip_prefix('.').unwrap_or(text);
    while !rest.is_empty() {
        let (name, bracketed, after) = next(rest);
        rest = after;
        if name.is_empty() {
            continue;
        }
        steps.push(at.step(name, bracketed));
    }
    steps.into_iter().collect()
}

/// The next name, whether it stood in brackets, and what follows.
fn next(text: &str) -> (&str, bool, &str) {
    if let Some(inner) = text.strip_prefix('[') {
        let (name, rest) = inner.split_once(']').unwrap_or((inner, ""));
        return (name, true, rest);
    }
    let text = text.strip_prefix('.').unwrap_or(text);
    let (name, rest) = text.split_at(text.find(['.', '[']).unwrap_or(text.len()));
    (name, false, rest)
}

struct Cursor<'a> {
    value: Option<&'a Value>,
    of: Option<Type<'a>>,
}

impl Cursor<'_> {
    /// The position of the item that is written so.
    fn keyed(&self, text: &str) -> Option<usize> {
        let (items, of) = (self.value?.as_array()?, self.of?);
        let is_it = |item: &Value| {
            order::step(of, item)
                .is_some_and(|step| conflict::written(&Path::from_iter([step])) == format!("[{text}]"))
        };
        items.iter().position(is_it)
    }

    fn step(&mut self, name: &str, bracketed: bool) -> Step {
        let by_key = self.keyed(name).filter(|_| bracketed);
        let index = by_key.or_else(|| name.parse::<usize>().ok().filter(|_| bracketed));
        let is_object = self.value.is_some_and(Value::is_object);
        match (index, self.of) {
            (Some(index), of) if !is_object => {
                let item = self.value.and_then(|value| value.get(index));
                let step = item.zip(of).and_then(|(item, of)| order::step(of, item));
                let inner = of.and_then(order::list).map(|list| list.element);
                self.value = item;
                self.of = of.zip(inner).map(|(of, inner)| Type::new(of.schema(), inner));
                step.unwrap_or(Step::Index(index))
            }
            (_, of) => {
                let name = name.trim_matches('"');
                self.value = self.value.and_then(|value| value.get(name));
                self.of = of.and_then(|of| Some(Type::new(of.schema(), order::field(of, name)?)));
                Step::Field(name.to_owned())
            }
        }
    }
}
