//! A power loss: processes end at once, without a word to anybody. What they wrote stays.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};

/// How long processes may take to end.
const END: Duration = Duration::from_secs(10);

/// What loses its power.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outage {
    /// The node with its containers. The control plane goes on, as if it were on other machines.
    Node,
    /// The control plane, too.
    Everything,
}

/// Kills everything below these processes, in their order, and waits until it has ended. They themselves stay.
pub(super) fn kill_below(roots: &[u32]) -> Result<()> {
    let deadline = Instant::now() + END;
    loop {
        let doomed = below(roots, &processes()?);
        if doomed.is_empty() {
            return Ok(());
        }
        ensure!(Instant::now() < deadline, "processes {doomed:?} do not end");
        for process in doomed {
            let pid = i32::try_from(process).ok().and_then(Pid::from_raw).context("reading a process id")?;
            match kill_process(pid, Signal::KILL) {
                // It has ended meanwhile.
                Ok(()) | Err(Errno::SRCH) => {}
                Err(error) => return Err(error).with_context(|| format!("killing process {process}")),
            }
        }
        // What was just being started is found the next time.
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// All that live below these processes.
fn below(roots: &[u32], parents: &BTreeMap<u32, u32>) -> Vec<u32> {
    let mut found: Vec<u32> = Vec::new();
    for root in roots {
        let mut next = vec![*root];
        while let Some(parent) = next.pop() {
            let children = parents.iter().filter(|(_, of)| **of == parent).map(|(child, _)| *child);
            let children: Vec<u32> = children.filter(|child| !found.contains(child)).collect();
            found.extend(&children);
            next.extend(children);
        }
    }
    found
}

/// All processes with their parents. One that has ended is among them until its parent has noticed: its threads may still hold
/// ports.
fn processes() -> Result<BTreeMap<u32, u32>> {
    let entries = std::fs::read_dir("/proc").context("listing /proc")?.flatten();
    let ids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    // One that is gone by now has ended.
    let parent = |id: u32| parent(&std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?);
    Ok(ids.filter_map(|id| Some((id, parent(id)?))).collect())
}

/// The parent of a process, by its `stat`.
fn parent(stat: &str) -> Option<u32> {
    // The name before it may contain anything; the state comes next.
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_says_who_its_parent_is() {
        assert_eq!(parent("12 (a) b (c)) S 7 12 12 0"), Some(7));
        assert_eq!(parent(""), None);
    }

    #[test]
    fn what_is_below_comes_in_the_order_of_the_roots() {
        let parents = BTreeMap::from([(10, 1), (11, 10), (12, 11), (20, 2), (21, 20), (30, 3)]);
        assert_eq!(below(&[20, 10], &parents), [21, 11, 12]);
        assert_eq!(below(&[1], &parents), [10, 11, 12]);
        assert_eq!(below(&[12], &parents), [0; 0]);
    }
}
