//! One value on top of another.

use super::{Fault, Invalid, Shape, Type, bounded, field, identity, narrowed, validate};
use crate::path::Step;
use crate::schema::{Relationship, ResolvedList, ResolvedMap};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// What comes of both; `None` if there is neither.
pub(super) fn merge(
    of: Type<'_>,
    old: Option<&Value>,
    new: Option<&Value>,
    depth: usize,
) -> Result<Option<Value>, Fault> {
    let depth = bounded(depth)?;
    let (Some(before), Some(after)) = (old, new) else { return Ok(new.or(old).cloned()) };
    match of.shape(narrowed(of.resolve()?, new))? {
        Shape::Scalar(kind) => {
            if let (Err(fault), Err(_)) = (validate::scalar(kind, after), validate::scalar(kind, before)) {
                return Err(fault.into());
            }
        }
        Shape::Map(map) => {
            let [old, new] = [before, after].map(Value::as_object);
            let bare = |map: Option<&Map<_, _>>| map.is_none_or(Map::is_empty);
            if map.relationship == Relationship::Separable && !(bare(old) && bare(new)) {
                return fields(of, map, old, new, depth).map(Some);
            }
        }
        Shape::List(list) => {
            let [old, new] = [before, after].map(|value| value.as_array().map_or(&[][..], Vec::as_slice));
            if list.relationship == Relationship::Separable && !(old.is_empty() && new.is_empty()) {
                return items(of, list, old, new, depth).map(|items| Some(Value::Array(items)));
            }
        }
    }
    Ok(Some(after.clone()))
}

fn fields(
    of: Type<'_>,
    map: ResolvedMap<'_>,
    old: Option<&Map<String, Value>>,
    new: Option<&Map<String, Value>>,
    depth: usize,
) -> Result<Value, Fault> {
    let mut merged = old.cloned().unwrap_or_default();
    for (name, value) in new.into_iter().flatten() {
        let old = old.and_then(|old| old.get(name));
        let value =
            merge(of.field(map, name)?, old, Some(value), depth).map_err(|fault| fault.below(field(name)))?;
        merged.extend(value.map(|value| (name.clone(), value)));
    }
    Ok(Value::Object(merged))
}

/// Both lists in one walk. It goes along the old list until the next item that both have is due, so that items of
/// the old list alone stay behind the item they followed.
fn items(
    of: Type<'_>,
    list: ResolvedList<'_>,
    old: &[Value],
    new: &[Value],
    depth: usize,
) -> Result<Vec<Value>, Fault> {
    let step = |item| identity::step(of, list, item);
    let old_steps = old.iter().map(step).collect::<Result<Vec<_>, _>>()?;
    let new_steps = new.iter().map(step).collect::<Result<Vec<_>, _>>()?;
    let (before, after) = (Side::new(&old_steps, old), Side::new(&new_steps, new));
    if let Some(again) = after.repeated {
        return Err(Invalid::Duplicate(again.clone()).into());
    }
    let both = |step: &Step| -> Result<Value, Fault> {
        let merged = merge(of.item(list), before.get(step), after.get(step), depth);
        Ok(merged.map_err(|fault| fault.below(step.clone()))?.unwrap_or(Value::Null))
    };

    let mut shared = new_steps.iter().filter(|step| before.has(step)).peekable();
    let mut merged = Vec::with_capacity(old.len().max(new.len()));
    let mut done = BTreeSet::new();
    let (mut l, mut r) = (0, 0);
    loop {
        match (old_steps.get(l), new_steps.get(r)) {
            (None, None) => return Ok(merged),
            (Some(left), Some(right)) if left == right => {
                merged.push(both(right)?);
                done.insert(right);
                shared.next();
                (l, r) = (l + 1, r + 1);
            }
            // An item of both, but another is due first. Its turn comes with the new list.
            (Some(left), Some(_)) if after.has(left) && shared.peek().is_some_and(|due| *due != left) => {
                l += 1
            }
            (Some(left), _) if !after.has(left) => {
                merged.extend(old.get(l).cloned());
                l += 1;
            }
            (left, Some(right)) => {
                if left.is_some_and(|left| done.contains(left)) {
                    l += 1;
                }
                merged.push(both(right)?);
                done.insert(right);
                shared.next_if_eq(&right);
                r += 1;
            }
            (Some(_), None) => l += 1,
        }
    }
}

/// The items of one list by identity. Items that share one are known to be there, but have no value to merge with.
struct Side<'a> {
    items: BTreeMap<&'a Step, Option<&'a Value>>,
    repeated: Option<&'a Step>,
}

impl<'a> Side<'a> {
    fn new(steps: &'a [Step], items: &'a [Value]) -> Self {
        let mut side = Self { items: BTreeMap::new(), repeated: None };
        for (step, item) in steps.iter().zip(items) {
            if side.items.insert(step, Some(item)).is_some() {
                side.items.insert(step, None);
                side.repeated = Some(step);
            }
        }
        side
    }

    fn has(&self, step: &Step) -> bool {
        self.items.contains_key(step)
    }

    fn get(&self, step: &Step) -> Option<&'a Value> {
        self.items.get(step).copied().flatten()
    }
}
