//! Reviews whose answers have gone out, and which are still to be confirmed.

use std::{sync::Arc, time::Duration};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The bytes of all of them together. Beyond that, answers wait.
const MOST: u32 = 16 << 20;

/// What a review takes at least.
const LEAST: u32 = 4 << 10;

/// The room for them.
#[derive(Debug)]
pub(crate) struct Afterwards(Arc<Semaphore>);

impl Default for Afterwards {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MOST as usize)))
    }
}

impl Afterwards {
    /// Room for one more of so many bytes, which is held until it is dropped; none, if there is too little.
    pub(crate) fn room(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let bytes = u32::try_from(bytes).ok()?.max(LEAST);
        self.0.clone().try_acquire_many_owned(bytes).ok()
    }

    /// Waits until all are done, or the time is up.
    pub(crate) async fn end(&self, deadline: Duration) {
        if tokio::time::timeout(deadline, self.0.acquire_many(MOST)).await.is_err() {
            tracing::warn!("not every drift that was let pass could be entered before the end");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn there_is_room_for_some_and_all_are_waited_for() {
        let afterwards = Afterwards::default();
        let large = afterwards.room(MOST as usize - 1).unwrap();
        assert!(afterwards.room(1).is_none(), "a small one takes more than its bytes");
        drop(large);
        let small: Vec<_> = std::iter::from_fn(|| afterwards.room(1)).collect();
        assert_eq!(small.len(), (MOST / LEAST) as usize);

        let begun = tokio::time::Instant::now();
        let end = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            drop(small);
        };
        tokio::join!(afterwards.end(Duration::from_secs(5)), end);
        assert_eq!(begun.elapsed(), Duration::from_secs(1));
    }
}
