//! The line that shows that it is alive.

use std::io::{IsTerminal as _, Write as _};
use std::sync::Mutex;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Tells on stderr what is being done: in one line that changes on a terminal, else in a line now and then.
#[derive(Debug, Clone, Copy)]
pub(super) enum Progress {
    Live,
    Log,
}

/// A few words about how far the work has come, for whoever shows it.
#[derive(Debug, Default)]
pub(crate) struct Detail(Mutex<String>);

impl Detail {
    pub(crate) fn set(&self, words: String) {
        if let Ok(mut detail) = self.0.lock() {
            *detail = words;
        }
    }

    fn get(&self) -> String {
        self.0.lock().map(|detail| detail.clone()).unwrap_or_default()
    }
}

impl Progress {
    pub(super) fn on_stderr() -> Self {
        if std::io::stderr().is_terminal() { Self::Live } else { Self::Log }
    }

    /// Does the work, and shows the label and the time that it has taken so far.
    pub(super) fn during<T>(self, label: &str, work: impl FnOnce(&Detail) -> T) -> T {
        let started = Instant::now();
        let detail = Detail::default();
        if let Self::Log = self {
            self.show(label);
        }
        std::thread::scope(|scope| {
            // Dropping `working` ends the thread, also when the work panics.
            let (working, watched) = mpsc::channel::<()>();
            let detail = &detail;
            scope.spawn(move || {
                while let Err(RecvTimeoutError::Timeout) = watched.recv_timeout(self.period()) {
                    self.show(&line(label, started.elapsed(), &detail.get()));
                }
                if let Self::Live = self {
                    self.show("");
                }
            });
            let result = work(detail);
            drop(working);
            result
        })
    }

    /// A line that stays.
    pub(super) fn say(self, text: &str) {
        // Progress that cannot be shown is no reason to stop.
        let _ = writeln!(std::io::stderr().lock(), "{text}");
    }

    fn show(self, text: &str) {
        match self {
            Self::Log => self.say(text),
            // Back to the start of the line, and clear it.
            Self::Live => {
                let mut err = std::io::stderr().lock();
                let _ = write!(err, "\r\x1b[K{text}").and_then(|()| err.flush());
            }
        }
    }

    fn period(self) -> Duration {
        match self {
            Self::Live => Duration::from_millis(200),
            Self::Log => Duration::from_secs(15),
        }
    }
}

fn line(label: &str, elapsed: Duration, detail: &str) -> String {
    let separator = if detail.is_empty() { "" } else { ", " };
    format!("{label}: {}{separator}{detail}", time(elapsed))
}

/// A time for a person: `9 s`, `3 min 05 s`.
pub(super) fn time(elapsed: Duration) -> String {
    let seconds = elapsed.as_secs();
    if seconds < 60 { format!("{seconds} s") } else { format!("{} min {:02} s", seconds / 60, seconds % 60) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        assert_eq!(time(Duration::from_millis(9_900)), "9 s");
        assert_eq!(time(Duration::from_secs(185)), "3 min 05 s");
    }

    #[test]
    fn a_line_has_the_detail_if_there_is_one() {
        let elapsed = Duration::from_secs(75);
        assert_eq!(line("[2/5] kubectl", elapsed, ""), "[2/5] kubectl: 1 min 15 s");
        assert_eq!(line("[2/5] kubectl", elapsed, "9 packages"), "[2/5] kubectl: 1 min 15 s, 9 packages");
    }

    #[test]
    fn the_work_is_done_and_its_result_is_given_back() {
        assert_eq!(Progress::Log.during("adding", |_| 1 + 1), 2);
    }
}
