//! How long a request may take.

use std::time::Duration;

/// What is left of the API server's timeout for the way there and back.
const MARGIN: Duration = Duration::from_millis(500);

/// The time for a request with this query: `usual`, or less if the API server waits for less.
///
/// An answer that comes after the API server's timeout is lost, and with it the reason why it was late.
pub(crate) fn deadline(query: Option<&str>, usual: Duration) -> Duration {
    let parameters = query.unwrap_or_default().split('&');
    let timeout = parameters.filter_map(|pair| pair.strip_prefix("timeout=")).find_map(go_duration);
    match timeout {
        Some(timeout) => usual.min(timeout - MARGIN.min(timeout / 4)),
        None => usual,
    }
}

/// Reads a duration as Go prints it: `10s`, `1m0s`, `1.5s`, `250ms`.
fn go_duration(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let (number, tail) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit() && c != '.')?);
        let (unit, tail) = tail.split_at(tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len()));
        let seconds = match unit {
            "h" => 3600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 1e-3,
            "us" | "µs" | "%C2%B5s" => 1e-6,
            "ns" => 1e-9,
            _ => return None,
        };
        total =
            total.checked_add(Duration::try_from_secs_f64(number.parse::<f64>().ok()? * seconds).ok()?)?;
        rest = tail;
    }
    (!total.is_zero()).then_some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(query: Option<&str>, expected: Duration) {
        assert_eq!(deadline(query, Duration::from_secs(8)), expected, "{query:?}");
    }

    #[test]
    fn the_shorter_of_ours_and_theirs_holds() {
        check(None, Duration::from_secs(8));
        check(Some("timeout=30s"), Duration::from_secs(8));
        check(Some("timeout=1m30s"), Duration::from_secs(8));
        check(Some("timeout=5s"), Duration::from_millis(4500));
        check(Some("a=b&timeout=1.5s&c"), Duration::from_millis(1125));
        check(Some("timeout=1s"), Duration::from_millis(750));
        check(Some("timeout=100ms"), Duration::from_millis(75));
    }

    #[test]
    fn what_is_no_timeout_is_ignored() {
        for timeout in ["", "s", "0s", "5", "-5s", "5y", "1e3s", "1..5s", "99999999999999999999h", "5s5"] {
            check(Some(&format!("timeout={timeout}")), Duration::from_secs(8));
        }
    }
}
