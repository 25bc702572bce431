//! Amounts of resources: `quantity("1.5Gi")`.
//!
//! Two things are as an API server has them, and not as one might think. An amount is an integer only if it was written
//! as one that is small enough: neither `1.0` nor `100Ti` is. And `sign` is called as `sign(amount)`: the documentation
//! says `amount.sign()`, which the server does not know.

use std::cmp::Ordering;

use cel::common::types::CelInt;
use cel::common::value::CowVal;

use super::{
    Kind, Outcome, Overload, bool, double, failed, function, int, member, opaque, ordering, plain, text,
};
use decimal::Decimal;

mod decimal;
mod parse;

const NAME: &str = "kubernetes.Quantity";
const QUANTITY: Kind = Kind::Opaque(NAME);

pub(super) static OVERLOADS: &[Overload] = &[
    function("quantity", &[Kind::String], QUANTITY, |arguments| {
        let parsed = parse::quantity(text(&arguments, 0)?);
        Ok(CowVal::owned(parsed.map_err(|error| failed("quantity", error))?))
    }),
    function("isQuantity", &[Kind::String], Kind::Bool, |arguments| {
        bool(parse::quantity(text(&arguments, 0)?).is_ok())
    }),
    function("sign", &[QUANTITY], Kind::Int, |arguments| int(plain::<Quantity>(&arguments, 0)?.sign())),
    member("isInteger", &[QUANTITY], Kind::Bool, |arguments| {
        bool(plain::<Quantity>(&arguments, 0)?.integer().is_some())
    }),
    member("asInteger", &[QUANTITY], Kind::Int, |arguments| {
        let integer = plain::<Quantity>(&arguments, 0)?.integer();
        int(integer.ok_or_else(|| failed("asInteger", "cannot convert value to integer"))?)
    }),
    member("asApproximateFloat", &[QUANTITY], Kind::Double, |arguments| {
        double(plain::<Quantity>(&arguments, 0)?.float())
    }),
    member("add", &[QUANTITY, QUANTITY], QUANTITY, |arguments| {
        sum("add", plain(&arguments, 0)?, plain(&arguments, 1)?)
    }),
    member("add", &[QUANTITY, Kind::Int], QUANTITY, |arguments| {
        sum("add", plain(&arguments, 0)?, &Quantity::from(*plain::<CelInt>(&arguments, 1)?.inner()))
    }),
    member("sub", &[QUANTITY, QUANTITY], QUANTITY, |arguments| {
        sum("sub", plain(&arguments, 0)?, &plain::<Quantity>(&arguments, 1)?.negated())
    }),
    member("sub", &[QUANTITY, Kind::Int], QUANTITY, |arguments| {
        let other = Quantity::from(*plain::<CelInt>(&arguments, 1)?.inner());
        sum("sub", plain(&arguments, 0)?, &other.negated())
    }),
    member("isGreaterThan", &[QUANTITY, QUANTITY], Kind::Bool, |arguments| {
        bool(plain::<Quantity>(&arguments, 0)? > plain(&arguments, 1)?)
    }),
    member("isLessThan", &[QUANTITY, QUANTITY], Kind::Bool, |arguments| {
        bool(plain::<Quantity>(&arguments, 0)? < plain(&arguments, 1)?)
    }),
    member("compareTo", &[QUANTITY, QUANTITY], Kind::Int, |arguments| {
        ordering(plain::<Quantity>(&arguments, 0)?.cmp(plain(&arguments, 1)?))
    }),
];

/// An amount. Which of the two it is depends on how it was written: only what is small can be an integer.
#[derive(Clone, Debug)]
enum Quantity {
    /// `value` times ten to the `scale`.
    Small {
        value: i64,
        scale: i64,
    },
    Large(Decimal),
}

opaque!(Quantity, NAME);

impl From<i64> for Quantity {
    fn from(value: i64) -> Self {
        Self::Small { value, scale: 0 }
    }
}

impl Quantity {
    fn decimal(&self) -> Decimal {
        match self {
            Self::Small { value, scale } => Decimal::new(*value, *scale),
            Self::Large(decimal) => decimal.clone(),
        }
    }

    fn sign(&self) -> i64 {
        match self {
            Self::Small { value, .. } => value.signum(),
            Self::Large(decimal) => decimal.sign(),
        }
    }

    fn integer(&self) -> Option<i64> {
        match *self {
            Self::Small { value: 0, scale: 0.. } => Some(0),
            Self::Small { value, scale } => scaled(value, scale),
            Self::Large(_) => None,
        }
    }

    fn float(&self) -> f64 {
        match self {
            Self::Small { value, scale: 0 } => *value as f64,
            Self::Small { value, scale } => *value as f64 * decimal::power(*scale),
            Self::Large(decimal) => decimal.float(),
        }
    }

    fn negated(&self) -> Self {
        match self {
            Self::Small { value, scale } => match value.checked_neg() {
                Some(value) => Self::Small { value, scale: *scale },
                None => Self::Large(self.decimal().negated()),
            },
            Self::Large(decimal) => Self::Large(decimal.negated()),
        }
    }

    /// The sum of two small ones, if that is small, too.
    fn small_sum(&self, other: &Self) -> Option<Self> {
        let (Self::Small { value: one, scale }, Self::Small { value: two, scale: other_scale }) =
            (self, other)
        else {
            return None;
        };
        match (*one, *two) {
            (_, 0) => return Some(self.clone()),
            (0, _) => return Some(other.clone()),
            _ => {}
        }
        let least = *scale.min(other_scale);
        let value = scaled(*one, scale - least)?.checked_add(scaled(*two, other_scale - least)?)?;
        Some(Self::Small { value, scale: least })
    }
}

/// A value times ten to the scale, if that is a number.
fn scaled(value: i64, scale: i64) -> Option<i64> {
    value.checked_mul(10_i64.checked_pow(u32::try_from(scale).ok()?)?)
}

fn sum<'b, 'v>(name: &str, one: &Quantity, other: &Quantity) -> Outcome<'b, 'v> {
    let sum = match one.small_sum(other) {
        Some(sum) => sum,
        None => Quantity::Large(one.decimal().plus(&other.decimal()).map_err(|error| failed(name, error))?),
    };
    Ok(CowVal::owned(sum))
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.decimal().cmp(&other.decimal())
    }
}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Eq for Quantity {}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

#[cfg(test)]
mod tests;
