//! What a test says although it passes.

use std::io::Write as _;

use anyhow::Result;

/// Says something about the test that calls it: `==> SKIPPED <test>: <text>`.
pub(crate) fn aloud(what: &str, text: &str) -> Result<()> {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    let line = format!("\n==> {what} {test}: {text}\n");
    // Not with eprintln!, which cargo test shows only for tests that fail. In one piece, since tests run at once.
    std::io::stderr().write_all(line.as_bytes())?;
    Ok(())
}
