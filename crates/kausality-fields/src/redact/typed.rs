//! What a type calls a password.

use super::{Redaction, cover::MAX_DEPTH};
use crate::schema::{Format, Resolved};
use crate::typed::Type;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeSet;

impl Redaction {
    /// A redaction that also covers what the type of these objects calls a password (`format: password`).
    pub fn with_passwords<'a>(
        &self,
        of: Option<Type<'_>>,
        objects: impl IntoIterator<Item = &'a Value>,
    ) -> Cow<'_, Self> {
        let Some(of) = of else { return Cow::Borrowed(self) };
        let mut found = BTreeSet::new();
        for object in objects {
            walk(of, object, 0, &mut Vec::new(), &mut found);
        }
        if found.is_empty() {
            return Cow::Borrowed(self);
        }
        let mut more = self.clone();
        more.fields.extend(found);
        Cow::Owned(more)
    }
}

fn walk(of: Type<'_>, value: &Value, depth: usize, way: &mut Vec<String>, found: &mut BTreeSet<Vec<String>>) {
    let Some(Resolved { scalar, list, map }) = of.schema().resolve(of.reference()) else { return };
    if depth >= MAX_DEPTH {
        return;
    }
    match value {
        Value::Object(fields) => {
            let Some(map) = map else { return };
            for (name, value) in fields {
                let Some(field) = map.field(name) else { continue };
                way.push(name.clone());
                walk(Type::new(of.schema(), field), value, depth + 1, way, found);
                way.pop();
            }
        }
        Value::Array(items) => {
            let Some(list) = list else { return };
            let element = Type::new(of.schema(), list.element);
            items.iter().for_each(|item| walk(element, item, depth + 1, way, found));
        }
        _ => {
            if scalar.is_some_and(|scalar| scalar.format == Some(Format::Password)) {
                found.insert(way.clone());
            }
        }
    }
}
