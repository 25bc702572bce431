//! Lengths of time and points in it, as people type them: `90m`, `1h30m`, `2026-01-25T12:00:00Z`.

use anyhow::{Context, Result, bail};
use jiff::{SignedDuration, Timestamp};

/// Nobody means more than this: ten years.
const LONGEST: i64 = 10 * 366 * 86_400;

/// Reads a length of time: numbers with the units `s`, `m`, `h`, `d` or `w`.
///
/// # Errors
/// If it is none, is nothing, or is absurdly long.
pub(crate) fn duration(text: &str) -> Result<SignedDuration> {
    let example = || format!("{text:?} is no length of time, as 90m, 2h, 1h30m or 7d are");
    let mut seconds: i64 = 0;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).with_context(example)?;
        let (number, unit) = rest.split_at_checked(digits).with_context(example)?;
        let number: i64 = number.parse().ok().with_context(example)?;
        let mut units = unit.chars();
        let unit = match units.next() {
            Some('s') => 1,
            Some('m') => 60,
            Some('h') => 3_600,
            Some('d') => 86_400,
            Some('w') => 7 * 86_400,
            _ => bail!(example()),
        };
        let more = number.checked_mul(unit).filter(|more| *more <= LONGEST);
        seconds = more
            .map(|more| more + seconds)
            .filter(|sum| *sum <= LONGEST)
            .with_context(|| format!("{text:?} is too long: ten years are enough"))?;
        rest = units.as_str();
    }
    if seconds == 0 {
        bail!(example());
    }
    Ok(SignedDuration::from_secs(seconds))
}

/// Reads a point in time that is to come: a length of time from now, or a timestamp.
///
/// # Errors
/// If it is neither, or is in the past.
pub(crate) fn until(text: &str) -> Result<Timestamp> {
    after(text, now())
}

fn after(text: &str, now: Timestamp) -> Result<Timestamp> {
    let time = match duration(text) {
        Ok(duration) => now.checked_add(duration).context("that is too far away")?,
        Err(_) => text.parse().ok().with_context(|| {
            format!("{text:?} is neither a length of time, as 2h or 7d are, nor a timestamp like 2026-01-25T12:00:00Z")
        })?,
    };
    if time <= now {
        bail!("{time} is in the past: it is {now}");
    }
    Ok(time)
}

/// The time, to the second: fractions help nobody who reads an annotation.
pub(crate) fn now() -> Timestamp {
    to_second(Timestamp::now())
}

/// A time without what is less than a second.
pub(crate) fn to_second(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_add_up() {
        for (text, seconds) in
            [("90s", 90), ("5m", 300), ("1h30m", 5_400), ("2d", 172_800), ("1w1s", 604_801)]
        {
            assert_eq!(duration(text).unwrap().as_secs(), seconds, "{text}");
        }
        for text in ["", "5", "h", "1x", "1.5h", "-1h", "1h ", "0s", "99999999999999999999s", "1000w", "1é"]
        {
            assert!(duration(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn only_what_is_to_come_will_do() {
        let noon: Timestamp = "2026-01-25T12:00:00Z".parse().unwrap();
        assert_eq!(after("2h", noon).unwrap().to_string(), "2026-01-25T14:00:00Z");
        assert_eq!(after("2026-01-25T12:30:00+00:00", noon).unwrap().to_string(), "2026-01-25T12:30:00Z");
        for (text, why) in [("2026-01-25T12:00:00Z", "is in the past"), ("tomorrow", "nor a timestamp")] {
            let error = after(text, noon).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
