//! `'…'.format([…])`, where both are written: whether each clause has a value, and can be used with it.

use cel::IdedExpr;
use cel::common::ast::{CallExpr, EntryExpr, Expr, LiteralValue};

use super::{Check, Somewhere, Wrong};
use crate::types::Type;

impl<'a> Check<'a> {
    pub(super) fn formatted(&mut self, call: &'a CallExpr) -> Result<(), Somewhere> {
        let Some(Expr::Literal(LiteralValue::String(format))) = call.target.as_ref().map(|it| &it.expr)
        else {
            return Ok(());
        };
        let [IdedExpr { expr: Expr::List(values), .. }] = call.args.as_slice() else { return Ok(()) };
        let mut used = 0;
        let mut rest = format.inner();
        while let Some((_, after)) = rest.split_once('%') {
            if let Some(after) = after.strip_prefix('%') {
                rest = after;
                continue;
            }
            if after.is_empty() {
                return Err("unexpected end of string".to_owned().into());
            }
            let missing = || format!("index {used} out of range");
            let value = values.elements.get(used).ok_or_else(missing)?;
            let clause = clause(after).map_err(|why| format!("could not parse formatting clause: {why}"));
            let (letter, after) = clause?;
            self.fits(letter, value)?;
            used += 1;
            rest = after;
        }
        if values.elements.len() > used {
            let given = values.elements.len();
            let message =
                format!("too many arguments supplied to string.format (expected {used}, got {given})");
            return Err(message.into());
        }
        Ok(())
    }

    /// Whether a clause can be used with a value, as far as the type of that is known.
    fn fits(&mut self, clause: char, value: &'a IdedExpr) -> Result<(), Wrong> {
        use Type::{Bool, Bytes, Double, Duration, Dyn, Int, Kind, List, Map, Null, String, Timestamp, Uint};
        let found = self.infer(value)?;
        let (fits, what) = match clause {
            'd' => (matches!(found, Int | Uint), "decimal clause can only be used on integers"),
            'o' => (matches!(found, Int | Uint), "octal clause can only be used on integers"),
            // Texts stand for what is no number.
            'f' => (matches!(found, Double | String), "fixed-point clause can only be used on doubles"),
            'e' => (matches!(found, Double | String), "scientific clause can only be used on doubles"),
            'b' => (matches!(found, Int | Uint | Bool), "only integers and bools can be formatted as binary"),
            'x' | 'X' => (
                matches!(found, Int | Uint | String | Bytes),
                "only integers, byte buffers, and strings can be formatted as hex",
            ),
            _ => (
                matches!(
                    found,
                    Int | Uint
                        | Double
                        | Bool
                        | String
                        | Bytes
                        | Timestamp
                        | Duration
                        | Kind
                        | Null
                        | List(_)
                        | Map(..)
                ),
                "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps",
            ),
        };
        if !fits && found != Dyn {
            let message = format!("error during formatting: {what}, was given {}", name(&found));
            return Err(Wrong { part: value.id, message });
        }
        if clause == 's' {
            self.fit_within(value)?;
        }
        Ok(())
    }

    /// Whether the parts of a literal can be written as text.
    fn fit_within(&mut self, value: &'a IdedExpr) -> Result<(), Wrong> {
        match &value.expr {
            Expr::List(list) => list.elements.iter().try_for_each(|item| self.fits('s', item)),
            Expr::Map(map) => map.entries.iter().try_for_each(|entry| match &entry.expr {
                EntryExpr::MapEntry(entry) => {
                    self.fits('s', &entry.key).and_then(|()| self.fits('s', &entry.value))
                }
                EntryExpr::StructField(_) => Ok(()),
            }),
            _ => Ok(()),
        }
    }
}

/// The letter of a clause, and what follows it.
fn clause(text: &str) -> Result<(char, &str), String> {
    let mut rest = text;
    if let Some(digits) = text.strip_prefix('.') {
        let end = digits.find(|letter: char| !letter.is_ascii_digit());
        let end = end.ok_or("error while parsing precision: could not find end of precision specifier")?;
        let (digits, after) = digits.split_at_checked(end).unwrap_or_default();
        if digits.parse::<i64>().is_err() {
            return Err(format!("error while parsing precision: {digits:?} is no number"));
        }
        rest = after;
    }
    let mut letters = rest.chars();
    match letters.next() {
        Some(letter) if "sdfebxXo".contains(letter) => Ok((letter, letters.as_str())),
        letter => Err(format!("unrecognized formatting clause \"{}\"", letter.unwrap_or_default())),
    }
}

/// As a type is called at run time.
fn name(of: &Type) -> String {
    match of {
        Type::Duration => "google.protobuf.Duration".to_owned(),
        Type::List(_) => "list".to_owned(),
        Type::Map(..) => "map".to_owned(),
        Type::Null => "null_type".to_owned(),
        Type::Optional(_) => "optional_type".to_owned(),
        Type::Timestamp => "google.protobuf.Timestamp".to_owned(),
        other => other.to_string(),
    }
}
