//! Lines of a log that strangers could fill.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

/// The least time between two lines.
const PAUSE: Duration = Duration::from_secs(10);

/// Says when it is time for the next line.
#[derive(Debug, Default)]
pub(crate) struct Seldom(Mutex<Option<Instant>>);

impl Seldom {
    /// Whether there was none for a while. Who is told so writes one.
    pub(crate) fn is_due(&self) -> bool {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = last.is_none_or(|last| last.elapsed() >= PAUSE);
        if is_due {
            *last = Some(Instant::now());
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_and_then_none_for_a_while() {
        let seldom = Seldom::default();
        assert!(seldom.is_due());
        assert!(!seldom.is_due());
        *seldom.0.lock().unwrap() = Instant::now().checked_sub(PAUSE);
        assert!(seldom.is_due());
    }
}
