//! Numbers as text.

/// As few digits as tell it from others, with an exponent where it is large or small, as Go's `%g`.
pub(super) fn shortest(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "+Inf".to_owned() } else { "-Inf".to_owned() };
    }
    let (mantissa, exponent) = parts(&format!("{number:e}"));
    if (-4..6).contains(&exponent) {
        return number.to_string();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs())
}

/// With so many digits behind the point, and commas between thousands.
pub(super) fn fixed(number: f64, precision: usize) -> String {
    if let Some(text) = not_finite(number) {
        return text.to_owned();
    }
    let written = format!("{:.precision$}", number.abs());
    let (whole, fraction) =
        written.split_at_checked(written.find('.').unwrap_or(written.len())).unwrap_or_default();
    format!("{}{}{fraction}", sign(number), thousands(whole))
}

/// As a product with a power of ten. Kubernetes' version takes the precision for the least width of the whole.
pub(super) fn scientific(number: f64, width: usize) -> String {
    if let Some(text) = not_finite(number) {
        return format!("{text:>width$}");
    }
    let (mantissa, exponent) = parts(&format!("{:.6e}", number.abs()));
    let power = format!("{}{:02}", if exponent < 0 { "-" } else { "" }, exponent.unsigned_abs());
    let power: String = power.chars().map(superscript).collect();
    let written = format!("{}{mantissa}×10{power}", sign(number));
    format!("{written:>width$}")
}

/// Zero has none.
fn sign(number: f64) -> &'static str {
    if number < 0.0 { "-" } else { "" }
}

fn not_finite(number: f64) -> Option<&'static str> {
    match number {
        number if number.is_nan() => Some("NaN"),
        f64::INFINITY => Some("∞"),
        f64::NEG_INFINITY => Some("-∞"),
        _ => None,
    }
}

/// What is before the `e`, and the exponent behind it.
fn parts(written: &str) -> (String, i32) {
    let (mantissa, exponent) = written.split_once('e').unwrap_or((written, "0"));
    (mantissa.to_owned(), exponent.parse().unwrap_or(0))
}

fn thousands(digits: &str) -> String {
    let mut written = String::with_capacity(digits.len() * 4 / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            written.push(',');
        }
        written.push(digit);
    }
    written
}

fn superscript(letter: char) -> char {
    match letter {
        '-' => '⁻',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        digit => digit.to_digit(10).and_then(|digit| char::from_u32(0x2070 + digit)).unwrap_or(letter),
    }
}
