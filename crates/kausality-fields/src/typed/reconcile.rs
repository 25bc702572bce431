//! Sets that were made before their type became atomic.

use super::{Fault, Shape, Type};
use crate::path::Step;
use crate::schema::{DEDUCED, Relationship, ResolvedMap, ScalarKind, TypeRef};
use crate::set::{FieldSet, Node};

/// Who owned parts of what is atomic by now owns all of it. The other way round nothing changes: who owned the whole
/// goes on owning the field alone.
pub(super) fn reconcile(of: Type<'_>, set: &FieldSet) -> Result<FieldSet, Fault> {
    let mut nodes = Vec::with_capacity(set.nodes().len());
    match of.shape(of.resolve()?)? {
        Shape::Map(map) if map.relationship == Relationship::Separable && !is_deduced(map) => {
            for node in set.nodes() {
                let child = match &node.step {
                    Step::Field(name) => map.field(name),
                    _ => map.element,
                };
                nodes.push(match child {
                    Some(child) => reconcile_node(Type { of: child, ..of }, node)?,
                    // Of a field that the type does not have, nothing is known.
                    None => node.clone(),
                });
            }
        }
        Shape::List(list) if list.relationship == Relationship::Separable => {
            for node in set.nodes() {
                nodes.push(reconcile_node(of.item(list), node)?);
            }
        }
        _ => return Ok(set.clone()),
    }
    Ok(FieldSet::of_nodes(nodes))
}

fn reconcile_node(of: Type<'_>, node: &Node) -> Result<Node, Fault> {
    if node.below.is_empty() {
        return Ok(node.clone());
    }
    let atomic = match of.shape(of.resolve()?).map_err(|fault| fault.below(node.step.clone()))? {
        Shape::Map(map) => map.relationship == Relationship::Atomic && !is_deduced(map),
        Shape::List(list) => list.relationship == Relationship::Atomic,
        Shape::Scalar(_) => false,
    };
    if atomic {
        return Ok(Node { step: node.step.clone(), member: true, below: FieldSet::new() });
    }
    let below = reconcile(of, &node.below).map_err(|fault| fault.below(node.step.clone()))?;
    Ok(Node { below, ..node.clone() })
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
