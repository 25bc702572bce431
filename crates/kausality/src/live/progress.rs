//! How far it has got, on a terminal.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

/// What is done sooner shows nothing.
const PATIENCE: Duration = Duration::from_secs(2);

pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    started: Instant,
    total: usize,
}

impl Progress {
    pub(crate) fn new(total: usize) -> Self {
        Self { bar: None, started: Instant::now(), total }
    }

    /// How long until there is something to show.
    pub(crate) fn silence(&self) -> Option<Duration> {
        self.bar.is_none().then(|| PATIENCE.saturating_sub(self.started.elapsed()))
    }

    /// This many objects are done. Standard error that is no terminal is left alone.
    pub(crate) fn at(&mut self, done: usize) {
        if self.bar.is_none() && self.started.elapsed() >= PATIENCE {
            let style = ProgressStyle::with_template("{bar:30} {pos}/{len} objects, {eta} left");
            let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
            let bar = ProgressBar::new(self.total as u64).with_style(style);
            self.bar = Some(bar.with_elapsed(self.started.elapsed()));
        }
        if let Some(bar) = &self.bar {
            bar.set_position(done as u64);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
