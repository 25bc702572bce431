//! JSON as Go writes it, byte by byte. What the API server stores and serves is compared as text in places.

use crate::scalar::Scalar;
use serde_json::Value;
use std::fmt::Write;

/// What of a string is escaped beyond what JSON demands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Escape {
    /// Nothing.
    Least,
    /// What could end a script in a page: `<`, `>`, `&`, and the two line breaks that JavaScript has and JSON has not.
    Html,
}

/// A string in quotes.
pub(crate) fn string(out: &mut String, text: &str, escape: Escape) {
    out.push('"');
    let mut plain = 0;
    for (at, c) in text.char_indices() {
        let escaped = match c {
            '"' => "\\\"",
            '\\' => "\\\\",
            '\n' => "\\n",
            '\r' => "\\r",
            '\t' => "\\t",
            '\0'..='\x1f' => "",
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' if escape == Escape::Html => "",
            _ => continue,
        };
        out.push_str(&text[plain..at]);
        plain = at + c.len_utf8();
        match escaped {
            // Writing to a String cannot fail.
            "" => _ = write!(out, "\\u{:04x}", u32::from(c)),
            escaped => out.push_str(escaped),
        }
    }
    out.push_str(&text[plain..]);
    out.push('"');
}

/// A scalar, with strings escaped for pages as Go does by default.
pub(crate) fn scalar(out: &mut String, scalar: &Scalar) {
    match scalar {
        Scalar::Null => out.push_str("null"),
        Scalar::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Scalar::Text(text) => string(out, text, Escape::Html),
        // Writing to a String cannot fail.
        Scalar::Integer(value) if i64::try_from(*value).is_ok() => _ = write!(out, "{value}"),
        Scalar::Integer(_) | Scalar::Decimal(_) => float(out, scalar.as_f64().unwrap_or_default()),
    }
}

/// A float in the fewest digits, with an exponent of two digits or more if it is very large or small.
fn float(out: &mut String, value: f64) {
    let size = value.abs();
    if size == 0.0 || (1e-6..1e21).contains(&size) {
        // Writing to a String cannot fail.
        let _ = write!(out, "{value}");
        return;
    }
    let text = format!("{value:e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
    let _ = write!(out, "{digits}e{sign}{exponent:0>2}");
}

/// A value with the keys of its objects sorted.
pub(crate) fn value(out: &mut String, value: &Value) {
    match value {
        Value::Array(list) => {
            out.push('[');
            for (nth, item) in list.iter().enumerate() {
                out.push_str(if nth == 0 { "" } else { "," });
                self::value(out, item);
            }
            out.push(']');
        }
        Value::Object(map) => {
            // Sorted here, since serde_json keeps insertion order if anyone enables `preserve_order`.
            let mut fields: Vec<_> = map.iter().collect();
            fields.sort_unstable_by_key(|(name, _)| *name);
            out.push('{');
            for (nth, (name, field)) in fields.into_iter().enumerate() {
                out.push_str(if nth == 0 { "" } else { "," });
                string(out, name, Escape::Html);
                out.push(':');
                self::value(out, field);
            }
            out.push('}');
        }
        other => scalar(out, &Scalar::or_null(other).unwrap_or(Scalar::Null)),
    }
}

#[cfg(test)]
mod tests;
