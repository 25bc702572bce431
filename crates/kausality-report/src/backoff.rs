//! How long to wait after a failure.

use std::time::Duration;

/// The first pause, at most.
pub const FIRST: Duration = Duration::from_secs(1);

/// The longest pause that we choose ourselves.
pub const LONGEST: Duration = Duration::from_secs(300);

/// The longest pause that an endpoint may ask for.
pub const LONGEST_ASKED: Duration = Duration::from_secs(3600);

/// What kind of failure it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// It may be over soon.
    Growing,
    /// Somebody has to change something first.
    Longest,
}

/// The pause after the `failures`-th failure in a row. `random` is any number: where many wait for the same endpoint, it
/// keeps them from coming all at once. What the endpoint asked for is the least.
#[must_use]
pub fn pause(failures: u32, patience: Patience, asked: Option<Duration>, random: u64) -> Duration {
    let own = match patience {
        Patience::Growing => {
            let doubled = FIRST.saturating_mul(2_u32.saturating_pow(failures.saturating_sub(1)));
            share(doubled.min(LONGEST), random)
        }
        // Not all of it by chance: one that was refused is not to be back in a moment.
        Patience::Longest => LONGEST / 2 + share(LONGEST / 2, random),
    };
    own.max(asked.unwrap_or_default().min(LONGEST_ASKED))
}

/// A part of `whole`, from nothing to all of it.
fn share(whole: Duration, random: u64) -> Duration {
    let millis = u64::try_from(whole.as_millis()).unwrap_or(u64::MAX);
    Duration::from_millis(random % millis.saturating_add(1))
}

/// What a `Retry-After` header asks for, if it is a number of seconds. Dates are passed over: they would need the clocks
/// of both sides to agree.
#[must_use]
pub fn retry_after(header: &str) -> Option<Duration> {
    header.trim().parse().ok().map(Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(failures: u32, patience: Patience) -> (u64, u64) {
        let pauses = (0..=600_000).map(|random| pause(failures, patience, None, random).as_millis() as u64);
        pauses.fold((u64::MAX, 0), |(least, most), pause| (least.min(pause), most.max(pause)))
    }

    #[test]
    fn pauses_grow_up_to_the_longest_with_full_jitter() {
        for (failures, most) in
            [(0, 1), (1, 1), (2, 2), (3, 4), (9, 256), (10, 300), (33, 300), (u32::MAX, 300)]
        {
            assert_eq!(range(failures, Patience::Growing), (0, most * 1000), "{failures}");
        }
    }

    #[test]
    fn what_was_refused_waits_long_at_once() {
        assert_eq!(range(1, Patience::Longest), (150_000, 300_000));
    }

    #[test]
    fn an_endpoint_may_ask_for_more_but_not_for_ever() {
        let asked = |seconds| pause(1, Patience::Growing, Some(Duration::from_secs(seconds)), 500);
        assert_eq!(asked(0), Duration::from_millis(500), "never less than our own");
        assert_eq!(asked(30), Duration::from_secs(30));
        assert_eq!(asked(1_000_000), LONGEST_ASKED);
        assert_eq!(retry_after(" 120 "), Some(Duration::from_secs(120)));
        assert_eq!(retry_after("Wed, 21 Oct 2026 07:28:00 GMT"), None);
        assert_eq!(retry_after("-1"), None);
    }
}
