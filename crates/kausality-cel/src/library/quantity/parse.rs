//! Quantities as they are written.

use super::Quantity;
use super::decimal::Decimal;

/// The letters of suffixes, in any order: whether they mean something is asked later.
const LETTERS: &[char] = &['e', 'E', 'i', 'n', 'u', 'm', 'k', 'K', 'M', 'G', 'T', 'P'];
/// The most digits of what is small for certain.
const SMALL: usize = 18;
/// The smallest unit there is has so many places after the point.
const NANO: i64 = 9;

const MALFORMED: &str =
    "it is no quantity: it should be a number such as 1.5, with an optional suffix such as m, k, Mi or e3";
const SUFFIX: &str = "the suffix of the quantity is none of n, u, m, k, M, G, T, P, E, Ki, Mi, Gi, Ti, Pi and Ei, and not \
                      e with a number";

/// What a suffix multiplies with.
enum Unit {
    /// Ten to the power.
    Decimal(i64),
    /// Two to the power.
    Binary(u32),
}

/// Reads a quantity. As an API server does, it takes a number without digits for 0, be it `-`, `.` or `Mi`, as long as
/// that is small.
pub(super) fn quantity(text: &str) -> Result<Quantity, &'static str> {
    if text.is_empty() {
        return Err(MALFORMED);
    }
    let (negative, rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let start = rest;
    let (whole, rest) = digits(rest.trim_start_matches('0'));
    let whole = if whole.is_empty() { "0" } else { whole };
    let (fraction, suffix) = rest.strip_prefix('.').map_or(("", rest), digits);
    let unit = unit(suffix)?;
    if let Some(small) = small(negative, whole, fraction, &unit) {
        return Ok(small);
    }
    if !start.trim_start_matches('.').starts_with(|letter: char| letter.is_ascii_digit()) {
        return Err(MALFORMED);
    }
    let digits = whole.bytes().chain(fraction.bytes()).map(|digit| digit - b'0').collect();
    let places = fraction.len() as i64;
    Ok(Quantity::Large(match unit {
        Unit::Decimal(exponent) => Decimal::of(negative, digits, exponent - places).rounded(NANO),
        Unit::Binary(shift) => {
            let amount = Decimal::of(negative, digits, -places).shifted(shift).rounded(NANO);
            let limit = Decimal::new(i64::MAX, 0);
            match (amount.magnitude() > limit, negative) {
                (false, _) => amount,
                (true, true) => limit.negated(),
                (true, false) => limit,
            }
        }
    }))
}

/// What an API server keeps as an integer and a power of ten.
fn small(negative: bool, whole: &str, fraction: &str, unit: &Unit) -> Option<Quantity> {
    let (factor, scale) = match *unit {
        Unit::Decimal(exponent) => {
            let scale = exponent - fraction.len() as i64;
            (whole.len() + fraction.len() <= SMALL && scale >= -NANO).then_some((1, scale))?
        }
        Unit::Binary(shift) => {
            // Ten bits are three digits, roughly.
            let digits = whole.len() + shift as usize * 3 / 10 + 1;
            (fraction.is_empty() && digits <= 15).then_some((1_i64 << shift, 0))?
        }
    };
    let value = format!("{whole}{fraction}").parse::<i64>().ok()?.checked_mul(factor)?;
    Some(Quantity::Small { value: if negative { -value } else { value }, scale })
}

/// The digits that a text starts with, and what follows.
fn digits(text: &str) -> (&str, &str) {
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    text.split_at_checked(end).unwrap_or((text, ""))
}

fn unit(suffix: &str) -> Result<Unit, &'static str> {
    let number = suffix.trim_start_matches(LETTERS);
    let number = number.strip_prefix(['+', '-']).unwrap_or(number);
    if !number.bytes().all(|digit| digit.is_ascii_digit()) {
        return Err(MALFORMED);
    }
    Ok(match suffix {
        "n" => Unit::Decimal(-9),
        "u" => Unit::Decimal(-6),
        "m" => Unit::Decimal(-3),
        "" => Unit::Decimal(0),
        "k" => Unit::Decimal(3),
        "M" => Unit::Decimal(6),
        "G" => Unit::Decimal(9),
        "T" => Unit::Decimal(12),
        "P" => Unit::Decimal(15),
        "E" => Unit::Decimal(18),
        "Ki" => Unit::Binary(10),
        "Mi" => Unit::Binary(20),
        "Gi" => Unit::Binary(30),
        "Ti" => Unit::Binary(40),
        "Pi" => Unit::Binary(50),
        "Ei" => Unit::Binary(60),
        _ => {
            let exponent = suffix.strip_prefix(['e', 'E']).ok_or(SUFFIX)?;
            let exponent = exponent.parse::<i64>().map_err(|_| SUFFIX)?;
            // The server keeps 32 bits of it.
            Unit::Decimal((exponent as i32).into())
        }
    })
}
