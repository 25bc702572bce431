//! A number that grows, and those who wait for that.
//!
//! They are woken in the order in which they began to wait. `tokio::sync::watch` leaves that to chance, and nothing here is.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;

/// A number that grows.
#[derive(Debug, Default)]
pub(crate) struct Signal(Arc<Shared>);

/// Somebody who follows it.
#[derive(Clone, Debug)]
pub(crate) struct Changes {
    shared: Arc<Shared>,
    seen: u64,
}

#[derive(Debug, Default)]
struct Shared {
    number: AtomicU64,
    changed: Notify,
}

impl Signal {
    pub(crate) fn set(&self, number: u64) {
        self.0.number.store(number, Ordering::Release);
        self.0.changed.notify_waiters();
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.number.load(Ordering::Acquire)
    }

    /// Follows it from here on.
    pub(crate) fn follow(&self) -> Changes {
        Changes { shared: Arc::clone(&self.0), seen: self.get() }
    }
}

impl Changes {
    /// The number now, which is not waited for any more.
    pub(crate) fn latest(&mut self) -> u64 {
        self.seen = self.shared.number.load(Ordering::Acquire);
        self.seen
    }

    /// Waits until it is another one than was last seen.
    pub(crate) async fn next(&mut self) {
        loop {
            let mut changed = pin!(self.shared.changed.notified());
            changed.as_mut().enable();
            let number = self.shared.number.load(Ordering::Acquire);
            if number != self.seen {
                self.seen = number;
                return;
            }
            changed.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn whoever_waits_is_woken_in_order() {
        let signal = Signal::default();
        let woken = Arc::new(std::sync::Mutex::new(Vec::new()));
        let waiting: Vec<_> = (0..20)
            .map(|nth| {
                let (mut changes, woken) = (signal.follow(), woken.clone());
                tokio::spawn(async move {
                    changes.next().await;
                    woken.lock().unwrap().push(nth);
                })
            })
            .collect();
        tokio::task::yield_now().await;
        signal.set(1);
        futures::future::join_all(waiting).await;
        assert_eq!(*woken.lock().unwrap(), (0..20).collect::<Vec<_>>());
    }

    #[tokio::test]
    async fn what_has_been_seen_is_not_waited_for() {
        let signal = Signal::default();
        let mut changes = signal.follow();
        signal.set(7);
        assert!(changes.clone().next().now_or_never().is_some());
        assert_eq!(changes.latest(), 7);
        assert!(changes.next().now_or_never().is_none());
    }
}
