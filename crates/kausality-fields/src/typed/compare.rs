//! What differs between two values.

use super::{Fault, Shape, Type, bounded, field, identity, narrowed, same, validate};
use crate::path::Step;
use crate::schema::{Relationship, ResolvedList, ResolvedMap};
use crate::set::{FieldSet, Node};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The fields that differ between two values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Comparison {
    /// In the new value alone.
    pub added: FieldSet,
    /// In both, with another value.
    pub modified: FieldSet,
    /// In the old value alone.
    pub removed: FieldSet,
}

impl Comparison {
    /// Whether nothing differs.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.modified.is_empty() && self.removed.is_empty()
    }

    /// The same for each of the three sets.
    pub(crate) fn map(&self, change: impl Fn(&FieldSet) -> FieldSet) -> Self {
        Self { added: change(&self.added), modified: change(&self.modified), removed: change(&self.removed) }
    }
}

pub(super) fn between(of: Type<'_>, old: &Value, new: &Value) -> Result<Comparison, Fault> {
    let found = walk(of, Some(old), Some(new), 0)?;
    let [added, modified, removed] = found.below.map(FieldSet::of_nodes);
    Ok(Comparison { added, modified, removed })
}

const ADDED: usize = 0;
const MODIFIED: usize = 1;
const REMOVED: usize = 2;

/// What was found at one place, for each of the three sets.
#[derive(Default)]
struct Found {
    /// Whether the place itself is a member.
    itself: [bool; 3],
    below: [Vec<Node>; 3],
}

impl Found {
    /// Takes in what was found one step further on.
    fn take(&mut self, step: &Step, found: Self) {
        let sets = self.below.iter_mut().zip(found.itself).zip(found.below);
        for ((nodes, member), below) in sets {
            if member || !below.is_empty() {
                nodes.push(Node { step: step.clone(), member, below: FieldSet::of_nodes(below) });
            }
        }
    }
}

fn walk(of: Type<'_>, old: Option<&Value>, new: Option<&Value>, depth: usize) -> Result<Found, Fault> {
    let depth = bounded(depth)?;
    let resolved = of.resolve()?;
    let [old_shape, new_shape] = [old, new].map(|value| of.shape(narrowed(resolved, value)));
    let (old_shape, new_shape) = (old_shape?, new_shape?);
    let mut at = Place { of, old, new, depth, found: Found::default() };
    let whole = match (old, new) {
        (_, None) => at.look(old_shape)?,
        // Of a value that changed its shape, the parts of the old are gone and those of the new are there.
        (Some(_), Some(_)) if !old_shape.is_like(&new_shape) => {
            at.look(old_shape)?;
            at.look(new_shape)?
        }
        (_, Some(_)) => at.look(new_shape)?,
    };
    if !whole {
        at.found.itself[ADDED] |= old.is_none();
        at.found.itself[REMOVED] |= new.is_none();
    }
    Ok(at.found)
}

/// Whether both are there and the same, so that nothing below can differ. Most of an object stays as it is when it is
/// written.
fn alike(old: Option<&Value>, new: Option<&Value>) -> bool {
    old.zip(new).is_some_and(|(old, new)| same(old, new))
}

/// One place in both values.
struct Place<'v, 's> {
    of: Type<'s>,
    old: Option<&'v Value>,
    new: Option<&'v Value>,
    depth: usize,
    found: Found,
}

impl<'s> Place<'_, 's> {
    /// Compares as one shape, and says whether that was as a whole.
    fn look(&mut self, shape: Shape<'s>) -> Result<bool, Fault> {
        match shape {
            Shape::Scalar(kind) => {
                let fault =
                    |value: Option<&Value>| value.and_then(|value| validate::scalar(kind, value).err());
                if let (Some(fault), Some(_)) = (fault(self.old), fault(self.new)) {
                    return Err(fault.into());
                }
            }
            Shape::Map(map) => {
                let [old, new] = [self.old, self.new].map(|value| value.and_then(Value::as_object));
                let bare = |map: Option<&Map<_, _>>| map.is_none_or(Map::is_empty);
                if map.relationship == Relationship::Separable && !(bare(old) && bare(new)) {
                    return self.fields(map, old, new).map(|()| false);
                }
            }
            Shape::List(list) => {
                let [old, new] = [self.old, self.new]
                    .map(|value| value.and_then(Value::as_array).map_or(&[][..], Vec::as_slice));
                if list.relationship == Relationship::Separable && !(old.is_empty() && new.is_empty()) {
                    return self.items(list, old, new).map(|()| false);
                }
            }
        }
        match (self.old, self.new) {
            (None, _) => self.found.itself[ADDED] = true,
            (_, None) => self.found.itself[REMOVED] = true,
            (Some(old), Some(new)) => self.found.itself[MODIFIED] |= !same(old, new),
        }
        Ok(true)
    }

    fn fields(
        &mut self,
        map: ResolvedMap<'s>,
        old: Option<&Map<String, Value>>,
        new: Option<&Map<String, Value>>,
    ) -> Result<(), Fault> {
        let added =
            new.into_iter().flatten().filter(|(name, _)| old.is_none_or(|old| !old.contains_key(*name)));
        let kept = old.into_iter().flatten().map(|(name, value)| (name, Some(value)));
        for (name, old) in kept.chain(added.map(|(name, _)| (name, None))) {
            let new = new.and_then(|new| new.get(name));
            if self.of.hides(name) {
                continue;
            }
            let of = self.of.field(map, name)?;
            if !alike(old, new) {
                self.step(field(name), of, old, new)?;
            }
        }
        Ok(())
    }

    fn items(&mut self, list: ResolvedList<'s>, old: &[Value], new: &[Value]) -> Result<(), Fault> {
        let mut by_step: BTreeMap<Step, [Vec<&Value>; 2]> = BTreeMap::new();
        for (side, items) in [old, new].into_iter().enumerate() {
            for item in items {
                by_step.entry(identity::step(self.of, list, item)?).or_default()[side].push(item);
            }
        }
        let of = self.of.item(list);
        for (step, [old, new]) in by_step {
            match (old.as_slice(), new.as_slice()) {
                ([] | [_], [] | [_]) => {
                    let (old, new) = (old.first().copied(), new.first().copied());
                    if !alike(old, new) {
                        self.step(step, of, old, new)?;
                    }
                }
                // Items that share an identity are one leaf. It comes or goes with the parts of a single item.
                ([_, _, ..], [_, _, ..]) => {
                    let alike =
                        old.len() == new.len() && old.iter().zip(&new).all(|(old, new)| same(old, new));
                    self.mark(&step, MODIFIED, !alike);
                }
                ([_, _, ..], _) => {
                    self.mark(&step, REMOVED, true);
                    if let Some(new) = new.first() {
                        self.step(step, of, None, Some(new))?;
                    }
                }
                (_, [_, _, ..]) => {
                    self.mark(&step, ADDED, true);
                    if let Some(old) = old.first() {
                        self.step(step, of, Some(old), None)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn mark(&mut self, step: &Step, set: usize, member: bool) {
        let mut found = Found::default();
        found.itself[set] = member;
        self.found.take(step, found);
    }

    fn step(
        &mut self,
        step: Step,
        of: Type<'s>,
        old: Option<&Value>,
        new: Option<&Value>,
    ) -> Result<(), Fault> {
        match walk(of, old, new, self.depth) {
            Ok(found) => self.found.take(&step, found),
            Err(fault) => return Err(fault.below(step)),
        }
        Ok(())
    }
}
