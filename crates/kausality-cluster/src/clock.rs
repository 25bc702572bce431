//! The time of day. Time that merely passes is tokio's, which a simulation can hold still.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use tokio::time::Instant;

/// The time until then, if there is any.
pub(crate) fn left_until(then: Instant) -> Option<Duration> {
    then.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
}

/// Tells the time of day.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl Clock {
    /// A clock of one's own.
    pub fn new(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    pub(crate) fn now(&self) -> Timestamp {
        (self.0)()
    }
}

impl Default for Clock {
    /// The clock of this machine.
    fn default() -> Self {
        Self::new(Timestamp::now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever loops while there is time left would do so for ever in time that stands still.
    #[tokio::test(start_paused = true)]
    async fn nothing_is_left_when_it_is_time() {
        let then = Instant::now() + Duration::from_secs(1);
        assert_eq!(left_until(then), Some(Duration::from_secs(1)));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(left_until(then), None);
    }
}
