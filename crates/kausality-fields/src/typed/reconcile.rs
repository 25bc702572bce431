//! Sets that were made before their type became atomic.

use super::{Fault, Shape, Type};
use crate::path::Step;
use crate::schema::{DEDUCED, Relationship, ResolvedMap, ScalarKind, TypeRef};
use crate::set::{FieldSet, Node};

/// Who owned parts of what is atomic by now owns all of it. The other way round nothing changes: who owned the whole
/// goes on owning the field alone.
pub(super) fn reconcile(of: Type<'_>, set: FieldSet) -> Result<FieldSet, Fault> {
    let nodes = match of.shape(of.resolve()?)? {
        Shape::Map(map) if map.relationship == Relationship::Separable && !is_deduced(map) => {
            let child = |node: &Node| match &node.step {
                Step::Field(name) => map.field(name),
                _ => map.element,
            };
            let reconciled = |node: Node| match child(&node) {
                Some(child) => reconcile_node(Type { of: child, ..of }, node),
                // Of a field that the type does not have, nothing is known.
                None => Ok(node),
            };
            set.into_nodes().into_iter().map(reconciled).collect::<Result<_, _>>()?
        }
        Shape::List(list) if list.relationship == Relationship::Separable => {
            let reconciled = |node| reconcile_node(of.item(list), node);
            set.into_nodes().into_iter().map(reconciled).collect::<Result<_, _>>()?
        }
        _ => return Ok(set),
    };
    Ok(FieldSet::of_nodes(nodes))
}

fn reconcile_node(of: Type<'_>, mut node: Node) -> Result<Node, Fault> {
    if node.below.is_empty() {
        return Ok(node);
    }
    let below = std::mem::take(&mut node.below);
    let reconciled = of.resolve().and_then(|resolved| of.shape(resolved)).and_then(|shape| {
        let atomic = match shape {
            Shape::Map(map) => map.relationship == Relationship::Atomic && !is_deduced(map),
            Shape::List(list) => list.relationship == Relationship::Atomic,
            Shape::Scalar(_) => false,
        };
        if atomic { Ok(None) } else { reconcile(of, below).map(Some) }
    });
    match reconciled {
        Ok(Some(below)) => Ok(Node { below, ..node }),
        Ok(None) => Ok(Node { member: true, ..node }),
        Err(fault) => Err(fault.below(node.step)),
    }
}

/// What a value of no known type is made of says nothing about its past.
fn is_deduced(map: ResolvedMap<'_>) -> bool {
    let untyped = match map.element {
        Some(TypeRef::Named(name, _)) => name == DEDUCED,
        Some(TypeRef::Inline(atom)) => atom.scalar.is_some_and(|scalar| scalar.kind == ScalarKind::Untyped),
        None => false,
    };
    untyped && map.fields.is_empty()
}
