//! Dates, and dates with a time.

/// As RFC 3339 has it: `2026-01-31`.
pub(super) fn is_date(text: &str) -> bool {
    date(text).is_some()
}

fn date(text: &str) -> Option<()> {
    let [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2] = *text.as_bytes() else { return None };
    let year = number(&[y1, y2, y3, y4])?;
    let month = number(&[m1, m2])?;
    let day = number(&[d1, d2])?;
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => return None,
    };
    (1..=days).contains(&day).then_some(())
}

fn number(digits: &[u8]) -> Option<u32> {
    digits
        .iter()
        .try_fold(0, |number, digit| digit.is_ascii_digit().then(|| number * 10 + u32::from(digit - b'0')))
}

/// As the API server has it: any character stands before the fraction, there are no leap seconds, an offset may be any
/// four digits, and what follows another `t` is not looked at.
pub(super) fn is_datetime(text: &str) -> bool {
    let lower = text.to_lowercase();
    let mut parts = lower.split('t');
    let (Some(day), Some(time)) = (parts.next(), parts.next()) else { return false };
    is_date(day) && is_time(time)
}

fn is_time(text: &str) -> bool {
    let Some((time, rest)) = text.split_at_checked(8) else { return false };
    let [h1, h2, b':', m1, m2, b':', s1, s2] = *time.as_bytes() else { return false };
    let below = |digits: [u8; 2], limit| number(&digits).is_some_and(|number| number < limit);
    if !(below([h1, h2], 24) && below([m1, m2], 60) && below([s1, s2], 60)) {
        return false;
    }
    let fraction = match rest.strip_suffix('z') {
        Some(fraction) => fraction,
        None => {
            let start = rest.len().saturating_sub(6);
            let Some((fraction, offset)) = rest.split_at_checked(start) else { return false };
            let [b'+' | b'-', h1, h2, b':', m1, m2] = *offset.as_bytes() else { return false };
            if number(&[h1, h2, m1, m2]).is_none() {
                return false;
            }
            fraction
        }
    };
    let mut letters = fraction.chars();
    match letters.next() {
        None => true,
        Some('\n') => false,
        Some(_) => {
            !letters.as_str().is_empty() && letters.as_str().bytes().all(|digit| digit.is_ascii_digit())
        }
    }
}
