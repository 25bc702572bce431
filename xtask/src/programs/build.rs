//! One `go build`.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

use super::edit;
use super::progress::Detail;
use super::recipe::Build;

/// How much of what Go said is shown when it fails.
const SHOWN: usize = 40;

/// Builds one binary into a file. `root` is the root of the repository.
pub(super) fn build(build: &Build, root: &Path, file: &Path, detail: &Detail) -> Result<()> {
    let scratch = file.with_extension("scratch");
    let mut go = Command::new("go")
        .current_dir(edit::workplace(build.binary.module, root, &scratch)?)
        // -v names each package when it is compiled, which shows how far it has come.
        .args(["build", "-v"])
        .args(build.flags())
        .arg("-o")
        .arg(file)
        .arg(build.binary.package)
        .env("CGO_ENABLED", "0")
        // For this machine, and from the pinned modules alone.
        .env("GOWORK", "off")
        .env_remove("GOOS")
        .env_remove("GOARCH")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .context("starting `go build`")?;
    let mut report = Report::default();
    if let Some(stderr) = go.stderr.take() {
        for line in BufReader::new(stderr).split(b'\n') {
            let line = line.context("reading what `go build` says")?;
            detail.set(report.read(&String::from_utf8_lossy(&line)));
        }
    }
    let status = go.wait().context("waiting for `go build`")?;
    if !status.success() {
        bail!(
            "building {} from {} failed ({status}):\n{}\n\
             If a module could not be fetched: `go env GOPROXY` says from where, and the next run goes on from here.",
            build.binary.package,
            build.pin.version,
            report.errors()
        );
    }
    edit::clear(&scratch)
}

/// What `go build -v` has said so far.
#[derive(Debug, Default)]
struct Report {
    downloads: usize,
    packages: usize,
    rest: Vec<String>,
}

impl Report {
    /// Takes one more line in, and says how far the build has come.
    fn read(&mut self, line: &str) -> String {
        if line.starts_with("go: downloading ") {
            self.downloads += 1;
        } else if line.contains(char::is_whitespace) {
            self.rest.push(line.to_owned());
        } else if !line.is_empty() {
            self.packages += 1;
        }
        if self.packages == 0 {
            format!("{} modules fetched", self.downloads)
        } else {
            format!("{} packages compiled", self.packages)
        }
    }

    /// The last lines that are no progress.
    fn errors(&self) -> String {
        self.rest[self.rest.len().saturating_sub(SHOWN)..].join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_modules_then_packages() {
        let mut report = Report::default();
        assert_eq!(report.read("go: downloading k8s.io/api v0.35.8"), "1 modules fetched");
        assert_eq!(report.read("k8s.io/api/core/v1"), "1 packages compiled");
        assert_eq!(report.read("k8s.io/api/apps/v1"), "2 packages compiled");
        assert_eq!(report.errors(), "");
    }

    #[test]
    fn errors_are_what_is_left_without_the_progress() {
        let mut report = Report::default();
        for line in ["go: downloading a v1", "a/b", "# a/c", "c.go:1:2: undefined: x", "a/d"] {
            report.read(line);
        }
        assert_eq!(report.errors(), "# a/c\nc.go:1:2: undefined: x");
    }

    #[test]
    fn only_the_end_of_many_errors_is_shown() {
        let mut report = Report::default();
        for number in 0..100 {
            report.read(&format!("error {number}"));
        }
        assert_eq!(report.errors().lines().count(), SHOWN);
        assert!(report.errors().ends_with("error 99"));
    }
}
