//! Values without parts, as they stand in paths.

use crate::render;
use serde_json::{Number, Value};
use std::cmp::Ordering;
use std::fmt;

/// A JSON string, number, boolean or null, equal to another if it means the same.
///
/// Ordered as the API server orders them: numbers by value, then strings, then booleans, then null.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Scalar {
    /// A number without a fraction, however it was written: `1`, `1.0`, `1e0`.
    Integer(i128),
    /// Any other number, in its shortest decimal form.
    Decimal(String),
    /// A string.
    Text(String),
    /// `true` or `false`.
    Bool(bool),
    /// `null`. It identifies nothing to a diff, but the API server takes it for a key.
    Null,
}

impl Scalar {
    /// The scalar that a JSON value is. `null` is none: it identifies nothing.
    pub fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Null => None,
            value => Self::or_null(value),
        }
    }

    /// The scalar that a JSON value is, which may be `null`.
    pub fn or_null(value: &Value) -> Option<Self> {
        match value {
            Value::Bool(value) => Some(Self::Bool(*value)),
            Value::Number(number) => Some(Self::number(number)),
            Value::String(text) => Some(Self::Text(text.clone())),
            Value::Null => Some(Self::Null),
            Value::Array(_) | Value::Object(_) => None,
        }
    }

    pub(crate) fn number(number: &Number) -> Self {
        match (number.as_i128(), number.as_f64()) {
            (Some(integer), _) => Self::Integer(integer),
            (None, Some(float)) => Self::float(float),
            (None, None) => Self::Decimal(number.to_string()),
        }
    }

    pub(crate) fn float(float: f64) -> Self {
        // A whole float below 2^126 converts exactly. Above, there is no integer type it could be equal to.
        if float.fract() == 0.0 && float.abs() < 2f64.powi(126) {
            return Self::Integer(float as i128);
        }
        // Not serde_json's text, which has changed between its versions (`1e19`, `1e+19`) and would change hashes.
        Self::Decimal(float.to_string())
    }

    /// The number as a float, which is how numbers of both kinds are put in one order.
    pub(crate) fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Integer(value) => Some(*value as f64),
            Self::Decimal(value) => Some(value.parse().unwrap_or(f64::INFINITY)),
            Self::Text(_) | Self::Bool(_) | Self::Null => None,
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Self::Integer(_) | Self::Decimal(_) => 0,
            Self::Text(_) => 1,
            Self::Bool(_) => 2,
            Self::Null => 3,
        }
    }
}

impl Ord for Scalar {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Text(a), Self::Text(b)) => a.cmp(b),
            (Self::Integer(a), Self::Integer(b)) => a.cmp(b),
            (Self::Bool(a), Self::Bool(b)) => a.cmp(b),
            _ => match (self.as_f64(), other.as_f64()) {
                (Some(a), Some(b)) => a.total_cmp(&b).then_with(|| self.exact().cmp(&other.exact())),
                _ => self.rank().cmp(&other.rank()),
            },
        }
    }
}

impl PartialOrd for Scalar {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Scalar {
    /// Tells apart the numbers that are one and the same float.
    fn exact(&self) -> (u8, &str) {
        match self {
            Self::Decimal(value) => (1, value),
            _ => (0, ""),
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
            Self::Null => f.write_str("null"),
        }
    }
}

#[cfg(test)]
mod tests;
