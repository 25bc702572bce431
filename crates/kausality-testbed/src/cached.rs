//! What `cargo xtask` has built and keeps in the cache.

use std::ffi::OsStr;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail, ensure};

use crate::xtask::xtask;

/// The exit code of `cargo xtask … --path` that says: it is not there.
const ABSENT: i32 = 3;

/// The folder that `cargo xtask <command> --path` prints, if it is there. Builds nothing.
///
/// Only xtask knows its name, since it is made of all that goes into the binaries.
pub(crate) fn folder(command: &[&str]) -> Result<Option<PathBuf>> {
    let line = format!("`cargo xtask {} --path`", command.join(" "));
    let output = xtask().args(command).arg("--path").output().with_context(|| format!("running {line}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    match output.status.code() {
        Some(0) => {
            let folder = String::from_utf8_lossy(&output.stdout);
            ensure!(!folder.trim().is_empty(), "{line} printed no folder\n{said}");
            Ok(Some(OsStr::new(folder.trim()).into()))
        }
        Some(ABSENT) => Ok(None),
        _ => bail!("{line} failed ({})\n{said}", output.status),
    }
}
