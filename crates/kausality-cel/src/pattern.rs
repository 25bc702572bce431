//! Regular expressions as Kubernetes has them, within bounds.
//!
//! Go's and Rust's match alike, in time that is linear in the text. Where they are written differently, a pattern is
//! rewritten ([`syntax`]).

use regex::{Regex, RegexBuilder};

use crate::budget;

mod syntax;

/// The sizes up to which patterns are compiled, and what a text costs in each. What is not in the table is refused.
///
/// A pattern is as large as what it stands for: `(a{100}){100}` is 10,000 letters, each of which may have to be looked at
/// for each letter of the text.
const SIZES: [(usize, u64); 5] =
    [(4 << 10, 4), (16 << 10, 16), (64 << 10, 64), (256 << 10, 256), (1 << 20, 1024)];
/// The most that a pattern may be if it is made while it is evaluated.
const MADE: usize = 64 << 10;
/// The longest pattern.
const LONGEST: usize = 4 << 10;

/// A pattern that is known, and what it costs to match it.
#[derive(Debug)]
pub(crate) struct Pattern {
    regex: Regex,
    weight: u64,
}

impl Pattern {
    /// A pattern of the source.
    ///
    /// # Errors
    /// What is wrong with it, in one line.
    pub(crate) fn new(pattern: &str) -> Result<Self, String> {
        Self::up_to(pattern, usize::MAX)
    }

    /// A pattern that is made while it is evaluated.
    ///
    /// # Errors
    /// What is wrong with it, in one line.
    pub(crate) fn made(pattern: &str) -> Result<Self, String> {
        Self::up_to(pattern, MADE)
    }

    fn up_to(pattern: &str, most: usize) -> Result<Self, String> {
        if pattern.len() > LONGEST {
            return Err(format!("the pattern is longer than {LONGEST} bytes"));
        }
        let rewritten =
            syntax::translated(pattern).map_err(|error| format!("not a valid pattern: {error}"))?;
        for (size, weight) in SIZES.into_iter().filter(|(size, _)| *size <= most) {
            match RegexBuilder::new(&rewritten).size_limit(size).dfa_size_limit(size).nest_limit(100).build()
            {
                Ok(regex) => return Ok(Self { regex, weight }),
                Err(regex::Error::CompiledTooBig(_)) => {}
                Err(error) => {
                    let text = error.to_string();
                    let why = text.lines().rev().find_map(|line| line.strip_prefix("error: "));
                    return Err(format!("not a valid pattern: {}", why.unwrap_or("it cannot be read")));
                }
            }
        }
        Err("the pattern stands for too much: repeat less".to_owned())
    }

    pub(crate) fn regex(&self) -> &Regex {
        &self.regex
    }

    /// What matching a text may cost.
    pub(crate) fn cost(&self, text: &str) -> u64 {
        budget::text(text.len()).saturating_mul(self.weight)
    }

    /// What it costs to make a pattern.
    pub(crate) fn making(pattern: &str) -> u64 {
        2_000 + 50 * pattern.len() as u64
    }
}

#[cfg(test)]
mod tests;
