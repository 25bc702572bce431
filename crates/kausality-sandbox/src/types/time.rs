//! Times, as Kubernetes reads and writes them.

use jiff::Timestamp;
use jiff::fmt::temporal::DateTimeParser;

/// A time in whole seconds, in UTC. The error is Go's.
pub(crate) fn seconds(text: &str) -> Result<String, String> {
    let time = parse(text, "2006-01-02T15:04:05Z07:00")?;
    let time = Timestamp::from_second(time.as_second()).map_err(|error| error.to_string())?;
    Ok(time.to_string())
}

/// A time in microseconds, in UTC, and never in less.
pub(crate) fn microseconds(text: &str) -> Result<String, String> {
    const LAYOUT: &str = "2006-01-02T15:04:05.000000Z07:00";
    let time = parse(text, LAYOUT)?;
    let fraction = text.get(19..).and_then(|rest| rest.strip_prefix('.')).unwrap_or_default();
    if fraction.chars().take_while(char::is_ascii_digit).count() != 6 {
        return Err(fault(text, LAYOUT));
    }
    Ok(format!("{time:.6}"))
}

/// RFC 3339, to the letter.
pub(crate) fn parse_rfc3339(text: &str) -> Option<Timestamp> {
    let bytes = text.as_bytes();
    let marks = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    let digits = bytes.get(..19)?.iter().enumerate().all(|(at, byte)| {
        marks.iter().find(|(place, _)| *place == at).map_or(byte.is_ascii_digit(), |(_, mark)| byte == mark)
    });
    if !digits || bytes.get(17..19)? == b"60" {
        return None;
    }
    let zone = text.get(19..)?.trim_start_matches(|letter: char| letter == '.' || letter.is_ascii_digit());
    let plain = zone == "Z" || zone.len() == 6 && zone.as_bytes().get(3) == Some(&b':');
    DateTimeParser::new().parse_timestamp(text).ok().filter(|_| plain)
}

fn parse(text: &str, layout: &str) -> Result<Timestamp, String> {
    parse_rfc3339(text).ok_or_else(|| fault(text, layout))
}

fn fault(text: &str, layout: &str) -> String {
    format!("parsing time {text:?} as {layout:?}: cannot parse it")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_in_one_way() {
        assert_eq!(seconds("2026-01-02T03:04:05.9+02:00").as_deref(), Ok("2026-01-02T01:04:05Z"));
        assert_eq!(microseconds("2026-01-02T03:04:05.678900Z").as_deref(), Ok("2026-01-02T03:04:05.678900Z"));
        assert!(microseconds("2026-01-02T03:04:05Z").is_err());
        for text in ["", "yesterday", "2026-01-02", "2026-13-02T03:04:05Z", "2026-01-02 03:04:05Z"] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }
}
