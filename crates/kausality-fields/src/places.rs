//! The values of an object by their paths.

use crate::path::{Path, Step};
use crate::schema::{Relationship, Resolved, ResolvedList};
use crate::typed::{Fault, Type};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Every value of an object that has a path of its own.
pub type Places<'s, 'v> = BTreeMap<Path, Place<'s, 'v>>;

/// A value and its type.
#[derive(Debug)]
pub struct Place<'s, 'v> {
    /// The type.
    pub of: Type<'s>,
    /// Of items that share an identity, the list of them.
    pub value: Cow<'v, Value>,
}

/// The values of a valid object.
pub fn of<'s, 'v>(of: Type<'s>, object: &'v Value) -> Result<Places<'s, 'v>, Fault> {
    let mut places = Places::new();
    walk(of, object, &Path::default(), &mut places)?;
    Ok(places)
}

fn walk<'s, 'v>(
    of: Type<'s>,
    value: &'v Value,
    way: &Path,
    places: &mut Places<'s, 'v>,
) -> Result<(), Fault> {
    match (of.schema().resolve(of.reference()), value) {
        (Some(Resolved { map: Some(map), .. }), Value::Object(fields))
            if map.relationship == Relationship::Separable =>
        {
            for (name, value) in fields {
                let Some(field) = map.field(name) else { continue };
                let of = Type::new(of.schema(), field);
                let path = way.clone().join(Step::Field(name.clone()));
                walk(of, value, &path, places)?;
                places.insert(path, Place { of, value: Cow::Borrowed(value) });
            }
        }
        (Some(Resolved { list: Some(list), .. }), Value::Array(items))
            if list.relationship == Relationship::Separable =>
        {
            let mut by_step: BTreeMap<Step, Vec<&'v Value>> = BTreeMap::new();
            for item in items {
                by_step.entry(identity(of, list, item)?).or_default().push(item);
            }
            let of = Type::new(of.schema(), list.element);
            for (step, items) in by_step {
                let path = way.clone().join(step);
                let value = match items.as_slice() {
                    [item] => {
                        walk(of, item, &path, places)?;
                        Cow::Borrowed(*item)
                    }
                    _ => Cow::Owned(items.into_iter().cloned().collect()),
                };
                places.insert(path, Place { of, value });
            }
        }
        _ => {}
    }
    Ok(())
}

/// The step to an item, as the fields of a list of its own say.
fn identity(of: Type<'_>, list: ResolvedList<'_>, item: &Value) -> Result<Step, Fault> {
    let only_keys = |fields: &Map<String, Value>| {
        let key = |name: &String| Some((name.clone(), fields.get(name)?.clone()));
        list.keys.iter().filter_map(key).collect::<Map<_, _>>()
    };
    let item = match item {
        Value::Object(fields) => Value::Object(only_keys(fields)),
        other => other.clone(),
    };
    let fields = of.field_set(&Value::Array(vec![item]))?;
    // The list has one item, so there is one step.
    Ok(fields.nodes().first().map_or(Step::Index(0), |node| node.step.clone()))
}

impl Place<'_, '_> {
    /// The value; of an object or a list whose parts have places of their own, that it is there.
    pub fn alone(&self) -> Value {
        match &*self.value {
            Value::Object(_) if self.is_separable() => Value::Object(Map::new()),
            Value::Array(_) if self.is_separable() => Value::Array(Vec::new()),
            value => value.clone(),
        }
    }

    /// Whether parts of it may have other owners, so that an empty one says nothing of what is in it.
    pub fn is_separable(&self) -> bool {
        match (self.of.schema().resolve(self.of.reference()), &*self.value) {
            (Some(Resolved { map: Some(map), .. }), Value::Object(_)) => {
                map.relationship == Relationship::Separable
            }
            (Some(Resolved { list: Some(list), .. }), Value::Array(_)) => {
                list.relationship == Relationship::Separable
            }
            _ => false,
        }
    }
}
