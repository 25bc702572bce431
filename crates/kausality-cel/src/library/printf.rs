//! `"%s has %d".format([name, count])`.
//!
//! It is here since that of `cel` follows a later version of cel-go than Kubernetes uses. In that earlier version
//! numbers are written as in American English (`%f` of 1000 is `1,000.000000`), integers are not taken for `%f`, and
//! what is within lists is written as it would be in an expression.

use cel::common::types::{CelBool, CelDouble, CelInt, CelString, CelUInt, Kind as CelKind};
use cel::common::value::Val;

use super::{Kind, Overload, failed, instead, items, string, text};

mod numbers;
pub(super) mod value;

/// The digits behind the point where nothing is said of them.
const PRECISION: usize = 6;
/// The most that may be asked for: they are written out.
const MAX_PRECISION: usize = 100;

pub(super) static OVERLOADS: &[Overload] =
    &[instead("format", &[Kind::String, Kind::List(&Kind::Any)], Kind::String, |arguments| {
        let (format, values) = (text(&arguments, 0)?, items(&arguments, 1)?);
        string(formatted(format, &values).map_err(|error| failed("format", error))?)
    })];

/// A format with its clauses filled in. Values that are left over are nothing.
fn formatted(format: &str, values: &[&dyn Val]) -> Result<String, String> {
    let mut written = String::with_capacity(format.len());
    let mut rest = format;
    let mut values = values.iter();
    while let Some((before, after)) = rest.split_once('%') {
        written.push_str(before);
        if let Some(after) = after.strip_prefix('%') {
            written.push('%');
            rest = after;
            continue;
        }
        let value = *values.next().ok_or("there are more clauses than values")?;
        let (precision, clause) = precision(after)?;
        let mut letters = clause.chars();
        written.push_str(&filled(letters.next(), precision, value)?);
        rest = letters.as_str();
    }
    written.push_str(rest);
    Ok(written)
}

/// `.2`, and what follows.
fn precision(clause: &str) -> Result<(usize, &str), String> {
    let Some(digits) = clause.strip_prefix('.') else { return Ok((PRECISION, clause)) };
    let end = digits.find(|letter: char| !letter.is_ascii_digit()).ok_or("a precision without a clause")?;
    let (digits, rest) = digits.split_at_checked(end).unwrap_or((digits, ""));
    let precision = digits.parse().ok().filter(|precision| *precision <= MAX_PRECISION);
    Ok((precision.ok_or_else(|| format!("a precision is a number up to {MAX_PRECISION}"))?, rest))
}

/// A value as the letter of a clause says.
fn filled(clause: Option<char>, precision: usize, value: &dyn Val) -> Result<String, String> {
    let (int, uint) = (value.downcast_ref::<CelInt>(), value.downcast_ref::<CelUInt>());
    let sign = if int.is_some_and(|int| *int.inner() < 0) { "-" } else { "" };
    let whole = int.map(|int| int.inner().unsigned_abs()).or_else(|| uint.map(|uint| *uint.inner()));
    let filled = match clause {
        Some('s') => return value::top(value),
        Some('d') => whole.map(|whole| format!("{sign}{whole}")),
        Some('o') => whole.map(|whole| format!("{sign}{whole:o}")),
        Some('b') => {
            let bool = value.downcast_ref::<CelBool>().map(|bool| u64::from(*bool.inner()));
            whole.or(bool).map(|whole| format!("{sign}{whole:b}"))
        }
        Some('x') => whole.map(|whole| format!("{sign}{whole:x}")).or_else(|| hexadecimal(value)),
        Some('X') => {
            let letters = hexadecimal(value).map(|text| text.to_ascii_uppercase());
            whole.map(|whole| format!("{sign}{whole:X}")).or(letters)
        }
        Some('f') => float(value).map(|float| numbers::fixed(float, precision)),
        Some('e') => float(value).map(|float| numbers::scientific(float, precision)),
        Some(letter) => return Err(format!("unrecognized formatting clause {letter:?}")),
        None => return Err("a % at the end: write %% for one".to_owned()),
    };
    filled.ok_or_else(|| {
        let letter = clause.unwrap_or_default();
        format!("%{letter} cannot be used with a {}", value.get_type().name())
    })
}

/// Texts stand for what cannot be written as a number.
fn float(value: &dyn Val) -> Option<f64> {
    let text = value.downcast_ref::<CelString>().map(CelString::inner);
    match text {
        Some("NaN") => Some(f64::NAN),
        Some("Infinity") => Some(f64::INFINITY),
        Some("-Infinity") => Some(f64::NEG_INFINITY),
        _ => value.downcast_ref::<CelDouble>().map(|double| *double.inner()),
    }
}

fn hexadecimal(value: &dyn Val) -> Option<String> {
    let bytes = match value.get_type().kind() {
        CelKind::String => value.downcast_ref::<CelString>()?.inner().as_bytes(),
        CelKind::Bytes => value.downcast_ref::<cel::common::types::CelBytes>()?.inner(),
        _ => return None,
    };
    Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests;
