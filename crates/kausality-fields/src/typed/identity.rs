//! What tells the items of a list apart.

use super::{Fault, Invalid, Type};
use crate::path::Step;
use crate::scalar::Scalar;
use crate::schema::ResolvedList;
use serde_json::Value;
use std::borrow::Cow;

/// The step to an item of a list that is owned item by item.
pub(super) fn step(of: Type<'_>, list: ResolvedList<'_>, item: &Value) -> Result<Step, Fault> {
    if list.keys.is_empty() { member(item) } else { keyed(of, list, item) }.map_err(Fault::from)
}

fn member(item: &Value) -> Result<Step, Invalid> {
    Scalar::of(item).map(Step::Value).ok_or(Invalid::Unidentified("an item of a set must be a scalar"))
}

/// A field of the key that an item omits has its default; without one it is left out, which is an identity of its own.
fn keyed(of: Type<'_>, list: ResolvedList<'_>, item: &Value) -> Result<Step, Invalid> {
    let Value::Object(fields) = item else {
        return Err(Invalid::Unidentified("an item of a list with keys must be an object"));
    };
    let mut parts: Vec<(Cow<'static, str>, Scalar)> = Vec::with_capacity(list.keys.len());
    for name in list.keys {
        let Some(value) = fields.get(name).or_else(|| default(of, list, name)) else { continue };
        let Some(value) = Scalar::or_null(value) else {
            return Err(Invalid::Unidentified("a field that identifies an item must be a scalar"));
        };
        parts.push((Cow::Owned(name.clone()), value));
    }
    if parts.is_empty() {
        return Err(Invalid::Unidentified("an item has none of the fields that identify it"));
    }
    parts.sort_by(|(a, _), (b, _)| a.cmp(b));
    Ok(Step::Key(parts))
}

fn default<'s>(of: Type<'s>, list: ResolvedList<'s>, name: &str) -> Option<&'s Value> {
    of.schema.resolve(list.element)?.map?.fields.get(name)?.default.as_ref().filter(|value| !value.is_null())
}
