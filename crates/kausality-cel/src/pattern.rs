//! Regular expressions as Kubernetes has them, within bounds.
//!
//! Both libraries match in time that is linear in the text, and neither looks back or ahead. Where their syntax differs,
//! a pattern is rewritten: here `\d`, `\w`, `\s` and `\b` are about ASCII alone, a bracket that cannot be a repetition or
//! a class is a letter like others, and nothing is repeated more than a thousand times.

use regex::{Regex, RegexBuilder};

use crate::budget;

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
/// The most repetitions.
const REPEATED: u32 = 1000;

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
        let rewritten = rewritten(pattern)?;
        for (size, weight) in SIZES.into_iter().filter(|(size, _)| *size <= most) {
            match RegexBuilder::new(&rewritten).size_limit(size).dfa_size_limit(size).nest_limit(100).build() {
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

/// A pattern in the words of the `regex` crate.
fn rewritten(pattern: &str) -> Result<String, String> {
    let mut out = String::with_capacity(pattern.len() + 16);
    let mut rest = pattern;
    // How many letters of a class are read: a bracket that comes first is one of them.
    let mut class: Option<usize> = None;
    while let Some(letter) = rest.chars().next() {
        let tail = rest.get(letter.len_utf8()..).unwrap_or_default();
        rest = tail;
        match (letter, class) {
            ('\\', _) => {
                let Some(escaped) = tail.chars().next() else {
                    out.push('\\');
                    break;
                };
                rest = tail.get(escaped.len_utf8()..).unwrap_or_default();
                match (escaped, class) {
                    ('Q', None) => {
                        let (literal, after) = rest.split_once("\\E").unwrap_or((rest, ""));
                        out.push_str(&regex::escape(literal));
                        rest = after;
                    }
                    ('d', _) => out.push_str("[0-9]"),
                    ('D', _) => out.push_str("[^0-9]"),
                    ('w', _) => out.push_str("[0-9A-Za-z_]"),
                    ('W', _) => out.push_str("[^0-9A-Za-z_]"),
                    ('s', _) => out.push_str("[\\t\\n\\f\\r ]"),
                    ('S', _) => out.push_str("[^\\t\\n\\f\\r ]"),
                    ('b', None) => out.push_str("(?-u:\\b)"),
                    (escaped, _) => out.extend(['\\', escaped]),
                }
                class = class.map(|read| read + 1);
            }
            ('[', None) => {
                out.push('[');
                class = Some(0);
                if let Some(after) = rest.strip_prefix('^') {
                    out.push('^');
                    rest = after;
                }
            }
            ('[', Some(read)) => {
                let named = tail.strip_prefix(':').and_then(|name| name.split_once(":]"));
                if let Some((name, after)) = named {
                    out.push_str(&format!("[:{name}:]"));
                    rest = after;
                } else {
                    out.push_str("\\[");
                }
                class = Some(read + 1);
            }
            (']', Some(0)) => {
                out.push_str("\\]");
                class = Some(1);
            }
            (']', Some(_)) => {
                out.push(']');
                class = None;
            }
            ('&' | '~', Some(read)) => {
                out.extend(['\\', letter]);
                class = Some(read + 1);
            }
            ('{', None) => {
                let repetition = tail.split_once('}').map(|(count, _)| count).filter(|it| is_count(it));
                let numbers = repetition.into_iter().flat_map(|it| it.split(','));
                if numbers.filter(|it| !it.is_empty()).any(|it| it.parse().map_or(true, |it: u32| it > REPEATED)) {
                    return Err(format!("not a valid pattern: more than {REPEATED} repetitions"));
                }
                out.push_str(if repetition.is_some() { "{" } else { "\\{" });
            }
            (letter, read) => {
                out.push(letter);
                class = read.map(|read| read + 1);
            }
        }
    }
    Ok(out)
}

/// Whether this is between the brackets of a repetition: `2`, `2,` or `2,3`.
fn is_count(text: &str) -> bool {
    let digits = |it: &str| it.bytes().all(|letter| letter.is_ascii_digit());
    let (least, most) = text.split_once(',').unwrap_or((text, ""));
    !least.is_empty() && digits(least) && digits(most)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;

    #[test]
    fn patterns_mean_what_they_mean_in_kubernetes() {
        for (pattern, text, expected) in [
            (r"^\d+$", "12", true),
            (r"^\d+$", "१२", false),
            (r"^\w$", "é", false),
            (r"^[\w-]+$", "a-b_c", true),
            (r"^\W$", "é", true),
            (r"a{", "a{", true),
            (r"^a{2}$", "aa", true),
            (r"^a{,2}$", "a{,2}", true),
            (r"^[[:alpha:]]+$", "abc", true),
            (r"^[a[]+$", "a[", true),
            (r"^[]a]+$", "]a", true),
            (r"^[^]a]+$", "bc", true),
            (r"^[a&&b]+$", "a&b", true),
            (r"^\Qa.b\E$", "a.b", true),
            (r"^\Qa.b\E$", "axb", false),
            (r"(?i)^ABC$", "abc", true),
            (r"\bcat\b", "a cat.", true),
            (r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$", "a-b", true),
        ] {
            assert_eq!(Pattern::new(pattern).unwrap().regex().is_match(text), expected, "{pattern} on {text}");
        }
    }

    #[test]
    fn bad_and_huge_patterns_are_refused_in_one_line() {
        for (pattern, why) in [
            ("(foo", "unclosed group"),
            ("a{1001}", "more than 1000 repetitions"),
            ("(((a{100}){100}){100}){100}", "stands for too much"),
            ("a**?(?=b)", "look"),
            (&"a".repeat(5000), "longer than"),
        ] {
            let error = Pattern::new(pattern).unwrap_err();
            assert!(error.contains(why) && !error.contains('\n'), "{error}");
        }
        assert!(Pattern::new("(a{100}){20}").is_ok());
        assert!(Pattern::made("(a{100}){20}").is_err() || Pattern::made("((a{100}){20}){2}").is_err());
    }
}
