//! Fields that a manager leaves to others: `spec.replicas=kube-controller-manager:1..10`.

use crate::meaning::Amount;
use crate::path::{Path, Step};
use crate::scalar::Scalar;
use serde_json::Value;
use std::fmt;
use std::str::FromStr;

mod parse;

pub use parse::DelegationError;

/// Leave for a manager to own certain fields, optionally with values within bounds.
///
/// Written as `PATH=MANAGER` or `PATH=MANAGER:LOW..HIGH`:
///
/// * the path is as it is shown everywhere (`spec.ports[port=53].nodePort`, `metadata.labels["app.kubernetes.io/name"]`),
///   with `*` for any field and `[*]` for any item, and means what is below it too; of a key not all parts need be
///   given;
/// * the manager is `*` for any, and is put in quotes if it has a colon in it;
/// * the bounds are numbers or amounts of a resource (`100m..2`), both included. Either may be left out.
///
/// ```
/// use kausality_fields::delegation::Delegation;
///
/// let delegation: Delegation = "spec.replicas=hpa:1..10".parse()?;
/// assert_eq!(delegation.to_string(), "spec.replicas=hpa:1..10");
/// # Ok::<(), kausality_fields::delegation::DelegationError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delegation {
    text: String,
    pattern: Vec<Pattern>,
    /// `None` for any.
    manager: Option<String>,
    low: Option<Amount>,
    high: Option<Amount>,
}

/// What a step must be.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Pattern {
    /// Any field.
    AnyField,
    /// Any item of a list.
    AnyItem,
    Field(String),
    /// A field or a member of a set: in brackets and quotes they look alike.
    Quoted(String),
    Key(Vec<(String, Scalar)>),
    Value(Scalar),
    Index(usize),
}

impl Delegation {
    /// Whether a field is one of those that are left to others.
    pub fn covers(&self, path: &Path) -> bool {
        let steps = path.steps();
        self.pattern.len() <= steps.len()
            && self.pattern.iter().zip(steps).all(|(pattern, step)| pattern.fits(step))
    }

    /// Whether a manager may own a field, with the value that it has. What is absent is within no bounds.
    pub fn allows(&self, path: &Path, manager: &str, value: Option<&Value>) -> bool {
        self.manager.as_ref().is_none_or(|allowed| allowed == manager)
            && self.covers(path)
            && self.bounds(value)
    }

    fn bounds(&self, value: Option<&Value>) -> bool {
        if self.low.is_none() && self.high.is_none() {
            return true;
        }
        let Some(amount) = value.and_then(Amount::of) else { return false };
        self.low.is_none_or(|low| low <= amount) && self.high.is_none_or(|high| amount <= high)
    }
}

impl Pattern {
    fn fits(&self, step: &Step) -> bool {
        match (self, step) {
            (Self::AnyField, Step::Field(_)) => true,
            (Self::AnyItem, Step::Key(_) | Step::Value(_) | Step::Index(_)) => true,
            (Self::Field(name) | Self::Quoted(name), Step::Field(field)) => name == field,
            (Self::Quoted(text), Step::Value(Scalar::Text(member))) => text == member,
            (Self::Value(value), Step::Value(member)) => value == member,
            (Self::Index(index), Step::Index(at)) => index == at,
            (Self::Key(wanted), Step::Key(parts)) => {
                wanted.iter().all(|(name, value)| parts.iter().any(|(part, is)| part == name && is == value))
            }
            _ => false,
        }
    }
}

impl FromStr for Delegation {
    type Err = DelegationError;

    fn from_str(text: &str) -> Result<Self, DelegationError> {
        parse::delegation(text)
    }
}

/// As it was written.
impl fmt::Display for Delegation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests;
