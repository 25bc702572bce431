//! From a value to the fields that make it up.

use super::{Fault, Shape, Type, bounded, field, identity};
use crate::schema::{Relationship, ResolvedList};
use crate::set::{FieldSet, Node};
use serde_json::Value;
use std::collections::BTreeMap;

pub(super) fn of(of: Type<'_>, value: &Value) -> Result<FieldSet, Fault> {
    walk(of, value, 0).map(|fields| fields.below)
}

struct Fields {
    /// Whether the value is a field in its own right, and not only by its parts.
    itself: bool,
    below: FieldSet,
}

fn walk(of: Type<'_>, value: &Value, depth: usize) -> Result<Fields, Fault> {
    let depth = bounded(depth)?;
    let whole = Fields { itself: true, below: FieldSet::new() };
    let parts = |nodes| Fields { itself: false, below: FieldSet::of_nodes(nodes) };
    match (of.shape_of(value)?, value) {
        (Shape::Scalar(_), _) => Ok(whole),
        (Shape::Map(map), _) if map.relationship == Relationship::Atomic => Ok(whole),
        (Shape::List(list), _) if list.relationship == Relationship::Atomic => Ok(whole),
        (Shape::Map(map), Value::Object(fields)) => {
            let mut nodes = Vec::with_capacity(fields.len());
            for (name, value) in fields {
                let inner =
                    walk(of.field(map, name)?, value, depth).map_err(|fault| fault.below(field(name)))?;
                // What is there without parts could not be owned otherwise, nor could the key of a map.
                let bare = value.is_null() || value.as_object().is_some_and(|map| map.is_empty());
                let member = inner.itself || bare || !map.fields.contains_key(name);
                nodes.push(Node { step: field(name), member, below: inner.below });
            }
            Ok(parts(nodes))
        }
        (Shape::List(list), Value::Array(items)) => self::items(of, list, items, depth).map(parts),
        _ => Ok(parts(Vec::new())),
    }
}

fn items(of: Type<'_>, list: ResolvedList<'_>, items: &[Value], depth: usize) -> Result<Vec<Node>, Fault> {
    let mut by_step: BTreeMap<_, Vec<&Value>> = BTreeMap::new();
    for item in items {
        by_step.entry(identity::step(of, list, item)?).or_default().push(item);
    }
    let mut nodes = Vec::with_capacity(by_step.len());
    for (step, items) in by_step {
        let below = match items.as_slice() {
            [item] => match walk(of.item(list), item, depth) {
                Ok(fields) => fields.below,
                Err(fault) => return Err(fault.below(step)),
            },
            // Items with one identity between them are owned together, as a whole.
            _ => FieldSet::new(),
        };
        nodes.push(Node { step, member: true, below });
    }
    Ok(nodes)
}
