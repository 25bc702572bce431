//! Regular expressions: `"abc 123".find("[0-9]+")`.

use cel::common::types::CelInt;
use cel::common::value::CowVal;

use super::{Kind, Outcome, Overload, STRINGS, failed, member, plain, string, strings, text};
pub(crate) use bounded::{MAX_SIZE, MAX_STEPS, MAX_WRITTEN, Pattern, Refused};

mod bounded;
mod syntax;

// The evaluator searches itself, with patterns that it keeps: these are what it is told of them.
pub(super) static OVERLOADS: &[Overload] = &[
    member("find", &[Kind::String, Kind::String], Kind::String, |arguments| {
        let (text, pattern) = (text(&arguments, 0)?, text(&arguments, 1)?);
        string(compiled(pattern).and_then(|it| it.find(text)).map_err(|error| failed("find", error))?)
    }),
    member("findAll", &[Kind::String, Kind::String], STRINGS, |arguments| {
        find_all(text(&arguments, 0)?, text(&arguments, 1)?, -1)
    }),
    member("findAll", &[Kind::String, Kind::String, Kind::Int], STRINGS, |arguments| {
        let limit = *plain::<CelInt>(&arguments, 2)?.inner();
        find_all(text(&arguments, 0)?, text(&arguments, 1)?, limit)
    }),
];

fn compiled(pattern: &str) -> Result<Pattern, String> {
    Pattern::compile(pattern, MAX_SIZE).map_err(|refused| refused.to_string())
}

/// A limit below zero is none.
fn find_all<'b, 'v>(text: &str, pattern: &str, limit: i64) -> Outcome<'b, 'v> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let found = compiled(pattern).and_then(|it| it.find_all(text, limit));
    Ok(CowVal::owned(strings(found.map_err(|error| failed("findAll", error))?)))
}

#[cfg(test)]
mod tests;
