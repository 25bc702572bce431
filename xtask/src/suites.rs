//! Runs all test executables, two at a time: suites that wait for processes beside suites that compute.
//!
//! `cargo test` runs one after the other, and a third of the time nobody computes. cargo-nextest was looked at: it starts a
//! process per test, so that tests cannot share a control plane, and takes minutes to compile.

use std::{
    collections::VecDeque,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Child, Command, ExitCode, Stdio},
    sync::{Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;

/// The suites that take longest, which start first: one that waits for processes, and one that computes.
const LONGEST: [(&str, &str); 4] = [
    ("kausality", "it"),
    ("kausality-simulation", "it"),
    ("kausality-core", "it"),
    ("kausality-sandbox", "lib"),
];

/// Suites that compute and wait for nobody: those that have deadlines come before them.
const PATIENT: [&str; 5] =
    ["kausality-simulation", "kausality-core", "kausality-fields", "kausality-cel", "kausality-sandbox"];

/// How often it is looked whether a suite has ended, or another has failed.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// How often it is said that a suite is still running.
const TELL_INTERVAL: Duration = Duration::from_secs(30);

/// The most lines of a failed test's message that are repeated at the end.
const MESSAGE_LINES: usize = 8;

/// A test executable.
#[derive(Debug, PartialEq, Eq)]
struct Suite {
    package: String,
    target: String,
    executable: PathBuf,
    folder: PathBuf,
}

impl Suite {
    fn name(&self) -> String {
        format!("{}/{}", self.package, self.target)
    }

    /// Its place among those that take long; the others come after them.
    fn rank(&self) -> usize {
        let is = |(package, target): &(&str, &str)| *package == self.package && *target == self.target;
        LONGEST.iter().position(is).unwrap_or(LONGEST.len())
    }
}

/// What of `tests/it` needs no control plane and ends soon: the pure crates, and the scenarios on the sandbox.
const QUICK: [&str; 8] = [
    "cases::",
    "library::",
    "properties",
    "verdict_",
    "merge_cases::",
    "golden_sets::",
    "schema_",
    "on_the_sandbox",
];

/// What is left out then: libraries with few tests that fail seldom, and take as long to link as others. What is left needs third-party
/// crates with the same features, so that none is compiled again.
const NOT_QUICK: [&str; 7] = [
    "kausality-cluster",
    "kausality-controller",
    "kausality-report",
    "kausality-simulation",
    "kausality-testbed",
    "kausality-tui",
    "kausality-webhook",
];

/// Builds all tests and runs them, and those in the documentation; or only the [`QUICK`] ones, and the unit tests beside them.
pub(crate) fn run(quick: bool) -> Result<ExitCode> {
    let names: &[&str] = if quick { &QUICK } else { &[] };
    let mut targets = Vec::new();
    if quick {
        targets.extend(["--lib", "--test", "it"]);
        targets.extend(NOT_QUICK.iter().flat_map(|package| ["--exclude", package]));
    }
    let mut suites = build(&targets)?;
    ensure!(!suites.is_empty(), "there is no test");
    suites.sort_by_key(Suite::rank);
    let number = suites.len();
    let queue = Mutex::new(VecDeque::from(suites));
    let failed = Mutex::new(None);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| work(&queue, names, &failed));
        }
    });
    if let Some(why) = failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
        bail!("{why}");
    }
    if quick {
        writeln!(std::io::stdout(), "{number} suites passed")?;
        return Ok(ExitCode::SUCCESS);
    }
    writeln!(std::io::stdout(), "{number} suites passed; running the tests in the documentation")?;
    let documented = cargo().args(["--doc", "--quiet"]).status()?;
    ensure!(documented.success(), "a test in the documentation failed");
    Ok(ExitCode::SUCCESS)
}

fn cargo() -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["test", "--workspace", "--locked"]);
    cargo
}

/// The executables of these targets' tests, built; of all, if none is named.
fn build(targets: &[&str]) -> Result<Vec<Suite>> {
    let output = cargo()
        .args(targets)
        .args(["--no-run", "--message-format=json-render-diagnostics"])
        .stderr(Stdio::inherit())
        .output()
        .context("running cargo")?;
    ensure!(output.status.success(), "the tests cannot be built");
    Ok(String::from_utf8_lossy(&output.stdout).lines().filter_map(suite).collect())
}

/// The test executable that a message of cargo's tells of.
fn suite(message: &str) -> Option<Suite> {
    #[derive(Deserialize)]
    struct Artifact {
        manifest_path: PathBuf,
        target: Target,
        profile: Profile,
        executable: Option<PathBuf>,
    }
    #[derive(Deserialize)]
    struct Target {
        name: String,
        kind: Vec<String>,
    }
    #[derive(Deserialize)]
    struct Profile {
        test: bool,
    }
    let artifact: Artifact = serde_json::from_str(message).ok()?;
    let folder = artifact.manifest_path.parent()?.to_owned();
    let package = folder.file_name()?.to_str()?.to_owned();
    let is_integration = artifact.target.kind.iter().any(|kind| kind == "test");
    let target = if is_integration { artifact.target.name } else { artifact.target.kind.first()?.clone() };
    artifact.executable.filter(|_| artifact.profile.test).map(|executable| Suite {
        package,
        target,
        executable,
        folder,
    })
}

/// Runs suites until none is left or one has failed.
fn work(queue: &Mutex<VecDeque<Suite>>, names: &[&str], failed: &Mutex<Option<String>>) {
    loop {
        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let has_failed = || failed.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        let Some(suite) = next.filter(|_| !has_failed()) else { return };
        let names = if suite.target == "it" { names } else { &[] };
        if let Err(why) = play(&suite, names, has_failed) {
            let mut failed = failed.lock().unwrap_or_else(PoisonError::into_inner);
            failed.get_or_insert(format!("{why:#}"));
        }
    }
}

/// Runs one suite, or what of it has one of these names, and prints what it said when it has ended. Ends it if another has
/// failed.
fn play(suite: &Suite, names: &[&str], has_failed: impl Fn() -> bool) -> Result<()> {
    let name = suite.name();
    let begun = Instant::now();
    say(format_args!("running {name}"));
    let file = format!("kausality-suite-{}-{}", std::process::id(), name.replace('/', "-"));
    let file = std::env::temp_dir().join(file);
    let log = std::fs::File::create(&file)?;
    let mut child =
        command(suite).args(names).stdout(log.try_clone()?).stderr(log).spawn().context(name.clone())?;
    let mut told = begun;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if told.elapsed() >= TELL_INTERVAL {
            told = Instant::now();
            say(format_args!("still running {name}, for {:.0} s", begun.elapsed().as_secs_f64()));
        }
        if has_failed() {
            end(&mut child);
            return Ok(());
        }
        thread::sleep(POLL_INTERVAL);
    };
    let output = std::fs::read(&file)?;
    std::fs::remove_file(&file)?;
    let output = String::from_utf8_lossy(&output);
    let seconds = begun.elapsed().as_secs_f64();
    say(format_args!("{name}, {seconds:.0} s:\n{output}"));
    ensure!(status.success(), "{name} failed: {status}{}", failures(&output));
    Ok(())
}

/// The tests that failed and the first lines of why: the end of a log is all that CI keeps.
fn failures(output: &str) -> String {
    let mut lines = output.lines();
    let mut summary = String::new();
    while let Some(line) = lines.next() {
        let Some(name) = line.strip_prefix("---- ").and_then(|line| line.strip_suffix(" stdout ----")) else {
            continue;
        };
        summary += &format!("\n  {name}");
        let message = lines.by_ref().skip_while(|line| !line.contains("panicked at")).take(MESSAGE_LINES);
        message.take_while(|line| !line.is_empty()).for_each(|line| summary += &format!("\n    {line}"));
    }
    summary
}

fn command(suite: &Suite) -> Command {
    let patient = PATIENT.contains(&&*suite.package) && Path::new("/usr/bin/nice").exists();
    let mut command = match patient {
        true => {
            let mut nice = Command::new("/usr/bin/nice");
            nice.args(["-n", "10"]).arg(&suite.executable);
            nice
        }
        false => Command::new(&suite.executable),
    };
    // As cargo does.
    command
        .current_dir(&suite.folder)
        .env("CARGO", env!("CARGO"))
        .env("CARGO_MANIFEST_DIR", &suite.folder)
        .env("CARGO_PKG_NAME", &suite.package)
        .env("RUST_BACKTRACE", "0")
        .stdin(Stdio::null());
    command
}

fn end(child: &mut Child) {
    // Whatever it started ends with it.
    let _ = child.kill();
    let _ = child.wait();
}

fn say(what: std::fmt::Arguments<'_>) {
    // Whoever does not read it any more does not care.
    let _ = writeln!(std::io::stdout().lock(), "{what}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_executables_are_found_among_what_cargo_says() {
        let message = |kind: &str, test: bool, executable: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","manifest_path":"/w/crates/kausality-core/Cargo.toml","target":
                {{"name":"it","kind":["{kind}"]}},"profile":{{"test":{test}}},"executable":{executable}}}"#
            )
            .replace('\n', "")
        };
        let found = suite(&message("test", true, "\"/t/it-1\"")).unwrap();
        assert_eq!((found.name().as_str(), found.rank()), ("kausality-core/it", 2));
        assert_eq!(found.folder, Path::new("/w/crates/kausality-core"));
        assert_eq!(suite(&message("lib", true, "\"/t/core-1\"")).unwrap().name(), "kausality-core/lib");
        assert_eq!(suite(&message("bin", false, "\"/t/kausality\"")), None);
        assert_eq!(suite(&message("lib", true, "null")), None);
        assert_eq!(suite("{\"reason\":\"build-finished\",\"success\":true}"), None);
        assert_eq!(suite("no JSON"), None);
    }

    #[test]
    fn what_failed_is_repeated_with_its_reason() {
        let output = "test a::b ... FAILED\n\nfailures:\n\n---- a::b stdout ----\nnoise\n\n\
            thread 'a::b' (7) panicked at x.rs:1:2:\nleft is not right\n\nfailures:\n    a::b\n";
        assert_eq!(
            failures(output),
            "\n  a::b\n    thread 'a::b' (7) panicked at x.rs:1:2:\n    left is not right"
        );
        assert_eq!(failures("test a::b ... ok\n"), "");
    }
}
