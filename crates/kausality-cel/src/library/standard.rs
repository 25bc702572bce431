//! Conversions of CEL that Go reads and writes otherwise than `cel` does.

use cel::ExecutionError;
use cel::common::functions::Function;
use cel::common::types::{CelDuration, CelString, CelTimestamp, Kind};
use cel::common::value::CowVal;

use super::{Arguments, Outcome, argument, bool, double, failed, int, plain, printf, string, text};
use crate::environment;

/// The function of a name for its arguments.
pub(crate) fn function(name: &str, arguments: &[CowVal<'_, '_>]) -> Option<Function> {
    instead(name, arguments).or_else(|| environment::functions().find_overload(name, arguments))
}

/// The functions in place of those of `cel`.
fn instead(name: &str, arguments: &[CowVal<'_, '_>]) -> Option<Function> {
    let [given] = arguments else { return None };
    Some(match (name, given.get_type().kind()) {
        ("bool", Kind::String) => |arguments| match text(&arguments, 0)? {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => bool(true),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => bool(false),
            _ => Err(failed("bool", "it is neither true nor false")),
        },
        ("double", Kind::String) => |arguments| {
            let number = number(text(&arguments, 0)?);
            double(number.ok_or_else(|| failed("double", "it is no number, or too large"))?)
        },
        ("uint", Kind::String) if has_sign(given) => {
            |_| Err(failed("uint", "a number without a sign is expected"))
        }
        ("int", Kind::Duration) => |arguments| {
            let nanoseconds = plain::<CelDuration>(&arguments, 0)?.inner().num_nanoseconds();
            int(nanoseconds.ok_or_else(|| failed("int", "it is too large"))?)
        },
        ("string", Kind::Double | Kind::Duration | Kind::Timestamp) => |arguments| {
            string(printf::value::top(argument(&arguments, 0)?).map_err(|error| failed("string", error))?)
        },
        ("duration", Kind::String) => |arguments| {
            let read = duration(text(&arguments, 0)?).ok_or_else(|| failed("duration", "it is none"))?;
            of_cel("duration", read)
        },
        ("timestamp", Kind::String) => |arguments| {
            let read = timestamp(text(&arguments, 0)?).ok_or_else(|| failed("timestamp", "it is none"))?;
            of_cel("timestamp", read)
        },
        _ => return None,
    })
}

/// What a function is called with: the parts of a point in time are those in UTC, if no zone is named.
pub(crate) fn zoned<'b, 'v>(name: &str, mut arguments: Arguments<'b, 'v>) -> Arguments<'b, 'v> {
    if !name.starts_with("get") {
        return arguments;
    }
    match arguments.as_mut_slice() {
        [time] => {
            if let Some(known) = time.downcast_ref::<CelTimestamp>() {
                *time = CowVal::owned(CelTimestamp::from(known.inner().to_utc().fixed_offset()));
            }
        }
        // That of a server, which is this one everywhere but on a desk.
        [_, zone] if zone.downcast_ref::<CelString>().is_some_and(|zone| zone.inner() == "Local") => {
            *zone = CowVal::owned(CelString::from("UTC"));
        }
        _ => {}
    }
    arguments
}

fn has_sign(argument: &CowVal<'_, '_>) -> bool {
    argument.downcast_ref::<CelString>().is_some_and(|text| text.inner().starts_with(['+', '-']))
}

/// Reads what is written as `cel` reads it, too.
fn of_cel<'b, 'v>(name: &str, written: String) -> Outcome<'b, 'v> {
    let given = vec![CowVal::owned(CelString::from(written))];
    match environment::functions().find_overload(name, &given) {
        Some(function) => function(given),
        None => Err(ExecutionError::no_such_overload(name, Vec::new())),
    }
}

/// A number that is none for being too large is none.
fn number(text: &str) -> Option<f64> {
    let number: f64 = text.parse().ok()?;
    let word = text.trim_start_matches(['+', '-']);
    let fits = match word.bytes().next() {
        Some(b'i' | b'I') => true,
        Some(b'n' | b'N') => word == text,
        _ => number.is_finite(),
    };
    fits.then_some(number)
}

/// The nanoseconds of the units of a duration.
const UNITS: &[(&str, u64)] = &[
    ("ns", 1),
    ("us", 1_000),
    ("\u{b5}s", 1_000),
    ("\u{3bc}s", 1_000),
    ("ms", 1_000_000),
    ("s", SECOND),
    ("m", 60 * SECOND),
    ("h", HOUR),
];
const SECOND: u64 = 1_000_000_000;
const HOUR: u64 = 3_600 * SECOND;

/// A duration as Go has it, in units of which no digit is lost when `cel` multiplies them.
fn duration(text: &str) -> Option<String> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let sign = if text.starts_with('-') { "-" } else { "" };
    let (mut rest, mut sum) = (unsigned, 0_u64);
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() && unsigned != "0" {
        let digits;
        (digits, rest) = digits_of(rest);
        let mut fraction = "";
        if let Some(behind) = rest.strip_prefix('.') {
            (fraction, rest) = digits_of(behind);
        }
        if digits.is_empty() && fraction.is_empty() {
            return None;
        }
        let end = rest.find(|letter: char| letter == '.' || letter.is_ascii_digit()).unwrap_or(rest.len());
        let unit;
        (unit, rest) = rest.split_at_checked(end)?;
        let (_, unit) = UNITS.iter().find(|(name, _)| *name == unit)?;
        let whole = if digits.is_empty() { 0 } else { digits.parse::<u64>().ok()? };
        sum = sum.checked_add(whole.checked_mul(*unit)?)?.checked_add(part(fraction, *unit))?;
        if sum > 1 << 63 {
            return None;
        }
    }
    if sum == 1 << 63 && sign.is_empty() {
        return None;
    }
    let (hours, below) = (sum / HOUR, sum % HOUR);
    Some(format!("{sign}{hours}h{}s{}ns", below / SECOND, below % SECOND))
}

fn digits_of(text: &str) -> (&str, &str) {
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    text.split_at_checked(end).unwrap_or((text, ""))
}

/// So many of a unit behind the point, rounded down. Nothing that counts is behind the eighteenth digit.
fn part(fraction: &str, unit: u64) -> u64 {
    let digits = fraction.get(..fraction.len().min(18)).unwrap_or_default();
    let Ok(number) = digits.parse::<u128>() else { return 0 };
    let scale = 10_u128.pow(u32::try_from(digits.len()).unwrap_or_default());
    u64::try_from(number * u128::from(unit) / scale).unwrap_or_default()
}

/// A point in time: `2024-02-03T10:00:00.5+02:00`. What else RFC 3339 allows, Go does not.
fn timestamp(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let offset = |at: usize| bytes.get(at).is_some_and(|letter| matches!(letter, b'+' | b'-'));
    let zoned = bytes.last() == Some(&b'Z') || bytes.len().checked_sub(6).is_some_and(offset);
    let fits = text.is_ascii() && bytes.get(10) == Some(&b'T') && bytes.get(17) != Some(&b'6') && zoned;
    fits.then(|| text.replacen(',', ".", 1))
}

#[cfg(test)]
mod tests;
