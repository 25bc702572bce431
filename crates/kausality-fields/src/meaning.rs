//! Whether two values mean the same, where their type allows one meaning to be written in several ways.
//!
//! The API server writes `1000m` as `1`, and a time in any zone as one in UTC. To whoever declared the former, the
//! latter is no change. Only the type says that a text is an amount or a time; a text that is not what its type says
//! is compared as it stands.
//!
//! An int-or-string has no second way to be written: `80` is a number and `"80"` a name, and Kubernetes keeps them
//! apart. So is `"50%"` another text than `"50.0%"`.

use crate::schema::{Format, Resolved, Schema, TypeRef};
use crate::typed::{Type, same};
use serde_json::Value;
use std::borrow::Cow;

mod amount;
mod instant;

pub use amount::Amount;
pub use instant::Instant;

/// Whether two values of one type mean the same.
///
/// ```
/// use kausality_fields::meaning;
/// use kausality_fields::schema::{Atom, Format, Scalar, ScalarKind, Schema, TypeRef};
/// use kausality_fields::typed::Type;
/// use serde_json::json;
///
/// let (schema, scalar) = (Schema::deduced(), Scalar { kind: ScalarKind::Untyped, format: Some(Format::Quantity) });
/// let of = TypeRef::Inline(Box::new(Atom { scalar: Some(scalar), ..Atom::default() }));
/// assert!(meaning::equal(Type::new(&schema, &of), &json!("1000m"), &json!(1)));
/// assert!(!meaning::equal(Type::new(&schema, &TypeRef::deduced()), &json!("1000m"), &json!(1)));
/// ```
pub fn equal(of: Type<'_>, a: &Value, b: &Value) -> bool {
    within(of.schema(), of.reference(), a, b)
}

fn within(schema: &Schema, of: &TypeRef, a: &Value, b: &Value) -> bool {
    let Some(Resolved { scalar, list, map }) = schema.resolve(of) else { return same(a, b) };
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            let alike = |name: &str, a: &Value, b: &Value| match map.and_then(|map| map.field(name)) {
                Some(of) => within(schema, of, a, b),
                None => same(a, b),
            };
            a.len() == b.len() && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| alike(name, a, b)))
        }
        (Value::Array(a), Value::Array(b)) => {
            let alike = |a: &Value, b: &Value| match list {
                Some(list) => within(schema, list.element, a, b),
                None => same(a, b),
            };
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| alike(a, b))
        }
        _ => {
            same(a, b) || scalar.and_then(|scalar| scalar.format).is_some_and(|format| scalars(format, a, b))
        }
    }
}

/// Whether two different scalars are one value of this format.
fn scalars(format: Format, a: &Value, b: &Value) -> bool {
    match format {
        Format::Quantity => Amount::of(a).is_some_and(|amount| Some(amount) == Amount::of(b)),
        Format::DateTime => match (a, b) {
            (Value::String(a), Value::String(b)) => {
                Instant::parse(a).is_some_and(|instant| Some(instant) == Instant::parse(b))
            }
            _ => false,
        },
        Format::Bytes => match (a, b) {
            (Value::String(a), Value::String(b)) => {
                let digits =
                    |text: &str| text.chars().filter(|c| !matches!(c, '\r' | '\n')).collect::<String>();
                digits(a) == digits(b)
            }
            _ => false,
        },
        Format::IntOrString | Format::Password => false,
    }
}

/// The text of a scalar that is a string or a number.
fn text_of(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::String(text) => Some(Cow::Borrowed(text)),
        Value::Number(number) => Some(Cow::Owned(number.to_string())),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
