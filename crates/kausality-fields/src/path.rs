//! Where in an object something is: a change, or a field that has an owner.

use crate::render;
use crate::scalar::Scalar;
use serde::{Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;

mod written;

pub use written::parse;

/// The way from the root of an object to one of its values.
///
/// Shown, and serialised, as `spec.containers[name=app].args[2]`; the root itself is `.`.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path(Vec<Step>);

/// One step of a [`Path`]. Ordered as the API server orders them: fields, keys, values, indexes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    /// A field of an object, or a key of a map: `.image`, `["kubernetes.io/arch"]`.
    Field(String),
    /// The list item with these values in these fields: `[port=53,protocol=UDP]`. Where the schema names the fields,
    /// they are sorted by name.
    Key(Vec<(Cow<'static, str>, Scalar)>),
    /// A member of a set: `["kubernetes.io/pvc-protection"]`, `[=53]`.
    Value(Scalar),
    /// The item at a position, where items have no identity: `[2]`.
    Index(usize),
}

impl Path {
    /// The steps, from the root down.
    pub fn steps(&self) -> &[Step] {
        &self.0
    }

    /// Whether it is a field that somebody named, or lies below it. An item may be named by some of what identifies it.
    pub fn is_within(&self, field: &Path) -> bool {
        self.0.len() >= field.0.len() && self.0.iter().zip(&field.0).all(|(step, named)| step.is_named(named))
    }

    /// Whether a change of this may be one of a field that somebody named: either lies in the other, as far as can be told. What
    /// one knows by its key and the other by its place may be the same.
    pub fn may_touch(&self, field: &Path) -> bool {
        self.0.iter().zip(&field.0).all(|(step, named)| {
            let unlike = matches!(
                (step, named),
                (Step::Index(_), Step::Key(_) | Step::Value(_))
                    | (Step::Key(_) | Step::Value(_), Step::Index(_))
            );
            unlike || step.is_named(named)
        })
    }

    /// The path one step further on.
    pub fn join(mut self, step: Step) -> Self {
        self.0.push(step);
        self
    }

    /// Puts a step before the first.
    pub(crate) fn prepend(&mut self, step: Step) {
        self.0.insert(0, step);
    }

    /// The name of the field that the path ends in, if it does not end in a list.
    pub(crate) fn field(&self) -> Option<&str> {
        match self.0.last() {
            Some(Step::Field(name)) => Some(name),
            _ => None,
        }
    }
}

impl Step {
    /// Whether it is the one that somebody named. Both members of sets and keys of maps are written as texts in brackets.
    fn is_named(&self, named: &Step) -> bool {
        match (self, named) {
            (Self::Key(parts), Self::Key(some)) => some.iter().all(|part| parts.contains(part)),
            (Self::Value(Scalar::Text(text)), Self::Field(name))
            | (Self::Field(name), Self::Value(Scalar::Text(text))) => text == name,
            _ => self == named,
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
                Step::Value(Scalar::Text(text)) => write!(f, "[{}]", render::quoted(text))?,
                // An equals sign, since a number alone would be an index.
                Step::Value(scalar) => write!(f, "[={scalar}]")?,
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

#[cfg(test)]
mod tests;
