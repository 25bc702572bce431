//! Reading a request's body within bounds: of one body, and of all bodies together.

use std::sync::Arc;

use axum::body::{Body, Bytes, HttpBody};
use http_body_util::BodyExt;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How much of a body beyond the limit is read and thrown away, in multiples of the limit. A client that is
/// still writing when an HTTP/1.1 connection closes sees a broken connection in place of the answer.
const DISCARDED: usize = 3;

/// Takes in bodies.
#[derive(Debug)]
pub(crate) struct Intake {
    limit: usize,
    budget: Arc<Semaphore>,
}

/// What a body in memory takes of the budget, until it is dropped.
#[derive(Debug, Default)]
pub(crate) struct Share(Option<OwnedSemaphorePermit>);

/// Why a body was not read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refused {
    #[error("the review is larger than {limit} bytes, the most that is read")]
    TooLarge { limit: usize },
    #[error("reviews under way take all the memory there is for them (--max-inflight-bytes); try again")]
    Busy,
    #[error("the request broke off: {0}")]
    Broken(axum::Error),
}

impl Intake {
    /// Bodies of at most `limit` bytes, all together of at most `budget`.
    pub(crate) fn new(limit: usize, budget: usize) -> Self {
        Self { limit, budget: Arc::new(Semaphore::new(budget.min(Semaphore::MAX_PERMITS))) }
    }

    /// Reads a body to its end, never holding more than the limit.
    ///
    /// The budget is taken by the memory for what has arrived and not by what was announced, so that announcing much and
    /// sending nothing keeps nobody out.
    pub(crate) async fn read(&self, mut body: Body) -> Result<(Bytes, Share), Refused> {
        let mut share = Share::default();
        let mut read = Vec::new();
        if announced(&body) > self.limit {
            self.discard(body).await;
            return Err(Refused::TooLarge { limit: self.limit });
        }
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame.map_err(Refused::Broken)?.into_data() else { continue };
            let length = read.len() + data.len();
            if length > self.limit {
                drop((read, data, share));
                self.discard(body).await;
                return Err(Refused::TooLarge { limit: self.limit });
            }
            // Most reviews arrive as one frame, and need no copy.
            let is_whole = read.is_empty() && body.is_end_stream();
            let memory = if is_whole { length } else { memory(&read, length, most(&body, length)) };
            if share.grow_to(&self.budget, memory).is_err() {
                drop((read, data, share));
                self.discard(body).await;
                return Err(Refused::Busy);
            }
            if is_whole {
                return Ok((data, share));
            }
            read.reserve_exact(memory - read.len());
            read.extend_from_slice(&data);
        }
        Ok((read.into(), share))
    }

    /// Reads what is left of a body that was refused, as far as that is worth it, and keeps nothing of it.
    pub(crate) async fn discard(&self, mut body: Body) {
        let mut left = self.limit.saturating_mul(DISCARDED);
        while left > 0
            && announced(&body) <= left
            && let Some(Ok(frame)) = body.frame().await
        {
            left = left.saturating_sub(frame.data_ref().map_or(0, Bytes::len).max(1));
        }
    }
}

/// The memory for so many bytes of a body: twice as much as before, so that not every frame moves what is there, but never
/// more than the whole body takes.
fn memory(read: &Vec<u8>, length: usize, most: usize) -> usize {
    if length <= read.capacity() {
        return read.capacity();
    }
    length.max(read.capacity().saturating_mul(2).min(most))
}

/// The most bytes that a body can have of which so many have come.
fn most(body: &Body, length: usize) -> usize {
    match body.size_hint().upper() {
        Some(more) => length.saturating_add(usize::try_from(more).unwrap_or(usize::MAX)),
        None => usize::MAX,
    }
}

impl Share {
    /// Takes what is missing to so many bytes.
    fn grow_to(&mut self, budget: &Arc<Semaphore>, bytes: usize) -> Result<(), Refused> {
        let bytes = bytes.saturating_sub(self.0.as_ref().map_or(0, OwnedSemaphorePermit::num_permits));
        let bytes = u32::try_from(bytes).map_err(|_| Refused::Busy)?;
        let more = Arc::clone(budget).try_acquire_many_owned(bytes).map_err(|_| Refused::Busy)?;
        match &mut self.0 {
            Some(share) => share.merge(more),
            none => *none = Some(more),
        }
        Ok(())
    }
}

/// The bytes that are yet to come at least.
fn announced(body: &Body) -> usize {
    usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, sync::atomic::*};

    use futures::stream;

    use super::*;

    fn chunks(sizes: &'static [usize]) -> (Body, Arc<AtomicUsize>) {
        let taken = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&taken);
        let stream = stream::iter(sizes.iter().map(move |size| {
            counter.fetch_add(*size, Ordering::Relaxed);
            Ok::<_, Infallible>(Bytes::from(vec![b'x'; *size]))
        }));
        (Body::from_stream(stream), taken)
    }

    #[tokio::test]
    async fn a_body_up_to_the_limit_is_read() {
        let (body, _) = chunks(&[4, 6]);
        assert_eq!(Intake::new(10, 10).read(body).await.unwrap().0, "xxxxxxxxxx");
    }

    #[tokio::test]
    async fn a_body_beyond_the_limit_is_thrown_away_but_not_for_ever() {
        let (body, taken) = chunks(&[6, 5, 10, 10, 10, 10, 10, 10]);
        assert!(matches!(Intake::new(10, 100).read(body).await, Err(Refused::TooLarge { limit: 10 })));
        assert_eq!(taken.load(Ordering::Relaxed), 11 + 30);
    }

    #[tokio::test]
    async fn a_body_that_announces_far_too_much_is_not_read() {
        let body = Body::from(vec![b'x'; 50]);
        assert!(matches!(Intake::new(10, 100).read(body).await, Err(Refused::TooLarge { .. })));
    }

    /// Memory is what counts, and a vector may have more of it than bytes; but a body whose length is known takes no more.
    #[tokio::test]
    async fn a_body_takes_its_memory_from_the_budget() {
        for (sizes, memory) in [(&[4, 4, 1][..], 16), (&[4, 4][..], 8), (&[9][..], 9)] {
            let intake = Intake::new(100, 100);
            let (body, share) = intake.read(chunks(sizes).0).await.unwrap();
            assert_eq!(body.len(), sizes.iter().sum::<usize>());
            assert_eq!(share.0.unwrap().num_permits(), memory, "{sizes:?}");
        }
        let mut read = Vec::with_capacity(4);
        assert_eq!(super::memory(&read, 5, 7), 7, "the whole body");
        assert_eq!(super::memory(&read, 5, 90), 8);
        assert_eq!(super::memory(&read, 50, 50), 50);
        read.extend_from_slice(b"xx");
        assert_eq!(super::memory(&read, 3, 9), 4, "there is room");
    }

    #[tokio::test]
    async fn what_does_not_fit_into_the_budget_is_read_all_the_same() {
        let intake = Intake::new(100, 10);
        let (body, taken) = chunks(&[8, 8, 8, 8]);
        assert!(matches!(intake.read(body).await, Err(Refused::Busy)));
        assert_eq!(taken.load(Ordering::Relaxed), 32, "a client that still writes sees no answer");
        assert_eq!(intake.budget.available_permits(), 10);
    }

    #[tokio::test]
    async fn bodies_share_a_budget_until_they_are_dropped() {
        let intake = Intake::new(10, 15);
        let first = intake.read(chunks(&[4, 6]).0).await.unwrap();
        assert!(matches!(intake.read(chunks(&[3, 3]).0).await, Err(Refused::Busy)));
        drop(first);
        intake.read(chunks(&[3, 3]).0).await.unwrap();
    }
}
