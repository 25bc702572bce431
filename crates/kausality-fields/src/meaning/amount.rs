//! Amounts of a resource, exactly.

use super::text_of;
use serde_json::Value;

/// The decimal digits below one that are kept. What is finer is rounded away from zero, as the API server does.
const DIGITS_KEPT: i32 = 9;

/// More characters than any amount needs.
const MAX_LENGTH: usize = 100;

/// An amount of a resource (Kubernetes' Quantity), in billionths: `1` is `1000m` is `1e0`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Amount(i128);

impl Amount {
    /// The amount that a string or a number stands for.
    pub fn of(value: &Value) -> Option<Self> {
        Self::parse(&text_of(value)?)
    }

    /// Reads an amount as the API server does; `None` if it is none, or is beyond all reason.
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() > MAX_LENGTH {
            return None;
        }
        let (negative, unsigned) = match text.as_bytes().first()? {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        let end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
        let (number, suffix) = unsigned.split_at(end);
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if fraction.contains('.') || whole.len() + fraction.len() == 0 {
            return None;
        }
        let mantissa = whole.bytes().chain(fraction.bytes()).try_fold(0i128, |mantissa, digit| {
            mantissa.checked_mul(10)?.checked_add(i128::from(digit - b'0'))
        })?;
        let below_one = i32::try_from(fraction.len()).ok()?;
        let amount = match Suffix::parse(suffix)? {
            Suffix::Decimal(exponent) => {
                shifted(mantissa, exponent.checked_add(DIGITS_KEPT)?.checked_sub(below_one)?)?
            }
            Suffix::Binary(exponent) => {
                let amount = shifted(mantissa.checked_mul(1 << exponent)?, DIGITS_KEPT - below_one)?;
                // The API server stops here, but only where it is said in powers of two.
                amount.min(shifted(i128::from(i64::MAX), DIGITS_KEPT)?)
            }
        };
        Some(Self(if negative { -amount } else { amount }))
    }
}

/// What an amount is multiplied by.
enum Suffix {
    /// Ten to this power.
    Decimal(i32),
    /// Two to this power.
    Binary(u32),
}

impl Suffix {
    fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "n" => Self::Decimal(-9),
            "u" => Self::Decimal(-6),
            "m" => Self::Decimal(-3),
            "" => Self::Decimal(0),
            "k" => Self::Decimal(3),
            "M" => Self::Decimal(6),
            "G" => Self::Decimal(9),
            "T" => Self::Decimal(12),
            "P" => Self::Decimal(15),
            "E" => Self::Decimal(18),
            "Ki" => Self::Binary(10),
            "Mi" => Self::Binary(20),
            "Gi" => Self::Binary(30),
            "Ti" => Self::Binary(40),
            "Pi" => Self::Binary(50),
            "Ei" => Self::Binary(60),
            exponent => Self::Decimal(exponent.strip_prefix(['e', 'E'])?.parse().ok()?),
        })
    }
}

/// A number with its decimal point moved right, or left and rounded up.
fn shifted(number: i128, places: i32) -> Option<i128> {
    if number == 0 {
        return Some(0);
    }
    let power = 10i128.checked_pow(places.unsigned_abs());
    match (places >= 0, power) {
        (true, power) => number.checked_mul(power?),
        (false, Some(power)) => Some(number / power + i128::from(number % power != 0)),
        (false, None) => Some(1),
    }
}
