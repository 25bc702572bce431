//! Kubernetes' functions of lists.

use std::cmp::Ordering;

use cel::ExecutionError;
use cel::common::traits::Comparer;
use cel::common::types::CelInt;
use cel::common::value::{CowVal, Val};

use super::{Arguments, Kind, Outcome, Overload, argument, bool, failed, int, items, member};

const ANY: Kind = Kind::List(&Kind::Any);
const BOOLS: Kind = Kind::List(&Kind::Bool);
const BYTES: Kind = Kind::List(&Kind::Bytes);
const DOUBLES: Kind = Kind::List(&Kind::Double);
const DURATIONS: Kind = Kind::List(&Kind::Duration);
const INTS: Kind = Kind::List(&Kind::Int);
const STRINGS: Kind = super::STRINGS;
const TIMESTAMPS: Kind = Kind::List(&Kind::Timestamp);
const UINTS: Kind = Kind::List(&Kind::Uint);

pub(super) static OVERLOADS: &[Overload] = &[
    member("isSorted", &[INTS], Kind::Bool, is_sorted),
    member("isSorted", &[UINTS], Kind::Bool, is_sorted),
    member("isSorted", &[DOUBLES], Kind::Bool, is_sorted),
    member("isSorted", &[BOOLS], Kind::Bool, is_sorted),
    member("isSorted", &[DURATIONS], Kind::Bool, is_sorted),
    member("isSorted", &[TIMESTAMPS], Kind::Bool, is_sorted),
    member("isSorted", &[STRINGS], Kind::Bool, is_sorted),
    member("isSorted", &[BYTES], Kind::Bool, is_sorted),
    member("sum", &[INTS], Kind::Int, sum),
    member("sum", &[UINTS], Kind::Uint, sum),
    member("sum", &[DOUBLES], Kind::Double, sum),
    member("sum", &[DURATIONS], Kind::Duration, sum),
    member("max", &[INTS], Kind::Int, max),
    member("max", &[UINTS], Kind::Uint, max),
    member("max", &[DOUBLES], Kind::Double, max),
    member("max", &[BOOLS], Kind::Bool, max),
    member("max", &[DURATIONS], Kind::Duration, max),
    member("max", &[TIMESTAMPS], Kind::Timestamp, max),
    member("max", &[STRINGS], Kind::String, max),
    member("max", &[BYTES], Kind::Bytes, max),
    member("min", &[INTS], Kind::Int, min),
    member("min", &[UINTS], Kind::Uint, min),
    member("min", &[DOUBLES], Kind::Double, min),
    member("min", &[BOOLS], Kind::Bool, min),
    member("min", &[DURATIONS], Kind::Duration, min),
    member("min", &[TIMESTAMPS], Kind::Timestamp, min),
    member("min", &[STRINGS], Kind::String, min),
    member("min", &[BYTES], Kind::Bytes, min),
    member("indexOf", &[ANY, Kind::Any], Kind::Int, |arguments| {
        let sought = argument(&arguments, 1)?;
        index(items(&arguments, 0)?.iter().position(|item| item.equals(sought)))
    }),
    member("lastIndexOf", &[ANY, Kind::Any], Kind::Int, |arguments| {
        let sought = argument(&arguments, 1)?;
        index(items(&arguments, 0)?.iter().rposition(|item| item.equals(sought)))
    }),
];

fn index<'b, 'v>(found: Option<usize>) -> Outcome<'b, 'v> {
    int(found.and_then(|at| i64::try_from(at).ok()).unwrap_or(-1))
}

/// How two items compare, if they do. The API server takes what cannot be compared, such as a number and a text, for
/// being in order; what is of no order at all, such as a map, is an error.
fn compared(one: &dyn Val, other: &dyn Val) -> Result<Option<Ordering>, ExecutionError> {
    Ok(comparer(one)?.compare(other).ok())
}

fn comparer(item: &dyn Val) -> Result<&dyn Comparer, ExecutionError> {
    let unordered = || failed("compare", format!("a {} has no order", item.get_type().name()));
    item.as_comparer().ok_or_else(unordered)
}

fn is_sorted<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    let items = items(&arguments, 0)?;
    let mut previous: Option<&dyn Val> = None;
    for item in items {
        comparer(item)?;
        if let Some(previous) = previous
            && compared(previous, item)? == Some(Ordering::Greater)
        {
            return bool(false);
        }
        previous = Some(item);
    }
    bool(true)
}

/// The sum of an empty list is 0, whatever it is a list of: numbers of all types compare with each other.
fn sum<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    let mut sum: Option<Box<dyn Val + 'v>> = None;
    for item in items(&arguments, 0)? {
        sum = Some(match sum {
            // Texts and lists can be added, too, but have no sum.
            None if !is_summable(item) => {
                return Err(failed("sum", format!("a {} is no number", item.get_type().name())));
            }
            None => item.clone_as_boxed(),
            Some(sum) => {
                let adder = sum.as_adder().ok_or_else(|| failed("sum", "it cannot be added to"))?;
                adder.add(item)?.into_owned()
            }
        });
    }
    Ok(CowVal::Owned(sum.unwrap_or_else(|| Box::new(CelInt::from(0)))))
}

fn is_summable(item: &dyn Val) -> bool {
    use cel::common::types::Kind;
    matches!(item.get_type().kind(), Kind::Int | Kind::UInt | Kind::Double | Kind::Duration)
}

fn max<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    extreme("max", arguments, Ordering::Less)
}

fn min<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    extreme("min", arguments, Ordering::Greater)
}

/// The first of the items that no other is better than: `worse` is how what is worse compares with what is better.
fn extreme<'b, 'v>(name: &str, arguments: Arguments<'b, 'v>, worse: Ordering) -> Outcome<'b, 'v> {
    let mut best: Option<&(dyn Val + 'v)> = None;
    for item in items(&arguments, 0)? {
        comparer(item)?;
        best = Some(match best {
            Some(best) if compared(best, item)? != Some(worse) => best,
            _ => item,
        });
    }
    let best = best.ok_or_else(|| failed(name, format!("{name} of an empty list")))?;
    Ok(CowVal::Owned(best.clone_as_boxed()))
}

#[cfg(test)]
mod tests;
