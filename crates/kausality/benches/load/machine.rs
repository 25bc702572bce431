//! The machine: its processors, and what a process takes of them and of its memory. Only Linux tells.

use std::{fs, time::Duration};

use anyhow::{Context, Result};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde_json::{Value, json};

/// Who a processor is for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Seat {
    /// Those that are measured.
    Server,
    /// Who measures.
    Generator,
}

/// Keeps this thread, and those that it starts, on one processor. Where there is only one, everybody shares it.
pub(crate) fn take(seat: Seat) -> Result<()> {
    let free = processors()?;
    let mine = match (seat, free.as_slice()) {
        (Seat::Generator, [first, _, ..]) => first,
        (Seat::Server, [_, .., last]) => last,
        _ => return Ok(()),
    };
    let mut set = CpuSet::new();
    set.set(*mine);
    sched_setaffinity(None, &set).context("cannot stay on one processor")
}

/// Runs it on a thread with a seat of its own, so that whoever is started later may go anywhere.
pub(crate) fn seated<T: Send>(seat: Seat, what: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    std::thread::scope(|scope| {
        let seated = scope.spawn(move || take(seat).and_then(|()| what()));
        seated.join().unwrap_or_else(|_| Err(anyhow::anyhow!("the measurement panicked")))
    })
}

fn processors() -> Result<Vec<usize>> {
    let allowed = sched_getaffinity(None).context("which processors are there?")?;
    Ok((0..CpuSet::MAX_CPU).filter(|nth| allowed.is_set(*nth)).collect())
}

/// For how long processors have worked for all threads of a process.
pub(crate) fn busy(process: u32) -> Duration {
    let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let nanoseconds = threads.filter_map(|thread| {
        let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(nanoseconds.sum())
}

/// The bytes of this process that are in memory.
pub(crate) fn resident() -> Result<usize> {
    let text = fs::read_to_string("/proc/self/statm").context("how much memory is taken?")?;
    let pages: usize = text.split(' ').nth(1).context("statm has no second number")?.parse()?;
    Ok(pages * rustix::param::page_size())
}

/// What the figures were measured on.
pub(crate) fn describe() -> Value {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    json!({
        "processors": processors().unwrap_or_default().len(),
        "model": model.map(|(_, model)| model),
        "loadAverage": load.trim_end(),
    })
}
