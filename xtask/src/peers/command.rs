//! Commands that steps of peers run.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

/// A `go build` of a package, for this machine: static, small, and the same bytes on every machine.
pub(super) fn go_build(module: &Path, package: &str, to: &Path) -> Command {
    let mut go = Command::new("go");
    go.args(["build", "-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o"]);
    go.arg(to).arg(package).current_dir(module);
    go.env("CGO_ENABLED", "0").env("GOWORK", "off").env_remove("GOOS").env_remove("GOARCH");
    go
}

/// Runs a command, and returns what it printed.
pub(super) fn run(command: &mut Command) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("starting {program}"))?;
    ensure!(
        output.status.success(),
        "{program} failed ({}): {}",
        output.status,
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fails_says_why() {
        let error = run(Command::new("sh").args(["-c", "echo no such package >&2; exit 100"])).unwrap_err();
        assert_eq!(error.to_string(), "sh failed (exit status: 100): no such package");
    }
}
