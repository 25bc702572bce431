//! Patterns and formats of texts.

use std::collections::HashMap;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::{Mutex, OnceLock};

use base64::Engine as _;
use regex::Regex;

use crate::sandbox::lock;
use crate::types::time::parse_rfc3339;

/// Whether a text has what a pattern describes somewhere in it. A pattern that is none matches all: the definition that has
/// it is at fault, not the object.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
    static READ: OnceLock<Mutex<HashMap<String, Option<Regex>>>> = OnceLock::new();
    let mut read = lock(READ.get_or_init(Mutex::default));
    let pattern = read.entry(pattern.to_owned()).or_insert_with(|| Regex::new(pattern).ok());
    pattern.as_ref().is_none_or(|pattern| pattern.is_match(text))
}

/// Whether a text is of a format. Formats that Kubernetes does not know are not looked at.
pub(super) fn is(format: &str, text: &str) -> bool {
    match format {
        "date-time" => parse_rfc3339(&text.to_uppercase()).is_some(),
        "date" => parse_rfc3339(&format!("{text}T00:00:00Z")).is_some(),
        "ipv4" => text.parse::<Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<Ipv6Addr>().is_ok(),
        "cidr" => text.split_once('/').is_some_and(|(address, length)| {
            let length: Option<u8> = length.parse().ok();
            let four = address.parse::<Ipv4Addr>().is_ok() && length.is_some_and(|length| length <= 32);
            four || address.parse::<Ipv6Addr>().is_ok() && length.is_some_and(|length| length <= 128)
        }),
        "uri" => is_uri(text),
        "byte" => base64::engine::general_purpose::STANDARD.decode(text).is_ok(),
        "email" => matches(r"^[^@\s<>]+@[^@\s<>]+$", text),
        "hostname" => {
            text.len() <= 255
                && matches(
                    r"^([a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?\.)*[a-zA-Z0-9]([a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?$",
                    text,
                )
        }
        "mac" => matches(r"^[0-9A-Fa-f]{2}([:-][0-9A-Fa-f]{2}){5}$", text),
        "uuid" => matches(
            r"^[0-9A-Fa-f]{8}-?[0-9A-Fa-f]{4}-?[0-9A-Fa-f]{4}-?[0-9A-Fa-f]{4}-?[0-9A-Fa-f]{12}$",
            text,
        ),
        "duration" => is_duration(text),
        "hexcolor" => matches(r"^#?([0-9A-Fa-f]{3}|[0-9A-Fa-f]{6})$", text),
        _ => true,
    }
}

/// What can be requested: an absolute path, or something with a scheme.
fn is_uri(text: &str) -> bool {
    let plain =
        !text.is_empty() && !text.contains(|letter: char| letter.is_whitespace() || letter.is_control());
    plain && (text.starts_with('/') || matches("^[A-Za-z][A-Za-z0-9+.-]*:", text))
}

/// `1h30m`, or `2 days`.
fn is_duration(text: &str) -> bool {
    matches(r"^[-+]?(0|([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+$", text)
        || matches(
            r"^([0-9]+)\s*(ns|nanos?|us|micros?|ms|millis?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|weeks?)$",
            text,
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_those_that_kubernetes_knows() {
        for (format, good, bad) in [
            ("date-time", "2026-01-02T03:04:05Z", "yesterday"),
            ("date", "2026-01-02", "2026-13-02"),
            ("ipv4", "1.2.3.4", "1.2.3"),
            ("ipv6", "::1", "1.2.3.4"),
            ("cidr", "10.0.0.0/8", "10.0.0.0/33"),
            ("uri", "https://a.example/b", "no link"),
            ("byte", "YQ==", "?"),
            ("email", "a@b.example", "a"),
            ("hostname", "a.example", "a_b"),
            ("mac", "01:23:45:67:89:ab", "01:23"),
            ("uuid", "11111111-1111-1111-1111-111111111111", "1"),
            ("duration", "1h30m", "soon"),
        ] {
            assert!(is(format, good), "{format} {good}");
            assert!(!is(format, bad), "{format} {bad}");
        }
        assert!(is("unheard-of", "anything"));
    }
}
