//! Where in an object a change is.

use crate::render;
use serde::{Serialize, Serializer};
use serde_json::{Number, Value};
use std::borrow::Cow;
use std::fmt;

/// The way from the root of an object to one of its values.
///
/// Shown, and serialised, as `spec.containers[name=app].args[2]`; the root itself is `.`.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path(Vec<Step>);

/// One step of a [`Path`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    /// A field of an object, or a key of a map: `.image`, `["kubernetes.io/arch"]`.
    Field(String),
    /// The list item with these values in these fields: `[port=53,protocol=UDP]`.
    Key(Vec<(Cow<'static, str>, Scalar)>),
    /// A member of a set of strings: `["kubernetes.io/pvc-protection"]`.
    Value(String),
    /// The item at a position, where items have no identity: `[2]`.
    Index(usize),
}

/// A JSON string, number or boolean, equal to another if it means the same.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scalar {
    /// `true` or `false`.
    Bool(bool),
    /// A number without a fraction, however it was written: `1`, `1.0`, `1e0`.
    Integer(i128),
    /// Any other number, in its shortest decimal form.
    Decimal(String),
    /// A string.
    Text(String),
}

impl Path {
    /// The steps, from the root down.
    pub fn steps(&self) -> &[Step] {
        &self.0
    }

    /// The name of the field that the path ends in, if it does not end in a list.
    pub(crate) fn field(&self) -> Option<&str> {
        match self.0.last() {
            Some(Step::Field(name)) => Some(name),
            _ => None,
        }
    }
}

impl FromIterator<Step> for Path {
    fn from_iter<I: IntoIterator<Item = Step>>(steps: I) -> Self {
        Self(steps.into_iter().collect())
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str(".");
        }
        for (position, step) in self.0.iter().enumerate() {
            match step {
                Step::Field(name) if !render::is_plain_field(name) => {
                    write!(f, "[{}]", render::quoted(name))?
                }
                Step::Field(name) if position == 0 => f.write_str(name)?,
                Step::Field(name) => write!(f, ".{name}")?,
                Step::Key(parts) => {
                    for (nth, (name, value)) in parts.iter().enumerate() {
                        write!(f, "{}{name}={value}", if nth == 0 { '[' } else { ',' })?;
                    }
                    f.write_str("]")?;
                }
                Step::Value(text) => write!(f, "[{}]", render::quoted(text))?,
                Step::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

impl Serialize for Path {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Scalar {
    /// The scalar that a JSON value is. `null` is none: it identifies nothing.
    pub fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Bool(value) => Some(Self::Bool(*value)),
            Value::Number(number) => Some(Self::number(number)),
            Value::String(text) => Some(Self::Text(text.clone())),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        }
    }

    fn number(number: &Number) -> Self {
        if let Some(integer) = number.as_i128() {
            return Self::Integer(integer);
        }
        match number.as_f64() {
            // A whole float below 2^126 converts exactly. Above, there is no integer type it could be equal to.
            Some(float) if float.fract() == 0.0 && float.abs() < 2f64.powi(126) => {
                Self::Integer(float as i128)
            }
            // Not serde_json's text, which has changed between its versions (`1e19`, `1e+19`) and would change hashes.
            Some(float) => Self::Decimal(float.to_string()),
            None => Self::Decimal(number.to_string()),
        }
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => write!(f, "{value}"),
            Self::Integer(value) => write!(f, "{value}"),
            Self::Decimal(value) => f.write_str(value),
            Self::Text(text) if render::is_plain_key(text) => f.write_str(text),
            Self::Text(text) => f.write_str(&render::quoted(text)),
        }
    }
}

#[cfg(test)]
mod tests;
