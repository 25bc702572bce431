//! What the server logs, kept apart by thread: a test whose runtime has one thread sees its own lines only.
//!
//! One subscriber serves the whole process. Subscribers that come and go with tests race with each other for
//! what `tracing` remembers of each line.

use std::{cell::RefCell, io, sync::Once};

thread_local! {
    static WRITTEN: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

struct ThisThread;

impl io::Write for ThisThread {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        WRITTEN.with_borrow_mut(|written| written.extend_from_slice(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub(crate) fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        tracing_subscriber::fmt()
            .json()
            .with_env_filter("kausality_webhook=debug")
            .with_writer(|| ThisThread)
            .init();
    });
}

/// What was logged on this thread.
pub(crate) fn of_this_thread() -> String {
    WRITTEN.with_borrow(|written| String::from_utf8(written.clone()).unwrap())
}
