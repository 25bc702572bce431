//! Time that is made up: it passes when everybody waits.

use std::time::Duration;

use futures::future::{BoxFuture, FutureExt as _};
use jiff::Timestamp;
use kausality_sandbox::controllers::Time;
use tokio::time::Instant;

/// When every simulation begins: 2026-01-01.
const BEGIN: u64 = 1_767_225_600_000;

/// The time since a simulation began, which is tokio's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock(Instant);

impl Clock {
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn elapsed(self) -> Duration {
        self.0.elapsed()
    }

    fn millis(self) -> u64 {
        BEGIN + u64::try_from(self.elapsed().as_millis()).unwrap_or_default()
    }

    pub(crate) fn timestamp(self) -> Timestamp {
        i64::try_from(self.millis())
            .ok()
            .and_then(|millis| Timestamp::from_millisecond(millis).ok())
            .unwrap_or_default()
    }
}

impl kausality_sandbox::Clock for Clock {
    fn now(&self) -> Time {
        Time(self.millis())
    }

    fn sleep_until(&self, time: Time) -> BoxFuture<'static, ()> {
        tokio::time::sleep(Duration::from_millis(time.0.saturating_sub(self.millis()))).boxed()
    }
}
