//! What `cel` lacks of optional values: the ends of lists, and lists of optional values.

use cel::common::types::{CelList, CelOptional};
use cel::common::value::{CowVal, Val};

use super::{Arguments, Kind, Outcome, Overload, failed, function, items, member};

const LIST: Kind = Kind::List(&Kind::Any);
const OPTIONAL: Kind = Kind::Optional(&Kind::Any);
const OPTIONALS: Kind = Kind::List(&OPTIONAL);

pub(super) static OVERLOADS: &[Overload] = &[
    member("first", &[LIST], OPTIONAL, |arguments| optional(items(&arguments, 0)?.first().copied())),
    member("last", &[LIST], OPTIONAL, |arguments| optional(items(&arguments, 0)?.last().copied())),
    function("optional.unwrap", &[OPTIONALS], LIST, unwrap),
    member("unwrapOpt", &[OPTIONALS], LIST, unwrap),
];

fn optional<'b, 'v>(value: Option<&(dyn Val + 'v)>) -> Outcome<'b, 'v> {
    Ok(CowVal::owned(CelOptional::from(value.map(|value| value.clone_as_boxed()))))
}

/// The values of those that have one.
fn unwrap<'b, 'v>(arguments: Arguments<'b, 'v>) -> Outcome<'b, 'v> {
    let mut values: Vec<Box<dyn Val + 'v>> = Vec::new();
    for item in items(&arguments, 0)? {
        let optional = item.downcast_ref::<CelOptional>();
        let optional = optional
            .ok_or_else(|| failed("unwrap", format!("a {} is no optional value", item.get_type().name())))?;
        values.extend(optional.option().map(|value| value.clone_as_boxed()));
    }
    Ok(CowVal::owned(CelList::from(values)))
}

#[cfg(test)]
mod tests;
