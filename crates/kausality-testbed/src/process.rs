//! Processes that end with the test, however it ends.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use anyhow::{Context as _, Result};
use rustix::process::{Pid, Signal, kill_process};

/// How much of a log an error shows.
const TAIL: u64 = 4096;

/// A process group, and the watchdog that leads it.
///
/// The watchdog reads from a pipe whose other end only this process has. When this process ends, be it by SIGKILL, the
/// kernel closes the pipe, and the watchdog kills the group with itself in it. (The parent-death signal of Linux would
/// not do: it comes when the *thread* that started the process ends.)
#[derive(Debug)]
pub(crate) struct Group {
    watchdog: Child,
}

impl Group {
    pub(crate) fn start() -> Result<Self> {
        let watchdog = Command::new("sh")
            .args(["-c", "while read -r line; do :; done; kill -s KILL 0"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .context("starting sh, which watches over the control plane")?;
        Ok(Self { watchdog })
    }

    fn id(&self) -> Result<i32> {
        i32::try_from(self.watchdog.id()).context("the process id of sh")
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        drop(self.watchdog.stdin.take());
        // There is nothing to be done about a process that cannot be waited for.
        let _ = self.watchdog.wait();
    }
}

/// A running process with its log. It is killed when this value is dropped.
#[derive(Debug)]
pub(crate) struct Process {
    spec: Spec,
    child: Child,
}

/// What a process is started from.
#[derive(Debug, Clone, Default)]
pub(crate) struct Spec {
    /// The command that starts the program elsewhere, such as `nsenter`. Empty: it is started here.
    pub(crate) within: Vec<String>,
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<String>,
    /// Variables beside those of this process.
    pub(crate) env: Vec<(String, String)>,
    /// Takes stdout and stderr.
    pub(crate) log: PathBuf,
}

/// A process that ended although it should run.
#[derive(Debug, thiserror::Error)]
#[error("{program} ended ({status}). {last_words}", program = program.display())]
pub(crate) struct Died {
    program: PathBuf,
    status: ExitStatus,
    last_words: String,
}

impl Died {
    /// Whether another process was quicker to take its port.
    pub(crate) fn lost_its_port(&self) -> bool {
        self.last_words.contains("address already in use")
    }
}

impl Process {
    /// Starts a process in a group.
    pub(crate) fn start(spec: Spec, group: &Group) -> Result<Self> {
        let child = spawn(&spec, group).with_context(|| format!("starting {}", spec.program.display()))?;
        Ok(Self { spec, child })
    }

    /// Kills it, runs `between` while it is down, and starts it again with the same arguments.
    pub(crate) fn restart(&mut self, group: &Group, between: impl FnOnce() -> Result<()>) -> Result<()> {
        self.kill();
        between()?;
        *self = Self::start(self.spec.clone(), group)?;
        Ok(())
    }

    /// Adds arguments for when it is started again.
    pub(crate) fn add_args(&mut self, args: &[&str]) {
        self.spec.args.extend(args.iter().map(|arg| (*arg).to_owned()));
    }

    /// An error of kind [`Died`] if it has ended.
    pub(crate) fn is_running(&mut self) -> Result<()> {
        let Some(status) = self.child.try_wait().context("asking for the state of a process")? else {
            return Ok(());
        };
        Err(Died { program: self.spec.program.clone(), status, last_words: self.last_words() }.into())
    }

    /// The end of its log.
    pub(crate) fn last_words(&self) -> String {
        let tail = tail(&self.spec.log).unwrap_or_else(|error| format!("(cannot be read: {error})"));
        format!("The end of {}:\n{tail}", self.spec.log.display())
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: Signal) -> Result<()> {
        kill_process(Pid::from_child(&self.child), signal)
            .with_context(|| format!("sending {signal:?} to {}", self.spec.program.display()))
    }

    /// Waits until it has ended by itself.
    pub(crate) fn wait(&mut self) {
        // It fails only for a process that was waited for.
        let _ = self.child.wait();
    }

    fn kill(&mut self) {
        // Both fail only for a process that has ended and was waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

fn spawn(spec: &Spec, group: &Group) -> Result<Child> {
    let log = OpenOptions::new().create(true).append(true).open(&spec.log)?;
    let within = spec.within.iter().map(OsStr::new);
    let mut words = within.chain([spec.program.as_os_str()]).chain(spec.args.iter().map(OsStr::new));
    let child = Command::new(words.next().unwrap_or_default())
        .args(words)
        // Memory is cheaper than time: components written in Go collect garbage seldom.
        .env("GOGC", "400")
        .envs(spec.env.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .process_group(group.id()?)
        .spawn()?;
    Ok(child)
}

fn tail(path: &Path) -> std::io::Result<String> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests;
