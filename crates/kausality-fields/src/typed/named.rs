//! Fields that a type declares, as members of sets.

use crate::path::Step;
use crate::schema::{Resolved, Schema};
use crate::set::{FieldSet, Node};

/// A declared field is owned only by its parts, so a set does not say that it is there. Pruning must know: a field
/// that loses all its parts goes with them, unlike the key of a map, which has an owner.
pub(super) fn with_declared(schema: &Schema, of: Option<Resolved<'_>>, set: &FieldSet) -> FieldSet {
    let node = |node: &Node| {
        let mut member = node.member;
        let below = match (&node.step, of) {
            (Step::Field(name), Some(Resolved { map: Some(map), .. })) => {
                member |= map.fields.contains_key(name) && !node.below.is_empty();
                map.field(name).and_then(|of| schema.resolve(of))
            }
            (Step::Key(_), Some(Resolved { list: Some(list), .. })) => schema.resolve(list.element),
            _ => None,
        };
        Node { step: node.step.clone(), member, below: with_declared(schema, below, &node.below) }
    };
    FieldSet::of_nodes(set.nodes().iter().map(node).collect())
}
