//! Changes as text for people: one line each, whatever the values hold.

use crate::diff::{Change, Diff, Leaf};
use crate::redact::PREFIX;
use serde_json::Value;
use std::fmt::{self, Write};

/// Characters of a value that are shown.
const WIDTH: usize = 80;

/// Characters shown before the first difference, where two long values begin alike.
const CONTEXT: usize = 20;

impl Diff {
    /// Shows at most `max` changes, then how many more there are: `… and 12 more`.
    pub fn limited(&self, max: usize) -> impl fmt::Display + '_ {
        Limited { changes: &self.changes, max }
    }
}

impl fmt::Display for Diff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.limited(usize::MAX).fmt(f)
    }
}

struct Limited<'a> {
    changes: &'a [Change],
    max: usize,
}

impl fmt::Display for Limited<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, change) in self.changes.iter().take(self.max).enumerate() {
            write!(f, "{}{change}", if nth == 0 { "" } else { "\n" })?;
        }
        match self.changes.len().saturating_sub(self.max) {
            0 => Ok(()),
            more => write!(f, "{}… and {more} more", if self.max == 0 { "" } else { "\n" }),
        }
    }
}

/// `path: old → new`, `path: + new` or `path: - old`. Long values are cut to 80 characters, around the first
/// difference if they begin alike.
impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, old, new } = self;
        match (old, new) {
            (Some(old), Some(new)) => {
                let (old, new) = (old.to_string(), new.to_string());
                let start = first_shown(&old, &new);
                write!(f, "{path}: {} → {}", excerpt(&old, start), excerpt(&new, start))
            }
            (None, Some(new)) => write!(f, "{path}: + {}", excerpt(&new.to_string(), 0)),
            (Some(old), None) => write!(f, "{path}: - {}", excerpt(&old.to_string(), 0)),
            (None, None) => write!(f, "{path}"),
        }
    }
}

/// The whole value on one line: a plain word as it is, anything else as JSON, with what cannot be printed escaped.
impl fmt::Display for Leaf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Redacted(digest) => write!(f, "{PREFIX}{digest}"),
            Self::Value(Value::String(text)) if is_plain_value(text) => f.write_str(text),
            Self::Value(value) => write_json(f, value),
        }
    }
}

/// Whether a field name needs no quotes in a path.
pub(crate) fn is_plain_field(name: &str) -> bool {
    is_word(name, "-_/$@")
}

/// Whether a text in a key needs no quotes: `[mountPath=/etc/ssl]`, but `[name="a b"]` and, unlike a number, `[id="1"]`.
pub(crate) fn is_plain_key(text: &str) -> bool {
    is_word(text, "-_/$@.:*+~") && !reads_as_other(text)
}

/// Whether a string needs no quotes as a value, standing alone.
fn is_plain_value(text: &str) -> bool {
    is_word(text, "-_/$@.:*+~=,%") && !reads_as_other(text) && !text.starts_with(PREFIX)
}

fn is_word(text: &str, punctuation: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || punctuation.contains(c))
}

/// Whether a text without quotes would be taken for a number, a boolean, null, or for the sign of a change.
fn reads_as_other(text: &str) -> bool {
    matches!(text, "true" | "false" | "null" | "+" | "-") || text.parse::<f64>().is_ok()
}

/// A JSON string in which nothing breaks the line, hides, or turns the direction of the text around it.
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            c if is_unprintable(c) => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    // Writing to a String cannot fail.
                    let _ = write!(quoted, "\\u{unit:04x}");
                }
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

fn is_unprintable(c: char) -> bool {
    let invisible = matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2064}' | '\u{feff}');
    let breaks_line = matches!(c, '\u{2028}' | '\u{2029}');
    let turns_direction = matches!(c, '\u{61c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || invisible || breaks_line || turns_direction
}

/// What is left to write of a value. An explicit stack keeps deep values off the call stack.
enum Part<'a> {
    Punctuation(&'static str),
    Name(&'a str),
    Value(&'a Value),
}

/// Compact JSON with sorted keys.
fn write_json(out: &mut impl Write, value: &Value) -> fmt::Result {
    let mut left = vec![Part::Value(value)];
    while let Some(part) = left.pop() {
        match part {
            Part::Punctuation(text) => out.write_str(text)?,
            Part::Name(name) => write!(out, "{}:", quoted(name))?,
            Part::Value(Value::String(text)) => out.write_str(&quoted(text))?,
            Part::Value(Value::Array(list)) => {
                left.push(Part::Punctuation("]"));
                for (nth, value) in list.iter().enumerate().rev() {
                    left.push(Part::Value(value));
                    left.extend((nth > 0).then_some(Part::Punctuation(",")));
                }
                left.push(Part::Punctuation("["));
            }
            Part::Value(Value::Object(map)) => {
                let mut fields: Vec<_> = map.iter().collect();
                fields.sort_unstable_by_key(|(name, _)| *name);
                left.push(Part::Punctuation("}"));
                for (nth, (name, value)) in fields.into_iter().enumerate().rev() {
                    left.extend([Part::Value(value), Part::Name(name)]);
                    left.extend((nth > 0).then_some(Part::Punctuation(",")));
                }
                left.push(Part::Punctuation("{"));
            }
            Part::Value(scalar) => write!(out, "{scalar}")?,
        }
    }
    Ok(())
}

/// The character from which to show two texts so that their first difference is seen.
fn first_shown(old: &str, new: &str) -> usize {
    let alike = old.chars().zip(new.chars()).take_while(|(a, b)| a == b).count();
    if alike + CONTEXT > WIDTH && (is_long(old) || is_long(new)) { alike - CONTEXT } else { 0 }
}

fn is_long(text: &str) -> bool {
    text.chars().nth(WIDTH).is_some()
}

/// At most [`WIDTH`] characters of a text from `start` on, with `…` for what is left out.
fn excerpt(text: &str, start: usize) -> String {
    let mut shown = String::from(if start > 0 { "…" } else { "" });
    let room = WIDTH - shown.chars().count();
    let rest = text.chars().skip(start);
    if rest.clone().nth(room).is_some() {
        shown.extend(rest.take(room - 1));
        shown.push('…');
    } else {
        shown.extend(rest);
    }
    shown
}

#[cfg(test)]
mod tests;
