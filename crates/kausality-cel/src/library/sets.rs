//! Lists as sets.

use std::collections::BTreeSet;

use cel::ExecutionError;
use cel::common::types::{CelBool, CelDouble, CelInt, CelString, CelUInt};
use cel::common::value::Val;

use super::{Kind, Overload, bool, failed, function, items};

const LIST: Kind = Kind::List(&Kind::Any);

pub(super) static OVERLOADS: &[Overload] = &[
    function("sets.contains", &[LIST, LIST], Kind::Bool, |arguments| {
        let (list, part) = (items(&arguments, 0)?, items(&arguments, 1)?);
        bool(Set::of(&list).contains_all(&part)?)
    }),
    function("sets.equivalent", &[LIST, LIST], Kind::Bool, |arguments| {
        let (one, two) = (items(&arguments, 0)?, items(&arguments, 1)?);
        bool(Set::of(&one).contains_all(&two)? && Set::of(&two).contains_all(&one)?)
    }),
    function("sets.intersects", &[LIST, LIST], Kind::Bool, |arguments| {
        let (one, two) = (items(&arguments, 0)?, items(&arguments, 1)?);
        bool(Set::of(&one).contains_any(&two)?)
    }),
];

/// The most pairs of lists or maps that are compared.
const MAX_PAIRS: usize = 1_000_000;

/// What makes scalars equal: numbers are equal by value, whatever their types.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Scalar<'a> {
    Bool(bool),
    Number(i128),
    Text(&'a str),
}

impl<'a> Scalar<'a> {
    fn of(value: &'a dyn Val) -> Option<Self> {
        if let Some(text) = value.downcast_ref::<CelString>() {
            Some(Self::Text(text.inner()))
        } else if let Some(number) = value.downcast_ref::<CelInt>() {
            Some(Self::Number((*number.inner()).into()))
        } else if let Some(number) = value.downcast_ref::<CelUInt>() {
            Some(Self::Number((*number.inner()).into()))
        } else if let Some(bool) = value.downcast_ref::<CelBool>() {
            Some(Self::Bool(*bool.inner()))
        } else {
            // A double that is no such number can be equal to another double only.
            let number = *value.downcast_ref::<CelDouble>()?.inner();
            let whole = number.fract() == 0.0 && number.abs() < 2_f64.powi(64);
            whole.then_some(Self::Number(number as i128))
        }
    }
}

/// A list that is looked into quickly: scalars are found by their order, all else is compared with each.
struct Set<'a> {
    scalars: BTreeSet<Scalar<'a>>,
    others: Vec<&'a dyn Val>,
}

impl<'a> Set<'a> {
    fn of(items: &[&'a dyn Val]) -> Self {
        let mut set = Self { scalars: BTreeSet::new(), others: Vec::new() };
        for item in items {
            match Scalar::of(*item) {
                Some(scalar) => _ = set.scalars.insert(scalar),
                None => set.others.push(*item),
            }
        }
        set
    }

    fn contains(&self, item: &dyn Val) -> bool {
        match Scalar::of(item) {
            Some(scalar) => self.scalars.contains(&scalar),
            None => self.others.iter().any(|other| other.equals(item)),
        }
    }

    fn contains_all(&self, items: &[&dyn Val]) -> Result<bool, ExecutionError> {
        self.bounded(items)?;
        Ok(items.iter().all(|item| self.contains(*item)))
    }

    fn contains_any(&self, items: &[&dyn Val]) -> Result<bool, ExecutionError> {
        self.bounded(items)?;
        Ok(items.iter().any(|item| self.contains(*item)))
    }

    fn bounded(&self, items: &[&dyn Val]) -> Result<(), ExecutionError> {
        if self.others.len().saturating_mul(items.len()) > MAX_PAIRS {
            return Err(failed("sets", format!("more than {MAX_PAIRS} pairs of items to compare")));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
