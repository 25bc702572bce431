//! Live reads that are shared. Whoever asks while one is under way waits for the next, which all who wait by then share. That
//! one begins after a rest, so that a controller in a hot loop leaves the API server to others.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// How long something is not read again while many ask for it.
const REST: Duration = Duration::from_millis(20);

/// Reads of many things, each known by its name.
#[derive(Debug)]
pub(crate) struct Reads<T> {
    /// Counts what happens, to tell what came before what.
    moments: AtomicU64,
    lines: Mutex<BTreeMap<String, Arc<Line<T>>>>,
}

/// The last answer, and when it was asked for. Held by whoever reads.
type Line<T> = tokio::sync::Mutex<Option<(u64, T)>>;

impl<T> Default for Reads<T> {
    fn default() -> Self {
        Self { moments: AtomicU64::new(0), lines: Mutex::default() }
    }
}

impl<T: Clone> Reads<T> {
    /// What `read` says, or what somebody else has read of the same who began after this call.
    pub(crate) async fn share(&self, name: &str, read: impl Future<Output = T>) -> T {
        let asked = self.moment();
        let line = self.lines().entry(name.to_owned()).or_default().clone();
        let answer = {
            let mut last = line.lock().await;
            match &*last {
                Some((begun, answer)) if *begun > asked => answer.clone(),
                before => {
                    if before.is_some() {
                        tokio::time::sleep(REST).await;
                    }
                    let begun = self.moment();
                    let answer = read.await;
                    *last = Some((begun, answer.clone()));
                    answer
                }
            }
        };
        let mut lines = self.lines();
        // This one and the map's: nobody else waits.
        if Arc::strong_count(&line) == 2 {
            lines.remove(name);
        }
        answer
    }

    fn moment(&self) -> u64 {
        self.moments.fetch_add(1, Ordering::SeqCst)
    }

    fn lines(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Arc<Line<T>>>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use futures::future::join_all;
    use tokio::time::sleep;

    use super::*;

    /// A read that takes a second, and says how many there have been.
    async fn read(count: &AtomicU64) -> u64 {
        let nth = count.fetch_add(1, Ordering::SeqCst) + 1;
        sleep(Duration::from_secs(1)).await;
        nth
    }

    #[tokio::test(start_paused = true)]
    async fn many_who_ask_at_once_share_and_nobody_gets_what_was_read_before() {
        let (reads, count) = (Reads::default(), AtomicU64::new(0));
        let ask = |after: u64| {
            let (reads, count) = (&reads, &count);
            async move {
                sleep(Duration::from_millis(after)).await;
                reads.share("web", read(count)).await
            }
        };
        // One asks first; a hundred more while that read is under way; another one during the second.
        let all = join_all([0].into_iter().chain([500; 100]).chain([1500]).map(ask)).await;
        let mut expected = vec![1];
        expected.extend([2; 100]);
        expected.push(3);
        assert_eq!(all, expected);
        assert!(reads.lines().is_empty(), "nothing is kept");
    }

    #[tokio::test(start_paused = true)]
    async fn between_reads_there_is_a_rest_but_not_before_the_first() {
        let (reads, begun) = (Reads::default(), Mutex::new(Vec::new()));
        let start = tokio::time::Instant::now();
        let ask = |after: u64| {
            let (reads, begun) = (&reads, &begun);
            let read = async move {
                begun.lock().unwrap().push(start.elapsed());
                sleep(Duration::from_millis(2)).await;
                start.elapsed()
            };
            async move {
                sleep(Duration::from_millis(after)).await;
                (after, reads.share("web", read).await)
            }
        };
        let all = join_all((0..1000).map(ask)).await;
        assert!(all.iter().all(|(asked, told)| *told >= Duration::from_millis(asked + 2)));
        let begun = begun.into_inner().unwrap();
        assert_eq!(begun[0], Duration::ZERO);
        assert!((40..=50).contains(&begun.len()), "{}", begun.len());
        assert!(begun.windows(2).all(|pair| pair[1] - pair[0] >= REST), "{begun:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn one_who_gives_up_keeps_nobody_waiting() {
        let (reads, count) = (Reads::default(), AtomicU64::new(0));
        let impatient = tokio::time::timeout(Duration::from_millis(100), reads.share("web", read(&count)));
        let (first, second) = tokio::join!(impatient, reads.share("web", read(&count)));
        assert!(first.is_err());
        assert_eq!(second, 2);
        assert_eq!(reads.share("other", read(&count)).await, 3);
    }
}
