//! Whether a value is of a type.

use super::{Duplicates, Fault, Invalid, Shape, Type, bounded, field, identity};
use crate::path::Step;
use crate::schema::{Relationship, ResolvedList, Scalar, ScalarKind};
use serde_json::Value;
use std::collections::BTreeSet;

pub(super) fn validate(
    of: Type<'_>,
    value: &Value,
    duplicates: Duplicates,
    depth: usize,
) -> Result<(), Fault> {
    let depth = bounded(depth)?;
    match (of.shape_of(value)?, value) {
        (_, Value::Null) => Ok(()),
        (Shape::Scalar(kind), value) => scalar(kind, value).map_err(Fault::from),
        (Shape::Map(map), Value::Object(fields)) => fields.iter().try_for_each(|(name, value)| {
            if of.hides(name) {
                return Ok(());
            }
            validate(of.field(map, name)?, value, duplicates, depth).map_err(|fault| fault.below(field(name)))
        }),
        (Shape::List(list), Value::Array(items)) => {
            let steps = steps(of, list, items, duplicates)?;
            items.iter().zip(steps).try_for_each(|(item, step)| {
                validate(of.item(list), item, duplicates, depth).map_err(|fault| fault.below(step))
            })
        }
        (Shape::Map(_), _) => Err(Invalid::Expected("an object").into()),
        (Shape::List(_), _) => Err(Invalid::Expected("a list").into()),
    }
}

/// Whether a value is a scalar of this kind. Null always is.
pub(super) fn scalar(kind: Scalar, value: &Value) -> Result<(), Invalid> {
    let (fits, expected) = match kind.kind {
        ScalarKind::Numeric => (value.is_number(), "a number"),
        ScalarKind::String => (value.is_string(), "a string"),
        ScalarKind::Boolean => (value.is_boolean(), "a boolean"),
        ScalarKind::Untyped => (!value.is_array() && !value.is_object(), "a scalar"),
    };
    if fits || value.is_null() { Ok(()) } else { Err(Invalid::Expected(expected)) }
}

fn steps(
    of: Type<'_>,
    list: ResolvedList<'_>,
    items: &[Value],
    duplicates: Duplicates,
) -> Result<Vec<Step>, Fault> {
    if list.relationship == Relationship::Atomic {
        return Ok((0..items.len()).map(Step::Index).collect());
    }
    let steps = items
        .iter()
        .enumerate()
        .map(|(index, item)| identity::step(of, list, item).map_err(|fault| fault.below(Step::Index(index))))
        .collect::<Result<Vec<_>, _>>()?;
    if duplicates == Duplicates::Refused {
        let mut seen = BTreeSet::new();
        if let Some(again) = steps.iter().find(|step| !seen.insert(*step)) {
            return Err(Invalid::Duplicate(again.clone()).into());
        }
    }
    Ok(steps)
}
