//! Numbers as text.

/// As few digits as tell it from others, with an exponent where it is large or small, as Go's `%g`.
pub(super) fn shortest(number: f64) -> String {
    if number.is_nan() {
        return "NaN".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "+Inf".to_owned() } else { "-Inf".to_owned() };
    }
    let (_, exponent) = parts(number);
    if (-4..21).contains(&exponent) {
        return number.to_string();
    }
    let written = format!("{number:e}");
    let mantissa = written.split_once('e').map_or(written.as_str(), |(mantissa, _)| mantissa);
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs())
}

/// With so many digits behind the point, and commas between thousands.
pub(super) fn fixed(number: f64, precision: usize) -> String {
    if let Some(text) = not_finite(number) {
        return text;
    }
    let (mut digits, exponent) = parts(number);
    // Where the first digit that is cut off is.
    let kept = exponent + 1 + i32::try_from(precision).unwrap_or(i32::MAX);
    let carried = round(&mut digits, kept);
    let whole = usize::try_from(exponent + 1 + i32::from(carried)).unwrap_or(0);
    let mut all: Vec<u8> = Vec::new();
    if exponent + i32::from(carried) < 0 {
        let zeros = usize::try_from(-(exponent + i32::from(carried)) - 1).unwrap_or(0);
        all.resize(zeros, 0);
    }
    all.extend(digits);
    all.resize(whole + precision, 0);
    let text = |digits: &[u8]| digits.iter().map(|digit| char::from(b'0' + digit)).collect::<String>();
    let (whole, fraction) = all.split_at_checked(whole).unwrap_or((&all, &[]));
    let sign = if number.is_sign_negative() { "-" } else { "" };
    let whole = if whole.is_empty() { "0".to_owned() } else { thousands(&text(whole)) };
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{sign}{whole}{point}{}", text(fraction))
}

/// As a product with a power of ten. Kubernetes' version takes the precision for the least width of the whole.
pub(super) fn scientific(number: f64, width: usize) -> String {
    if let Some(text) = not_finite(number) {
        return format!("{text:>width$}");
    }
    let (mut digits, mut exponent) = parts(number);
    exponent += i32::from(round(&mut digits, 7));
    digits.resize(7, 0);
    let text: String = digits.iter().map(|digit| char::from(b'0' + digit)).collect();
    let (first, rest) = text.split_at_checked(1).unwrap_or((&text, ""));
    let sign = if number.is_sign_negative() { "-" } else { "" };
    let power: String = format!("{}{:02}", if exponent < 0 { "-" } else { "" }, exponent.unsigned_abs())
        .chars()
        .map(superscript)
        .collect();
    let written = format!("{sign}{first}.{rest}\u{202f}×\u{202f}10{power}");
    format!("{written:>width$}")
}

fn not_finite(number: f64) -> Option<String> {
    match number {
        number if number.is_nan() => Some("NaN".to_owned()),
        f64::INFINITY => Some("∞".to_owned()),
        f64::NEG_INFINITY => Some("-∞".to_owned()),
        _ => None,
    }
}

/// The digits of a number, as few as tell it from others, and the power of ten of the first.
fn parts(number: f64) -> (Vec<u8>, i32) {
    let written = format!("{:e}", number.abs());
    let (mantissa, exponent) = written.split_once('e').unwrap_or((&written, "0"));
    let digits = mantissa.bytes().filter(u8::is_ascii_digit).map(|digit| digit - b'0').collect();
    (digits, exponent.parse().unwrap_or(0))
}

/// Rounds to so many digits, to the even one where both are as near. Whether there is one digit more before the point.
fn round(digits: &mut Vec<u8>, kept: i32) -> bool {
    let Ok(kept) = usize::try_from(kept) else {
        digits.clear();
        return false;
    };
    let Some((before, [first, rest @ ..])) = digits.split_at_checked(kept) else { return false };
    let odd = before.last().is_some_and(|digit| digit % 2 == 1);
    let up = *first > 5 || (*first == 5 && (odd || rest.iter().any(|digit| *digit != 0)));
    digits.truncate(kept);
    if !up {
        return false;
    }
    for digit in digits.iter_mut().rev() {
        if *digit < 9 {
            *digit += 1;
            return false;
        }
        *digit = 0;
    }
    digits.insert(0, 1);
    true
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
