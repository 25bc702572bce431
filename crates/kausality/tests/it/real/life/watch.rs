//! The memory of our processes, and what they wrote into their logs.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use tokio::task::JoinHandle;

use super::World;

/// How often memory is looked at.
const LOOK: Duration = Duration::from_secs(10);

/// One that lived shorter says nothing about memory.
const LONG_ENOUGH: Duration = Duration::from_secs(240);

/// How long it takes until one that comes to lead has all that it needs.
const WARM_UP: SignedDuration = SignedDuration::from_secs(30);

/// How much more a process may take in the last quarter of its life than in the second one, and in any case.
const GROWTH: f64 = 1.15;
const MARGIN: f64 = 2.0;

/// How long before and after an outage a warning may be due to it.
const AROUND: SignedDuration = SignedDuration::from_secs(20);

/// Warnings that restarts of our own parts lead to, and what a webhook says when it starts without client authentication.
const EXPECTED: [&str; 4] = ["watch failed", "the lease", "leads no more", "reviews are taken from anybody"];

/// One process.
struct Process {
    what: &'static str,
    id: u32,
    log: PathBuf,
    mebibytes: Vec<(Timestamp, f64)>,
}

impl Process {
    /// What it took since it has done what it does now: a controller that comes to lead takes more than one that waits.
    fn settled(&self) -> Vec<f64> {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        let lines = text.lines().rev().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let mut changes = lines
            .filter(|line| matches!(line["fields"]["message"].as_str(), Some("leads" | "leads no more")));
        let since =
            changes.next().map(|line| line["timestamp"].as_str().unwrap().parse::<Timestamp>().unwrap());
        let since = since.map_or(Timestamp::MIN, |since| since + WARM_UP);
        self.mebibytes.iter().filter(|(at, _)| *at >= since).map(|(_, taken)| *taken).collect()
    }
}

/// Looks at the memory of processes.
pub(super) struct Memory {
    processes: Arc<Mutex<Vec<Process>>>,
    /// Between two looks.
    interval: Duration,
    looking: JoinHandle<()>,
}

impl Memory {
    pub(super) fn start(length: Duration) -> Self {
        let processes: Arc<Mutex<Vec<Process>>> = Arc::default();
        let looked = processes.clone();
        let interval = LOOK.min(length / 20);
        let mut looks = tokio::time::interval(interval);
        let looking = tokio::spawn(async move {
            loop {
                looks.tick().await;
                for process in looked.lock().unwrap().iter_mut() {
                    let taken = resident(process.id).map(|taken| (Timestamp::now(), taken));
                    process.mebibytes.extend(taken);
                }
            }
        });
        Self { processes, interval, looking }
    }

    /// Looks at these, too.
    pub(super) fn follow(&self, running: Vec<(&'static str, u32, PathBuf)>) {
        let mut processes = self.processes.lock().unwrap();
        for (what, id, log) in running {
            if !processes.iter().any(|process| process.id == id) {
                processes.push(Process { what, id, log, mebibytes: Vec::new() });
            }
        }
    }

    /// How much each took, and which of them have grown.
    pub(super) fn stop(self) -> (Vec<String>, Vec<String>) {
        self.looking.abort();
        let processes = self.processes.lock().unwrap();
        let (mut all, mut grown) = (Vec::new(), Vec::new());
        for process in processes.iter() {
            let (Process { what, id, .. }, mebibytes) = (process, process.settled());
            let quarter = mebibytes.len() / 4;
            if quarter == 0 {
                continue;
            }
            let second = median(&mebibytes[quarter..2 * quarter]);
            let last = median(&mebibytes[mebibytes.len() - quarter..]);
            let account = format!(
                "{what} {id}: {} looks, median of the second quarter {second:.1} MiB, of the last {last:.1} MiB",
                mebibytes.len(),
            );
            let lived = self.interval * u32::try_from(mebibytes.len()).unwrap();
            if lived >= LONG_ENOUGH && last > (second * GROWTH).max(second + MARGIN) {
                grown.push(account.clone());
            }
            all.push(account);
        }
        (all, grown)
    }
}

/// How much memory a process takes, in MiB; nothing, if it is gone.
fn resident(id: u32) -> Option<f64> {
    let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().trim_end_matches(" kB").parse::<f64>().ok()? / 1024.0)
}

fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// What all logs of ours hold: how many warnings there are, by what they say, and each line that nothing explains.
pub(super) fn read_logs(folder: &Path, world: &World) -> (Vec<String>, Vec<String>) {
    let mut warnings: BTreeMap<String, [usize; 2]> = BTreeMap::new();
    let mut unexplained = Vec::new();
    let mut logs: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    logs.retain(|path| {
        let name = path.file_name().unwrap().to_str().unwrap();
        (name.starts_with("webhook-") || name.starts_with("controller-")) && name.ends_with(".log")
    });
    assert!(logs.len() >= 4, "{logs:?}");
    for log in logs {
        for line in fs::read_to_string(&log).unwrap().lines() {
            let Ok(read) = serde_json::from_str::<Value>(line) else {
                unexplained.push(format!("{}: {line}", log.display()));
                continue;
            };
            let level = read["level"].as_str().unwrap_or_default();
            if level != "WARN" && level != "ERROR" {
                continue;
            }
            let at: Timestamp = read["timestamp"].as_str().unwrap().parse().unwrap();
            let message = read["fields"]["message"].as_str().unwrap_or_default().to_owned();
            // A machine with other things to do keeps an API server from answering in time; and a write that is bound to a
            // version is tried again where somebody was quicker.
            let fields = read["fields"].to_string();
            let passes = ["no answer", "the object has been modified"].iter().any(|why| fields.contains(why));
            let explained = level == "WARN"
                && (passes
                    || world.was_down(at - AROUND, at + AROUND)
                    || EXPECTED.iter().any(|words| message.starts_with(words)));
            warnings.entry(format!("{level} {message}")).or_default()[usize::from(!explained)] += 1;
            if !explained {
                unexplained.push(format!("{}: {line}", log.display()));
            }
        }
    }
    let account = |(message, [explained, others]): (String, [usize; 2])| {
        format!("{explained} explained, {others} not: {message}")
    };
    (warnings.into_iter().map(account).collect(), unexplained)
}
