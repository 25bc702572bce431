//! Parts of a value: only these, or all but these.

use super::{Fault, Keys, MAX_DEPTH, Shape, Type, bounded, field, identity};
use crate::path::Step;
use crate::schema::{Relationship, ResolvedList};
use crate::set::{FieldSet, Node};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

pub(super) fn empty(of: Type<'_>, depth: usize) -> Value {
    let mut fields = Map::new();
    let resolved = of.schema.resolve(of.of).filter(|_| depth < MAX_DEPTH);
    for (name, declared) in resolved.and_then(|of| of.map).into_iter().flat_map(|map| map.fields) {
        if declared.default.as_ref().and_then(Value::as_object).is_some_and(Map::is_empty) {
            fields.insert(name.clone(), empty(Type { of: &declared.of, ..of }, depth + 1));
        }
    }
    Value::Object(fields)
}

pub(super) fn remove(of: Type<'_>, value: &Value, set: &FieldSet, depth: usize) -> Result<Value, Fault> {
    let depth = bounded(depth)?;
    match (of.shape_of(value)?, value) {
        (Shape::Map(map), Value::Object(fields)) => {
            let mut left = Map::new();
            for (name, value) in fields.iter().filter(|_| map.relationship == Relationship::Separable) {
                let step = field(name);
                if set.has_step(&step) {
                    continue;
                }
                let value = match set.below(&step) {
                    Some(below) => remove(of.field(map, name)?, value, below, depth)
                        .map_err(|fault| fault.below(step))?,
                    None => value.clone(),
                };
                left.insert(name.clone(), value);
            }
            Ok(if left.is_empty() { Value::Null } else { Value::Object(left) })
        }
        (Shape::List(list), Value::Array(items)) => {
            let mut left = Vec::new();
            for item in items.iter().filter(|_| list.relationship == Relationship::Separable) {
                let step = identity::step(of, list, item)?;
                if set.has_step(&step) {
                    continue;
                }
                left.push(match set.below(&step) {
                    Some(below) => {
                        remove(of.item(list), item, below, depth).map_err(|fault| fault.below(step))?
                    }
                    None => item.clone(),
                });
            }
            Ok(if left.is_empty() { Value::Null } else { Value::Array(left) })
        }
        (_, value) => Ok(value.clone()),
    }
}

pub(super) fn extract(
    of: Type<'_>,
    value: &Value,
    set: &FieldSet,
    keys: Keys,
    depth: usize,
) -> Result<Value, Fault> {
    let depth = bounded(depth)?;
    match (of.shape_of(value)?, value) {
        (Shape::Map(map), Value::Object(fields)) if map.relationship == Relationship::Separable => {
            let mut kept = Map::new();
            for (name, value) in fields {
                let step = field(name);
                let below = set.below(&step);
                if below.is_some() || set.has_step(&step) {
                    let below = below.unwrap_or(&NOTHING);
                    let value = extract(of.field(map, name)?, value, below, keys, depth);
                    kept.insert(name.clone(), value.map_err(|fault| fault.below(step))?);
                }
            }
            Ok(Value::Object(kept))
        }
        (Shape::List(list), Value::Array(items)) if list.relationship == Relationship::Separable => {
            extract_items(of, list, items, set, keys, depth)
        }
        (_, value) => Ok(value.clone()),
    }
}

static NOTHING: FieldSet = FieldSet::new();

fn extract_items(
    of: Type<'_>,
    list: ResolvedList<'_>,
    items: &[Value],
    set: &FieldSet,
    keys: Keys,
    depth: usize,
) -> Result<Value, Fault> {
    let steps = items.iter().map(|item| identity::step(of, list, item)).collect::<Result<Vec<_>, _>>()?;
    let mut count: BTreeMap<&Step, usize> = BTreeMap::new();
    steps.iter().for_each(|step| *count.entry(step).or_default() += 1);

    let mut kept = Vec::new();
    for (step, item) in steps.iter().zip(items) {
        let below = set.below(step);
        if below.is_none() && !set.has_step(step) {
            continue;
        }
        // Items that share an identity are owned as a whole.
        if below.is_none() && count.get(step).is_some_and(|count| *count > 1) {
            kept.push(item.clone());
            continue;
        }
        let below = match keys {
            Keys::Included => &below.unwrap_or(&NOTHING).union(&key_fields(list)),
            Keys::AsAsked => below.unwrap_or(&NOTHING),
        };
        let item = extract(of.item(list), item, below, keys, depth);
        kept.push(item.map_err(|fault| fault.below(step.clone()))?);
    }
    Ok(Value::Array(kept))
}

fn key_fields(list: ResolvedList<'_>) -> FieldSet {
    let node = |name: &String| Node { step: field(name), member: true, below: FieldSet::new() };
    FieldSet::of_nodes(list.keys.iter().map(node).collect())
}
