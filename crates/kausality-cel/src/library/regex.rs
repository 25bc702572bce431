//! Regular expressions: `"abc 123".find("[0-9]+")`.

use std::cell::RefCell;

use cel::common::types::CelInt;
use cel::common::value::CowVal;
use regex::{Regex, RegexBuilder};

use super::{Kind, Outcome, Overload, STRINGS, failed, member, plain, string, strings, text};

mod pattern;

/// The most memory that a compiled expression may take, and again what it may take to be matched.
const MAX_SIZE: usize = 1 << 20;
/// The longest expression.
const MAX_PATTERN: usize = 16 << 10;
/// The deepest expression.
const MAX_NESTING: u32 = 128;
/// The longest text that is searched.
const MAX_TEXT: usize = 4 << 20;
/// The most matches that are returned.
const MAX_MATCHES: usize = 100_000;
/// How many compiled expressions a thread keeps: one that is used in a loop is compiled once.
const KEPT: usize = 16;

pub(super) static OVERLOADS: &[Overload] = &[
    member("find", &[Kind::String, Kind::String], Kind::String, |arguments| {
        let (text, regex) = prepared("find", text(&arguments, 0)?, text(&arguments, 1)?)?;
        string(regex.find(text).map(|found| found.as_str()).unwrap_or_default())
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
    static COMPILED: RefCell<Vec<(String, Regex)>> = const { RefCell::new(Vec::new()) };
}

/// Compiles an expression in Go's syntax, within bounds.
///
/// # Errors
/// If it is none, or too large: in words for who wrote it.
pub(crate) fn compile(pattern: &str) -> Result<Regex, String> {
    if pattern.len() > MAX_PATTERN {
        return Err(format!("regular expressions of more than {MAX_PATTERN} bytes are not supported"));
    }
    let mut builder = RegexBuilder::new(&pattern::translated(pattern)?);
    builder.size_limit(MAX_SIZE).dfa_size_limit(MAX_SIZE).nest_limit(MAX_NESTING);
    builder.build().map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => format!("the regular expression {pattern:?} is too large"),
        // The last line says what is wrong, those before it draw where in the translation.
        error => {
            error.to_string().lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
        }
    })
}

/// As [`compile`], for an expression that may have been asked for before.
///
/// # Errors
/// As there.
pub(crate) fn cached(pattern: &str) -> Result<Regex, String> {
    COMPILED.with_borrow_mut(|compiled| {
        if let Some(at) = compiled.iter().position(|(known, _)| known == pattern) {
            let known = compiled.remove(at);
            let regex = known.1.clone();
            compiled.push(known);
            return Ok(regex);
        }
        let regex = compile(pattern)?;
        if compiled.len() >= KEPT {
            compiled.remove(0);
        }
        compiled.push((pattern.to_owned(), regex.clone()));
        Ok(regex)
    })
}

/// A text that is short enough and a regular expression for it.
fn prepared<'a>(name: &str, text: &'a str, pattern: &str) -> Result<(&'a str, Regex), cel::ExecutionError> {
    if text.len() > MAX_TEXT {
        return Err(failed(name, format!("texts of more than {MAX_TEXT} bytes are not searched")));
    }
    let regex = cached(pattern).map_err(|error| failed(name, format!("illegal regex: {error}")))?;
    Ok((text, regex))
}

/// A limit below zero is none.
fn find_all<'b, 'v>(text: &str, pattern: &str, limit: i64) -> Outcome<'b, 'v> {
    let (text, regex) = prepared("findAll", text, pattern)?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let found = regex.find_iter(text).take(limit.min(MAX_MATCHES + 1));
    let found: Vec<String> = found.map(|found| found.as_str().to_owned()).collect();
    if found.len() > MAX_MATCHES {
        return Err(failed("findAll", format!("more than {MAX_MATCHES} matches: give it a limit")));
    }
    Ok(CowVal::owned(strings(found)))
}

#[cfg(test)]
mod tests;
