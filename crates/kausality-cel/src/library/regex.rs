//! Regular expressions: `"abc 123".find("[0-9]+")`.

use cel::ExecutionError;
use cel::common::types::CelInt;
use cel::common::value::CowVal;

use super::{Kind, Outcome, Overload, STRINGS, failed, member, plain, string, strings, text};
use crate::pattern::Pattern;

/// The most matches that are returned.
const MAX_MATCHES: usize = 100_000;

// The evaluator calls [`find`] and [`find_all`] itself, with patterns that it has made once.
pub(super) static OVERLOADS: &[Overload] = &[
    member("find", &[Kind::String, Kind::String], Kind::String, |arguments| {
        find(&made("find", text(&arguments, 1)?)?, text(&arguments, 0)?)
    }),
    member("findAll", &[Kind::String, Kind::String], STRINGS, |arguments| {
        find_all(&made("findAll", text(&arguments, 1)?)?, text(&arguments, 0)?, -1)
    }),
    member("findAll", &[Kind::String, Kind::String, Kind::Int], STRINGS, |arguments| {
        let limit = *plain::<CelInt>(&arguments, 2)?.inner();
        find_all(&made("findAll", text(&arguments, 1)?)?, text(&arguments, 0)?, limit)
    }),
];

fn made(name: &str, pattern: &str) -> Result<Pattern, ExecutionError> {
    Pattern::made(pattern).map_err(|error| failed(name, format!("illegal regex: {error}")))
}

/// The first match, or nothing.
pub(crate) fn find<'b, 'v>(pattern: &Pattern, text: &str) -> Outcome<'b, 'v> {
    string(pattern.regex().find(text).map(|found| found.as_str()).unwrap_or_default())
}

/// All matches, or the first ones. A limit below zero is none.
pub(crate) fn find_all<'b, 'v>(pattern: &Pattern, text: &str, limit: i64) -> Outcome<'b, 'v> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let found = pattern.regex().find_iter(text).take(limit.min(MAX_MATCHES + 1));
    let found: Vec<String> = found.map(|found| found.as_str().to_owned()).collect();
    if found.len() > MAX_MATCHES {
        return Err(failed("findAll", format!("more than {MAX_MATCHES} matches: give it a limit")));
    }
    Ok(CowVal::owned(strings(found)))
}

#[cfg(test)]
mod tests;
