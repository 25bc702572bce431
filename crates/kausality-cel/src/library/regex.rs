//! Regular expressions: `"abc 123".find("[0-9]+")`.

use std::cell::RefCell;
use std::sync::Arc;

use cel::common::types::CelInt;
use cel::common::value::CowVal;

use super::{Kind, Outcome, Overload, STRINGS, failed, member, plain, string, strings, text};
pub(crate) use bounded::Pattern;

mod bounded;
mod syntax;

/// How many compiled expressions a thread keeps: one that is used in a loop is compiled once.
const KEPT: usize = 16;

pub(super) static OVERLOADS: &[Overload] = &[
    member("find", &[Kind::String, Kind::String], Kind::String, |arguments| {
        let (text, pattern) = (text(&arguments, 0)?, text(&arguments, 1)?);
        let found = cached(pattern).and_then(|pattern| pattern.find(text));
        string(found.map_err(|error| failed("find", error))?)
    }),
    member("findAll", &[Kind::String, Kind::String], STRINGS, |arguments| {
        find_all(text(&arguments, 0)?, text(&arguments, 1)?, -1)
    }),
    member("findAll", &[Kind::String, Kind::String, Kind::Int], STRINGS, |arguments| {
        let limit = *plain::<CelInt>(&arguments, 2)?.inner();
        find_all(text(&arguments, 0)?, text(&arguments, 1)?, limit)
    }),
];

thread_local! {
    /// The last used last.
    static COMPILED: RefCell<Vec<(String, Arc<Pattern>)>> = const { RefCell::new(Vec::new()) };
}

/// An expression that is compiled if it was not asked for lately.
///
/// # Errors
/// As [`Pattern::compile`].
pub(crate) fn cached(pattern: &str) -> Result<Arc<Pattern>, String> {
    COMPILED.with_borrow_mut(|compiled| {
        if let Some(at) = compiled.iter().position(|(known, _)| known == pattern) {
            let known = compiled.remove(at);
            let found = Arc::clone(&known.1);
            compiled.push(known);
            return Ok(found);
        }
        let new = Arc::new(Pattern::compile(pattern)?);
        if compiled.len() >= KEPT {
            compiled.remove(0);
        }
        compiled.push((pattern.to_owned(), Arc::clone(&new)));
        Ok(new)
    })
}

/// A limit below zero is none.
fn find_all<'b, 'v>(text: &str, pattern: &str, limit: i64) -> Outcome<'b, 'v> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let found = cached(pattern).and_then(|pattern| pattern.find_all(text, limit));
    Ok(CowVal::owned(strings(found.map_err(|error| failed("findAll", error))?)))
}

#[cfg(test)]
mod tests;
