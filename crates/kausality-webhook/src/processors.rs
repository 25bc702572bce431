//! Work that may take long, apart from the tasks that read and answer.
//!
//! A deadline ends only what waits. So such work is a task of its own, which whoever asked for it need not wait for, and no more of it
//! goes on at once than there are processors: the threads that read and answer always get their share.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, ready},
};

use tokio::{
    runtime::{Handle, RuntimeFlavor},
    sync::{AcquireError, OwnedSemaphorePermit, Semaphore},
    task::JoinSet,
};

/// What work takes turns at.
#[derive(Clone, Debug)]
pub(crate) struct Processors(Arc<Semaphore>);

/// Whether work still waits for its first turn.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queued(Arc<AtomicBool>);

impl Queued {
    pub(crate) fn is_waiting(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn set(&self, waiting: bool) {
        self.0.store(waiting, Ordering::Relaxed);
    }
}

impl Default for Processors {
    fn default() -> Self {
        Self::new(std::thread::available_parallelism().map_or(1, usize::from))
    }
}

impl Processors {
    pub(crate) fn new(count: usize) -> Self {
        Self(Arc::new(Semaphore::new(count)))
    }

    /// Does some work; nothing, if it panics. Where nobody waits for it any more, it ends the next time that it waits.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        queued: &Queued,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        let mut task = JoinSet::new();
        let (permits, queued) = (Arc::clone(&self.0), queued.clone());
        queued.set(true);
        task.spawn(Turns { work: Box::pin(work), permits, turn: None, queued });
        task.join_next().await?.ok()
    }
}

type Turn = Pin<Box<dyn Future<Output = Result<OwnedSemaphorePermit, AcquireError>> + Send>>;

/// Work that has a processor whenever it goes on, and none while it waits.
struct Turns<F> {
    work: Pin<Box<F>>,
    permits: Arc<Semaphore>,
    turn: Option<Turn>,
    queued: Queued,
}

impl<F: Future> Future for Turns<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let Self { work, permits, turn, queued } = &mut *self;
        let next = turn.get_or_insert_with(|| Box::pin(Arc::clone(permits).acquire_owned()));
        let _permit = ready!(next.as_mut().poll(context));
        *turn = None;
        queued.set(false);
        aside(|| work.as_mut().poll(context))
    }
}

/// Has others go on with what else this thread would do, where there are others.
fn aside<T>(work: impl FnOnce() -> T) -> T {
    match Handle::current().runtime_flavor() {
        RuntimeFlavor::MultiThread => tokio::task::block_in_place(work),
        _ => work(),
    }
}
