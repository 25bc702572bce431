//! Quantities, as Kubernetes writes them: `1000m` is `1`, and `1024Mi` is `1Gi`.

/// How a quantity is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    /// `1500m`, `2k`.
    Decimal,
    /// `1536Mi`.
    Binary,
    /// `2e3`.
    Exponent,
}

const NANO: i128 = 1_000_000_000;
const DECIMAL: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/// The quantity in the one way in which it is stored. The error is Go's.
pub(crate) fn canonical(text: &str) -> Result<String, String> {
    let (nanos, format) = parse(text.trim())?;
    Ok(write(nanos, format))
}

/// How much a quantity is, to compare it with others.
pub(crate) fn amount(text: &str) -> Option<i128> {
    parse(text.trim()).ok().map(|(nanos, _)| nanos)
}

fn parse(text: &str) -> Result<(i128, Format), String> {
    let malformed = || {
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
            .to_owned()
    };
    let negative = text.starts_with('-');
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let end =
        unsigned.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(unsigned.len());
    let (number, suffix) = unsigned.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
        return Err(malformed());
    }
    let (factor, exponent, format) =
        unit(suffix).ok_or_else(|| "unable to parse quantity's suffix".to_owned())?;

    let digits: i128 = format!("{whole}{fraction}").parse().map_err(|_| malformed())?;
    let places = i32::try_from(fraction.len()).map_err(|_| malformed())?;
    let nanos = digits.checked_mul(factor).and_then(|digits| scaled(digits, exponent - places + 9));
    // What is too large is as large as can be.
    let largest = i128::from(i64::MAX) * NANO;
    let nanos = nanos.unwrap_or(largest).min(largest);
    Ok((if negative { -nanos } else { nanos }, format))
}

fn unit(suffix: &str) -> Option<(i128, i32, Format)> {
    if let Some((_, exponent)) = DECIMAL.iter().find(|(name, _)| *name == suffix) {
        return Some((1, *exponent, Format::Decimal));
    }
    if let Some(power) = BINARY.iter().position(|name| *name == suffix) {
        return Some((1 << (10 * power), 0, Format::Binary));
    }
    let exponent = suffix.strip_prefix(['e', 'E'])?;
    exponent.parse().ok().map(|exponent| (1, exponent, Format::Exponent))
}

/// Times a power of ten; what is lost below is rounded up.
fn scaled(digits: i128, power: i32) -> Option<i128> {
    if digits == 0 {
        return Some(0);
    }
    let factor = 10_i128.checked_pow(power.unsigned_abs());
    if power >= 0 {
        return digits.checked_mul(factor?);
    }
    let Some(factor) = factor else { return Some(1) };
    Some(digits / factor + i128::from(digits % factor != 0))
}

fn write(nanos: i128, format: Format) -> String {
    if nanos == 0 {
        return "0".to_owned();
    }
    let binary = format == Format::Binary && nanos % NANO == 0 && (nanos / NANO).abs() >= 1024;
    if binary {
        let (mut number, mut power) = (nanos / NANO, 0);
        while number % 1024 == 0 && power + 1 < BINARY.len() {
            number /= 1024;
            power += 1;
        }
        return format!("{number}{}", BINARY.get(power).copied().unwrap_or_default());
    }
    let (mut number, mut exponent) = (nanos, -9);
    while number % 1000 == 0 && exponent < 18 {
        number /= 1000;
        exponent += 3;
    }
    if format == Format::Exponent {
        return if exponent == 0 { number.to_string() } else { format!("{number}e{exponent}") };
    }
    let suffix = DECIMAL.iter().find(|(_, power)| *power == exponent).map_or("", |(suffix, _)| suffix);
    format!("{number}{suffix}")
}

#[cfg(test)]
mod tests {
    use super::canonical;

    #[test]
    fn a_quantity_is_written_in_one_way() {
        for (text, expected) in [
            ("100m", "100m"),
            ("0.1", "100m"),
            ("1000m", "1"),
            ("1.5", "1500m"),
            ("1e3", "1e3"),
            ("1E3", "1e3"),
            ("0.5Gi", "512Mi"),
            ("1024Mi", "1Gi"),
            ("1500000000n", "1500m"),
            ("0.1n", "1n"),
            ("1Ki", "1Ki"),
            ("0.5Ki", "512"),
            ("1.5Ki", "1536"),
            ("-2", "-2"),
            ("0Mi", "0"),
            ("2000", "2k"),
            ("9999999999999999999", "9223372036854775807"),
        ] {
            assert_eq!(canonical(text).as_deref(), Ok(expected), "{text}");
        }
        for text in ["", "x", "1.2.3", "1Q", "1 Gi", "."] {
            assert!(canonical(text).is_err(), "{text}");
        }
    }
}
