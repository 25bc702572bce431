//! The load generator: as much as a webhook takes, or as much as was said, whatever the webhook takes.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use hdrhistogram::Histogram;
use kausality_webhook::Bytes;
use tokio::task::JoinSet;

use crate::{figures::histogram, wire::Wire};

/// How many requests are under way at once where the webhook sets the pace.
const AT_ONCE: usize = 32;

/// How many requests may be unanswered where it does not. More means that it does not keep up at all.
const MAX_UNANSWERED: u64 = 20_000;

/// How long before a request is due timers are exact enough.
const COARSE: Duration = Duration::from_millis(3);

/// What is sent, over and over.
#[derive(Clone)]
pub(crate) struct Load {
    pub(crate) wire: Arc<Wire>,
    pub(crate) reviews: Arc<[Bytes]>,
}

/// What came of it when the webhook set the pace.
pub(crate) struct Closed {
    pub(crate) answered: u64,
    pub(crate) failed: u64,
    pub(crate) wall: Duration,
    /// What `busy` told more at the end than at the beginning.
    pub(crate) busy: Duration,
}

/// What came of it when it did not.
pub(crate) struct Open {
    /// Nanoseconds from the moment when a request was due to its answer.
    pub(crate) latencies: Histogram<u64>,
    pub(crate) failed: u64,
    /// How many were due but not sent, since too many were unanswered.
    pub(crate) unsent: u64,
}

impl Load {
    fn review(&self, nth: u64) -> Bytes {
        let place = usize::try_from(nth).unwrap_or_default() % self.reviews.len().max(1);
        self.reviews.get(place).cloned().unwrap_or_default()
    }

    /// Sends each review once, and checks every answer.
    pub(crate) async fn check(&self) -> Result<()> {
        for review in self.reviews.iter() {
            let answer: serde_json::Value = serde_json::from_slice(&self.wire.send(review.clone()).await?)?;
            ensure!(answer["response"]["allowed"] == true, "not allowed: {answer}");
        }
        Ok(())
    }

    /// As much as the webhook takes: the next request follows upon an answer.
    pub(crate) async fn closed(
        &self,
        warm_up: Duration,
        time: Duration,
        busy: impl Fn() -> Duration,
    ) -> Result<Closed> {
        let tally = Arc::new(Tally::default());
        let stop = Arc::new(AtomicBool::new(false));
        let mut clients = JoinSet::new();
        for _ in 0..AT_ONCE {
            let (load, tally, stop) = (self.clone(), tally.clone(), stop.clone());
            clients.spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    let nth = tally.sent.fetch_add(1, Ordering::Relaxed);
                    tally.note(load.wire.send(load.review(nth)).await);
                }
            });
        }
        // Somebody on another machine costs the webhook nothing to wake; one that sleeps on this machine does.
        let awake = stop.clone();
        clients.spawn(async move {
            while !awake.load(Ordering::Relaxed) {
                tokio::task::yield_now().await;
            }
        });
        tokio::time::sleep(warm_up).await;
        let (begun, before, first) = (Instant::now(), busy(), tally.ends());
        tokio::time::sleep(time).await;
        let (wall, after, last) = (begun.elapsed(), busy(), tally.ends());
        stop.store(true, Ordering::Relaxed);
        while let Some(ended) = clients.join_next().await {
            ended?;
        }
        Ok(Closed {
            answered: last.0 - first.0,
            failed: last.1 - first.1,
            wall,
            busy: after.saturating_sub(before),
        })
    }

    /// So many requests a second, evenly. Each latency begins when its request was due: one that had to wait for the
    /// webhook, or for the generator, has waited.
    pub(crate) async fn open(&self, warm_up: Duration, time: Duration, rate: f64) -> Result<Open> {
        let latencies = Arc::new(Mutex::new(histogram()?));
        let tally = Arc::new(Tally::default());
        let mut requests = JoinSet::new();
        let mut unsent = 0;
        let begun = Instant::now();
        for nth in 0_u32.. {
            let since = Duration::from_secs_f64(f64::from(nth) / rate);
            if since >= warm_up + time {
                break;
            }
            let due = begun + since;
            if let Some(far) = due.checked_duration_since(Instant::now() + COARSE) {
                tokio::time::sleep(far).await;
            }
            // Timers are too coarse by far. This thread has nothing else to do, and what is ready goes first.
            while Instant::now() < due {
                tokio::task::yield_now().await;
            }
            while requests.try_join_next().is_some() {}
            if tally.unanswered() >= MAX_UNANSWERED {
                unsent += 1;
                continue;
            }
            let sent = tally.sent.fetch_add(1, Ordering::Relaxed);
            let (load, tally, latencies) = (self.clone(), tally.clone(), latencies.clone());
            requests.spawn(async move {
                tally.note(load.wire.send(load.review(sent)).await);
                if since >= warm_up {
                    let took = u64::try_from(due.elapsed().as_nanos()).unwrap_or(u64::MAX);
                    latencies.lock().unwrap_or_else(PoisonError::into_inner).saturating_record(took);
                }
            });
        }
        while let Some(ended) = requests.join_next().await {
            ended?;
        }
        let latencies = latencies.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Ok(Open { latencies, failed: tally.ends().1, unsent })
    }
}

#[derive(Debug, Default)]
struct Tally {
    sent: AtomicU64,
    answered: AtomicU64,
    failed: AtomicU64,
}

impl Tally {
    fn note(&self, answer: Result<Bytes>) {
        let counter = if answer.is_ok() { &self.answered } else { &self.failed };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    fn ends(&self) -> (u64, u64) {
        (self.answered.load(Ordering::Relaxed), self.failed.load(Ordering::Relaxed))
    }

    fn unanswered(&self) -> u64 {
        let (answered, failed) = self.ends();
        self.sent.load(Ordering::Relaxed).saturating_sub(answered + failed)
    }
}
