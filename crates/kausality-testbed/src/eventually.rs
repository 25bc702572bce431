//! Waiting for a condition, with a deadline.

use std::fmt::Display;
use std::time::Duration;

use anyhow::{Result, bail};
use tokio::time::{Instant, sleep_until, timeout_at};

/// How long to wait between two looks: short for a person, long for a loaded machine.
const INTERVAL: Duration = Duration::from_millis(50);

/// What one look at the world gives: the value awaited, or the state that was seen instead.
pub trait Probe {
    /// What is awaited.
    type Value;

    /// The value, or a text for people about the present state.
    fn outcome(self) -> Result<Self::Value, String>;
}

impl<T> Probe for Option<T> {
    type Value = T;

    fn outcome(self) -> Result<T, String> {
        self.ok_or_else(|| "nothing".to_owned())
    }
}

impl<T, E: Display> Probe for Result<T, E> {
    type Value = T;

    fn outcome(self) -> Result<T, String> {
        // The alternate form of an `anyhow::Error` has its causes.
        self.map_err(|error| format!("{error:#}"))
    }
}

/// Looks again and again until there is a value, and fails if there is none in time.
///
/// The error names what was awaited, and the last state seen. A look that fails, as a call of an API server that is
/// restarting does, is a state like any other.
pub async fn eventually<P: Probe>(
    within: Duration,
    what: impl Display,
    mut look: impl AsyncFnMut() -> P,
) -> Result<P::Value> {
    let deadline = Instant::now() + within;
    let mut last = "nothing: the first look did not end".to_owned();
    loop {
        let next = Instant::now() + INTERVAL;
        match timeout_at(deadline, look()).await.map(Probe::outcome) {
            Ok(Ok(value)) => return Ok(value),
            Ok(Err(state)) => last = state,
            Err(_) => {}
        }
        if next >= deadline {
            bail!("not within {within:?}: {what}. Last seen: {last}");
        }
        sleep_until(next).await;
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    const SHORT: Duration = Duration::from_millis(200);

    #[tokio::test]
    async fn a_value_ends_the_wait() {
        let mut looks = 0;
        let value = eventually(Duration::from_secs(60), "three looks", async || {
            looks += 1;
            (looks == 3).then_some("there")
        });
        assert_eq!(value.await.unwrap(), "there");
        assert_eq!(looks, 3);
    }

    #[tokio::test]
    async fn a_failure_names_what_was_awaited_and_what_was_seen() {
        let mut looks = 0;
        let never = eventually(SHORT, "a moon of cheese", async || {
            looks += 1;
            Err::<(), _>(anyhow::anyhow!("rock").context(format!("look {looks}")))
        });
        let error = never.await.unwrap_err().to_string();
        assert!(error.starts_with("not within 200ms: a moon of cheese. Last seen: look "), "{error}");
        assert!(error.ends_with(": rock"), "{error}");
        assert!(looks > 1);
    }

    #[tokio::test]
    async fn a_look_that_hangs_does_not_hang_the_test() {
        let error = eventually(SHORT, "an answer", async || std::future::pending::<Option<()>>().await).await;
        assert!(error.unwrap_err().to_string().contains("the first look did not end"));
    }

    #[tokio::test]
    async fn a_value_needs_no_second_look() {
        assert_eq!(eventually(Duration::ZERO, "it", async || Ok::<_, Infallible>(1)).await.unwrap(), 1);
    }
}
