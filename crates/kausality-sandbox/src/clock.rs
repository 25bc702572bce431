//! Time as an input: the real one, or one that a simulation moves.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures::future::{BoxFuture, FutureExt as _};
use tokio::sync::watch;

use crate::controllers::Time;

/// Where the sandbox takes the time from.
pub trait Clock: Send + Sync + 'static {
    /// The time.
    fn now(&self) -> Time;

    /// Ends when it is this time, or later.
    fn sleep_until(&self, time: Time) -> BoxFuture<'static, ()>;
}

/// The time of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealClock;

impl Clock for RealClock {
    fn now(&self) -> Time {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Time(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    }

    fn sleep_until(&self, time: Time) -> BoxFuture<'static, ()> {
        let left = Duration::from_millis(time.0.saturating_sub(self.now().0));
        tokio::time::sleep(left).boxed()
    }
}

/// A time that stands still until somebody moves it. Clones share it.
#[derive(Clone, Debug)]
pub struct VirtualClock {
    now: Arc<Mutex<watch::Sender<Time>>>,
}

impl VirtualClock {
    /// A clock that shows this time.
    pub fn new(now: Time) -> Self {
        Self { now: Arc::new(Mutex::new(watch::Sender::new(now))) }
    }

    /// Moves the clock. It never goes back.
    pub fn set(&self, time: Time) {
        let sender = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        sender.send_if_modified(|now| {
            let later = time > *now;
            *now = time.max(*now);
            later
        });
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Time {
        *self.now.lock().unwrap_or_else(PoisonError::into_inner).borrow()
    }

    fn sleep_until(&self, time: Time) -> BoxFuture<'static, ()> {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner).subscribe();
        async move {
            _ = now.wait_for(|now| *now >= time).await;
        }
        .boxed()
    }
}
